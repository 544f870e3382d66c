/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a kernel on a problem the way a careful caller would, and a hostile one: buffers start as NaN,
   guards of NaN stand before and after each, padded rows hold NaN. A forbidden read is a NaN in a
   result, a write outside a buffer shows in its guards. */
#include "masks/base/memory.h"
#include "tools/reference/check.h"
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, POISON = 0xff }; /* bytes; all ones are NaN in every type */
enum { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };

/* A device buffer of `size` bytes between two guards, and its copy on the host. */
struct buffer {
    uint8_t *device, *host; /* of size + 2 guards */
    uint64_t size;
};

struct tensor {
    int64_t batch, row, head; /* strides in elements */
    int64_t base;             /* of element 0 in its buffer */
    uint32_t buffer;
};

struct trial {
    const struct maskc_kernel *k;
    const struct problem *p;
    bool backward;
    uint32_t threads;
    struct tensor tensor[TENSORS];
    struct buffer buffer[TENSORS], lse, lengths, workspace[2];
    struct buffer bias, d_bias, d_diagonal; /* only with a bias */
    int32_t *first;                         /* [batch + 1]: packed offsets */
};

static void layout_plain(struct trial *l, int t, uint32_t buffer, uint32_t share,
                         uint32_t place)
{
    const struct problem *p = l->p;
    int64_t D = p->head_dim, row = D * p->mask->heads;
    l->tensor[t] =
        (struct tensor){row * share * p->length, row * share, D, row * place, buffer};
}

static void layout_heads_first(struct trial *l, int t)
{
    const struct problem *p = l->p;
    int64_t D = p->head_dim, N = p->packed ? l->first[p->batch] : (int64_t)p->length;
    l->tensor[t] = (struct tensor){N * D * p->mask->heads, D, N * D, 0, (uint32_t)t};
}

/* Fused buffers hold q, k, v of a token side by side; their gradients likewise. */
static void choose_layout(struct trial *l)
{
    for (int t = 0; t < TENSORS; t++) {
        bool fused = t == Q || t == K || t == V || t >= D_Q;
        int first = t >= D_Q ? D_Q : Q;
        if (l->p->layout == LAYOUT_BHND)
            layout_heads_first(l, t);
        else if (l->p->layout == LAYOUT_QKV && fused)
            layout_plain(l, t, (uint32_t)first, 3, (uint32_t)(t - first));
        else
            layout_plain(l, t, (uint32_t)t, 1, 0);
    }
}

static uint64_t tokens(const struct trial *l)
{
    return l->p->packed ? (uint64_t)l->first[l->p->batch]
                        : (uint64_t)l->p->batch * l->p->length;
}

static int make_buffer(const struct trial *l, struct buffer *b, uint64_t size, struct error *e)
{
    b->size = size;
    b->host = memory_aligned(size + 2 * GUARD, 1);
    memset(b->host, POISON, size + 2 * GUARD);
    b->device = l->k->device->allocate(l->k->code, size + 2 * GUARD, e);
    return b->device ? 0 : -1;
}

static int upload(const struct trial *l, const struct buffer *b, struct error *e)
{
    return l->k->device->upload(l->k->code, b->device, b->host, b->size + 2 * GUARD, e);
}

static int download(const struct trial *l, struct buffer *b, const char *name, struct error *e)
{
    if (l->k->device->download(l->k->code, b->host, b->device, b->size + 2 * GUARD, e))
        return -1;
    for (uint32_t k = 0; k < GUARD; k++)
        if (b->host[k] != POISON || b->host[GUARD + b->size + k] != POISON)
            return error_set(e, ERROR_FALSE, "the kernel wrote outside of %s: %s its %s", name,
                             b->host[k] != POISON ? "before" : "after",
                             b->host[k] != POISON ? "first byte" : "last byte");
    return 0;
}

static uint8_t *element(const struct trial *l, int t, uint32_t b, uint32_t i, uint32_t h)
{
    const struct tensor *x = &l->tensor[t];
    int64_t row =
        l->p->packed ? x->row * (l->first[b] + (int64_t)i) : x->batch * b + x->row * (int64_t)i;
    return l->buffer[x->buffer].host + GUARD +
           (x->base + row + x->head * h) * dtype_bytes(l->p->dtype);
}

/* Rows of sequence b that stand in the launch's buffers. */
static uint32_t stored_rows(const struct trial *l, uint32_t b)
{
    return l->p->packed ? problem_rows(l->p, b) : l->p->length;
}

static void write_tensor(const struct trial *l, int t, const double *from)
{
    const struct problem *p = l->p;
    uint32_t D = p->head_dim, H = p->mask->heads;
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t i = 0; i < problem_rows(p, b); i++)
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t d = 0; d < D; d++)
                    dtype_encode(p->dtype,
                                 from[(((uint64_t)b * p->length + i) * H + h) * D + d],
                                 element(l, t, b, i, h) + (uint64_t)d * dtype_bytes(p->dtype));
}

