/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint/json.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *path_join(const char *folder, const char *name)
{
    struct text t = {0};
    text_add(&t, "%s/%s", folder, name);
    return text_take(&t);
}

bool path_exists(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

size_t json_prefix(const char *text, size_t most)
{
    enum { LONGEST = 3 }; /* bytes of a character behind its first */
    size_t n = strnlen(text, most);
    while (n > most - LONGEST && (text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

const char *json_shown(const char *text, char ret[JSON_SHOWN_BYTES])
{
    const size_t n = json_prefix(text, 60);
    for (size_t k = 0; k < n; k++) {
        const uint8_t c = (uint8_t)text[k], before = (uint8_t)(k ? text[k - 1] : 0);
        ret[k] = text[k];
        if (c < 0x20 || c == 0x7f)
            ret[k] = '?';
        else if (before == 0xc2 && c < 0xa0) /* U+0080 .. U+009F */
            ret[k - 1] = ret[k] = '?';
    }
    ret[n] = 0;
    return ret;
}

json_t *json_parse(const char *bytes, size_t size, const char *where, struct error *e)
{
    json_error_t why;
    json_t *object = json_load_bytes(bytes, size, JSON_FROM_FILE, &why);
    if (json_is_object(object))
        return object;
    if (object)
        error_set(e, ERROR_INPUT, "%s: a JSON object is expected", where);
    else
        error_set(e, ERROR_INPUT, "%s:%d:%d: not JSON: %s", where, why.line, why.column,
                  why.text);
    json_decref(object);
    return NULL;
}

json_t *json_read(const char *folder, const char *name, struct error *e)
{
    struct file f;
    char *path = path_join(folder, name);
    json_t *object = NULL;
    if (file_open(path, &f, e) == 0) {
        object = json_parse((const char *)f.bytes, f.size, path, e);
        file_close(&f);
    }
    free(path);
    return object;
}

int json_read_optional(const char *folder, const char *name, json_t **ret, struct error *e)
{
    *ret = NULL;
    if (!path_exists(folder, name))
        return 0;
    *ret = json_read(folder, name, e);
    return *ret ? 0 : -1;
}

int json_write_line(const char *folder, const char *name, const char *json, struct error *e)
{
    char *path = path_join(folder, name);
    struct text line = {0};
    text_add(&line, "%s\n", json);
    int r = file_write(path, line.bytes, line.length, e);
    text_finish(&line);
    free(path);
    return r;
}

static const json_t *value_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

int json_take_bool(const json_t *object, const char *key, bool *ret, struct error *e)
{
    const json_t *value = value_of(object, key);
    if (value && !json_is_boolean(value))
        return error_set(e, ERROR_INPUT, "%s: true or false is expected", key);
    *ret = value ? json_is_true(value) : *ret;
    return 0;
}

int json_take_u32(const json_t *object, const char *key, uint32_t *ret, struct error *e)
{
    const json_t *value = value_of(object, key);
    json_int_t whole = json_integer_value(value);
    if (value && (!json_is_integer(value) || whole < 0 || whole > INT32_MAX))
        return error_set(e, ERROR_INPUT, "%s: a whole number in 0..%d is expected", key,
                         INT32_MAX);
    *ret = value ? (uint32_t)whole : *ret;
    return 0;
}

int json_take_real(const json_t *object, const char *key, double *ret, struct error *e)
{
    const json_t *value = value_of(object, key);
    if (value && !json_is_number(value))
        return error_set(e, ERROR_INPUT, "%s: a number is expected", key);
    *ret = value ? json_number_value(value) : *ret;
    return 0;
}

int json_take_limit(const json_t *object, const char *key, uint32_t *ret, struct error *e)
{
    double limit = 0;
    if (json_take_real(object, key, &limit, e) < 0)
        return -1;
    if (limit < 1 << 24 && limit != floor(limit))
        return error_set(e, ERROR_INPUT, "%s: a whole number is expected", key);
    if (value_of(object, key))
        *ret = limit >= 1 && limit < 1 << 24 ? (uint32_t)limit : 0;
    return 0;
}

int json_take_text(const json_t *object, const char *key, const char **ret, struct error *e)
{
    const json_t *value = value_of(object, key);
    if (value && !json_is_string(value))
        return error_set(e, ERROR_INPUT, "%s: a string is expected", key);
    *ret = value ? json_string_value(value) : *ret;
    return 0;
}
