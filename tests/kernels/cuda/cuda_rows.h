/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the covering test on CUDA: which kernel, with which masks and lengths, the values of a row say. */
#pragma once
#include "tests/support/covering.h"
#include "tests/support/cuda_fixture.h"

/* The test's own factors, beside those of covering.h. */
enum cuda_factor { FAMILY = KERNEL, OTHER = OWN, KEYS, FACTORS };
enum cuda_family { FLOAT, TF32, RESIDENT_BF16, RESIDENT_F16, TILED_BF16, TILED_F16, FAMILIES };
/* One key head for both query heads; three quarters as many keys; both of these, the queries being fewer and at the end. */
enum cuda_keys { SQUARE, SHARED_KEYS, FEWER_KEYS, FEWER_QUERIES, KEY_SHAPES };
/* Longer masks take long. */
enum { MANY = 1000 };

/* Rows that show what chance would seldom bring: row blocks of 128 rows beside all else. */
extern const struct pairs_row cuda_pinned_rows[];
extern const uint32_t cuda_n_pinned_rows;

/* The factors' values, and which rows make sense. */
void cuda_rows_start(struct covering *c);
bool cuda_row_is_resident(const struct pairs_row *r);
bool cuda_row_is_tiled(const struct pairs_row *r);
/* The mask, and what is asked of a kernel for it. */
struct mask *cuda_row_mask(const struct pairs_row *r, struct kernel_request *ret);
struct kernel_case cuda_row_case(const struct pairs_row *r, const struct mask *m,
                                 const struct kernel_request *f);
void cuda_row_name(const struct pairs_row *r, char *ret, size_t capacity);
