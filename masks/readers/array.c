/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the container by its suffix and shows what it holds as one kind of array. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/readers/readers.h"
#include "masks/safetensors.h"
#include <stdlib.h>
#include <string.h>

static const struct dtype {
    const char *name;
    enum npy_type type;
} dtypes[] = {
    {"BOOL", NPY_BOOL}, {"U8", NPY_UINT},   {"U16", NPY_UINT},    {"U32", NPY_UINT},
    {"U64", NPY_UINT},  {"I8", NPY_INT},    {"I16", NPY_INT},     {"I32", NPY_INT},
    {"I64", NPY_INT},   {"F16", NPY_FLOAT}, {"BF16", NPY_BFLOAT}, {"F32", NPY_FLOAT},
    {"F64", NPY_FLOAT},
};

static int from_tensor(const struct safetensor *t, struct array_file *a, struct error *e)
{
    const struct dtype *d = dtypes, *end = dtypes + sizeof dtypes / sizeof *dtypes;
    while (d < end && strcmp(d->name, t->dtype))
        d++;
    if (d == end)
        return error_set(e, ERROR_INPUT,
                         "%s: elements of type %s, booleans, integers or floats are "
                         "expected",
                         a->name, t->dtype);
    a->array = (struct npy){.type = d->type,
                            .rank = t->rank,
                            .data = t->data,
                            .item_bytes = safetensors_dtype_bytes(t->dtype)};
    memcpy(a->array.shape, t->shape, sizeof t->shape);
    a->array.count = t->size / a->array.item_bytes;
    return 0;
}

static int no_tensor(const struct safetensors *s, const char *path, const char *tensor,
                     struct error *e)
{
    enum { SHOWN = 8 };
    struct text names = {0};
    for (uint32_t k = 0; k < s->n_tensors && k < SHOWN; k++)
        text_add(&names, "%s%s", k ? ", " : "", s->tensor[k].name);
    if (s->n_tensors > SHOWN)
        text_add(&names, ", ...");
    if (tensor)
        error_set(e, ERROR_INPUT, "%s: there is no tensor '%s'; it holds %s", path, tensor,
                  text_get(&names));
    else if (s->n_tensors == 0)
        error_set(e, ERROR_INPUT, "%s: there is no tensor in it", path);
    else
        error_set(e, ERROR_INPUT, "%s: there are %u tensors, --tensor NAME is expected: %s",
                  path, s->n_tensors, text_get(&names));
    text_finish(&names);
    return -1;
}

static int open_safetensors(const char *path, const char *tensor, struct array_file *a,
                            struct error *e)
{
    struct safetensors s;
    if (safetensors_parse_any(a->file.bytes, a->file.size, path, &s, e) < 0)
        return -1;
    const struct safetensor *t = tensor             ? safetensors_find(&s, tensor)
                                 : s.n_tensors == 1 ? &s.tensor[0]
                                                    : NULL;
    struct text name = {0};
    text_add(&name, tensor ? "%s: tensor %s" : "%s", path, tensor);
    a->name = text_take(&name);
    a->dam = memory_text(safetensors_metadata(&s, "dam"));
    int r = t ? from_tensor(t, a, e) : no_tensor(&s, path, tensor, e);
    safetensors_finish(&s);
    return r;
}

int array_open(const char *path, const char *tensor, struct array_file *ret, struct error *e)
{
    struct array_file a = {0};
    const char *suffix = strrchr(path, '.');
    bool safe = suffix && !strcmp(suffix, ".safetensors");
    if (tensor && !safe)
        return error_set(e, ERROR_INPUT, "%s: --tensor is for .safetensors files", path);
    if (file_open(path, &a.file, e) < 0)
        return -1;
    int r;
    if (safe) {
        r = open_safetensors(path, tensor, &a, e);
    } else {
        a.name = memory_text(path);
        r = npy_parse(a.file.bytes, a.file.size, path, &a.array, e);
    }
    if (r < 0)
        array_close(&a);
    else
        *ret = a;
    return r;
}

void array_close(struct array_file *a)
{
    file_close(&a->file);
    free(a->name);
    free(a->dam);
    *a = (struct array_file){0};
}

int array_dims(const struct npy *a, const char *name, bool in_text, struct array_dims *ret,
               struct error *e)
{
    if (a->rank < 2 || a->rank > 4)
        return error_set(
            e, ERROR_INPUT, "%s: %u dimensions, [n,n], [H,n,n] or [L,H,n,n] is expected%s",
            name, a->rank,
            a->rank > 4 ? "; sequences of a batch share the mask, and lengths or a "
                          "packed batch (--offsets) tell them apart"
                        : "");
    uint64_t rows = a->shape[a->rank - 2], columns = a->shape[a->rank - 1];
    uint64_t heads = a->rank > 2 ? a->shape[a->rank - 3] : 1;
    uint64_t layers = a->rank > 3 ? a->shape[0] : 1;
    if (rows != columns)
        return error_set(e, ERROR_INPUT, "%s: %llu x %llu is not square, [n,n] is expected%s",
                         name, (unsigned long long)rows, (unsigned long long)columns,
                         columns == 2 && !in_text ? " (logits a distance: --dam)" : "");
    if (rows < 1 || rows > PATTERN_MAX_N)
        return error_set(e, ERROR_INPUT, "%s: length %llu, 1..%d is expected", name,
                         (unsigned long long)rows, PATTERN_MAX_N);
    if (heads < 1 || heads > MASK_MAX_HEADS || layers < 1 || layers > MASK_MAX_LAYERS)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu layers of %llu heads, 1..%d and 1..%d are expected", name,
                         (unsigned long long)layers, (unsigned long long)heads, MASK_MAX_LAYERS,
                         MASK_MAX_HEADS);
    if (layers * heads > MASK_MAX_PLACES)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu layers of %llu heads, at most %d heads in all are expected",
                         name, (unsigned long long)layers, (unsigned long long)heads,
                         MASK_MAX_PLACES);
    *ret = (struct array_dims){layers, heads, (uint32_t)rows};
    return 0;
}
