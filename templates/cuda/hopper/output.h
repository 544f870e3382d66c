/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a warpgroup to the tensors: through its rows' place in shared memory, by one box or 16 bytes at a time. */
#ifndef MASKC_CUDA_HOPPER_OUTPUT_H
#define MASKC_CUDA_HOPPER_OUTPUT_H
#include "cuda/hopper/products.h"

/* ---- output ---- */

/* Rows g times `low` and rows g + 8 times `high` to shared memory, in 16 bits, as a box lies there. */
DEVICE void sums_stage(const struct warpgroup *g, const struct sums *o, float low, float high,
                       smem_t to)
{
    /* With dropout and cut rows it is computed here: held, it would be spilled. Elsewhere ptxas would then move softmax
       behind the wait for P V (tests/sass_report/program_test.py). */
    const u32 l = DROPOUT && CUT_ROWS ? opt_barrier(THREAD) % 32 : lane();
    const u32 row = 16 * warp_index(g) + l % 16;
    UNROLL
    for (u32 of = 0; of < STEPS; of++) {
        const float *x = o->x + 8 * of;
        const u32 chunk = 2 * (of % 4) + l / 16;
        smem_store4(to + of / 4 * HOPPER_BOX_BYTES + 128 * row + 16 * (chunk ^ row % 8),
                    half_pack(x[0] * low, x[1] * low), half_pack(x[2] * high, x[3] * high),
                    half_pack(x[4] * low, x[5] * low), half_pack(x[6] * high, x[7] * high));
    }
}

/* Rows that other items share the box with: 16 bytes at a time. */
DEVICE void store_chunks(const struct warpgroup *g, smem_t from,
                         const struct abi_tensor *tensor, const struct work_item *work,
                         const struct u32x4 *block)
{
    const struct view to = view_of(tensor, work);
    NO_UNROLL
    for (u32 x = g->thread; x < HOPPER_ROWS * HEAD_CHUNKS; x += WARPGROUP) {
        const u32 row = x / HEAD_CHUNKS, chunk = x % HEAD_CHUNKS;
        const smem_t at =
            from + chunk / 8 * HOPPER_BOX_BYTES + 128 * row + 16 * (chunk % 8 ^ row % 8);
        if (has_row(block, row, work->exist))
            *(struct u32x4 *)(to.data + (block->x + row) * to.row + 16 * chunk) =
                smem_get_u32x4(at);
    }
}

DEVICE void store_boxes(const struct warpgroup *g, smem_t from, u32 output,
                        const struct work_item *work, const struct u32x4 *block)
{
    UNROLL
    for (u32 part = 0; part < PARTS; part++)
        tma_store(&g->a->out[output], from + part * HOPPER_BOX_BYTES, (i32)(part * HOPPER_PART),
                  (i32)work->h, (i32)(work->first + block->x),
                  g->a->a.offsets ? 0 : (i32)work->b);
}

/* Stores the values staged in `from` to the tensors: output k from operand k of the rows. */
DEVICE void store_outputs(const struct warpgroup *g, const struct abi_tensor *const *tensors,
                          u32 outputs, const struct work_item *work, const struct u32x4 *block)
{
    async_fence();
    warpgroup_sync(g);
    if (!(block->w & ROWS_BY_BOX)) {
        UNROLL
        for (u32 k = 0; k < outputs && block->w & ROWS_THERE; k++)
            store_chunks(g, own_rows(g, k), tensors[k], work, block);
        warpgroup_sync(g);
        return;
    }
    if (g->thread == 0) {
        UNROLL
        for (u32 k = 0; k < outputs; k++)
            store_boxes(g, own_rows(g, k), k, work, block);
        bulk_commit();
    }
}

#endif
