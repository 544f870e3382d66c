/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout of items that are all diagonals: bits of 16 rows for each diagonal. One that covers most rows is drawn by
   rows: rows 0 to 7 side by side, and one call often serves row k + 8 too. Other entries are collected until they fill
   a vector. */
#ifndef MASKC_CPU_DIAGONAL_DROPOUT_H
#define MASKC_CPU_DIAGONAL_DROPOUT_H
#include "cpu/diagonal/run.h"
#include "cpu/dropout.h"

/* Bits of the diagonals that 16 rows see. */
typedef u16 diagonal_bits[RUN_DIAGONALS];

/* Entries of scattered diagonals that wait for their draws. */
struct diagonal_draws {
    u32 row[CALLS], column[CALLS], slot[CALLS]; /* 16 x diagonal + row of 16 */
    u32 count;
};

static void diagonal_draw(const struct draw *of, struct diagonal_draws *x, int transposed,
                          diagonal_bits keep)
{
    const wide row = wide_load(x->row), column = wide_load(x->column);
    const u32 bits = bits_of_wide(transposed ? draw_entries(of, column, row)
                                             : draw_entries(of, row, column));
    for (u32 k = 0; k < x->count; k++)
        keep[x->slot[k] / DIAGONAL_ROWS] |=
            (u16)((bits >> k & 1) << x->slot[k] % DIAGONAL_ROWS);
    x->count = 0;
}

/* Rows k + 8 whose entry needs another call than that of row k: their columns lie in different tiles of 16. */
INLINE u32 diagonal_apart(const struct diagonal_at *at)
{
    enum { HALF = DIAGONAL_ROWS / 2 };
    const u32 c = (u32)at->column % DIAGONAL_ROWS;
    const u32 rows = c <= HALF ? 0xffu << (HALF - c) : (1u << (DIAGONAL_ROWS - c)) - 1;
    return at->step ? (rows & 0xff) << HALF : 0;
}

static void diagonal_keep(diagonal_bits keep, const struct diagonal_run *w,
                          const struct diagonal_rows *x, int transposed)
{
    enum { SCATTERED = 4 };
    const struct draw of = draw_in(w->s);
    const struct diagonal_at *at = w->diagonal + x->first;
    struct diagonal_draws waiting = {.count = 0};
    for (u32 k = 0; k < x->count; k++, at++) {
        const struct draw_step row = {(i32)x->i, 1}, column = {at->column, at->step};
        u32 rows = at->rows;
        keep[k] = 0;
        if (__builtin_popcount(rows) > SCATTERED) {
            const u32 apart = diagonal_apart(at);
            const int shared = __builtin_popcount(apart) <= SCATTERED;
            rows = shared ? apart & rows : 0;
            keep[k] = (u16)((transposed ? draw_line(&of, column, row, shared)
                                        : draw_line(&of, row, column, shared)) &
                            ~rows);
        }
        for (; rows; rows &= rows - 1) {
            const u32 r = (u32)__builtin_ctz(rows), n = waiting.count++;
            waiting.row[n] = x->i + r;
            waiting.column[n] = (u32)at->column + at->step * r;
            waiting.slot[n] = k * DIAGONAL_ROWS + r;
            if (waiting.count == CALLS)
                diagonal_draw(&of, &waiting, transposed, keep);
        }
    }
    diagonal_draw(&of, &waiting, transposed, keep);
}

/* Dropped numbers become 0. */
static void diagonal_drop(float (*x)[DIAGONAL_ROWS], u32 diagonals, const diagonal_bits keep)
{
    for (u32 k = 0; k < diagonals; k++)
        for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES)
            store(x[k] + r, lanes_kept(load(x[k] + r), (u32)keep[k] >> r));
}

#endif
