/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products along diagonals by a matrix unit. A diagonal's 16 columns follow each other, so the product of their
   rows with the 16 rows, transposed, has the dot products in its own diagonal. One entry in 16 counts; with few
   diagonals that is still faster than vectors, which convert bf16 to floats and add across lanes. (Sums along
   diagonals are not faster by the unit: twice the products, from matrices that are almost empty.) */
#ifndef MASKC_CPU_MATRIX_DIAGONAL_H
#define MASKC_CPU_MATRIX_DIAGONAL_H
#include "cpu/diagonal/product.h"
#if MATRIX
#include "cpu/matrix/pack.h"
#endif

#if DOTS
#include "cpu/matrix/diagonal_dots.h"
#elif MATRIX
enum { AT_ONCE = 4, PAIRS = 2 * LANES }; /* diagonals; features of a tile's row */

typedef u16 window_rows[DIAGONAL_ROWS][HEAD_DIM];

/* Rows of an operand, `stride` bytes apart. */
struct diagonal_window {
    const u16 *first;
    i64 stride;
};

/* Copies the columns' rows, zeros for columns that the diagonal does not have. */
INLINE void window_copy(const struct operand *o, const struct diagonal_at *x, window_rows to)
{
    const float *from = o->rows + x->column * o->stride;
    const i64 by = x->step ? o->stride : 0;
    for (u32 r = 0; r < DIAGONAL_ROWS; r++) {
        const float *row = x->rows >> r & 1 ? from + r * by : no_row;
        for (u32 d = 0; d < HEAD_DIM / 2; d += LANES)
            store((float *)(void *)to[r] + d, load(row + d));
    }
}

/* The columns' rows where they lie, if all 16 exist: a row that the diagonal does not cover has an entry of its own in
   the result, which is not read. Else a copy with zeros. */
INLINE struct diagonal_window diagonal_window(const struct sequence *s, const struct operand *o,
                                              const struct diagonal_at *x, window_rows copy)
{
    const float *from = o->rows + x->column * o->stride;
    const u32 last = x->step ? DIAGONAL_ROWS : 1;
    if (o->has_margin || (x->column >= 0 && x->column + last <= s->column_length))
        return (struct diagonal_window){(const u16 *)(const void *)from,
                                        x->step ? 4 * o->stride : 0};
    window_copy(o, x, copy);
    return (struct diagonal_window){copy[0], 2 * HEAD_DIM};
}

/* Entry (r, r) of a block of 16 x 16, for each r. */
INLINE vec block_diagonal(const float *block)
{
    static const ivec at = {0,   17,  34,  51,  68,  85,  102, 119,
                            136, 153, 170, 187, 204, 221, 238, 255};
    vec ret = {0};
    __asm__("kxnorw %%k1, %%k1, %%k1\n\tvgatherdps (%1,%2,4), %0%{%%k1%}"
            : "+v"(ret)
            : "r"(block), "v"(at)
            : "k1", "memory");
    return ret;
}

/* 16 rows from i on, transposed by pairs of features; zeros for rows that are not live. */
INLINE void diagonal_rows_read(const struct sequence *s, const struct abi_tensor *t, u32 i,
                               u32 live, float to[DEPTH / 2][MATRIX_COLS])
{
    const float *row[MATRIX_COLS];
    for (u32 r = 0; r < MATRIX_COLS; r++) {
        const u16 *from = (const u16 *)t->data + element_at(s, t, i + r);
        row[r] = live >> r & 1 ? (const float *)(const void *)from : no_row;
    }
    panel_of_rows(row, to[0]);
}

/* A diagonal's part of the product from feature d on. A whole row at a time, as rows are not in L1. */
#define DIAGONAL_PRODUCT(k)                                              \
    {                                                                    \
        TILE_LOAD(6, window[k].first + d, window[k].stride);             \
        TILE_PRODUCT(k, 6, 4);                                           \
        if (d + PAIRS < HEAD_DIM) {                                      \
            TILE_LOAD(7, window[k].first + d + PAIRS, window[k].stride); \
            TILE_PRODUCT(k, 7, 5);                                       \
        }                                                                \
    }

/* Two diagonals' products. The rows' tiles stay loaded for the next two if they hold all features. */
#define PAIR_PRODUCT(k, l)                                              \
    {                                                                   \
        TILE_ZERO(k);                                                   \
        TILE_ZERO(l);                                                   \
        for (u32 d = 0; d < HEAD_DIM; d += 2 * PAIRS) {                 \
            if (HEAD_DIM > 2 * PAIRS || (k) == 0) {                     \
                TILE_LOAD(4, rows[d / 2], 4 * MATRIX_COLS);             \
                if (d + PAIRS < HEAD_DIM)                               \
                    TILE_LOAD(5, rows[d / 2 + LANES], 4 * MATRIX_COLS); \
            }                                                           \
            DIAGONAL_PRODUCT(k);                                        \
            DIAGONAL_PRODUCT(l);                                        \
        }                                                               \
    }

