/* SPDX-License-Identifier: Apache-2.0 */
/* dX, the gradient of a bias. In the forward plan the item that owns a row adds its dX to the caller's array, sequence
   after sequence; sums along diagonals are added up for each item, then over the items. */
#ifndef MASKC_CPU_BIAS_GRADIENT_H
#define MASKC_CPU_BIAS_GRADIENT_H
#include "cpu/bias.h"

#if BIAS

/* dX = P times dP before the multiplication with X. It replaces X in the block. */
INLINE void bias_put(struct block *b, u32 r, u32 c, vec p, vec dp)
{
    if (BIAS == ABI_BIAS_SCALE)
        store(&b->bias[r][c], p * dp);
}

INLINE void bias_add(float *to, const float *from, u32 width)
{
    u32 c = 0;
    for (; c + LANES <= width; c += LANES)
        store(to + c, load(to + c) + load(from + c));
    for (; c < width; c++)
        to[c] += from[c];
}

/* Adds row r's dX of a tile to an array whose key 0 is at `to`. */
static void bias_scatter(const struct row_block *t, const struct block *b,
                         const struct column_tile *tile, u32 r, float *to)
{
    const float *from = BIAS == ABI_BIAS_SCALE ? &b->bias[r][tile->at] : &b->dp[r][tile->at];
    const u32 *column = &b->column[r][tile->at];
    if (tile->kind == TILE_PANEL)
        bias_add(to + tile->first, from, tile->width);
    else if (tile->kind == TILE_GATHERED)
        for (u32 c = 0; c < tile->width; c++)
            to[tile_column(t, tile, c)] += from[c];
    else
        for (u32 k = 0, count = list_count(column, tile->width); k < count; k++)
            to[column[k]] += from[k];
}

/* Adds row r's dX of a tile to an item's sums along diagonals; see bias_part(). */
static void bias_scatter_part(const struct row_block *t, const struct block *b,
                              const struct column_tile *tile, u32 r, float *part)
{
    const float *from = BIAS == ABI_BIAS_SCALE ? &b->bias[r][tile->at] : &b->dp[r][tile->at];
    const u32 step = t->item->step;
    if (step == 1) {
        bias_scatter(t, b, tile, r, part + TILE - 1 - r);
        return;
    }
    for (u32 c = 0; c < tile->width; c++)
        part[tile_column(t, tile, c) / step + TILE - 1 - r] += from[c];
}

/* Forward plan, after block_gradient: adds dX to the caller's arrays. For an added X dX is dS. */
static void bias_gradient(const struct row_block *t, const struct block *b)
{
    const struct abi_args *a = t->s.a;
    for (u32 k = 0; k < b->tiles; k++)
        for (u32 r = 0; r < t->rows; r++) {
            if (!row_live(t, r))
                continue;
            if (a->d_bias)
                bias_scatter(t, b, &b->tile[k], r, a->d_bias + bias_at(t, row_of(t->item, r)));
            if (t->s.part)
                bias_scatter_part(t, b, &b->tile[k], r, t->s.part);
        }
}

/* ---- the whole of dX ---- */

static void bias_clear(const struct abi_args *a, u32 h)
{
    u64 size = (u64)a->forward.n * a->forward.n;
    for (u64 k = 0; a->d_bias && k < size; k++)
        a->d_bias[h * size + k] = 0;
}

/* Where work item `work` sums up dX along diagonals: key j of row r at j / step - r + TILE - 1. In the forward plan
   an item with a step has the keys of its own class alone, so that a place belongs to one diagonal. */
INLINE float *bias_part(const struct abi_args *a, u64 work)
{
    return a->d_diagonal ? a->bias_part + work * (a->forward.n + TILE) : 0;
}

static void bias_part_clear(const struct abi_args *a, u64 work)
{
    float *part = bias_part(a, work);
    for (u64 k = 0; part && k < a->forward.n + TILE; k++)
        part[k] = 0;
}

/* Place k of an item's part is diagonal step * (k - TILE + 1 - row0 / step), which stands n - 1 further. */
static void bias_diagonals_add(float *to, const float *part, const struct abi_item *item, i64 n)
{
    const i64 step = item->step, shift = TILE - 1 + item->row0 / item->step;
    i64 first = shift - (n - 1) / step, end = n + TILE - 1;
    for (i64 k = first < 0 ? 0 : first; k < end && step * (k - shift) < n; k++)
        to[step * (k - shift) + n - 1] += part[k];
}

/* Adds up the parts of a head's items, in the order of the work list. */
static void bias_diagonals(const struct abi_args *a, u32 h)
{
    const i64 n = a->forward.n;
    float *to = a->d_diagonal + h * (2 * n - 1);
    for (i64 o = 0; o < 2 * n - 1; o++)
        to[o] = 0;
    for (u32 w = 0; w < a->forward.works; w++) {
        const struct abi_work *work = &a->forward.work[w];
        if (work->head != h)
            continue;
        bias_diagonals_add(to, bias_part(a, w), &a->forward.items[work->item], n);
    }
}

#else

INLINE void bias_put(struct block *b, u32 r, u32 c, vec p, vec dp)
{
    (void)b, (void)r, (void)c, (void)p, (void)dp;
}

INLINE void bias_gradient(const struct row_block *t, const struct block *b)
{
    (void)t, (void)b;
}

#endif
#endif
