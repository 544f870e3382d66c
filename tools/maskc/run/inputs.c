/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that maskc run is given: everything is read and checked before anything is launched. */
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "tools/maskc/command.h"
#include "tools/maskc/run/run.h"
#include <stdlib.h>
#include <string.h>

static int open_array(const char *path, struct run_array *ret, struct error *e)
{
    ret->path = path;
    if (file_open(path, &ret->file, e))
        return -1;
    return npy_parse(ret->file.bytes, ret->file.size, path, &ret->npy, e);
}

static int check_number(const struct run_array *a, struct error *e)
{
    if (a->npy.type != NPY_FLOAT)
        return error_set(e, ERROR_INPUT, "%s: f16, f32 or f64 is expected", a->path);
    return 0;
}

static int check_like(const struct run_array *a, const struct run_array *query, struct error *e)
{
    if (check_number(a, e))
        return -1;
    if (a->npy.rank != query->npy.rank ||
        memcmp(a->npy.shape, query->npy.shape, a->npy.rank * sizeof *a->npy.shape))
        return error_set(e, ERROR_INPUT, "%s: its shape is not that of %s", a->path,
                         query->path);
    return 0;
}

/* [B, N, H, D], or [T, H, D] with offsets, against the kernel's heads and head dim. */
static int check_query(struct run_inputs *in, const struct maskc_kernel *k, struct error *e)
{
    const struct npy *q = &in->query.npy;
    const struct artifact *a = k->artifact;
    bool packed = in->p.packed;
    if (check_number(&in->query, e))
        return -1;
    const char *layout = packed ? "[T, H, D] with --offsets" : "[B, N, H, D]";
    if (q->rank != (packed ? 3 : 4))
        return error_set(e, ERROR_INPUT, "%s: rank %u, %s is expected", in->query.path, q->rank,
                         layout);
    const uint64_t *last = q->shape + q->rank - 2;
    if (last[0] != a->mask->heads || last[1] != a->request.head_dim)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu heads of dim %llu, the kernel has %u of %u; %s is expected",
                         in->query.path, (unsigned long long)last[0],
                         (unsigned long long)last[1], a->mask->heads, a->request.head_dim,
                         layout);
    in->tokens = packed ? q->shape[0] : q->shape[0] * q->shape[1];
    if (packed)
        return in->tokens <= INT32_MAX
                   ? 0
                   : error_set(e, ERROR_INPUT, "%s: too many tokens", in->query.path);
    const uint32_t most = request_queries(&a->request, a->mask);
    if (!q->shape[0] || q->shape[0] > INT32_MAX || !q->shape[1] || q->shape[1] > most)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu sequences of length %llu, the kernel takes lengths 1..%u",
                         in->query.path, (unsigned long long)q->shape[0],
                         (unsigned long long)q->shape[1], most);
    in->p.batch = (uint32_t)q->shape[0];
    in->p.length = (uint32_t)q->shape[1];
    return 0;
}

/* K or V: the query's shape, but for the heads and the length that the kernel has for keys. */
static int check_key(const struct run_array *x, struct run_inputs *in,
                     const struct maskc_kernel *k, struct error *e)
{
    const struct artifact *a = k->artifact;
    const struct npy *q = &in->query.npy;
    if (!a->request.keys && !a->request.kv_heads)
        return check_like(x, &in->query, e);
    uint64_t shape[4] = {q->shape[0], in->p.length, in->p.kv_heads, in->p.head_dim};
    if (check_number(x, e))
        return -1;
    if (in->p.packed)
        shape[1] = in->p.kv_heads, shape[2] = in->p.head_dim;
    else if (a->request.keys && x->npy.rank == 4 && x->npy.shape[1] <= a->request.keys)
        shape[1] = in->p.key_length ? in->p.key_length : x->npy.shape[1];
    if (x->npy.rank != q->rank || memcmp(x->npy.shape, shape, q->rank * sizeof *shape) ||
        !shape[1])
        return error_set(e, ERROR_INPUT, "%s: %s%llu, %u, %u] is expected", x->path,
                         in->p.packed ? "[" : "[B, ", (unsigned long long)shape[!in->p.packed],
                         in->p.kv_heads, in->p.head_dim);
    if (a->request.keys)
        in->p.key_length = (uint32_t)shape[1];
    return 0;
}

