/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy header is a Python dict literal; exactly the three keys that NumPy writes are read, in
   any order. See npy.h. */
#include "masks/npy.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, VERSION_BYTES = 2, ALIGN = 64 };

/* The header's text while it is read. */
struct cursor {
    const char *at, *end;
    const char *path;
    struct error *e;
    bool any; /* types that only npy_parse_any accepts */
};

static int fail(const struct cursor *c, const char *what)
{
    return error_set(c->e, ERROR_INPUT, "%s: not a .npy file that can be read: %s", c->path,
                     what);
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool accept(struct cursor *c, const char *text)
{
    skip_space(c);
    size_t length = strlen(text);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length))
        return false;
    c->at += length;
    return true;
}

/* 'text' or "text" of at most 15 bytes. */
static bool read_string(struct cursor *c, char ret[16])
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    size_t length = 0;
    while (c->at < c->end && *c->at != quote && length < 15)
        ret[length++] = *c->at++;
    ret[length] = 0;
    return c->at < c->end && *c->at++ == quote;
}

static int read_shape(struct cursor *c, struct npy *ret)
{
    if (!accept(c, "("))
        return fail(c, "'shape' is no tuple");
    while (!accept(c, ")")) {
        if (ret->rank == NPY_MAX_RANK)
            return fail(c, "more than 8 dimensions");
        uint64_t value = 0;
        const char *begin = c->at;
        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
                return fail(c, "a dimension does not fit in 64 bits");
        if (c->at == begin)
            return fail(c, "'shape' holds something other than numbers");
        ret->shape[ret->rank++] = value;
        bool comma = accept(c, ",");
        skip_space(c);
        if (!comma && (c->at == c->end || *c->at != ')'))
            return fail(c, "'shape' does not end");
    }
    return 0;
}

static const struct type {
    char letter;
    bool any; /* for npy_parse_any only */
    enum npy_type type;
    const char *bytes; /* sizes, or null: any */
} types[] = {
    {'?', false, NPY_BOOL, "1 "},         {'b', false, NPY_BOOL, "1 "},
    {'i', false, NPY_INT, "1 2 4 8 "},    {'u', false, NPY_UINT, "1 2 4 8 "},
    {'f', false, NPY_FLOAT, "2 4 8 "},    {'f', true, NPY_FLOAT, "16 "},
    {'c', true, NPY_COMPLEX, "8 16 32 "}, {'S', true, NPY_BYTES, NULL},
    {'U', true, NPY_TEXT, NULL},
};

/* The row of the table for "f4"; null where there is none. */
static const struct type *find_type(const char *name, bool any, uint32_t *ret_bytes)
{
    long bytes = name[0] == '?' ? 1 : name[0] ? strtol(name + 1, NULL, 10) : 0;
    char word[24];
    snprintf(word, sizeof word, "%ld ", bytes);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const struct type *t = &types[k];
        const char *at = t->bytes ? strstr(t->bytes, word) : "";
        bool whole = at && (at == t->bytes || !t->bytes || at[-1] == ' ');
        if (t->letter != name[0] || (t->any && !any) || !whole || bytes < 1 || bytes > 1 << 20)
            continue;
        *ret_bytes = (uint32_t)(t->type == NPY_TEXT ? 4 * bytes : bytes);
        return t;
    }
    return NULL;
}

