/* SPDX-License-Identifier: Apache-2.0 */
/* Order and defaults are those of transformers 5. */
#include "model/tokenizer/added_read.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *text;
    int64_t token_id;
};

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct entry *)a)->token_id, y = ((const struct entry *)b)->token_id;
    return x < y ? -1 : x > y;
}

static int add_object(struct tokenizer *t, const json_t *object, int64_t token_id,
                      struct error *e)
{
    struct added_flags flags = {0};
    const char *text = NULL;
    if (json_take_text(object, "content", &text, e) < 0)
        return -1;
    if (!text || !*text)
        return error_set(e, ERROR_INPUT, "a token without content");
    if (settings_take_flags(&flags, object, e) < 0)
        return error_prefix(e, "'%.60s'", text);
    return added_add(&t->added, &t->vocabulary, text, token_id, flags, e);
}

int added_read_list(struct tokenizer *t, const json_t *list, struct error *e)
{
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *object = json_array_get(list, k);
        uint32_t token_id = UINT32_MAX;
        if (json_take_u32(object, "id", &token_id, e) < 0)
            return -1;
        if (token_id == UINT32_MAX)
            return error_set(e, ERROR_INPUT, "a token without id");
        if (add_object(t, object, token_id, e) < 0)
            return -1;
    }
    return 0;
}

/* Members of {ID: VALUE} or {TOKEN: ID}, by id. Null with *e set. The caller frees the list. */
static struct entry *sort_entries(json_t *object, bool keys_are_ids, struct error *e)
{
    struct entry *list = memory_new(json_object_size(object) + 1, sizeof *list);
    size_t n = 0;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char *end = "";
        int64_t id = keys_are_ids ? strtoll(key, &end, 10) : json_integer_value(value);
        bool ok = keys_are_ids ? *key && !*end : json_is_integer(value);
        if (!ok || id < 0 || id >= VOCABULARY_MAX_TOKENS) {
            error_set(e, ERROR_INPUT, "'%.60s': a token number in 0..%d is expected", key,
                      VOCABULARY_MAX_TOKENS - 1);
            free(list);
            return NULL;
        }
        list[n++] = (struct entry){key, id};
    }
    qsort(list, n, sizeof *list, by_id);
    return list;
}

static int read_decoder(struct tokenizer *t, json_t *decoder, struct error *e)
{
    int r = 0;
    struct entry *list = sort_entries(decoder, true, e);
    for (size_t k = 0; list && k < json_object_size(decoder) && r == 0; k++)
        r = add_object(t, json_object_get(decoder, list[k].text), list[k].token_id, e);
    free(list);
    return !list || r < 0 ? error_prefix(e, "added_tokens_decoder") : 0;
}

/* {TOKEN: ID} of transformers before version 4.34. Tokens without a role are normalised. */
static int read_map(struct tokenizer *t, const struct tokenizer_settings *s, struct error *e)
{
    int r = 0;
    struct entry *list = sort_entries(s->added_map, false, e);
    for (size_t k = 0; list && k < json_object_size(s->added_map) && r == 0; k++) {
        struct added_flags flags = {.normalized = !settings_have_role(s, list[k].text)};
        if (*list[k].text)
            r = added_add(&t->added, &t->vocabulary, list[k].text, list[k].token_id, flags, e);
    }
    free(list);
    return !list || r < 0 ? error_prefix(e, "added_tokens.json") : 0;
}

/* A named token that no file lists must be in the vocabulary; others get the next id. */
static int add_role(struct tokenizer *t, const struct special_setting *s, bool named,
                    struct error *e)
{
    if (!s->text || !*s->text || added_find(&t->added, s->text) ||
        (named && vocabulary_find(&t->vocabulary, s->text) < 0))
        return 0;
    return added_add(&t->added, &t->vocabulary, s->text, -1, s->flags, e);
}

int added_read_settings(struct tokenizer *t, const struct tokenizer_settings *s,
                        struct error *e)
{
    if (s->decoder ? read_decoder(t, s->decoder, e) < 0 : s->added_map && read_map(t, s, e) < 0)
        return -1;
    for (int k = 0; k < NAME_COUNT; k++)
        if ((s->wordpiece || s->special[k].given) && add_role(t, &s->special[k], true, e) < 0)
            return -1;
    for (uint32_t k = 0; k < s->n_extra; k++)
        if (add_role(t, &s->extra[k], false, e) < 0)
            return -1;
    return 0;
}
