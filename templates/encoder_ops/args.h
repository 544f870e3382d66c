/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the row kernels: a model's parts between its matrix products, row by row. Plain C, read
   by the host and by the kernels; stands after abi.h.

   T is the kernel's dtype (f32 or bf16), H its HIDDEN. Matrices are dense, one row after another, and begin
   at multiples of 16 bytes. Rows are independent of each other. */
#ifndef MASKC_ROWS_ARGS_H
#define MASKC_ROWS_ARGS_H

enum { ROWS_THREADS = 128, ROWS_OF_BLOCK = ROWS_THREADS / 32 }; /* a warp takes a row */

/* Operation after a product of matrices; in the order of model/ops/linear.h. */
enum rows_after {
    ROWS_AFTER_NONE,
    ROWS_AFTER_GELU,      /* x/2 (1 + erf(x / sqrt 2)) */
    ROWS_AFTER_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ROWS_AFTER_RELU,
    ROWS_AFTER_SILU, /* x / (1 + exp(-x)) */
    ROWS_AFTER_TANH
};

/* Each entry reads `rows`, the members whose comments name it and those in its formula below. */
struct rows_args {
    u32 rows, columns; /* columns: of rows_finish, any number */
    u32 after;         /* rows_finish: enum rows_after */
    u32 wide;          /* rows_finish: elements are f32 whatever T is */
    float eps;         /* rows_embed, rows_norm: stands inside the root */
    u32 heads, half,
        head; /* rows_rotate: heads of a row, half a head's columns, from head to head */
    const u32 *number, *position, *type; /* rows_embed: [rows] each; rows_gather: number */
    const i32 *offsets;                  /* rows_mean: [rows + 1] */
    const void *words;                   /* rows_embed: [vocabulary][H] of T */
    const float *positions, *types;      /* rows_embed: [positions][H], [types][H]; or null */
    const float *gain, *shift;           /* rows_embed, rows_norm: [H] */
    const float *bias; /* rows_norm, rows_add [H], rows_finish [columns]; or null */
    const void *
        x; /* rows_norm, rows_add: [rows][H] f32, or null; gather, mean: [..][H] of T; finish: as y */
    const void *residual; /* rows_norm, rows_add: [rows][H] of T, or null; may be y */
    void *y;              /* rows_embed, rows_norm, rows_add, rows_gather: [rows][H] of T;
                             rows_finish: [rows][columns] of T or f32; may be x;
                             rows_mean: [rows][H] f32 */
};

/* The entries:
     rows_embed    y = norm(words[number] + positions[position] + types[type])
     rows_norm     y = norm(x + bias + residual)
     rows_add      y = x + bias + residual
     rows_finish   y = after(x + bias)
     rows_gather   y[r] = x[number[r]]
     rows_glu      y[r][k] = after(x[r][k]) * x[r][columns + k], k < columns; x [rows][2 columns], y [rows][columns] of T
     rows_rotate   halves a, b of each head of y[r], [columns] of T: a cos - b sin, b cos + a sin; cos = gain[position][k],
                   sin = shift[position][k], k < half
     rows_mean     y[r] = mean of x[offsets[r]] .. x[offsets[r + 1] - 1]
   norm(v) = (v - mean) / sqrt(variance + eps) * gain + shift over a row, the variance biased. */

#endif
