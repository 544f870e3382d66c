/* SPDX-License-Identifier: Apache-2.0 */
/* From a model's folder, or a vocabulary in memory, to a tokenizer. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/added_read.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/encoding.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/pipeline.h"
#include "model/tokenizer/post.h"
#include "model/tokenizer/roles.h"
#include "model/tokenizer/sentencepiece.h"
#include "model/tokenizer/settings.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/unigram/unigram.h"
#include "model/tokenizer/vocabulary_read.h"
#include <stdlib.h>
#include <string.h>

enum { GOOGLE_MAX_CHARS = 200 };

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    added_finish(&t->added);
    vocabulary_finish(&t->vocabulary);
    if (t->bpe)
        bpe_finish(t->bpe);
    if (t->unigram)
        unigram_finish(t->unigram);
    if (t->normalizers)
        normalizers_finish(t->normalizers);
    if (t->splitters)
        splitters_finish(t->splitters);
    if (t->post)
        post_finish(t->post);
    free(t->bpe);
    free(t->unigram);
    free(t->normalizers);
    free(t->splitters);
    free(t->post);
    free(t);
}

int64_t tokenizer_find(const struct tokenizer *t, const char *token)
{
    const struct added_token *added = added_find(&t->added, token);
    return added ? added->token_id : vocabulary_find(&t->vocabulary, token);
}

const char *tokenizer_kind_name(const struct tokenizer *t)
{
    return t->kind->name;
}

static char *normalise(const void *context, const char *text, uint32_t *ret_size)
{
    const struct tokenizer *t = context;
    uint32_t size = (uint32_t)strlen(text);
    if (t->normalizers)
        return pipeline_normalise(t->normalizers, text, size, ret_size);
    struct words w = {0};
    const struct word_splitter s = {t->unicode, &t->rules, NULL, NULL};
    words_normalise(&w, &s, text, 0, size);
    char *ret = memory_copy(w.bytes, w.size);
    *ret_size = w.size;
    words_finish(&w);
    return ret;
}

static bool has_lowercase(const struct tokenizer *t)
{
    bool found = false;
    for (uint32_t k = 0; k < t->normalizers->count; k++)
        found |= t->normalizers->list[k].kind == NORMALIZER_LOWERCASE;
    return found;
}

static void take_rules(struct tokenizer *t, const struct tokenizer_settings *s, bool google)
{
    t->rules = (struct word_rules){
        .clean = s->clean || google,
        .ideographs = s->ideographs || google,
        .lowercase = s->wordpiece ? s->lowercase : has_lowercase(t),
        .strip_accents =
            s->wordpiece && (s->strip_given && !google ? s->strip_accents : s->lowercase),
        .google = google,
        .max_chars = google ? GOOGLE_MAX_CHARS : s->max_chars,
    };
}

static int finish(struct tokenizer *t, struct tokenizer_settings *s,
                  enum tokenizer_compat compat, struct error *e)
{
    bool google = compat == TOKENIZER_GOOGLE;
    if (google && !s->wordpiece)
        return error_set(e, ERROR_INPUT,
                         "a %s vocabulary has no Google form: leave --tokenizer-compat out",
                         t->kind->name);
    t->compat = compat;
    t->max_length = s->max_length;
    take_rules(t, s, google);
    t->unicode = unicode_get(google ? UNICODE_GOOGLE : UNICODE_HF);
    if (added_read_settings(t, s, e) < 0 || roles_find(t, s, e) < 0)
        return -1;
    if (google) /* Google's tokenizer finds no added tokens in a text */
        added_finish(&t->added);
    return added_index(&t->added, normalise, t, e);
}

static int read_wordpiece(struct tokenizer *t, struct tokenizer_settings *s, const json_t *json,
                          struct error *e)
{
    const json_t *list = json_object_get(json_object_get(json, "model"), "vocab");
    if (settings_take_json(s, json, e) < 0 ||
        vocabulary_read(&t->vocabulary, list, "model.vocab", e) < 0)
        return -1;
    return vocabulary_index(&t->vocabulary, s->prefix, e);
}

