/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the covering test on CUDA: which kernel, with which masks and lengths, the values of a row say. */
#pragma once
#include "tests/support/covering.h"
#include "tests/support/cuda_fixture.h"

/* The test's own factors, beside those of covering.h. */
enum cuda_factor { FAMILY = KERNEL, OTHER = OWN, FACTORS };
enum cuda_family { FLOAT, TF32, RESIDENT_BF16, RESIDENT_F16, TILED_BF16, TILED_F16, FAMILIES };
/* Longer masks take long. */
enum { MANY = 1000 };

/* Rows that show what chance would seldom bring: row blocks of 128 rows beside all else. */
extern const struct pairs_row cuda_pinned_rows[];
extern const uint32_t cuda_n_pinned_rows;

/* The factors' values, and which rows make sense. */
void cuda_rows_start(struct covering *c);
bool cuda_row_is_resident(const struct pairs_row *r);
bool cuda_row_is_tiled(const struct pairs_row *r);
struct kernel_request cuda_row_request(const struct pairs_row *r);
struct mask *cuda_row_mask(const struct pairs_row *r);
struct kernel_case cuda_row_case(const struct pairs_row *r, const struct mask *m);
void cuda_row_name(const struct pairs_row *r, char *ret, size_t capacity);