/* Whole numbers 0..limit of a rank 1 array. */
static int read_numbers(const struct run_array *a, uint64_t limit, int32_t **ret,
                        struct error *e)
{
    const struct npy *x = &a->npy;
    if ((x->type != NPY_INT && x->type != NPY_UINT) || x->item_bytes < 4 || x->rank != 1)
        return error_set(e, ERROR_INPUT, "%s: a rank 1 array of i32 or i64 is expected",
                         a->path);
    int32_t *value = memory_new(x->count, sizeof *value);
    for (uint64_t k = 0; k < x->count; k++) {
        double v = npy_get(x, k);
        if (!(v >= 0 && v <= (double)limit)) {
            free(value);
            return error_set(e, ERROR_INPUT, "%s: element %llu is %.0f, 0..%llu is expected",
                             a->path, (unsigned long long)k, v, (unsigned long long)limit);
        }
        value[k] = (int32_t)v;
    }
    *ret = value;
    return 0;
}

static int read_lengths(struct run_inputs *in, struct error *e)
{
    if (in->lengths.npy.rank == 1 && in->lengths.npy.count != in->p.batch)
        return error_set(e, ERROR_INPUT, "%s: %llu lengths for %u sequences", in->lengths.path,
                         (unsigned long long)in->lengths.npy.count, in->p.batch);
    return read_numbers(&in->lengths, in->p.length, &in->length, e);
}

/* Offsets become the lengths of the sequences and the longest of them. */
static int read_offsets(struct run_inputs *in, uint32_t n, struct error *e)
{
    const char *path = in->offsets.path;
    uint64_t count = in->offsets.npy.count;
    if (read_numbers(&in->offsets, in->tokens, &in->length, e))
        return -1;
    if (count < 2 || count > INT32_MAX || in->length[0] ||
        in->length[count - 1] != (int32_t)in->tokens)
        return error_set(e, ERROR_INPUT,
                         "%s: B + 1 offsets are expected, from 0 to the %llu rows of %s", path,
                         (unsigned long long)in->tokens, in->query.path);
    in->p.batch = (uint32_t)count - 1;
    in->p.length = 1;
    for (uint32_t b = 0; b < in->p.batch; b++) {
        int32_t length = in->length[b + 1] - in->length[b];
        if (length < 0 || length > (int32_t)n)
            return error_set(e, ERROR_INPUT, "%s: sequence %u has length %d, 0..%u is expected",
                             path, b, length, n);
        in->length[b] = length;
        if ((uint32_t)length > in->p.length)
            in->p.length = (uint32_t)length;
    }
    return 0;
}

/* Which sequence of the data each of the batch is, in the draws of dropout. */
static int read_samples(struct run_inputs *in, struct error *e)
{
    const struct npy *x = &in->samples.npy;
    const char *path = in->samples.path;
    if ((x->type != NPY_INT && x->type != NPY_UINT) || x->item_bytes < 4 || x->rank != 1)
        return error_set(e, ERROR_INPUT,
                         "%s: a rank 1 array of i32, u32, i64 or u64 is expected", path);
    if (x->count != in->p.batch)
        return error_set(e, ERROR_INPUT, "%s: %llu samples for %u sequences", path,
                         (unsigned long long)x->count, in->p.batch);
    in->sample = memory_new(x->count, sizeof *in->sample);
    for (uint64_t k = 0; k < x->count; k++) {
        double v = npy_get(x, k);
        if (!(v >= 0 && v <= UINT32_MAX))
            return error_set(e, ERROR_INPUT, "%s: element %llu is %.0f, 0..%u is expected",
                             path, (unsigned long long)k, v, UINT32_MAX);
        in->sample[k] = (uint32_t)v;
    }
    return 0;
}

static int check_launch(const struct options *o, const struct maskc_kernel *k, struct error *e)
{
    const struct artifact *a = k->artifact;
    if (command_check_layer(o, a, o->argument[0], e))
        return -1;
    if (!(o->dropout >= 0 && o->dropout < 1))
        return error_set(e, ERROR_INPUT, "--dropout %g: 0 <= P < 1 is expected", o->dropout);
    if (o->dropout > 0 && !a->request.dropout)
        return error_set(e, ERROR_INPUT, "--dropout: the kernel was compiled without it");
    if (o->grad && !a->request.backward)
        return error_set(e, ERROR_INPUT, "--grad: the kernel was compiled with --forward-only");
    return 0;
}

static int check_bias_options(const struct options *o, const struct maskc_kernel *k,
                              struct error *e)
{
    const bool bias = k->artifact->request.bias != ABI_BIAS_NONE;
    if (o->bias_array && !bias)
        return error_set(e, ERROR_INPUT, "--soft: the kernel was compiled without a soft mask");
    if (!o->bias_array && bias)
        return error_set(e, ERROR_INPUT,
                         "the kernel was compiled with a soft mask: --soft X.npy is needed");
    if (o->diagonals && !(o->bias_array && o->grad))
        return error_set(e, ERROR_INPUT, "--diagonals needs --soft and --grad");
    return 0;
}