static int read_kind(struct tokenizer *t, struct tokenizer_settings *s, const json_t *json,
                     struct error *e)
{
    s->wordpiece = false;
    if (post_read(&s->post, json_object_get(json, "post_processor"), e) < 0)
        return -1;
    if (!s->post.given)
        return error_set(e, ERROR_INPUT,
                         "no post_processor with special tokens, RobertaProcessing or "
                         "TemplateProcessing is expected");
    return t->kind->read(t, json, e);
}

static int read_json(struct tokenizer *t, struct tokenizer_settings *s, const json_t *json,
                     struct error *e)
{
    const json_t *added = json_object_get(json, "added_tokens");
    const json_t *type = json_object_get(json_object_get(json, "model"), "type");
    const struct tokenizer_kind *kinds[] = {&tokenizer_bpe, &tokenizer_unigram};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (json_is_string(type) && !strcmp(json_string_value(type), kinds[k]->name))
            t->kind = kinds[k];
    const char *side =
        json_string_value(json_object_get(json_object_get(json, "truncation"), "direction"));
    s->cuts_left = side && !strcmp(side, "Left");
    int r = t->kind == &tokenizer_wordpiece ? read_wordpiece(t, s, json, e)
                                            : read_kind(t, s, json, e);
    if (r < 0)
        return -1;
    return added_read_list(t, added, e) < 0 ? error_prefix(e, "added_tokens") : 0;
}

static struct tokenizer *start(void)
{
    struct tokenizer *t = memory_new(1, sizeof *t);
    t->kind = &tokenizer_wordpiece;
    return t;
}

static int parse_text(struct tokenizer *t, const char *bytes, size_t size, const char *name,
                      struct error *e)
{
    if (vocabulary_parse(&t->vocabulary, bytes, size, name, e) < 0)
        return -1;
    return vocabulary_index(&t->vocabulary, "##", e);
}

static int read_text(struct tokenizer *t, struct tokenizer_settings *s, const char *folder,
                     struct error *e)
{
    struct file f;
    char *path = path_join(folder, "vocab.txt");
    int r = file_open(path, &f, e);
    if (s->class == CLASS_MPNET)
        settings_mpnet(s);
    if (r == 0) {
        r = parse_text(t, (const char *)f.bytes, f.size, path, e);
        file_close(&f);
    }
    free(path);
    return r;
}

bool tokenizer_exists(const char *folder)
{
    return path_exists(folder, "tokenizer.json") || path_exists(folder, "vocab.txt") ||
           path_exists(folder, SENTENCEPIECE_FILE) ||
           (path_exists(folder, "vocab.json") && path_exists(folder, "merges.txt"));
}

/* vocab.json and merges.txt of RoBERTa. */
static int read_merges(struct tokenizer *t, struct tokenizer_settings *s, const char *folder,
                       struct error *e)
{
    struct file f;
    char *path = path_join(folder, "merges.txt");
    json_t *vocabulary = json_read(folder, "vocab.json", e);
    int r = vocabulary ? file_open(path, &f, e) : -1;
    t->kind = &tokenizer_bpe;
    settings_roberta(s);
    if (r == 0) {
        r = bpe_read_files(t, vocabulary, (const char *)f.bytes, f.size, e);
        file_close(&f);
        if (r < 0)
            error_prefix(e, "%s", folder);
    }
    json_decref(vocabulary);
    free(path);
    return r;
}

/* XLM-R's vocabulary without a tokenizer.json. */
static int read_sentencepiece(struct tokenizer *t, struct tokenizer_settings *s,
                              const char *folder, struct error *e)
{
    json_t *json = sentencepiece_load(folder, e);
    if (!json)
        return -1;
    settings_name_roberta(s);
    const int r = read_json(t, s, json, e);
    json_decref(json);
    return r < 0 ? error_prefix(e, "%s/%s", folder, SENTENCEPIECE_FILE) : 0;
}

