/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/roles.h"
#include "masks/base/memory.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/post.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/unigram/unigram.h"
#include <string.h>

/* Finds a token by its usual name if no file names it: BERT's name, else RoBERTa's. */
static int64_t find_role(const struct tokenizer *t, const struct tokenizer_settings *s,
                         enum special_name name)
{
    static const char *const names[NAME_COUNT][2] = {[NAME_UNKNOWN] = {"[UNK]", "<unk>"},
                                                     [NAME_BEGIN] = {"[CLS]", "<s>"},
                                                     [NAME_END] = {"[SEP]", "</s>"},
                                                     [NAME_PAD] = {"[PAD]", "<pad>"},
                                                     [NAME_MASK] = {"[MASK]", "<mask>"}};
    const char *text = s->special[name].text;
    int64_t found = tokenizer_find(t, text);
    return found < 0 && !strcmp(text, names[name][0]) ? tokenizer_find(t, names[name][1])
                                                      : found;
}

static int must_find(const struct tokenizer *t, const struct tokenizer_settings *s,
                     enum special_name name, uint32_t *ret, struct error *e)
{
    int64_t found = find_role(t, s, name);
    if (found < 0)
        return error_set(e, ERROR_INPUT, "the token %.60s is not in the vocabulary",
                         s->special[name].text);
    *ret = (uint32_t)found;
    return 0;
}

/* The special tokens around texts: those of the file, or those with a role. */
static int take_post(struct tokenizer *t, struct tokenizer_settings *s, struct error *e)
{
    t->post = memory_copy(&s->post, sizeof s->post);
    s->post = (struct post){0};
    if (!t->post->given) {
        if (must_find(t, s, NAME_BEGIN, &t->begin, e) < 0 ||
            must_find(t, s, NAME_END, &t->end, e) < 0)
            return -1;
        post_build(t->post, t->begin, t->end, s->roberta_pairs);
    }
    if (post_largest(t->post) >= t->vocabulary.count)
        return error_set(e, ERROR_INPUT,
                         "post_processor: the token %u is not in the vocabulary",
                         post_largest(t->post));
    const struct layout *one = &t->post->single, *two = &t->post->pair;
    t->begin = one->token_id[0];
    t->end = one->token_id[one->before + one->after - 1];
    t->specials = two->before + two->middle + two->after;
    return 0;
}

/* Versions of transformers differ where RoBERTa's class and the post-processor name other tokens. */
static int check_name(const struct tokenizer *t, const struct tokenizer_settings *s,
                      enum special_name name, uint32_t expected, struct error *e)
{
    const int64_t found = s->special[name].given ? find_role(t, s, name) : -1;
    if (found < 0 || found == expected)
        return 0;
    return error_set(e, ERROR_INPUT,
                     "%s %.60s of a RobertaTokenizer: the token in the post_processor of "
                     "tokenizer.json is expected",
                     name == NAME_BEGIN ? "cls_token" : "sep_token", s->special[name].text);
}

/* RoBERTa's class replaces these settings of tokenizer.json, also by its defaults. */
static int take_roberta(struct tokenizer *t, const struct tokenizer_settings *s,
                        struct error *e)
{
    if (s->class != CLASS_ROBERTA || !t->bpe)
        return 0;
    if (t->splitters)
        splitters_prefix(t->splitters, s->prefix_space > 0);
    t->post->prefix = s->prefix_space > 0;
    t->post->trims = s->trims != 0;
    if (check_name(t, s, NAME_BEGIN, t->begin, e) < 0)
        return -1;
    return check_name(t, s, NAME_END, t->end, e);
}

int roles_find(struct tokenizer *t, struct tokenizer_settings *s, struct error *e)
{
    int64_t pad = find_role(t, s, NAME_PAD), unknown = find_role(t, s, NAME_UNKNOWN);
    t->mask = find_role(t, s, NAME_MASK);
    t->pad = pad < 0 ? 0 : (uint32_t)pad;
    t->unknown = unknown < 0 ? UINT32_MAX : (uint32_t)unknown;
    if (t->unigram)
        t->unknown = t->unigram->unknown;
    if (t->bpe && t->bpe->unknown >= 0)
        t->unknown = (uint32_t)t->bpe->unknown;
    if (s->wordpiece && must_find(t, s, NAME_UNKNOWN, &t->unknown, e) < 0)
        return -1;
    if (take_post(t, s, e) < 0)
        return -1;
    return take_roberta(t, s, e);
}
