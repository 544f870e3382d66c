/* SPDX-License-Identifier: Apache-2.0 */
/* From a model's folder, or a vocabulary in memory, to a tokenizer. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/added_read.h"
#include "model/tokenizer/settings.h"
#include "model/tokenizer/tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum { GOOGLE_MAX_CHARS = 200 };

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    added_finish(&t->added);
    vocabulary_finish(&t->vocabulary);
    free(t);
}

int64_t tokenizer_find(const struct tokenizer *t, const char *token)
{
    const struct added_token *added = added_find(&t->added, token);
    return added ? added->token_id : vocabulary_find(&t->vocabulary, token);
}

/* Looks up the ids of the named tokens. */
static int name_tokens(struct tokenizer *t, const struct tokenizer_settings *s, struct error *e)
{
    uint32_t *token_id[] = {&t->unknown, &t->begin, &t->end};
    t->mask = tokenizer_find(t, s->special[NAME_MASK].text);
    int64_t pad = tokenizer_find(t, s->special[NAME_PAD].text);
    t->pad = pad < 0 ? 0 : (uint32_t)pad;
    for (int k = NAME_UNKNOWN; k <= NAME_END; k++) {
        int64_t found = tokenizer_find(t, s->special[k].text);
        if (found < 0)
            return error_set(e, ERROR_INPUT, "the token %.60s is not in the vocabulary",
                             s->special[k].text);
        *token_id[k] = (uint32_t)found;
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
    if (added_read_settings(t, s, e) < 0 || name_tokens(t, s, e) < 0)
        return -1;
    if (google) /* Google's tokenizer finds no added tokens in a text */
        added_finish(&t->added);
    return added_index(&t->added, t->unicode, &t->rules, e);
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

static int read_json(struct tokenizer *t, struct tokenizer_settings *s, const json_t *json,
                     struct error *e)
{
    const json_t *added = json_object_get(json, "added_tokens");
    if (settings_take_json(s, json, e) < 0 || take_vocabulary(t, json, e) < 0 ||
        vocabulary_index(&t->vocabulary, s->prefix, e) < 0)
        return -1;
    return added_read_list(t, added, e) < 0 ? error_prefix(e, "added_tokens") : 0;
}

static int parse_text(struct tokenizer *t, const char *bytes, size_t size, const char *name,
                      struct error *e)
{
    if (vocabulary_parse(&t->vocabulary, bytes, size, name, e) < 0)
        return -1;
    return vocabulary_index(&t->vocabulary, "##", e);
}

static int read_text(struct tokenizer *t, const char *folder, struct error *e)
{
    struct file f;
    char *path = path_join(folder, "vocab.txt");
    int r = file_open(path, &f, e);
    if (r == 0) {
        r = parse_text(t, (const char *)f.bytes, f.size, path, e);
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
    struct tokenizer *t = memory_new(1, sizeof *t);
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
    struct tokenizer *t = memory_new(1, sizeof *t);
    struct tokenizer_settings s = settings_default();
    int r = read_json(t, &s, object, e);
    json_decref(object);
    return finish_new(t, &s, r, compat, e);
}