static int read_tokens(struct tokenizer *t, struct tokenizer_settings *s, const char *folder,
                       struct error *e)
{
    json_t *json;
    if (!tokenizer_exists(folder))
        return error_set(e, ERROR_INPUT, "%s: no tokenizer.json and no vocab.txt", folder);
    if (json_read_optional(folder, "tokenizer.json", &json, e) < 0)
        return -1;
    if (!json)
        return path_exists(folder, "vocab.txt")          ? read_text(t, s, folder, e)
               : path_exists(folder, SENTENCEPIECE_FILE) ? read_sentencepiece(t, s, folder, e)
                                                         : read_merges(t, s, folder, e);
    int r = read_json(t, s, json, e);
    json_decref(json);
    return r < 0 ? error_prefix(e, "%s/tokenizer.json", folder) : 0;
}

static int read_extra(struct tokenizer_settings *s, const char *folder, const char *name,
                      int (*take)(struct tokenizer_settings *, const json_t *, struct error *),
                      struct error *e)
{
    json_t *json;
    if (json_read_optional(folder, name, &json, e) < 0)
        return -1;
    int r = json ? take(s, json, e) : 0;
    json_decref(json);
    return r < 0 ? error_prefix(e, "%s/%s", folder, name) : 0;
}

struct tokenizer *tokenizer_load(const char *folder, enum tokenizer_compat compat,
                                 struct error *e)
{
    struct tokenizer *t = start();
    struct tokenizer_settings s = settings_default();
    int r = read_extra(&s, folder, "tokenizer_config.json", settings_take_class, e);
    if (r == 0)
        r = read_extra(&s, folder, "config.json", settings_take_model, e);
    if (r == 0)
        r = read_tokens(t, &s, folder, e);
    if (r == 0)
        r = read_extra(&s, folder, "tokenizer_config.json", settings_take_config, e);
    /* The older file; transformers ignores it beside added_tokens_decoder, and obeys it before tokenizer_config.json. */
    if (r == 0 && !s.decoder)
        r = read_extra(&s, folder, "special_tokens_map.json", settings_take_special, e);
    if (r == 0 && s.cuts_left)
        r = error_set(e, ERROR_INPUT, "%s: truncation on the left is not supported", folder);
    if (r == 0)
        r = read_extra(&s, folder, "added_tokens.json", settings_take_added, e);
    if (r == 0 && finish(t, &s, compat, e) < 0)
        r = error_prefix(e, "%s", folder);
    settings_finish(&s);
    if (r == 0)
        return t;
    tokenizer_destroy(t);
    return NULL;
}

/* The end of every reader from memory. */
static struct tokenizer *finish_new(struct tokenizer *t, struct tokenizer_settings *s, int r,
                                    enum tokenizer_compat compat, struct error *e)
{
    if (r == 0)
        r = finish(t, s, compat, e);
    settings_finish(s);
    if (r == 0)
        return t;
    tokenizer_destroy(t);
    return NULL;
}

struct tokenizer *tokenizer_new(const char *vocabulary, size_t size, bool cased,
                                enum tokenizer_compat compat, struct error *e)
{
    struct tokenizer *t = start();
    struct tokenizer_settings s = settings_default();
    s.lowercase = !cased;
    int r = parse_text(t, vocabulary, size, "vocabulary", e);
    return finish_new(t, &s, r, compat, e);
}

struct tokenizer *tokenizer_parse(const char *json, size_t size, enum tokenizer_compat compat,
                                  struct error *e)
{
    json_t *object = json_parse(json, size, "tokenizer.json", e);
    if (!object)
        return NULL;
    struct tokenizer *t = start();
    struct tokenizer_settings s = settings_default();
    int r = read_json(t, &s, object, e);
    json_decref(object);
    return finish_new(t, &s, r, compat, e);
}
