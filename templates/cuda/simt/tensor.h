/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the caller's tensors and sums, held by a quad. */
#ifndef MASKC_CUDA_SIMT_TENSOR_H
#define MASKC_CUDA_SIMT_TENSOR_H
#include "cuda/common/four.h"
#include "cuda/simt/work_item.h"

typedef char groups_are_of_floats[!GROUPED || FLOATS ? 1 : -1]; /* element_bytes */

/* view_of with an optimisation barrier where registers are few: computed at each use. */
DEVICE struct view view_recomputed(const struct abi_tensor *t, const struct work_item *work)
{
    struct work_item here = *work;
    if (HEAD_DIM > 128) {
        here.b = opt_barrier(work->b);
        here.h = opt_barrier(work->h);
    }
    return view_of(t, &here);
}

/* Loads the quad's row of a shared tile, zeros if !there. The caller puts a barrier before it; one after it too,
   unless threads read back only what they wrote, as lines do. */
DEVICE void load_row(float *tile, const struct view *v, u32 row, u32 there)
{
    float *to = tile + quad() * PITCH;
    UNROLL_4 /* not all: registers */
        for (u32 k = 0; k < CHUNKS; k++)
    {
        u32 d = chunk_of(k);
        if (d < HEAD_DIM)
            shared_put4(to + d, there ? load4(v, row, d) : zero4());
    }
}

/* The block's rows of two tensors to tiles 0 and 1. A loop, since the code is long; wide heads have no registers
   for it. */
DEVICE void load_own_rows(const struct view *first, const struct view *second,
                          const struct work_item *work)
{
    struct view v = *first;
    if (CHUNKS > 8) {
        load_row(shared_tile(0), first, work->row, work->active);
        load_row(shared_tile(1), second, work->row, work->active);
        return;
    }
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        load_row(shared_tile(k), &v, work->row, work->active);
        v = *second;
    }
}

/* One row of sums, held by a quad. */
struct sums {
    struct f4 at[CHUNKS];
};

DEVICE void sums_clear(struct sums *s)
{
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++)
        s->at[k] = zero4();
}

DEVICE void sums_scale(struct sums *s, float by)
{
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++)
        s->at[k] = scaled4(s->at[k], by);
}

DEVICE void store_quads(const struct sums *s, const struct work_item *work,
                        const struct view *to)
{
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++) {
        u32 d = chunk_of(k);
        if (work->writes && d < HEAD_DIM)
            store4(to, work->row, d, s->at[k]);
    }
}

/* Global row: each quad holds a part of the row's sums. */
DEVICE void store_shared(const struct sums *s, const struct work_item *work,
                         const struct view *to)
{
    float *parts = shared_tile(2);
    SYNC();
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++) {
        u32 d = chunk_of(k);
        if (d < HEAD_DIM)
            shared_put4(parts + quad() * PITCH + d, s->at[k]);
    }
    SYNC();
    u32 d = 4 * THREAD;
    if (d < HEAD_DIM && work->writes) {
        struct f4 sum = zero4();
        NO_UNROLL
        for (u32 r = 0; r < BLOCK_ROWS; r++)
            sum = fma4(sum, shared_get4(parts + r * PITCH + d), 1);
        store4(to, work->row, d, sum);
    }
}

/* Writes the row's sums times `by`. */
DEVICE void sums_store(struct sums *s, const struct work_item *work, const struct abi_tensor *t,
                       float by)
{
    struct view to = view_of(t, work);
    sums_scale(s, by);
    if (work->global_row)
        store_shared(s, work, &to);
    else
        store_quads(s, work, &to);
}

#endif
