/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of a trial's tensors, and their elements one by one. */
#include "masks/base/memory.h"
#include "tools/reference/trial.h"
#include <stdlib.h>

static bool of_keys(int t)
{
    return t == K || t == V || t == D_K || t == D_V;
}

static uint32_t heads_of(const struct trial *l, int t)
{
    return of_keys(t) ? problem_kv_heads(l->p) : l->p->mask->heads;
}

static uint32_t rows_of(const struct trial *l, int t)
{
    return of_keys(t) ? problem_keys(l->p) : l->p->length;
}

static uint32_t rows_used(const struct trial *l, int t, uint32_t b)
{
    return of_keys(t) ? problem_key_rows(l->p, b) : problem_rows(l->p, b);
}

uint64_t trial_elements(const struct trial *l, int t)
{
    const uint64_t rows =
        l->p->packed ? (uint64_t)l->first[l->p->batch] : (uint64_t)l->p->batch * rows_of(l, t);
    return rows * heads_of(l, t) * l->p->head_dim;
}

static void layout_plain(struct trial *l, int t)
{
    int64_t D = l->p->head_dim, row = D * heads_of(l, t);
    l->tensor[t] = (struct tensor){row * rows_of(l, t), row, D, 0, (uint32_t)t};
}

/* Heads of q, k and v of a token side by side: q's, k's, v's. */
static void layout_fused(struct trial *l, int t)
{
    const struct problem *p = l->p;
    const int first = t >= D_Q ? D_Q : Q;
    const uint32_t H = p->mask->heads, kv = problem_kv_heads(p);
    const uint32_t place[] = {0, H, H + kv};
    int64_t D = p->head_dim, row = D * (H + 2 * kv);
    l->tensor[t] =
        (struct tensor){row * p->length, row, D, D * place[t - first], (uint32_t)first};
}

static void layout_heads_first(struct trial *l, int t)
{
    const struct problem *p = l->p;
    int64_t D = p->head_dim, N = p->packed ? l->first[p->batch] : (int64_t)rows_of(l, t);
    l->tensor[t] = (struct tensor){N * D * heads_of(l, t), D, N * D, 0, (uint32_t)t};
}

/* Fused buffers hold q, k, v of a token side by side, if all have as many rows; their gradients likewise. */
void trial_choose_layout(struct trial *l)
{
    for (int t = 0; t < TENSORS; t++) {
        bool fused = t == Q || t == K || t == V || t >= D_Q;
        if (l->p->layout == LAYOUT_BHND)
            layout_heads_first(l, t);
        else if (l->p->layout == LAYOUT_QKV && fused && !l->p->key_length)
            layout_fused(l, t);
        else
            layout_plain(l, t);
    }
}

uint64_t trial_tokens(const struct trial *l)
{
    return l->p->packed ? (uint64_t)l->first[l->p->batch]
                        : (uint64_t)l->p->batch * l->p->length;
}

/* The launch's row that holds row i of sequence b. Rows count from the sequence's start; those past
   the last row of the launch wrap around to the rows before the start. */
static uint64_t row_of(const struct trial *l, int t, uint32_t b, uint32_t i)
{
    return ((uint64_t)problem_start(l->p, b) + i) % rows_of(l, t);
}

static uint8_t *element(const struct trial *l, int t, uint32_t b, uint32_t i, uint32_t h)
{
    const struct tensor *x = &l->tensor[t];
    int64_t row = l->p->packed ? x->row * (l->first[b] + (int64_t)i)
                               : x->batch * b + x->row * (int64_t)row_of(l, t, b, i);
    return l->buffer[x->buffer].host + GUARD +
           (x->base + row + x->head * h) * dtype_bytes(l->p->dtype);
}

/* Rows of sequence b that stand in the launch's buffers. */
static uint32_t stored_rows(const struct trial *l, int t, uint32_t b)
{
    return l->p->packed ? rows_used(l, t, b) : rows_of(l, t);
}

void trial_write_tensor(const struct trial *l, int t, const double *from)
{
    const struct problem *p = l->p;
    const uint32_t D = p->head_dim, H = heads_of(l, t), N = rows_of(l, t);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t i = 0; i < rows_used(l, t, b); i++)
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t d = 0; d < D; d++)
                    dtype_encode(p->dtype, from[(((uint64_t)b * N + i) * H + h) * D + d],
                                 element(l, t, b, i, h) + (uint64_t)d * dtype_bytes(p->dtype));
}

void trial_read_tensor(const struct trial *l, int t, double **to)
{
    const struct problem *p = l->p;
    const uint32_t D = p->head_dim, H = heads_of(l, t), N = rows_of(l, t);
    free(*to);
    *to = memory_new((uint64_t)p->batch * N * H * D, sizeof **to);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t i = 0; i < stored_rows(l, t, b); i++)
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t d = 0; d < D; d++)
                    (*to)[(((uint64_t)b * N + i) * H + h) * D + d] = dtype_decode(
                        p->dtype, element(l, t, b, i, h) + (uint64_t)d * dtype_bytes(p->dtype));
}

/* lse is [B, H, N], packed [H, T]; rows that a packed batch does not have count as -inf. */
void trial_read_lse(const struct trial *l, double **to)
{
    const struct problem *p = l->p;
    uint32_t H = p->mask->heads;
    uint64_t N = p->length;
    free(*to);
    *to = memory_new(p->batch * H * N, sizeof **to);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t h = 0; h < H; h++)
            for (uint32_t i = 0; i < N; i++) {
                uint64_t from = p->packed ? h * trial_tokens(l) + (uint64_t)l->first[b] + i
                                          : ((uint64_t)b * H + h) * N + row_of(l, Q, b, i);
                (*to)[((uint64_t)b * H + h) * N + i] =
                    i < stored_rows(l, Q, b)
                        ? dtype_decode(ABI_F32, l->lse.host + GUARD + 4 * from)
                        : -__builtin_inf();
            }
}