/* [H, n, n], n the mask's length. */
static int check_bias(const struct run_array *x, const struct mask *m, struct error *e)
{
    const struct npy *a = &x->npy;
    if (check_number(x, e))
        return -1;
    if (a->rank != 3 || a->shape[0] != m->heads || a->shape[1] != m->n || a->shape[2] != m->n)
        return error_set(e, ERROR_INPUT, "%s: a soft mask [%u, %u, %u] is expected", x->path,
                         m->heads, m->n, m->n);
    return 0;
}

int run_inputs_open(const struct options *o, const struct maskc_kernel *k,
                    struct run_inputs *in, struct error *e)
{
    const struct artifact *a = k->artifact;
    in->p = (struct problem){
        .mask = a->mask,
        .layer = o->layer < 0 ? 0 : (uint32_t)o->layer,
        .head_dim = a->request.head_dim,
        .packed = o->offsets != NULL,
        .dtype = a->request.dtype,
        .transform = a->request.transform,
        .lambda = (double)a->request.lambda,
        .scale = o->scale,
        .scale_given = o->has_scale,
        .dropout = o->dropout,
        .bias = a->request.bias,
        .kv_heads = request_kv_heads(&a->request, a->mask),
        .seed = o->seed,
    };
    if (check_launch(o, k, e) || check_bias_options(o, k, e) ||
        open_array(o->query, &in->query, e) || open_array(o->key, &in->key, e) ||
        open_array(o->value, &in->value, e) || (o->grad && open_array(o->grad, &in->grad, e)) ||
        (o->sequence_lengths && open_array(o->sequence_lengths, &in->lengths, e)) ||
        (o->offsets && open_array(o->offsets, &in->offsets, e)) ||
        (o->samples && open_array(o->samples, &in->samples, e)) ||
        (o->bias_array && open_array(o->bias_array, &in->bias, e)))
        return -1;
    if (check_query(in, k, e) || check_key(&in->key, in, k, e) ||
        check_key(&in->value, in, k, e) || (o->grad && check_like(&in->grad, &in->query, e)) ||
        (o->sequence_lengths && read_lengths(in, e)) ||
        (o->offsets && read_offsets(in, a->mask->n, e)) ||
        (o->samples && read_samples(in, e)) ||
        (o->bias_array && check_bias(&in->bias, a->mask, e)))
        return -1;
    in->p.lengths = in->length;
    in->p.samples = in->sample;
    return problem_fits(&in->p, e);
}

uint64_t *run_inputs_rows(const struct run_inputs *in)
{
    uint64_t *row = memory_new(in->tokens, sizeof *row), t = 0;
    if (!in->p.packed)
        for (t = 0; t < in->tokens; t++)
            row[t] = t;
    else
        for (uint32_t b = 0; b < in->p.batch; b++)
            for (int32_t i = 0; i < in->length[b]; i++)
                row[t++] = (uint64_t)b * in->p.length + (uint64_t)i;
    return row;
}

double *run_inputs_bias(const struct run_inputs *in)
{
    const struct npy *x = &in->bias.npy;
    double *ret = memory_new(x->count, sizeof *ret);
    for (uint64_t k = 0; k < x->count; k++) {
        const uint64_t position[] = {k / (x->shape[1] * x->shape[2]),
                                     k / x->shape[2] % x->shape[1], k % x->shape[2]};
        ret[k] = npy_get(x, npy_index(x, position));
    }
    return ret;
}

double *run_inputs_tensor(const struct run_inputs *in, const struct run_array *a,
                          const uint64_t *row)
{
    const struct npy *x = &a->npy;
    const uint64_t width = x->shape[x->rank - 2] * x->shape[x->rank - 1];
    const uint64_t rows = (uint64_t)in->p.batch * (in->p.packed ? in->p.length : x->shape[1]);
    double *ret = memory_new(rows * width, sizeof *ret);
    uint64_t position[4];
    for (uint64_t k = 0; k < x->count; k++) {
        uint64_t rest = k;
        for (uint32_t r = x->rank; r-- > 0; rest /= x->shape[r])
            position[r] = rest % x->shape[r];
        const uint64_t to = in->p.packed ? row[k / width] : k / width;
        ret[to * width + k % width] = npy_get(x, npy_index(x, position));
    }
    return ret;
}

void run_inputs_finish(struct run_inputs *in)
{
    struct run_array *all[] = {&in->query,   &in->key,     &in->value,   &in->grad,
                               &in->lengths, &in->offsets, &in->samples, &in->bias};
    for (unsigned a = 0; a < sizeof all / sizeof *all; a++)
        file_close(&all[a]->file);
    free(in->length);
    free(in->sample);
}
