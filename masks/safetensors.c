/* SPDX-License-Identifier: Apache-2.0 */
/* Reading trusts nothing: the JSON is checked, then every tensor's place against its shape and its
   neighbours. See safetensors.h; safetensors_write.c writes. */
#include "masks/safetensors.h"
#include "masks/base/datum.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER = 100000000 };

static const struct dtype {
    const char *name;
    uint32_t bytes;
} dtypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
    {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8},
};

uint32_t safetensors_dtype_bytes(const char *dtype)
{
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        if (!strcmp(dtypes[k].name, dtype))
            return dtypes[k].bytes;
    return 0;
}

struct reading {
    const char *path;
    const uint8_t *data; /* behind the header */
    uint64_t data_size;
    bool any; /* dtypes that are not in the table pass */
    struct error *e;
};

static int fail(const struct reading *r, const char *tensor, const char *what)
{
    return error_set(r->e, ERROR_INPUT, "%s: tensor '%.100s': %s", r->path, tensor, what);
}

/* A whole number of at least 0. */
static bool read_number(const struct datum *value, uint64_t *ret)
{
    if (!datum_is(value, DATUM_INTEGER) || value->integer < 0)
        return false;
    *ret = (uint64_t)value->integer;
    return true;
}

static int read_shape(const struct reading *r, const struct datum *entry, struct safetensor *t,
                      uint64_t *bytes)
{
    const struct datum *shape = datum_member(entry, "shape");
    if (!datum_is(shape, DATUM_LIST))
        return fail(r, t->name, "no shape");
    if (datum_count(shape) > SAFETENSORS_MAX_RANK)
        return fail(r, t->name, "more than 8 dimensions");
    t->rank = (uint32_t)datum_count(shape);
    for (uint32_t k = 0; k < t->rank; k++) {
        if (!read_number(datum_at(shape, k), &t->shape[k]))
            return fail(r, t->name, "a dimension is no whole number");
        if (__builtin_mul_overflow(*bytes, t->shape[k], bytes))
            return fail(r, t->name, "the shape does not fit in 64 bits");
    }
    return 0;
}

static int read_place(const struct reading *r, const struct datum *entry, struct safetensor *t,
                      bool sized, uint64_t bytes)
{
    const struct datum *offsets = datum_member(entry, "data_offsets");
    uint64_t begin, end;
    if (datum_count(offsets) != 2 || !read_number(datum_at(offsets, 0), &begin) ||
        !read_number(datum_at(offsets, 1), &end) || begin > end)
        return fail(r, t->name, "no data_offsets [begin, end]");
    if (end > r->data_size)
        return fail(r, t->name, "the file is too short for its data");
    if (sized && end - begin != bytes)
        return fail(r, t->name, "dtype and shape do not fit its data_offsets");
    t->data = r->data + begin;
    t->size = end - begin;
    return 0;
}

/* "F8_E8M0", "C64": fit to be shown to people. */
static bool is_dtype(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return length && !text[length] && length < sizeof((struct safetensor *)0)->dtype;
}

static int read_tensor(const struct reading *r, const char *name, const struct datum *entry,
                       struct safetensor *t)
{
    t->name = memory_text(name);
    if (!datum_is(entry, DATUM_OBJECT) || entry->count != 3)
        return fail(r, name, "dtype, shape and data_offsets are expected");
    const char *dtype = datum_text(datum_member(entry, "dtype"));
    uint32_t item = dtype ? safetensors_dtype_bytes(dtype) : 0;
    if (item == 0 && !(r->any && dtype && is_dtype(dtype)))
        return fail(r, name, "unknown dtype");
    strcpy(t->dtype, dtype); /* a known one fits */
    uint64_t bytes = item ? item : 1;
    if (read_shape(r, entry, t, &bytes) < 0)
        return -1;
    return read_place(r, entry, t, item != 0, bytes);
}

