/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's tensors, four elements at a time, as float; sums and rows of a quad. */
#ifndef MASKC_CUDA_SIMT_TENSOR_H
#define MASKC_CUDA_SIMT_TENSOR_H
#include "cuda/common/matrix.h"
#include "cuda/simt/work_item.h"

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

DEVICE struct f4 zero4(void)
{
    struct f4 x;
    x.x = x.y = x.z = x.w = 0;
    return x;
}

DEVICE struct f4 tf32_of4(struct f4 x)
{
    x.x = float_of(tf32_of(x.x));
    x.y = float_of(tf32_of(x.y));
    x.z = float_of(tf32_of(x.z));
    x.w = float_of(tf32_of(x.w));
    return x;
}

/* Loads four elements. tf32 is rounded here, for tiles and lines alike, so that both passes compute the same
   scores whatever pieces their plans have. */
DEVICE struct f4 load4(const struct view *v, u32 row, u32 d)
{
    const u8 *at = v->data + row * v->row + d * ELEMENT;
    if (TF32)
        return tf32_of4(*(const struct f4 *)at);
    if (FLOATS)
        return *(const struct f4 *)at;
    u32 low = ((const u32 *)at)[0], high = ((const u32 *)at)[1];
    struct f4 x;
    x.x = half_low(low);
    x.y = half_high(low);
    x.z = half_low(high);
    x.w = half_high(high);
    return x;
}

DEVICE void store4(const struct view *v, u32 row, u32 d, struct f4 x)
{
    u8 *at = v->data + row * v->row + d * ELEMENT;
    if (FLOATS) {
        *(struct f4 *)at = x;
        return;
    }
    ((u32 *)at)[0] = half_pack(x.x, x.y);
    ((u32 *)at)[1] = half_pack(x.z, x.w);
}

DEVICE struct f4 scaled4(struct f4 x, float by)
{
    x.x *= by;
    x.y *= by;
    x.z *= by;
    x.w *= by;
    return x;
}

DEVICE struct f4 fma4(struct f4 sum, struct f4 x, float by)
{
    sum.x += by * x.x;
    sum.y += by * x.y;
    sum.z += by * x.z;
    sum.w += by * x.w;
    return sum;
}

DEVICE float dot4(float sum, struct f4 a, struct f4 b)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
    return sum;
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