static void read_tensor(const struct trial *l, int t, double **to)
{
    const struct problem *p = l->p;
    uint32_t D = p->head_dim, H = p->mask->heads;
    free(*to);
    *to = memory_new(problem_elements(p), sizeof **to);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t i = 0; i < stored_rows(l, b); i++)
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t d = 0; d < D; d++)
                    (*to)[(((uint64_t)b * p->length + i) * H + h) * D + d] = dtype_decode(
                        p->dtype, element(l, t, b, i, h) + (uint64_t)d * dtype_bytes(p->dtype));
}

/* lse is [B, H, N], packed [H, T]; rows that a packed batch does not have count as -inf. */
static void read_lse(const struct trial *l, double **to)
{
    const struct problem *p = l->p;
    uint32_t H = p->mask->heads;
    uint64_t N = p->length;
    free(*to);
    *to = memory_new(p->batch * H * N, sizeof **to);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t h = 0; h < H; h++)
            for (uint32_t i = 0; i < N; i++) {
                uint64_t from = p->packed ? h * tokens(l) + (uint64_t)l->first[b] + i
                                          : ((uint64_t)b * H + h) * N + i;
                (*to)[((uint64_t)b * H + h) * N + i] =
                    i < stored_rows(l, b)
                        ? dtype_decode(ABI_F32, l->lse.host + GUARD + 4 * from)
                        : -__builtin_inf();
            }
}

/* f32, whatever the launch's type. */
static int make_bias(struct trial *l, const struct problem_data *d, struct error *e)
{
    uint64_t size = problem_bias_elements(l->p), diagonal = problem_diagonal_elements(l->p);
    if (!size)
        return 0;
    if (make_buffer(l, &l->bias, 4 * size, e))
        return -1;
    for (uint64_t k = 0; k < size; k++)
        dtype_encode(ABI_F32, d->x[k], l->bias.host + GUARD + 4 * k);
    if (upload(l, &l->bias, e))
        return -1;
    if (!l->backward)
        return 0;
    return make_buffer(l, &l->d_bias, 4 * size, e) || upload(l, &l->d_bias, e) ||
                   make_buffer(l, &l->d_diagonal, 4 * diagonal, e) ||
                   upload(l, &l->d_diagonal, e)
               ? -1
               : 0;
}

static float *floats_of(const struct buffer *b)
{
    return b->device ? (float *)(void *)(b->device + GUARD) : NULL;
}

/* Brings back and reads one; what the launch does not have stays as it is. */
static int fetch_bias(const struct trial *l, struct buffer *b, const char *name, double **to,
                      struct error *e)
{
    if (!b->host)
        return 0;
    if (download(l, b, name, e))
        return -1;
    free(*to);
    *to = memory_new(b->size / 4, sizeof **to);
    for (uint64_t k = 0; k < b->size / 4; k++)
        (*to)[k] = dtype_decode(ABI_F32, b->host + GUARD + 4 * k);
    return 0;
}

/* Offsets, and the buffers that the layout needs (a fused one only once). */
static int make_buffers(struct trial *l, const struct problem_data *d, struct error *e)
{
    const struct problem *p = l->p;
    const double *input[TENSORS] = {[Q] = d->q, [K] = d->k, [V] = d->v, [D_O] = d->d_o};
    uint64_t row = (uint64_t)p->mask->heads * p->head_dim * dtype_bytes(p->dtype);
    for (int t = 0; t < (l->backward ? TENSORS : D_O); t++) {
        if (l->tensor[t].buffer != (uint32_t)t)
            continue;
        bool fused = p->layout == LAYOUT_QKV && (t == Q || t == D_Q);
        if (make_buffer(l, &l->buffer[t], tokens(l) * row * (fused ? 3 : 1), e))
            return -1;
    }
    for (int t = 0; t < (l->backward ? TENSORS : D_O); t++)
        if (input[t])
            write_tensor(l, t, input[t]);
    for (int t = 0; t < TENSORS; t++)
        if (l->buffer[t].host && upload(l, &l->buffer[t], e))
            return -1;
    if (make_buffer(l, &l->lse, tokens(l) * p->mask->heads * 4, e) || upload(l, &l->lse, e))
        return -1;
    const int32_t *numbers = p->packed ? l->first : p->lengths;
    uint32_t count = p->batch + p->packed;
    if (!numbers)
        return 0;
    if (make_buffer(l, &l->lengths, count * sizeof *numbers, e))
        return -1;
    memcpy(l->lengths.host + GUARD, numbers, count * sizeof *numbers);
    return upload(l, &l->lengths, e);
}

static struct maskc_tensor tensor_of(const struct trial *l, int t)
{
    const struct tensor *x = &l->tensor[t];
    uint8_t *data = l->buffer[x->buffer].device;
    return (struct maskc_tensor){data ? data + GUARD + x->base * dtype_bytes(l->p->dtype)
                                      : NULL,
                                 x->batch, x->row, x->head};
}

