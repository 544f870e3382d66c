/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/split/splitter.h"
#include <string.h>

enum { MAX_SPLITTERS = 64 };

static const char *type_of(const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    return type ? type : "";
}

/* Index of the text in a list; -1 if it is not there. */
static int find(const char *text, const char *const *list, int count)
{
    for (int k = 0; text && k < count; k++)
        if (!strcmp(text, list[k]))
            return k;
    return -1;
}

static int read_mark(struct splitter *s, const json_t *json, struct error *e)
{
    const char *mark = json_string_value(json_object_get(json, "replacement"));
    uint32_t point, size = mark ? (uint32_t)strlen(mark) : 0;
    if (!size ||
        unicode_decode((const uint8_t *)mark, (const uint8_t *)mark + size, &point) != size)
        return error_set(e, ERROR_INPUT, "replacement: one character is expected");
    memcpy(s->mark, mark, size + 1);
    return 0;
}

/* Reads Metaspace. add_prefix_space is the older spelling of prepend_scheme. */
static int read_metaspace(struct splitter *s, const json_t *json, struct error *e)
{
    static const char *const schemes[] = {"always", "first", "never"};
    const char *scheme = schemes[PREPEND_ALWAYS];
    bool prefix = true;
    s->cuts = true;
    if (read_mark(s, json, e) < 0 || json_take_text(json, "prepend_scheme", &scheme, e) < 0 ||
        json_take_bool(json, "add_prefix_space", &prefix, e) < 0 ||
        json_take_bool(json, "split", &s->cuts, e) < 0)
        return -1;
    int found = find(scheme, schemes, 3);
    bool given = json_is_string(json_object_get(json, "prepend_scheme"));
    if (found < 0 || (given && !prefix && found != PREPEND_NEVER))
        return error_set(e, ERROR_INPUT,
                         "prepend_scheme '%.20s': always, first or never is expected, never "
                         "with add_prefix_space false",
                         scheme);
    s->prepend = prefix ? (enum prepend_scheme)found : PREPEND_NEVER;
    return 0;
}

static int read_byte_level(struct splitter *s, const json_t *json, struct error *e)
{
    bool prefix = true;
    s->cuts = true;
    if (json_take_bool(json, "add_prefix_space", &prefix, e) < 0 ||
        json_take_bool(json, "use_regex", &s->cuts, e) < 0)
        return -1;
    s->prepend = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    return 0;
}

static int read_split(struct splitter *s, const json_t *json, struct error *e)
{
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                            "MergedWithNext", "Contiguous"};
    const char *behavior = json_string_value(json_object_get(json, "behavior"));
    int found = find(behavior, behaviors, 5);
    if (found < 0)
        return error_set(e, ERROR_INPUT, "behavior '%.40s' is not supported",
                         behavior ? behavior : "");
    s->behavior = (enum split_behavior)found;
    if (json_take_bool(json, "invert", &s->invert, e) < 0)
        return -1;
    return expression_read(&s->expression, json_object_get(json, "pattern"), e);
}

static const struct {
    const char *type;
    enum splitter_kind kind;
    int (*read)(struct splitter *s, const json_t *json, struct error *e);
} kinds[] = {
    {"WhitespaceSplit", SPLITTER_BLANKS, NULL},
    {"Whitespace", SPLITTER_WORDS, NULL},
    {"Metaspace", SPLITTER_METASPACE, read_metaspace},
    {"Split", SPLITTER_EXPRESSION, read_split},
    {"ByteLevel", SPLITTER_BYTE_LEVEL, read_byte_level},
};

static int read_one(struct splitters *ret, const json_t *json, struct error *e)
{
    const char *type = type_of(json);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(type, kinds[k].type) != 0)
            continue;
        if (ret->count == MAX_SPLITTERS)
            return error_set(e, ERROR_INPUT, "more than %d pre-tokenizers", MAX_SPLITTERS);
        if (ret->byte_level)
            return error_set(e, ERROR_INPUT, "pre_tokenizer %s: nothing may follow ByteLevel",
                             type);
        struct splitter *s = MEMORY_PUSH(ret->list, ret->count, ret->capacity);
        *s = (struct splitter){.kind = kinds[k].kind};
        ret->byte_level = s->kind == SPLITTER_BYTE_LEVEL;
        if (kinds[k].read && kinds[k].read(s, json, e) < 0)
            return error_prefix(e, "pre_tokenizer %s", type);
        return 0;
    }
    return error_set(e, ERROR_INPUT, "pre_tokenizer '%.60s' is not supported", type);
}

int splitters_read(struct splitters *ret, const json_t *json, struct error *e)
{
    const json_t *list = json_object_get(json, "pretokenizers");
    if (!json || json_is_null(json))
        return 0;
    if (strcmp(type_of(json), "Sequence") != 0)
        return read_one(ret, json, e);
    if (!json_is_array(list))
        return error_set(e, ERROR_INPUT, "pre_tokenizer Sequence: a list is expected");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        if (!json_is_object(one))
            return error_set(e, ERROR_INPUT, "pre_tokenizer Sequence: objects are expected");
        if (splitters_read(ret, one, e) < 0)
            return -1;
    }
    return 0;
}
