/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products along diagonals by VDPBF16PS, four rows at a time: rows and columns where they lie. */
#ifndef MASKC_CPU_MATRIX_DIAGONAL_DOTS_H
#define MASKC_CPU_MATRIX_DIAGONAL_DOTS_H
#include "cpu/diagonal/product.h"

enum { HALF_VECS = (ROW_VECS + 1) / 2 };

struct four_halves {
    vec at[FOUR][HALF_VECS];
};

/* Rows i .. i + 3; zeros for those that are not live. */
INLINE void four_halves_read(const struct sequence *s, const struct abi_tensor *t, u32 i,
                             u32 live, struct four_halves *to)
{
    for (u32 r = 0; r < FOUR; r++) {
        const u16 *from = (const u16 *)t->data + element_at(s, t, i + r);
        const float *row = live >> r & 1 ? (const float *)(const void *)from : no_row;
        for (u32 v = 0; v < HALF_VECS; v++)
            to->at[r][v] = load(row + v * LANES);
    }
}

INLINE void four_halves_dots(float (*to)[DIAGONAL_ROWS], const struct four_halves *x,
                             struct four_columns c, float scale, float fill)
{
    const struct four_halves rows = *x;
    const quad none = {fill, fill, fill, fill};
    for (u32 k = 0; k < c.diagonals; k++) {
        const u32 some = c.diagonal[k].rows >> c.first & ALL_FOUR;
        const float *row[FOUR];
        vec sum[FOUR] = {{0}};
        if (!some) {
            *(quad_at *)(to[k] + c.first) = none;
            continue;
        }
        diagonal_operand_rows(c.o, &c.diagonal[k], c.first, some, row);
        for (u32 v = 0; v < HALF_VECS; v++)
            for (u32 r = 0; r < FOUR; r++)
                DOT(sum[r], rows.at[r][v], load(row[r] + v * LANES));
        diagonal_put(to[k] + c.first, some, sum, scale, fill);
    }
}

static void diagonal_dots_matrix(diagonal_numbers to, struct diagonal_run *w,
                                 const struct abi_tensor *t, const struct operand *o,
                                 float scale, float fill)
{
    for (u32 b = 0; b < w->blocks; b++) {
        const struct diagonal_rows *x = &w->rows[b];
        for (u32 first = 0; first < DIAGONAL_ROWS; first += FOUR) {
            struct four_halves rows;
            four_halves_read(w->s, t, x->i + first, x->live >> first, &rows);
            four_halves_dots(to + x->first, &rows,
                             (struct four_columns){o, w->diagonal + x->first, x->count, first},
                             scale, fill);
        }
    }
}

#endif