static int read_metadata(const struct reading *r, const struct datum *entry,
                         struct safetensors *s)
{
    if (!datum_is(entry, DATUM_OBJECT))
        return error_set(r->e, ERROR_INPUT, "%s: __metadata__ is no object", r->path);
    for (const struct datum *v = entry->first; v; v = v->next) {
        if (!datum_is(v, DATUM_TEXT))
            return error_set(r->e, ERROR_INPUT, "%s: __metadata__ '%.100s' is no string",
                             r->path, v->name);
        safetensors_add_metadata(s, v->name, v->text);
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct safetensor *x = *(struct safetensor *const *)a,
                            *y = *(struct safetensor *const *)b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

/* The tensors must fill the data without gap, overlap or rest. */
static int check_places(const struct reading *r, const struct safetensors *s)
{
    struct safetensor **sorted = memory_new(s->n_tensors, sizeof *sorted);
    for (uint32_t k = 0; k < s->n_tensors; k++)
        sorted[k] = &s->tensor[k];
    qsort(sorted, s->n_tensors, sizeof *sorted, by_place);
    const uint8_t *at = r->data;
    int result = 0;
    for (uint32_t k = 0; k < s->n_tensors && result == 0; k++) {
        if (sorted[k]->data != at)
            result = fail(r, sorted[k]->name,
                          sorted[k]->data < at ? "its data overlaps another tensor's"
                                               : "there is a gap before its data");
        at = sorted[k]->data + sorted[k]->size;
    }
    free(sorted);
    uint64_t used = (uint64_t)(at - r->data);
    if (result == 0 && used != r->data_size)
        result = error_set(r->e, ERROR_INPUT, "%s: %llu bytes of data, the header names %llu",
                           r->path, (unsigned long long)r->data_size, (unsigned long long)used);
    return result;
}

static int read_entries(const struct reading *r, const struct datum *header,
                        struct safetensors *s)
{
    s->tensor = memory_new(header->count, sizeof *s->tensor);
    for (const struct datum *v = header->first; v; v = v->next) {
        int result = strcmp(v->name, "__metadata__")
                         ? read_tensor(r, v->name, v, &s->tensor[s->n_tensors++])
                         : read_metadata(r, v, s);
        if (result < 0)
            return -1;
    }
    return check_places(r, s);
}

static int parse(const uint8_t *bytes, uint64_t size, const char *path, bool any,
                 struct safetensors *ret, struct error *e)
{
    uint64_t length = 0;
    if (size < LENGTH_BYTES)
        return error_set(e, ERROR_INPUT, "%s: %llu bytes, too short for a safetensors file",
                         path, (unsigned long long)size);
    for (int k = LENGTH_BYTES; k-- > 0;)
        length = length << 8 | bytes[k];
    if (!memcmp(bytes, "\x93NUMPY", 6))
        return error_set(e, ERROR_INPUT, "%s: an array of NumPy, not a safetensors file", path);
    if (length > size - LENGTH_BYTES || length > MAX_HEADER)
        return error_set(e, ERROR_INPUT,
                         "%s: not a safetensors file: its header promises %llu bytes, "
                         "%llu follow",
                         path, (unsigned long long)length,
                         (unsigned long long)(size - LENGTH_BYTES));
    char why[DATUM_WHY_BYTES];
    struct datum *header = datum_parse((const char *)bytes + LENGTH_BYTES, length, why);
    if (!datum_is(header, DATUM_OBJECT)) {
        error_set(e, ERROR_INPUT, "%s: the safetensors header is no JSON object: %s", path,
                  header ? "something else" : why);
        datum_destroy(header);
        return -1;
    }
    uint64_t at = LENGTH_BYTES + length;
    struct reading r = {path, bytes + at, size - at, any, e};
    struct safetensors s = {.header_size = length};
    int result = read_entries(&r, header, &s);
    datum_destroy(header);
    if (result < 0)
        safetensors_finish(&s);
    else
        *ret = s;
    return result;
}

int safetensors_parse(const uint8_t *bytes, uint64_t size, const char *path,
                      struct safetensors *ret, struct error *e)
{
    return parse(bytes, size, path, false, ret, e);
}

int safetensors_parse_any(const uint8_t *bytes, uint64_t size, const char *path,
                          struct safetensors *ret, struct error *e)
{
    return parse(bytes, size, path, true, ret, e);
}

void safetensors_finish(struct safetensors *s)
{
    for (uint32_t k = 0; k < s->n_tensors; k++)
        free(s->tensor[k].name);
    for (uint32_t k = 0; k < s->n_metadata; k++) {
        free(s->metadata[k].key);
        free(s->metadata[k].value);
    }
    free(s->tensor);
    free(s->metadata);
    *s = (struct safetensors){0};
}

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (uint32_t k = 0; k < s->n_tensors; k++)
        if (!strcmp(s->tensor[k].name, name))
            return &s->tensor[k];
    return NULL;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
    for (uint32_t k = 0; k < s->n_metadata; k++)
        if (!strcmp(s->metadata[k].key, key))
            return s->metadata[k].value;
    return NULL;
}

void safetensors_add_metadata(struct safetensors *s, const char *key, const char *value)
{
    s->metadata = memory_resize(s->metadata, (size_t)s->n_metadata + 1, sizeof *s->metadata);
    s->metadata[s->n_metadata].key = memory_text(key);
    s->metadata[s->n_metadata++].value = memory_text(value);
}
