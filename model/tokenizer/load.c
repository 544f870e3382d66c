/* SPDX-License-Identifier: Apache-2.0 */
/* From a model's folder, or a vocabulary in memory, to a tokenizer. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/settings.h"
#include "model/tokenizer/tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum { GOOGLE_MAX_CHARS = 200 };

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    for (uint32_t k = 0; k < t->n_special; k++)
        free(t->special[k].text);
    free(t->special);
    vocabulary_finish(&t->vocabulary);
    free(t);
}

static int find(const struct tokenizer *t, const char *token, uint32_t *ret, struct error *e)
{
    int64_t token_id = vocabulary_find(&t->vocabulary, token);
    if (token_id < 0)
        return error_set(e, ERROR_INPUT, "the token %.60s is not in the vocabulary", token);
    *ret = (uint32_t)token_id;
    return 0;
}

static struct special_token *add_special(struct tokenizer *t, const char *text,
                                         uint32_t token_id)
{
    for (uint32_t k = 0; k < t->n_special; k++)
        if (!strcmp(t->special[k].text, text))
            return &t->special[k];
    struct special_token *s = MEMORY_PUSH(t->special, t->n_special, t->special_capacity);
    *s = (struct special_token){memory_text(text), (uint32_t)strlen(text), token_id, false,
                                false};
    return s;
}

/* Looks up the token ids of the named tokens. They are special in the text, too, but not for Google. */
static int name_tokens(struct tokenizer *t, const struct tokenizer_settings *s, struct error *e)
{
    uint32_t *token_id[] = {&t->unknown, &t->begin, &t->end};
    t->mask = vocabulary_find(&t->vocabulary, s->special[NAME_MASK]);
    int64_t pad = vocabulary_find(&t->vocabulary, s->special[NAME_PAD]);
    t->pad = pad < 0 ? 0 : (uint32_t)pad;
    for (int k = NAME_UNKNOWN; k <= NAME_END; k++)
        if (find(t, s->special[k], token_id[k], e) < 0)
            return -1;
    for (int k = 0; k < NAME_COUNT; k++) {
        int64_t found = vocabulary_find(&t->vocabulary, s->special[k]);
        if (found >= 0 && *s->special[k])
            add_special(t, s->special[k], (uint32_t)found);
    }
    return 0;
}

static int finish(struct tokenizer *t, const struct tokenizer_settings *s,
                  enum tokenizer_compat compat, struct error *e)
{
    bool google = compat == TOKENIZER_GOOGLE;
    t->compat = compat;
    t->max_length = s->max_length;
    t->rules = (struct word_rules){
        .clean = s->clean || google,
        .ideographs = s->ideographs || google,
        .lowercase = s->lowercase,
        .strip_accents = s->strip_given && !google ? s->strip_accents : s->lowercase,
        .google = google,
        .max_chars = google ? GOOGLE_MAX_CHARS : s->max_chars,
    };
    t->unicode = unicode_get(google ? UNICODE_GOOGLE : UNICODE_HF);
    if (vocabulary_index(&t->vocabulary, s->prefix, e) < 0 || name_tokens(t, s, e) < 0)
        return -1;
    if (google) /* Google's tokenizer finds no special tokens in a text */
        while (t->n_special)
            free(t->special[--t->n_special].text);
    return 0;
}

static int take_vocabulary(struct tokenizer *t, const json_t *json, struct error *e)
{
    const char *token;
    json_t *token_id, *list = json_object_get(json_object_get(json, "model"), "vocab");
    if (!json_object_size(list))
        return error_set(e, ERROR_INPUT, "model.vocab: an object is expected");
    json_object_foreach(list, token, token_id)
    {
        if (!json_is_integer(token_id) || json_integer_value(token_id) < 0)
            return error_set(e, ERROR_INPUT, "model.vocab: '%.60s' has no number", token);
        if (vocabulary_add(&t->vocabulary, token, strlen(token),
                           (uint64_t)json_integer_value(token_id), e) < 0)
            return error_prefix(e, "model.vocab");
    }
    return 0;
}

