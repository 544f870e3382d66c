/* SPDX-License-Identifier: Apache-2.0 */
/* tau of a row of sparsegen beside a matrix unit, whose kernels have AVX-512: scores that fall out of the support never
   come back, as tau only rises, so each step packs those that are left and the next one reads only these. They lie in
   the first row of each block's dP, which the forward pass does not use. */
#ifndef MASKC_CPU_MATRIX_THRESHOLD_H
#define MASKC_CPU_MATRIX_THRESHOLD_H
#include "cpu/row_block.h"

/* Packs those of `from` that are above tau or NaN, all less `base`, to the front of `to`, which may be `from`, and -inf up
   to a whole vector. Returns how many; adds them to *sum, lane by lane. */
INLINE u32 support_pack(const float *from, u32 count, float *to, float base, float tau,
                        vec *sum)
{
    u32 kept = 0;
    for (u32 c = 0; c < count; c += LANES) {
        const vec z = load(from + c) - splat(base);
        const u32 above = lanes_not_below(z, splat(tau));
        *sum += lanes_zeroed(z, above);
        store(to + kept, lanes_packed(z, above));
        kept += (u32)__builtin_popcount(above);
    }
    store(to + kept, splat(-INFINITY_F));
    return kept;
}

/* tau - base: see row_threshold() of sparsegen.h. */
static float row_threshold(const struct row_block *t, u32 blocks, u32 r, float base, float mass)
{
    float tau = -mass;
    u32 last = ~0u;
    for (u32 step = 0; tau == tau; step++) {
        vec sum = {0};
        u32 count = 0;
        for (u32 k = 0; k < blocks; k++) {
            struct block *b = row_block_block(t, k);
            float *kept = b->dp[0];
            b->kept = step ? support_pack(kept, b->kept, kept, 0, tau, &sum)
                           : support_pack(b->score[r], b->cols, kept, base, tau, &sum);
            count += b->kept;
        }
        if (count >= last || !count)
            return tau;
        last = count;
        tau = (sum_lanes(sum) - mass) / (float)count;
    }
    return tau;
}

#endif