/* "<f4" and its kind; '|' and '=' only where byte order says nothing. */
static int read_descr(struct cursor *c, struct npy *ret)
{
    char d[16];
    if (!read_string(c, d))
        return fail(c, "'descr' is no type name (structured types are not read)");
    if (d[0] == '>')
        return error_set(
            c->e, ERROR_INPUT,
            "%s: big-endian data ('%s'); write it little-endian: %s.astype('<%s'))", c->path, d,
            c->any ? "scipy.sparse.save_npz(FILE, matrix" : "numpy.save(FILE, a", d + 1);
    uint32_t bytes = 0;
    const struct type *t = find_type(d[0] == '<' || d[0] == '|' ? d + 1 : d, c->any, &bytes);
    if (!t || (bytes > 1 && d[0] != '<' && t->type != NPY_BYTES))
        return error_set(
            c->e, ERROR_INPUT,
            "%s: elements of type '%s', booleans, integers or floats of 2, 4 or 8 bytes "
            "are expected",
            c->path, d);
    ret->item_bytes = bytes;
    ret->type = t->type;
    return 0;
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static int read_entry(struct cursor *c, struct npy *ret, unsigned *seen)
{
    char key[16];
    if (!read_string(c, key) || !accept(c, ":"))
        return fail(c, "the header is no dict with descr, fortran_order and shape");
    unsigned which = !strcmp(key, "descr")           ? SEEN_DESCR
                     : !strcmp(key, "fortran_order") ? SEEN_ORDER
                     : !strcmp(key, "shape")         ? SEEN_SHAPE
                                                     : 0;
    if (!which || (*seen & which))
        return fail(c, "the header has an unknown key or one key twice");
    *seen |= which;
    if (which == SEEN_DESCR)
        return read_descr(c, ret);
    if (which == SEEN_SHAPE)
        return read_shape(c, ret);
    ret->fortran = accept(c, "True");
    return ret->fortran || accept(c, "False") ? 0 : fail(c, "'fortran_order' is no boolean");
}

static int read_header(struct cursor *c, struct npy *ret)
{
    unsigned seen = 0;
    if (!accept(c, "{"))
        return fail(c, "the header is no dict");
    while (!accept(c, "}")) {
        if (read_entry(c, ret, &seen) < 0)
            return -1;
        bool comma = accept(c, ",");
        skip_space(c);
        if (!comma && (c->at == c->end || *c->at != '}'))
            return fail(c, "the header does not end");
    }
    skip_space(c);
    if (c->at != c->end)
        return fail(c, "something follows the header's dict");
    return seen == SEEN_ALL ? 0 : fail(c, "the header lacks descr, fortran_order or shape");
}

/* The product of all extents; false where it does not fit. One that is 0 makes it 0, whatever the others are. */
static bool count_elements(const struct npy *a, uint64_t *ret)
{
    bool fits = true;
    *ret = 1;
    for (uint32_t k = 0; k < a->rank; k++)
        fits = !__builtin_mul_overflow(*ret, a->shape[k], ret) && fits;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->shape[k] == 0)
            *ret = 0, fits = true;
    return fits;
}

static int check_size(struct npy *a, uint64_t bytes, const char *path, struct error *e)
{
    uint64_t count, need;
    if (!count_elements(a, &count) || __builtin_mul_overflow(count, a->item_bytes, &need))
        return error_set(e, ERROR_INPUT,
                         "%s: the header promises more than 2^64 bytes, %llu follow", path,
                         (unsigned long long)bytes);
    if (need != bytes)
        return error_set(e, ERROR_INPUT,
                         "%s: the header promises %llu bytes of data, %llu follow", path,
                         (unsigned long long)need, (unsigned long long)bytes);
    a->count = count;
    return 0;
}

enum { BEFORE_LENGTH = MAGIC_BYTES + VERSION_BYTES };

uint64_t npy_header_bytes(const uint8_t *bytes, uint64_t size)
{
    if (size < BEFORE_LENGTH + 4 || memcmp(bytes, magic, MAGIC_BYTES))
        return 0;
    uint64_t begin = BEFORE_LENGTH + (bytes[MAGIC_BYTES] == 1 ? 2 : 4), length = 0;
    for (uint64_t k = begin; k-- > BEFORE_LENGTH;)
        length = length << 8 | bytes[k];
    return begin + length;
}

