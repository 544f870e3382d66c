/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/base/vocabulary.h"
#include "model/tokenizer/post.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_SPECIALS = 2, MAX_COUNT = 3 * MAX_SPECIALS }; /* in one place, in all */

/* A template while it is read. */
struct reading {
    const json_t *specials; /* special_tokens of the template */
    struct layout *layout;
    uint32_t parts; /* A, then B, that came */
    bool is_one;    /* a type 1 came */
    struct error *e;
};

static const char *type_of(const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    return type ? type : "";
}

static int add_id(struct reading *r, const json_t *number)
{
    struct layout *l = r->layout;
    uint32_t *place = r->parts == 0 ? &l->before : r->parts == 1 ? &l->middle : &l->after;
    uint32_t count = l->before + l->middle + l->after;
    json_int_t token_id = json_is_integer(number) ? json_integer_value(number) : -1;
    if (token_id < 0 || token_id >= VOCABULARY_MAX_TOKENS)
        return error_set(r->e, ERROR_INPUT, "a special token without a number");
    if (*place == MAX_SPECIALS)
        return error_set(r->e, ERROR_INPUT, "more than %d special tokens in a row",
                         MAX_SPECIALS);
    l->token_id[count] = (uint32_t)token_id;
    *place += 1;
    l->specials += !r->is_one;
    return 0;
}

/* Types of a template are 0, then 1. */
static int take_type(struct reading *r, const json_t *entry)
{
    const json_t *type = json_object_get(entry, "type_id");
    json_int_t value = json_is_integer(type) ? json_integer_value(type) : -1;
    if (value != 0 && value != 1)
        return error_set(r->e, ERROR_INPUT, "type_id: 0 or 1 is expected");
    if (r->is_one && value == 0)
        return error_set(r->e, ERROR_INPUT, "type_id: no 0 is expected after a 1");
    r->is_one = value == 1;
    return 0;
}

static int take_special(struct reading *r, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "id"));
    const json_t *ids = json_object_get(json_object_get(r->specials, name ? name : ""), "ids");
    if (take_type(r, entry) < 0)
        return -1;
    if (!json_array_size(ids))
        return error_set(r->e, ERROR_INPUT, "special_tokens has no '%.60s'", name ? name : "");
    for (size_t k = 0; k < json_array_size(ids); k++)
        if (add_id(r, json_array_get(ids, k)) < 0)
            return -1;
    return 0;
}

static int take_part(struct reading *r, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "id"));
    if (take_type(r, entry) < 0)
        return -1;
    if (!name || strcmp(name, r->parts ? "B" : "A") != 0 || r->parts > 1)
        return error_set(r->e, ERROR_INPUT, "A once, then B once is expected");
    *(r->parts++ ? &r->layout->b_zero : &r->layout->a_zero) = !r->is_one;
    return 0;
}

static int take_template(struct reading *r, const json_t *list, uint32_t parts)
{
    struct layout *l = r->layout;
    l->token_id = memory_new(MAX_COUNT, sizeof *l->token_id);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *entry = json_array_get(list, k);
        const json_t *special = json_object_get(entry, "SpecialToken");
        int done = special ? take_special(r, special)
                           : take_part(r, json_object_get(entry, "Sequence"));
        if (done < 0)
            return -1;
    }
    if (r->parts != parts)
        return error_set(r->e, ERROR_INPUT, "A, or A and B, is expected");
    if (parts == 1) { /* behind A is the end */
        l->after = l->middle;
        l->middle = 0;
    }
    if (!l->before || !l->after)
        return error_set(r->e, ERROR_INPUT,
                         "a special token before and behind the texts is expected");
    return parts == 1 && r->is_one
               ? error_set(r->e, ERROR_INPUT, "type_id: 0 is expected in single")
               : 0;
}

static int read_templates(struct post *ret, const json_t *json, struct error *e)
{
    static const char *const names[] = {"single", "pair"};
    for (uint32_t k = 0; k < 2; k++) {
        struct reading r = {.specials = json_object_get(json, "special_tokens"),
                            .layout = k ? &ret->pair : &ret->single,
                            .e = e};
        if (take_template(&r, json_object_get(json, names[k]), k + 1) < 0)
            return error_prefix(e, "%s", names[k]);
    }
    return 0;
}

static int take_number(const json_t *json, const char *key, uint32_t *ret, struct error *e)
{
    const json_t *number = json_array_get(json_object_get(json, key), 1);
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : -1;
    if (value < 0 || value >= VOCABULARY_MAX_TOKENS)
        return error_set(e, ERROR_INPUT, "%s: [TOKEN, NUMBER] is expected", key);
    *ret = (uint32_t)value;
    return 0;
}

static int read_trimming(struct post *ret, const json_t *json, struct error *e)
{
    bool trims = true;
    ret->prefix = true;
    if (json_take_bool(json, "trim_offsets", &trims, e) < 0)
        return -1;
    if (trims && ret->trims)
        return error_set(e, ERROR_INPUT, "trim_offsets is there twice");
    ret->trims |= trims;
    return json_take_bool(json, "add_prefix_space", &ret->prefix, e);
}

/* BertProcessing and RobertaProcessing: "cls" and "sep". */
static int read_pair(struct post *ret, const json_t *json, bool roberta, struct error *e)
{
    uint32_t begin = 0, end = 0;
    if (take_number(json, "cls", &begin, e) < 0 || take_number(json, "sep", &end, e) < 0)
        return -1;
    post_build(ret, begin, end, roberta);
    return roberta ? read_trimming(ret, json, e) : 0;
}

static int read_one(struct post *ret, const json_t *json, struct error *e)
{
    const char *type = type_of(json);
    bool bytes = !strcmp(type, "ByteLevel"), roberta = !strcmp(type, "RobertaProcessing");
    bool template = !strcmp(type, "TemplateProcessing");
    if (!bytes && !roberta && !template && strcmp(type, "BertProcessing") != 0)
        return error_set(e, ERROR_INPUT, "post_processor '%.60s' is not supported", type);
    if (ret->given)
        return error_set(e, ERROR_INPUT, "post_processor Sequence: nothing may follow %s",
                         "the special tokens");
    ret->given = !bytes;
    int r = bytes      ? read_trimming(ret, json, e)
            : template ? read_templates(ret, json, e)
                       : read_pair(ret, json, roberta, e);
    return r < 0 ? error_prefix(e, "post_processor %s", type) : 0;
}

int post_read(struct post *ret, const json_t *json, struct error *e)
{
    const json_t *list = json_object_get(json, "processors");
    if (!json || json_is_null(json))
        return 0;
    if (strcmp(type_of(json), "Sequence") != 0)
        return read_one(ret, json, e);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        if (!json_is_object(one))
            return error_set(e, ERROR_INPUT, "post_processor Sequence: objects are expected");
        if (post_read(ret, one, e) < 0)
            return -1;
    }
    return 0;
}