#define PAIR_STORE(k, l, to)                     \
    {                                            \
        TILE_STORE(k, (to)[k], 4 * MATRIX_COLS); \
        TILE_STORE(l, (to)[l], 4 * MATRIX_COLS); \
    }

/* Neighbours among the run's diagonals, all of the same 16 rows. */
struct diagonals_begun {
    u32 first, some;
};

typedef float diagonal_blocks[AT_ONCE][LANES * MATRIX_COLS];

/* A pipeline over fours of diagonals: the last two fours and their products; where the dot products go, times `scale`;
   `fill` for rows that a diagonal does not cover. */
struct diagonal_pipeline {
    __attribute__((aligned(64))) diagonal_blocks block[2];
    struct diagonals_begun begun[2];
    u32 buffer_index;
    float (*to)[DIAGONAL_ROWS];
    float scale, fill;
};

INLINE void blocks_diagonals(const struct diagonal_pipeline *f, const struct diagonal_run *w,
                             u32 buffer_index)
{
    const struct diagonals_begun x = f->begun[buffer_index];
    const struct diagonal_at *diagonal = w->diagonal + x.first;
    for (u32 k = 0; k < x.some; k++) {
        vec sum = block_diagonal(f->block[buffer_index][k]) * splat(f->scale);
        if (diagonal[k].rows != ALL_ROWS)
            sum = pick(mask_of_bits(diagonal[k].rows), sum, splat(f->fill));
        store(f->to[x.first + k], sum);
    }
}

/* Products of four diagonals with the rows (the first one again where there are fewer). A product is stored while the
   next two are under way and read while the next four are: an instruction that waits for the unit stalls those
   after it. */
INLINE void diagonal_products(struct diagonal_pipeline *f, float rows[DEPTH / 2][MATRIX_COLS],
                              const struct diagonal_run *w, const struct operand *o,
                              struct diagonals_begun x)
{
    const u32 buffer_index = f->buffer_index;
    window_rows copy[AT_ONCE];
    struct diagonal_window window[AT_ONCE];
    for (u32 k = 0; k < AT_ONCE; k++)
        window[k] =
            diagonal_window(w->s, o, &w->diagonal[x.first + (k < x.some ? k : 0)], copy[k]);
    PAIR_PRODUCT(0, 1);
    PAIR_STORE(2, 3, f->block[!buffer_index]);
    blocks_diagonals(f, w, buffer_index);
    f->begun[buffer_index] = x;
    if (x.some > 2)
        PAIR_PRODUCT(2, 3);
    PAIR_STORE(0, 1, f->block[buffer_index]);
    f->buffer_index = !buffer_index;
}

static void diagonal_pipeline_drain(const struct diagonal_pipeline *f,
                                    const struct diagonal_run *w)
{
    const u32 buffer_index = f->buffer_index;
    PAIR_STORE(2, 3, f->block[!buffer_index]);
    blocks_diagonals(f, w, buffer_index);
    blocks_diagonals(f, w, !buffer_index);
}

/* Four diagonals of all rows, then the next four: neighbouring diagonals share most columns. Meanwhile the next run's
   rows are prefetched into L2, as L1 is full. */
static void diagonal_dots_matrix(diagonal_numbers to, struct diagonal_run *w,
                                 const struct abi_tensor *t, const struct operand *o,
                                 float scale, float fill)
{
    __attribute__((aligned(64))) float rows[RUN_BLOCKS][DEPTH / 2][MATRIX_COLS];
    struct diagonal_pipeline f;
    const u32 share = prefetch_share(&w->prefetch, (w->diagonals + AT_ONCE - 1) / AT_ONCE);
    u32 most = 0;
    f.buffer_index = f.begun[0].some = f.begun[1].some = 0;
    f.to = to;
    f.scale = scale;
    f.fill = fill;
    for (u32 b = 0; b < w->blocks; b++)
        most = w->rows[b].count > most ? w->rows[b].count : most;
    for (u32 k = 0; k < most; k += AT_ONCE)
        for (u32 b = 0; b < w->blocks; b++) {
            const struct diagonal_rows *x = &w->rows[b];
            const u32 left = x->count - k;
            if (k >= x->count)
                continue;
            if (!k)
                diagonal_rows_read(w->s, t, x->i, x->live, rows[b]);
            prefetch_rows_far(&w->prefetch, share);
            diagonal_products(
                &f, rows[b], w, o,
                (struct diagonals_begun){x->first + k, left < AT_ONCE ? left : AT_ONCE});
        }
    diagonal_pipeline_drain(&f, w);
}
#endif

INLINE void diagonal_dots(diagonal_numbers to, struct diagonal_run *w,
                          const struct abi_tensor *t, const struct operand *o, float scale,
                          float fill)
{
#if MATRIX
    if (LISTS_DEINTERLEAVED) {
        diagonal_dots_matrix(to, w, t, o, scale, fill);
        return;
    }
#endif
    diagonal_dots_vector(to, w, t, o, scale, fill);
}

#endif