static int parse(const uint8_t *bytes, uint64_t size, struct cursor c, struct npy *ret)
{
    struct npy a = {0};
    if (size < BEFORE_LENGTH || memcmp(bytes, magic, MAGIC_BYTES))
        return fail(&c, "it does not begin as one");
    uint8_t version = bytes[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return error_set(c.e, ERROR_INPUT, "%s: version %u of .npy, 1 to 3 is expected", c.path,
                         version);
    uint64_t end = npy_header_bytes(bytes, size);
    if (!end || end > size)
        return fail(&c, "it ends inside the header");
    c.at = (const char *)bytes + BEFORE_LENGTH + (version == 1 ? 2 : 4);
    c.end = (const char *)bytes + end;
    if (read_header(&c, &a) < 0 || check_size(&a, size - end, c.path, c.e) < 0)
        return -1;
    a.data = bytes + end;
    *ret = a;
    return 0;
}

int npy_parse(const uint8_t *bytes, uint64_t size, const char *path, struct npy *ret,
              struct error *e)
{
    return parse(bytes, size, (struct cursor){.path = path, .e = e}, ret);
}

int npy_parse_any(const uint8_t *bytes, uint64_t size, const char *path, struct npy *ret,
                  struct error *e)
{
    return parse(bytes, size, (struct cursor){.path = path, .e = e, .any = true}, ret);
}

/* IEEE half to double, subnormals, infinities and NaN included. */
static double from_half(uint16_t h)
{
    uint32_t exponent = h >> 10 & 31, digits = h & 1023;
    double value = exponent == 31 ? (digits ? __builtin_nan("") : __builtin_inf())
                   : exponent     ? (1024 + digits) * 0x1p-25 * (double)(1u << exponent)
                                  : digits * 0x1p-24;
    return h & 0x8000 ? -value : value;
}

static double from_bfloat(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double from_float(const uint8_t *p, uint32_t bytes)
{
    uint16_t half;
    float single;
    double full;
    if (bytes == 2) {
        memcpy(&half, p, sizeof half);
        return from_half(half);
    }
    if (bytes == 4) {
        memcpy(&single, p, sizeof single);
        return single;
    }
    memcpy(&full, p, sizeof full);
    return full;
}

double npy_get(const struct npy *a, uint64_t storage_index)
{
    const uint8_t *p = a->data + storage_index * a->item_bytes;
    if (a->type == NPY_FLOAT)
        return from_float(p, a->item_bytes);
    uint64_t bits = 0;
    memcpy(&bits, p, a->item_bytes);
    if (a->type == NPY_BFLOAT)
        return from_bfloat((uint16_t)bits);
    if (a->type != NPY_INT)
        return (double)bits;
    uint32_t spare = 64 - 8 * a->item_bytes;
    return (double)((int64_t)(bits << spare) >> spare);
}

uint64_t npy_index(const struct npy *a, const uint64_t *position)
{
    uint64_t index = 0;
    for (uint32_t k = 0; k < a->rank; k++) {
        uint32_t axis = a->fortran ? a->rank - 1 - k : k;
        index = index * a->shape[axis] + position[axis];
    }
    return index;
}

uint8_t *npy_write(const char *descr, uint32_t item_bytes, uint32_t rank, const uint64_t *shape,
                   const void *data, uint64_t *ret_size)
{
    struct text t = {0};
    uint64_t bytes = item_bytes;
    text_add(&t, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t k = 0; k < rank; k++) {
        text_add(&t, "%llu%s", (unsigned long long)shape[k],
                 rank == 1      ? ","
                 : k + 1 < rank ? ", "
                                : "");
        bytes *= shape[k];
    }
    text_add(&t, "), }");
    enum { BEFORE = MAGIC_BYTES + VERSION_BYTES + 2 };
    uint64_t header = (BEFORE + t.length + 1 + ALIGN - 1) / ALIGN * ALIGN;
    uint8_t *out = memory_new(header + bytes, 1);
    memcpy(out, magic, MAGIC_BYTES);
    out[MAGIC_BYTES] = 1;
    out[BEFORE - 2] = (uint8_t)(header - BEFORE);
    out[BEFORE - 1] = (uint8_t)((header - BEFORE) >> 8);
    memset(out + BEFORE, ' ', header - BEFORE);
    memcpy(out + BEFORE, t.bytes, t.length);
    out[header - 1] = '\n';
    if (data && bytes)
        memcpy(out + header, data, bytes);
    text_finish(&t);
    *ret_size = header + bytes;
    return out;
}
