/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of HGMMA as floats. */
#pragma once
#include "tests/sass/machine.h"

enum { ROWS = 16, DEPTH = 16, MAX_COLUMNS = 256 };

/* A matrix in shared memory, 16 deep: rows of the first operand, columns of the second. */
struct matrix_request {
    uint64_t descriptor;
    uint32_t first, lines; /* rows or columns */
    bool transposed;       /* lines are contiguous, not the depth */
    bool bf16;             /* else f16 */
};

/* Faults where the operand's bytes are not there for a product. */
void matrix_check(struct warp *w, const struct matrix_request *m);

void matrix_rows(struct warp *w, const struct matrix_request *m, float ret[ROWS][DEPTH]);

/* Valid until the next call. */
const float (*matrix_columns(struct warp *w, const struct matrix_request *m))[MAX_COLUMNS];

/* The first operand in four registers, laid out as in mma.m16n8k16. */
void matrix_of_registers(const struct warp *w, uint32_t first, bool bf16,
                         float ret[ROWS][DEPTH]);
