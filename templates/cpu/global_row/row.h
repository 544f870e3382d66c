/* SPDX-License-Identifier: Apache-2.0 */
/* A global row: an item of one row that sees one range of columns. The operands' rows follow each other, so no column
   list is needed. Scores and dP are stored where a block has them. */
#ifndef MASKC_CPU_GLOBAL_ROW_ROW_H
#define MASKC_CPU_GLOBAL_ROW_ROW_H
#include "cpu/column_list.h"
#include "cpu/diagonal/run.h"

_Static_assert(CPU_GLOBAL_ROW_MOST(CPU_CHUNK_COLS(MATRIX, BIAS)) + LANES <=
                   BLOCK_ROWS * SCORE_STRIDE,
               "scores of the longest global row fit");
_Static_assert(CPU_GLOBAL_ROW_MOST(CPU_CHUNK_COLS(MATRIX, BIAS)) / 32 + 3 <=
                   BLOCK_ROWS * KEEP_WORDS,
               "and its dropout bits");

INLINE struct block *global_row_block(u8 *scratch)
{
    return (struct block *)(void *)(scratch + ROW_BLOCK_BYTES);
}

/* Where the row's range lies, below the length. */
struct row_range {
    u32 first, count;
};

static struct row_range row_range_of(const struct sequence *s, const struct abi_plan *p,
                                     const struct abi_item *item)
{
    struct abi_range range = p->ranges[p->pieces[item->piece].first];
    u32 end = range.end < s->column_length ? range.end : s->column_length;
    return (struct row_range){range.begin, range.begin < end ? end - range.begin : 0};
}

/* Which of the row's `count` columns from `first` on dropout keeps, as bits; null: it is switched off. They lie where a
   block has them. */
static const u32 *global_row_keep(const struct sequence *s, u32 i, struct row_range at,
                                  int transposed, struct block *b)
{
    const struct draw of = draw_in(s);
    const u32 shift = at.first % (TILE / 2), words = (shift + at.count + TILE - 1) / TILE;
    u32 *keep = b->keep[0], col = at.first - shift;
    if (!sequence_drops(s))
        return 0;
    for (u32 k = 0; k < words; k++, col += TILE)
        keep[k] = transposed ? draw_key(&of, i, col) : draw_query(&of, i, col);
    keep[words] = 0;
    for (u32 k = 0; k < words && shift; k++)
        keep[k] = keep[k] >> shift | keep[k + 1] << (TILE - shift);
    return keep;
}

/* Dropped numbers become 0. Null: none. */
static void global_row_drop(float *x, u32 count, const u32 *keep)
{
    for (u32 c = 0; keep && c < count; c += LANES)
        store(x + c, lanes_kept(load(x + c), keep[c / 32] >> c % 32));
}

/* Gradients of a row that sees nothing. Its delta is written too: readers load it before they know that the row has no
   entries. */
INLINE void global_row_empty(const struct sequence *s, u32 i, int transposed)
{
    row_clear(s, transposed ? &s->a->d_k : &s->a->d_q, i);
    if (transposed)
        row_clear(s, &s->a->d_v, i);
    else
        *delta_at(s, i) = 0;
}

/* The rows of an operand in that range. */
struct rows_seen {
    const float *row;
    i64 stride;
    u32 count;
};

/* Dot products with `count` rows, times `scale`; `fill` up to a whole vector. */
static void global_row_dots(float *to, const float *x, const struct operand *o,
                            struct row_range at, float scale, float fill)
{
    const float *row = operand_row(o, at.first);
    const i64 stride = o->stride;
    const u32 count = at.count;
    u32 k = 0;
    for (; k + 4 <= count; k += 4, row += 4 * stride)
        *(quad_at *)(to + k) =
            dots4(x, row, row + stride, row + 2 * stride, row + 3 * stride) * scale;
    for (u32 end = (count + LANES - 1) / LANES * LANES; k < end; k += 4) {
        quad s = {fill, fill, fill, fill};
        for (u32 c = 0; c < 4 && k + c < count; c++, row += stride)
            s[c] = dots4(x, row, row, row, row)[0] * scale;
        *(quad_at *)(to + k) = s;
    }
}

/* to = scale x sum of p x row, `vecs` vectors from feature d. Two chains of additions hide their latency. */
INLINE void global_row_sum(float *to, const float *p, struct rows_seen seen, float scale, u32 d,
                           u32 vecs)
{
    const float *row = seen.row;
    const i64 stride = seen.stride;
    const u32 count = seen.count;
    vec even[ROW_SUM_VECS] = {{0}}, odd[ROW_SUM_VECS] = {{0}};
    u32 k = 0;
    for (; k + 2 <= count; k += 2, row += 2 * stride) {
        vec w = splat(p[k]), x = splat(p[k + 1]);
        for (u32 v = 0; v < vecs; v++) {
            even[v] += w * row_load(row, d + v * LANES);
            odd[v] += x * row_load(row + stride, d + v * LANES);
        }
    }
    if (k < count)
        for (u32 v = 0; v < vecs; v++)
            even[v] += splat(p[k]) * row_load(row, d + v * LANES);
    for (u32 v = 0; v < vecs; v++)
        even[v] = (even[v] + odd[v]) * splat(scale);
    for (u32 v = 0; v + 2 <= vecs; v += 2)
        vecs_interleave(&even[v]);
    for (u32 v = 0; v < vecs; v++)
        store(to + d + v * LANES, even[v]);
}

static void global_row_sums(float *to, const float *p, const struct operand *o,
                            struct row_range at, float scale)
{
    const struct rows_seen seen = {operand_row(o, at.first), o->stride, at.count};
    enum { REST = ROW_VECS % ROW_SUM_VECS, WHOLE = (ROW_VECS - REST) * LANES };
    for (u32 d = 0; d + ROW_SUM_VECS * LANES <= WIDTH; d += ROW_SUM_VECS * LANES)
        global_row_sum(to, p, seen, scale, d, ROW_SUM_VECS);
    if (REST)
        global_row_sum(to, p, seen, scale, WHOLE, REST);
}

#endif
