/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes below are those of templates/cuda/short_forward.h and short_backward.h, which check them
   at compile time. */
#include "gen/short.h"
#include <stddef.h>

enum {
    ROWS = 16,               /* of a warp */
    BLOCK_WARPS = 8,         /* heads are put together until a block has that many, ... */
    BLOCK_BYTES = 48 * 1024, /* ... or this much shared memory, so that several blocks fit */
    FORWARD_BYTES =
        99 * 1024,        /* two blocks fit the largest parts; longer heads are for streaming */
    SPARSEGEN_ROWS = 128, /* all scores of a row are held in registers */
};

static uint32_t rounded(uint32_t x)
{
    return (x + ROWS - 1) / ROWS * ROWS;
}

static bool is_candidate(const struct target *t, const struct features *f)
{
    return t->kind == TARGET_CUDA && f->dtype != ABI_F32 && f->length > 0 &&
           f->length <= FORWARD_BYTES / 4 / ROWS;
}

static void group_heads(struct short_shape *s, uint32_t head_bytes)
{
    s->heads = s->blocks = 1;
    while ((s->heads + 1) * s->warps <= BLOCK_WARPS &&
           (s->heads + 1) * head_bytes <= BLOCK_BYTES)
        s->heads++;
    s->shared_bytes = s->heads * head_bytes;
}

/* K and V. Where a head has more strips of 16 than a block has warps, all warps do as many. */
bool short_forward(const struct target *t, const struct features *f, struct short_shape *ret)
{
    if (!is_candidate(t, f))
        return false;
    uint32_t rows = rounded(f->length), bytes = 2 * rows * rounded(f->head_dim) * 2;
    uint32_t strips = rows / ROWS, rounds = (strips + BLOCK_WARPS - 1) / BLOCK_WARPS;
    if (bytes > FORWARD_BYTES || bytes > t->shared_bytes ||
        (f->transform == ABI_SPARSEGEN && rows > SPARSEGEN_ROWS))
        return false;
    if (ret) {
        *ret = (struct short_shape){.rows = rows, .warps = (strips + rounds - 1) / rounds};
        group_heads(ret, bytes);
    }
    return true;
}

/* Q, K, V and dO, then P or dS of the whole head, and 16 words. A warp for every strip of 16. */
bool short_backward(const struct target *t, const struct features *f, struct short_shape *ret)
{
    if (!f->backward || !short_forward(t, f, NULL))
        return false;
    uint32_t rows = rounded(f->length), bytes = 4 * rows * rounded(f->head_dim) * 2;
    bytes += 2 * rows * rows + 64;
    if (bytes > t->shared_bytes)
        return false;
    if (ret) {
        *ret = (struct short_shape){.rows = rows, .warps = rows / ROWS};
        group_heads(ret, bytes);
    }
    return true;
}
