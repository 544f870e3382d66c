/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the kernels of training against their definitions: what train_ops_test.c asks of LayerNorm, dropout, sums and copies. */
#pragma once
#include "tests/kernels/cuda/encoder_ops_bench.h"

enum { TRAIN_TEST_ROWS = 75 }; /* more than a chunk */

void train_normalises(const struct bench *b);
void train_sums_columns(const struct bench *b, uint32_t columns);
void train_packs(const struct bench *b);
void train_adds_segments(const struct bench *b);
/* Takes memory back from the kernels and frees it. */
void bench_take_back(void *p);
