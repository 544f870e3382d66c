/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert vocab: a vocabulary from the text on stdin. */
#include "masks/base/file.h"
#include "model/tokenizer/train/train.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/input.h"
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_MIN_FREQUENCY = 2, ALPHABET_LIMIT = 1000 };

static int read_size(const struct options *o, uint32_t *ret, struct error *e)
{
    char *end = NULL;
    unsigned long size = o->size ? strtoul(o->size, &end, 10) : 0;
    if (!o->output)
        return error_set(e, ERROR_INPUT, "vocab: -o FILE is expected");
    if (!o->size || *o->size < '0' || *o->size > '9' || *end || size < 6 ||
        size > VOCABULARY_MAX_TOKENS)
        return error_set(e, ERROR_INPUT, "vocab: --size in 6..%d is expected",
                         VOCABULARY_MAX_TOKENS);
    *ret = (uint32_t)size;
    return 0;
}

static int read_text(struct vocabulary_trainer *t, struct error *e)
{
    struct input_lines in = {0};
    int r;
    while ((r = input_next(&in, stdin, e)) == 0 && in.count)
        for (uint32_t k = 0; k < in.count; k++)
            vocabulary_trainer_add(t, in.line[k].bytes, in.line[k].size);
    input_finish(&in);
    return r;
}

int command_vocab(const struct options *o)
{
    struct error e = {0};
    struct text out = {0};
    struct vocabulary_trainer_options options = {
        .min_frequency = o->min_frequency ? o->min_frequency : DEFAULT_MIN_FREQUENCY,
        .alphabet_limit = ALPHABET_LIMIT,
        .cased = o->cased,
    };
    if (read_size(o, &options.size, &e) < 0)
        return command_fail(&e);
    struct vocabulary_trainer *t = vocabulary_trainer_new(&options);
    int r = read_text(t, &e);
    if (r == 0)
        r = vocabulary_trainer_finish(t, &out, &e);
    if (r == 0)
        r = file_write(o->output, text_get(&out), out.length, &e);
    text_finish(&out);
    vocabulary_trainer_destroy(t);
    return r < 0 ? command_fail(&e) : 0;
}