static struct maskc_launch describe(const struct trial *l, enum maskc_pass pass)
{
    const struct problem *p = l->p;
    void *numbers = l->lengths.device ? l->lengths.device + GUARD : NULL;
    return (struct maskc_launch){
        .struct_size = sizeof(struct maskc_launch),
        .pass = pass,
        .batch = p->batch,
        .length = p->length,
        .layer = p->layer,
        .scale = (float)p->scale,
        .lengths = p->packed ? NULL : numbers,
        .offsets = p->packed ? numbers : NULL,
        .tokens = p->packed ? tokens(l) : 0,
        .dropout = (float)p->dropout,
        .seed = p->seed,
        .query = tensor_of(l, Q),
        .key = tensor_of(l, K),
        .value = tensor_of(l, V),
        .out = tensor_of(l, O),
        .grad_out = tensor_of(l, D_O),
        .grad_query = tensor_of(l, D_Q),
        .grad_key = tensor_of(l, D_K),
        .grad_value = tensor_of(l, D_V),
        .lse = floats_of(&l->lse),
        .soft = floats_of(&l->bias),
        .grad_soft = floats_of(&l->d_bias),
        .grad_soft_diagonals = floats_of(&l->d_diagonal),
        .threads = l->threads,
    };
}

static int make_workspace(struct trial *l, enum maskc_pass pass, struct error *e)
{
    struct maskc_launch m = describe(l, pass);
    struct buffer *w = &l->workspace[pass];
    return make_buffer(l, w, maskc_workspace_bytes(l->k, &m), e) || upload(l, w, e) ? -1 : 0;
}

int trial_run(struct trial *l, bool backward, struct error *e)
{
    enum maskc_pass pass = backward ? MASKC_BACKWARD : MASKC_FORWARD;
    struct maskc_launch m = describe(l, pass);
    struct maskc_error failure;
    m.workspace = l->workspace[pass].device + GUARD;
    m.workspace_bytes = l->workspace[pass].size;
    if (maskc_run(l->k, &m, &failure))
        return error_set(e, (enum error_kind)failure.code, "%s", failure.text);
    return l->k->device->sync(l->k->code, e);
}

int trial_fetch(struct trial *l, struct problem_data *d, struct error *e)
{
    static const char *const name[TENSORS] = {"q", "k", "v", "o", "do", "dq", "dk", "dv"};
    for (int t = 0; t < TENSORS; t++)
        if (l->buffer[t].host && download(l, &l->buffer[t], name[t], e))
            return -1;
    for (int pass = 0; pass <= l->backward; pass++)
        if (download(l, &l->workspace[pass], "the workspace", e))
            return -1;
    if (download(l, &l->lse, "lse", e) || fetch_bias(l, &l->d_bias, "dsoft", &d->d_x, e) ||
        fetch_bias(l, &l->d_diagonal, "dsoft by diagonals", &d->d_diagonal, e))
        return -1;
    read_lse(l, &d->lse);
    read_tensor(l, O, &d->o);
    if (l->backward) {
        read_tensor(l, D_Q, &d->d_q);
        read_tensor(l, D_K, &d->d_k);
        read_tensor(l, D_V, &d->d_v);
    }
    return 0;
}

static void finish_buffer(const struct trial *l, struct buffer *b)
{
    free(b->host);
    if (b->device)
        l->k->device->release(l->k->code, b->device);
}

static void forget_buffer(const struct trial *l, struct buffer *b)
{
    (void)l;
    free(b->host);
    b->host = NULL;
}

static void each_buffer(struct trial *l, void (*act)(const struct trial *l, struct buffer *b))
{
    struct buffer *others[] = {&l->lse,        &l->lengths,      &l->bias,        &l->d_bias,
                               &l->d_diagonal, &l->workspace[0], &l->workspace[1]};
    for (int t = 0; t < TENSORS; t++)
        act(l, &l->buffer[t]);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        act(l, others[k]);
}

void trial_forget(struct trial *l)
{
    each_buffer(l, forget_buffer);
}

void trial_destroy(struct trial *l)
{
    if (!l)
        return;
    each_buffer(l, finish_buffer);
    free(l->first);
    free(l);
}

struct trial *trial_new(const struct maskc_kernel *k, const struct problem *p,
                        const struct problem_data *d, bool backward, uint32_t threads,
                        struct error *e)
{
    struct trial *l = memory_new(1, sizeof *l);
    *l = (struct trial){.k = k, .p = p, .backward = backward, .threads = threads};
    l->first = memory_new(p->batch + 1, sizeof *l->first);
    for (uint32_t b = 0; b < p->batch; b++)
        l->first[b + 1] = l->first[b] + (int32_t)problem_rows(p, b);
    choose_layout(l);
    int code = make_buffers(l, d, e) || make_bias(l, d, e) ? -1 : 0;
    for (int pass = 0; pass <= backward && !code; pass++)
        code = make_workspace(l, (enum maskc_pass)pass, e);
    if (!code)
        return l;
    trial_destroy(l);
    return NULL;
}

int kernel_run_problem(const struct maskc_kernel *k, const struct problem *p,
                       struct problem_data *d, bool backward, uint32_t threads, struct error *e)
{
    struct trial *l = trial_new(k, p, d, backward, threads, e);
    if (!l)
        return -1;
    int code = trial_run(l, false, e);
    if (!code && backward)
        code = trial_run(l, true, e);
    if (!code)
        code = trial_fetch(l, d, e);
    trial_destroy(l);
    return code;
}
