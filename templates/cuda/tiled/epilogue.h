/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogue of the backward pass where items share rows (SHARED_ROWS). Sums go to shared memory as floats, half
   of a warp's rows at a time. From there a loop over 16 bytes of a row adds other items' partial sums and writes
   to the tensor, or to the workspace for another item. The same on sums in registers would be unrolled code,
   which compiles slowly. */
#ifndef MASKC_CUDA_TILED_EPILOGUE_H
#define MASKC_CUDA_TILED_EPILOGUE_H
#include "cuda/tiled/backward.h"

enum {
    EPILOGUE_ROWS = 8
}; /* of a warp at a time: 8 rows of floats take the memory of 16 of halves */

struct epilogue {
    const struct abi_args *a;
    const struct work_item *work;
    struct view to; /* the tensor */
    float by;       /* its factor */
    u32 sum;        /* which sum of a partial result these are */
    u32 corrects; /* 1: partial sums are corrected: less the row's correction times the next partial sum */
    u32 floats;         /* the tensor's elements are floats */
    float *corrections; /* shared: EPILOGUE_ROWS for each warp */
};

/* Rows g (which = 0) or g + 8 of the warp, and each row's correction. */
DEVICE void epilogue_stage(const struct epilogue *e, const struct sums *s, u32 which,
                           float delta_correction, float *own)
{
    const u32 thread = opt_barrier(THREAD);
    const u32 place = chunk_place(thread % 32 / 4, 0) + 2 * (thread % 4);
    UNROLL
    for (u32 k = 0; k < 2 * STEPS; k++) {
        const struct frag_c *c = &s->at[k];
        struct u32x2 both = {bits_of(which ? c->x[2] : c->x[0]),
                             bits_of(which ? c->x[3] : c->x[1])};
        shared_put_u32x2(own + chunk_of(place, k), both);
    }
    if (thread % 4 == 0)
        shared_put(e->corrections + EPILOGUE_ROWS * (thread / 32) + thread % 32 / 4,
                   delta_correction);
}

DEVICE void epilogue_load(float x[8], const float *from)
{
    UNROLL
    for (u32 k = 0; k < 8; k += 2) {
        struct u32x2 both = shared_get_u32x2(from + k);
        x[k] = float_of(both.x);
        x[k + 1] = float_of(both.y);
    }
}

DEVICE void epilogue_merge_partial(float x[8], const float *partial, u32 corrects,
                                   float delta_correction)
{
    UNROLL
    for (u32 k = 0; k < 8; k += 2) {
        struct f2 own = get_two(partial + k), next = {0, 0};
        if (corrects)
            next = get_two(partial + PARTIAL_WIDTH + k);
        x[k] += own.x - delta_correction * next.x;
        x[k + 1] += own.y - delta_correction * next.y;
    }
}

DEVICE void epilogue_store_partial(const float x[8], float *to)
{
    UNROLL
    for (u32 k = 0; k < 8; k += 2)
        put_two(to + k, x[k], x[k + 1]);
}

/* 8 positions of row r of the row block, which are at `from` in shared memory. */
DEVICE void epilogue_chunk(const struct epilogue *e, u32 r, u32 chunk, const float *from)
{
    const struct work_item *work = e->work;
    const u32 position = row_position(work, r);
    float *place = partial_place(e->a, work, position) + e->sum * PARTIAL_WIDTH + 8 * chunk;
    float x[8];
    epilogue_load(x, from);
    if (work->item->merge[r / 32] >> (r % 32) & 1 && position < work->length)
        epilogue_merge_partial(
            x, place, e->corrects,
            shared_get(e->corrections + EPILOGUE_ROWS * (r / 16) + r % EPILOGUE_ROWS));
    if (work->item->split) {
        epilogue_store_partial(x, place);
        return;
    }
    if (GROUPED && e->floats) {
        UNROLL
        for (u32 k = 0; k < 8; k++)
            x[k] *= e->by;
        epilogue_store_partial(x, (float *)(e->to.data + position * e->to.row) + 8 * chunk);
        return;
    }
    struct u32x4 halves = {
        half_pack(x[0] * e->by, x[1] * e->by), half_pack(x[2] * e->by, x[3] * e->by),
        half_pack(x[4] * e->by, x[5] * e->by), half_pack(x[6] * e->by, x[7] * e->by)};
    *(struct u32x4 *)(e->to.data + position * e->to.row + 16 * chunk) = halves;
}

/* Where corrections are: the words of patterns are no longer read. */
DEVICE float *epilogue_corrections(const struct backward *b)
{
    return (float *)pattern_words(&b->stream, 0);
}

/* All rows of the warp. `staging` is the row block's shared memory, no longer read, as in store_row_block; the
   corrections are of the lane's two rows. */
DEVICE void epilogue_row_block(const struct epilogue *e, const struct sums *s,
                               const float delta_correction[2], half_t *staging)
{
    float *own = (float *)(staging + THREAD / 32 * 16 * PITCH);
    NO_UNROLL
    for (u32 which = 0; which < 2; which++) {
        epilogue_stage(e, s, which, which ? delta_correction[1] : delta_correction[0], own);
        SYNC_WARP();
        NO_UNROLL
        for (u32 k = lane(); k < EPILOGUE_ROWS * HEAD_CHUNKS; k += 32) {
            u32 row = k / HEAD_CHUNKS, r = THREAD / 32 * 16 + EPILOGUE_ROWS * which + row;
            if (item_has_row(e->work, r, e->work->exist))
                epilogue_chunk(e, r, k % HEAD_CHUNKS, own + chunk_place(row, k % HEAD_CHUNKS));
        }
        SYNC_WARP();
    }
}

#endif
