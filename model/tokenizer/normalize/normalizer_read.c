/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/normalize/normalizer.h"
#include <string.h>

enum { MAX_NORMALIZERS = 64 };

static const char *type_of(const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    return type ? type : "";
}

static int take_content(struct normalizer *n, const json_t *json, const char *key,
                        struct error *e)
{
    const char *content = json_string_value(json_object_get(json, key));
    if (!content)
        return error_set(e, ERROR_INPUT, "%s: a string is expected", key);
    n->content = memory_text(content);
    return 0;
}

static int read_trim(struct normalizer *n, const json_t *json, struct error *e)
{
    if (json_take_bool(json, "strip_left", &n->left, e) < 0)
        return -1;
    return json_take_bool(json, "strip_right", &n->right, e);
}

static int read_replace(struct normalizer *n, const json_t *json, struct error *e)
{
    if (expression_read(&n->expression, json_object_get(json, "pattern"), e) < 0)
        return -1;
    return take_content(n, json, "content", e);
}

static int read_charsmap(struct normalizer *n, const json_t *json, struct error *e)
{
    const char *text = json_string_value(json_object_get(json, "precompiled_charsmap"));
    return text ? charsmap_decode(&n->charsmap, text, e)
                : error_set(e, ERROR_INPUT, "precompiled_charsmap: a string is expected");
}

static int read_prepend(struct normalizer *n, const json_t *json, struct error *e)
{
    return take_content(n, json, "prepend", e);
}

static const struct {
    const char *type;
    enum normalizer_kind kind;
    enum unicode_form form;
    int (*read)(struct normalizer *n, const json_t *json, struct error *e);
} kinds[] = {
    {"NFC", NORMALIZER_FORM, FORM_NFC, NULL},
    {"NFD", NORMALIZER_FORM, FORM_NFD, NULL},
    {"NFKC", NORMALIZER_FORM, FORM_NFKC, NULL},
    {"NFKD", NORMALIZER_FORM, FORM_NFKD, NULL},
    {"Lowercase", NORMALIZER_LOWERCASE, 0, NULL},
    {"Strip", NORMALIZER_TRIM, 0, read_trim},
    {"Prepend", NORMALIZER_PREPEND, 0, read_prepend},
    {"Replace", NORMALIZER_REPLACE, 0, read_replace},
    {"Precompiled", NORMALIZER_CHARSMAP, 0, read_charsmap},
};

static int read_one(struct normalizers *ret, const json_t *json, struct error *e)
{
    const char *type = type_of(json);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(type, kinds[k].type) != 0)
            continue;
        if (ret->count == MAX_NORMALIZERS)
            return error_set(e, ERROR_INPUT, "more than %d normalizers", MAX_NORMALIZERS);
        struct normalizer *n = MEMORY_PUSH(ret->list, ret->count, ret->capacity);
        *n = (struct normalizer){.kind = kinds[k].kind, .form = kinds[k].form};
        if (kinds[k].read && kinds[k].read(n, json, e) < 0)
            return error_prefix(e, "normalizer %s", type);
        return 0;
    }
    return error_set(e, ERROR_INPUT, "normalizer '%.60s' is not supported", type);
}

int normalizers_read(struct normalizers *ret, const json_t *json, struct error *e)
{
    const json_t *list = json_object_get(json, "normalizers");
    if (!json || json_is_null(json))
        return 0;
    if (strcmp(type_of(json), "Sequence") != 0)
        return read_one(ret, json, e);
    if (!json_is_array(list))
        return error_set(e, ERROR_INPUT, "normalizer Sequence: a list is expected");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        if (!json_is_object(one))
            return error_set(e, ERROR_INPUT, "normalizer Sequence: objects are expected");
        if (normalizers_read(ret, one, e) < 0)
            return -1;
    }
    return 0;
}
