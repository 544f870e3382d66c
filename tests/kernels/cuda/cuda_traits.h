/* SPDX-License-Identifier: Apache-2.0 */
/* Traits of a row's plan, which no option sets, and the combinations that cannot occur. */
#pragma once
#include "tests/kernels/cuda/cuda_rows.h"

/* Stands for a factor whose values are the traits. */
enum { TRAIT = FACTORS };
enum trait {
    TILES,
    COLUMNS,
    ROWS,
    BLOCKS,
    DIAGONALS,
    CLASSES, /* of strides */
    MERGED,  /* their partial results, by row blocks */
    SPLIT,   /* global rows */
    TALL,    /* row blocks of 128 rows */
    TRAITS
};
extern const char *const cuda_trait_names[];

/* Those of the plan that the row's kernel will have. */
void cuda_traits_find(const struct pairs_row *r, bool has[TRAITS]);
/* Why no plan has the trait together with value v of factor f, which may be TRAIT; null: one can. */
const char *cuda_never_why(uint32_t t, uint32_t f, uint32_t v);
