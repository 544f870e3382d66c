/* SPDX-License-Identifier: Apache-2.0 */
/* The two products on a matrix unit: scores = rows in bf16 x panels of pairs; sums += P or dS in bf16 x pairs of
   rows. */
#ifndef MASKC_CPU_MATRIX_PRODUCT_H
#define MASKC_CPU_MATRIX_PRODUCT_H
#include "cpu/matrix/blocks.h"

#if DOTS
#include "cpu/matrix/product_dots.h"
#else
#include "cpu/matrix/product_amx.h"
#endif

/* Scores of a row block with 32 columns from j. */
static void scores_product(float *scores, const u16 *a, const struct operand *o, u32 j,
                           u32 live)
{
    panels_product(scores, a, o->panels + (u64)j * (DEPTH / 2), live, 2);
}

/* sums (+)= p x rows of the steps. `blank`: the sums hold nothing yet. */
static void sums_product(float *sums, const u16 *p, const struct sums_step *step, u32 steps,
                         u32 live, u32 blank)
{
    u32 d = 0;
    for (; d + 32 <= WIDTH; d += 32)
        sums_columns(sums, p, d, step, steps, (struct sums_part){2, live, blank});
    if (d < WIDTH)
        sums_columns(sums, p, d, step, steps, (struct sums_part){1, live, blank});
}

#endif
