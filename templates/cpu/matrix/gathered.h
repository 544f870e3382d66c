/* SPDX-License-Identifier: Apache-2.0 */
/* Gathered columns for a matrix unit: bf16 rows packed as matrix/pack.h packs a head's, for the columns of one tile.
   Neighbouring row blocks often share them (global columns, the Fixed pattern), so the last GATHERED tiles are kept. */
#ifndef MASKC_CPU_MATRIX_GATHERED_H
#define MASKC_CPU_MATRIX_GATHERED_H
#include "cpu/matrix/pack.h"
#include "cpu/row_block.h"

/* Forgets all kept tiles; for the start of a phase, when the scratch may hold another phase's. */
static void gathered_forget(u8 *scratch)
{
    struct row_block_memory *m = (struct row_block_memory *)(void *)scratch;
    for (u32 k = 0; k < GATHERED; k++)
        m->gathered[k].width = m->gathered[k].used = 0;
    m->gathered_used = 0;
}

/* The kept tile with these columns, or null. */
static struct gathered *gathered_held(const struct row_block *t, const u32 *column, u32 width)
{
    for (u32 i = 0; i < GATHERED; i++) {
        struct gathered *x = &t->m->gathered[i];
        u32 k = 0;
        if (x->width != width || x->b != t->s.b || x->h != t->s.h)
            continue;
        while (k + LANES <= width && words_equal(x->column + k, column + k))
            k += LANES;
        while (k < width && x->column[k] == column[k])
            k++;
        if (k == width)
            return x;
    }
    return 0;
}

/* The tile's columns: the kept ones, or the place used least recently, to be filled. */
static struct gathered *gathered_find(const struct row_block *t, const struct column_tile *tile)
{
    struct row_block_memory *m = t->m;
    struct gathered *ret = gathered_held(t, t->plan->columns + tile->first, tile->width);
    const u32 now = ++m->gathered_used;
    if (ret) {
        ret->used = now;
        return ret;
    }
    ret = m->gathered;
    for (u32 k = 1; k < GATHERED; k++)
        ret = m->gathered[k].used < ret->used ? &m->gathered[k] : ret;
    ret->used = now;
    ret->b = t->s.b;
    ret->h = t->s.h;
    ret->width = tile->width;
    ret->panels = ret->pairs = 0;
    for (u32 k = 0; k < tile->width; k++)
        ret->column[k] = t->plan->columns[tile->first + k];
    return ret;
}

static enum operand_kind gathered_operand(const struct row_block *t, u32 operand)
{
    if (t->transposed)
        return operand ? OPERAND_GRADIENT : OPERAND_QUERY;
    return operand ? OPERAND_VALUE : OPERAND_KEY;
}

/* Row k of the tile, zeros beyond its width. */
INLINE const u16 *gathered_row(const struct half_rows *from, const struct gathered *x, u32 k)
{
    return half_row(from, k < x->width ? x->column[k] : 0xffffffff);
}

/* The columns as panels of 16, for scores. */
static const float *gathered_panels(const struct row_block *t, const struct column_tile *tile,
                                    u32 operand)
{
    struct gathered *x = gathered_find(t, tile);
    struct half_rows from = half_rows_of(&t->s, gathered_operand(t, operand));
    from.length = t->s.column_length;
    for (u32 k = 0; !(x->panels >> operand & 1) && k < TILE; k += MATRIX_COLS) {
        const float *row[MATRIX_COLS];
        for (u32 i = 0; i < MATRIX_COLS; i++)
            row[i] = (const float *)(const void *)gathered_row(&from, x, k + i);
        panel_of_rows(row, x->panel[operand] + k * (DEPTH / 2));
    }
    x->panels |= 1u << operand;
    return x->panel[operand];
}

/* The columns as pairs of rows, for sums. */
static const u32 *gathered_pairs(const struct row_block *t, const struct column_tile *tile,
                                 u32 operand)
{
    struct gathered *x = gathered_find(t, tile);
    struct half_rows from = half_rows_of(&t->s, gathered_operand(t, operand));
    from.length = t->s.column_length;
    for (u32 k = 0; !(x->pairs >> operand & 1) && k < TILE; k += 2)
        pair_of_rows(gathered_row(&from, x, k), gathered_row(&from, x, k + 1),
                     x->pair[operand] + k / 2 * WIDTH);
    x->pairs |= 1u << operand;
    return x->pair[operand];
}

static void columns_product(const struct row_block *t, const struct column_tile *tile,
                            u32 operand, float *c)
{
    panels_product(c, block_rows(t, operand), gathered_panels(t, tile, operand), tile->live,
                   tile->width > MATRIX_COLS ? 2 : 1);
}

#endif
