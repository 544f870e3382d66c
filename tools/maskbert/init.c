/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert init: a new model of a named size. */
#include "model/checkpoint/init.h"
#include "masks/base/file.h"
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/mimetic.h"
#include "model/checkpoint/save.h"
#include "model/tokenizer/tokenizer.h"
#include "tools/maskbert/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VOCABULARY = 30522, DEFAULT_POSITIONS = 512 };

struct size {
    const char *name;
    uint32_t layers, hidden, heads;
};

static const struct size named[] = {
    {"tiny", 2, 128, 2},   {"mini", 4, 256, 4},   {"small", 4, 512, 8},
    {"medium", 8, 512, 8}, {"base", 12, 768, 12}, {"large", 24, 1024, 16},
};

static int read_size(const char *text, struct size *ret, struct error *e)
{
    int end = 0;
    for (size_t k = 0; k < sizeof named / sizeof *named; k++)
        if (!strcmp(named[k].name, text)) {
            *ret = named[k];
            return 0;
        }
    if (sscanf(text, "%5ux%5ux%5u%n", &ret->layers, &ret->hidden, &ret->heads, &end) == 3 &&
        !text[end])
        return 0;
    return error_set(e, ERROR_INPUT,
                     "--size %s: tiny, mini, small, medium, base, large or LxHxA is expected",
                     text);
}

static json_t *config_json(const struct size *s, uint32_t vocabulary, uint32_t pad,
                           const struct options *o)
{
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:f, "
                     "s:f, s:s}",
                     "architectures", "BertForPreTraining", "model_type", "bert", "vocab_size",
                     (int)vocabulary, "hidden_size", (int)s->hidden, "num_hidden_layers",
                     (int)s->layers, "num_attention_heads", (int)s->heads, "intermediate_size",
                     (int)(4 * s->hidden), "max_position_embeddings",
                     (int)(o->positions ? o->positions : DEFAULT_POSITIONS), "type_vocab_size",
                     2, "pad_token_id", (int)pad, "hidden_act", "gelu", "layer_norm_eps", 1e-12,
                     "initializer_range", o->deviation != 0 ? o->deviation : 0.02,
                     "hidden_dropout_prob", 0.1, "attention_probs_dropout_prob", 0.1,
                     "position_embedding_type", "absolute");
}

/* Reads it as the tokenizer will: a vocabulary that the tokenizer cannot use is refused here. */
static int read_vocabulary(const char *path, struct file *f, uint32_t *ret_size,
                           uint32_t *ret_pad, bool *ret_cased, struct error *e)
{
    if (file_open(path, f, e) < 0)
        return -1;
    struct tokenizer *t =
        tokenizer_new((const char *)f->bytes, f->size, false, TOKENIZER_HF, e);
    if (!t)
        return error_prefix(e, "%s", path);
    *ret_size = t->vocabulary.count;
    *ret_pad = t->pad;
    *ret_cased = vocabulary_find(&t->vocabulary, "A") >= 0;
    tokenizer_destroy(t);
    return 0;
}

static int write_file(const char *folder, const char *name, const void *bytes, size_t size,
                      struct error *e)
{
    char *path = path_join(folder, name);
    int r = file_write(path, bytes, size, e);
    free(path);
    return r;
}

static int write_tokenizer(const char *folder, const struct file *f, bool cased,
                           uint32_t positions, struct error *e)
{
    json_t *json = json_pack("{s:s, s:b, s:i}", "tokenizer_class", "BertTokenizer",
                             "do_lower_case", !cased, "model_max_length", (int)positions);
    char *text = json_dumps(json, JSON_INDENT(2));
    int r = write_file(folder, "vocab.txt", f->bytes, f->size, e);
    if (r == 0)
        r = write_file(folder, "tokenizer_config.json", text, strlen(text), e);
    free(text);
    json_decref(json);
    return r;
}

static int build(const struct options *o, const struct model_config *c, const struct file *f,
                 bool cased, struct error *e)
{
    enum element element = ELEMENT_F32;
    struct weights w = {0};
    if (o->dtype && (!element_parse(o->dtype, &element) || element == ELEMENT_F64))
        return error_set(e, ERROR_INPUT, "--dtype %s: f32, bf16 or f16 is expected", o->dtype);
    bool mimetic = o->start && !strcmp(o->start, "mimetic");
    if (o->start && !mimetic && strcmp(o->start, "random") != 0)
        return error_set(e, ERROR_INPUT, "--start %s: random or mimetic is expected", o->start);
    static const char *const none[] = {NULL}, *const tokenizer[] = {
                                                  "vocab.txt", "tokenizer_config.json", NULL};
    struct folder folder = {0};
    if (model_check_target(o->output, NULL, f->bytes ? tokenizer : none, e) < 0 ||
        folder_begin(o->output, &folder, e) < 0)
        return -1;
    weights_begin(c, config_parts(c), &w);
    weights_initialise(&w, c, c->initializer_range, o->seed);
    if (mimetic)
        weights_make_mimetic(&w, c->initializer_range);
    int r = f->bytes ? write_tokenizer(folder.aside, f, cased, c->positions, e) : 0;
    if (r == 0)
        r = model_save(folder.aside, c, &w, element, e);
    weights_finish(&w);
    return folder_end(&folder, r, e);
}

int command_init(const struct options *o)
{
    struct error e = {0};
    struct file f = {0};
    struct size size = {0};
    struct model_config c = {0};
    uint32_t words = DEFAULT_VOCABULARY, pad = 0;
    bool cased = false;
    int r = !o->output ? error_set(&e, ERROR_INPUT, "init: -o DIR is expected")
            : !o->size ? error_set(&e, ERROR_INPUT, "init: --size SIZE is expected")
                       : read_size(o->size, &size, &e);
    if (r == 0 && o->vocabulary)
        r = read_vocabulary(o->vocabulary, &f, &words, &pad, &cased, &e);
    json_t *json = r == 0 ? config_json(&size, words, pad, o) : NULL;
    if (r == 0 && config_parse(json, &c, &e) < 0)
        r = error_prefix(&e, "init");
    if (r == 0)
        r = build(o, &c, &f, cased, &e);
    json_decref(json);
    config_finish(&c);
    file_close(&f);
    return r < 0 ? command_fail(&e) : 0;
}