static int take_added(struct tokenizer *t, const json_t *entry, struct error *e)
{
    const char *text = NULL;
    uint32_t token_id = 0;
    bool word = false, left = false, right = false, normalized = false;
    if (json_take_text(entry, "content", &text, e) < 0 ||
        json_take_u32(entry, "id", &token_id, e) < 0 ||
        json_take_bool(entry, "single_word", &word, e) < 0 ||
        json_take_bool(entry, "lstrip", &left, e) < 0 ||
        json_take_bool(entry, "rstrip", &right, e) < 0 ||
        json_take_bool(entry, "normalized", &normalized, e) < 0)
        return -1;
    if (!text || !*text)
        return error_set(e, ERROR_INPUT, "a token without content");
    if (word || normalized)
        return error_set(e, ERROR_INPUT, "'%.60s': %s is not supported", text,
                         word ? "single_word" : "normalized");
    bool new = token_id >= t->vocabulary.count || !t->vocabulary.token[token_id];
    if (new &&vocabulary_add(&t->vocabulary, text, strlen(text), token_id, e) < 0)
        return -1;
    if (strcmp(t->vocabulary.token[token_id], text))
        return error_set(e, ERROR_INPUT, "'%.60s': its number %u is the vocabulary's '%.60s'",
                         text, token_id, t->vocabulary.token[token_id]);
    struct special_token *s = add_special(t, text, token_id);
    s->eats_left = left;
    s->eats_right = right;
    return 0;
}

static int read_json(struct tokenizer *t, struct tokenizer_settings *s, const json_t *json,
                     struct error *e)
{
    const json_t *added = json_object_get(json, "added_tokens");
    if (settings_take_json(s, json, e) < 0 || take_vocabulary(t, json, e) < 0)
        return -1;
    for (size_t k = 0; k < json_array_size(added); k++)
        if (take_added(t, json_array_get(added, k), e) < 0)
            return error_prefix(e, "added_tokens");
    return 0;
}

static int read_text(struct tokenizer *t, const char *folder, struct error *e)
{
    struct file f;
    char *path = path_join(folder, "vocab.txt");
    int r = file_open(path, &f, e);
    if (r == 0) {
        r = vocabulary_parse(&t->vocabulary, (const char *)f.bytes, f.size, path, e);
        file_close(&f);
    }
    free(path);
    return r;
}

static int read_tokens(struct tokenizer *t, struct tokenizer_settings *s, const char *folder,
                       struct error *e)
{
    json_t *json;
    if (!path_exists(folder, "tokenizer.json") && !path_exists(folder, "vocab.txt"))
        return error_set(e, ERROR_INPUT, "%s: no tokenizer.json and no vocab.txt", folder);
    if (json_read_optional(folder, "tokenizer.json", &json, e) < 0)
        return -1;
    if (!json)
        return read_text(t, folder, e);
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
    struct tokenizer *t = memory_new(1, sizeof *t);
    struct tokenizer_settings s = settings_default();
    int r = read_tokens(t, &s, folder, e);
    if (r == 0)
        r = read_extra(&s, folder, "special_tokens_map.json", settings_take_special, e);
    if (r == 0)
        r = read_extra(&s, folder, "tokenizer_config.json", settings_take_config, e);
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
    struct tokenizer *t = memory_new(1, sizeof *t);
    struct tokenizer_settings s = settings_default();
    s.lowercase = !cased;
    int r = vocabulary_parse(&t->vocabulary, vocabulary, size, "vocabulary", e);
    return finish_new(t, &s, r, compat, e);
}

struct tokenizer *tokenizer_parse(const char *json, size_t size, enum tokenizer_compat compat,
                                  struct error *e)
{
    json_t *object = json_parse(json, size, "tokenizer.json", e);
    if (!object)
        return NULL;
    struct tokenizer *t = memory_new(1, sizeof *t);
    struct tokenizer_settings s = settings_default();
    int r = read_json(t, &s, object, e);
    json_decref(object);
    return finish_new(t, &s, r, compat, e);
}
