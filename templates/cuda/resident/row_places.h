/* SPDX-License-Identifier: Apache-2.0 */
/* Where registers allow it, the lane's addresses of an operand's rows are computed once for many products that sum over
   rows. */
#ifndef MASKC_CUDA_RESIDENT_ROW_PLACES_H
#define MASKC_CUDA_RESIDENT_ROW_PLACES_H
#include "cuda/resident/softmax.h"

enum { RESIDENT_PLACES_HELD = RESIDENT_ALL && RESIDENT_STEPS <= 4 && !RESIDENT_CUT };

struct resident_row_places {
    shared_at at[RESIDENT_STEPS]; /* of each two chunks, at row 0 */
    u32 operand;
};

DEVICE struct resident_row_places resident_places_in(const struct resident_head *head,
                                                     u32 operand)
{
    struct resident_row_places ret;
    ret.operand = operand;
    UNROLL
    for (u32 k = 0; RESIDENT_PLACES_HELD && k < RESIDENT_STEPS; k++)
        ret.at[k] = one_address(head->shared + operand * RESIDENT_OPERAND +
                                resident_at_chunk(head->places.values, 2 * k) / 2);
    return ret;
}

/* resident_apply_part over all chunks, by such addresses where they are held. */
DEVICE void resident_apply_at(struct frag_c (*sums)[RESIDENT_CHUNKS], const struct frag_a *a,
                              u32 row_blocks, const struct resident_head *head,
                              const struct resident_row_places *places, u32 row)
{
    u32 r[4];
    if (!RESIDENT_PLACES_HELD)
        resident_apply_part(sums, 0, RESIDENT_CHUNKS, a, row_blocks, head, places->operand,
                            row);
    UNROLL
    for (u32 k = 0; RESIDENT_PLACES_HELD && k < RESIDENT_STEPS; k++) {
        matrix_load4_transposed(r, places->at[k] + resident_bytes(0, row));
        UNROLL
        for (u32 m = 0; m < row_blocks; m++)
            resident_apply(sums[m], &a[m], 2 * k, r);
    }
}

#endif
