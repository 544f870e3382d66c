/* SPDX-License-Identifier: Apache-2.0 */
/* Alpha as a file: the tensor "alpha", and which kind it is of in the metadata. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "model/base/whole_file.h"
#include "model/checkpoint/json.h"
#include "model/train/learn/alpha.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_of(const struct alpha_shape *s)
{
    return s->pairs ? "dam-code" : learn_kind_names[s->kind];
}

int alpha_write(const char *path, const struct alpha_shape *s, const float *alpha,
                struct error *e)
{
    struct safetensors out = {0};
    struct whole_file file;
    uint64_t dimension[4];
    const uint32_t rank = alpha_dimensions(s, dimension);
    safetensors_add_metadata(&out, "dam", kind_of(s));
    safetensors_add(&out, "alpha", "F32", rank, dimension, alpha);
    whole_file_begin(&file, path);
    safetensors_stream(&out, whole_file_write, &file);
    int r = whole_file_end(&file, e);
    safetensors_finish(&out);
    return r;
}

/* ---- reading ---- */

static void say_shape(uint32_t rank, const uint64_t *dimension, char ret[96])
{
    size_t at = 0;
    for (uint32_t k = 0; k < rank && at < 64; k++)
        at += (size_t)snprintf(ret + at, 96 - at, "%s%" PRIu64, k ? "," : "[", dimension[k]);
    snprintf(ret + at, 96 - at, "]");
}

static int check_shape(const struct safetensor *t, const char *path, const char *kind,
                       const struct alpha_shape *s, struct error *e)
{
    char is[96], expected[96];
    uint64_t dimension[4];
    const uint32_t rank = alpha_dimensions(s, dimension);
    bool same = t && t->rank == rank;
    for (uint32_t k = 0; same && k < rank; k++)
        same = t->shape[k] == dimension[k];
    same = same && !strcmp(t->dtype, "F32") && kind && !strcmp(kind, kind_of(s));
    if (same)
        return 0;
    say_shape(rank, dimension, expected);
    if (!t)
        return error_set(e, ERROR_INPUT, "%s: no tensor \"alpha\"; F32 %s of %s is expected",
                         path, expected, kind_of(s));
    say_shape(t->rank, t->shape, is);
    return error_set(e, ERROR_INPUT, "%s: alpha is %s %s of %s; F32 %s of %s is expected", path,
                     t->dtype, is, kind ? kind : "no kind", expected, kind_of(s));
}

static int check_values(const float *value, const char *path, const struct alpha_shape *s,
                        struct error *e)
{
    const uint64_t count = alpha_count(s), n = s->n;
    for (uint64_t k = 0; k < count; k++)
        if (!isfinite(value[k]))
            return error_set(e, ERROR_INPUT,
                             "%s: alpha is %s at number %" PRIu64 "; finite ones are expected",
                             path, isnan(value[k]) ? "NaN" : "infinite", k);
    for (uint64_t k = 0; s->symmetric && k < count; k++)
        if (value[k] < value[k / (n * n) * n * n + k % n * n + k / n % n])
            return error_set(e, ERROR_INPUT, "%s: alpha is not symmetric, as %s is expected",
                             path, kind_of(s));
    return 0;
}

static int read_tensor(const struct file *f, const char *path, const struct alpha_shape *s,
                       float *ret, struct error *e)
{
    struct safetensors tensors;
    if (safetensors_parse(f->bytes, f->size, path, &tensors, e) < 0)
        return -1;
    const struct safetensor *t = safetensors_find(&tensors, "alpha");
    float *value = NULL;
    int r = check_shape(t, path, safetensors_metadata(&tensors, "dam"), s, e);
    if (r == 0) {
        value = memory_copy(t->data, t->size); /* aligned */
        r = check_values(value, path, s, e);
    }
    if (r == 0)
        memcpy(ret, value, t->size);
    free(value);
    safetensors_finish(&tensors);
    return r;
}

int alpha_read(const char *path, const struct alpha_shape *s, float *ret, struct error *e)
{
    struct file f;
    char *file = path_exists(path, "alpha.safetensors") ? path_join(path, "alpha.safetensors")
                                                        : memory_text(path);
    int r = file_open(file, &f, e);
    if (r == 0) {
        r = read_tensor(&f, file, s, ret, e);
        file_close(&f);
    }
    free(file);
    return r;
}
