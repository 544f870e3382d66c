/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of column lists dropout keeps. A row of a tile may have few, so those of all rows and tiles of a block
   are drawn one after another. */
#ifndef MASKC_CPU_LIST_KEEP_H
#define MASKC_CPU_LIST_KEEP_H
#include "cpu/column_list.h"

/* Entries of neighbouring rows, one after another, so that every vector of draws is full. */
enum { FLAT = 2 * CHUNK_COLS };

struct flat_entries {
    u32 row[FLAT + LANES], column[FLAT + LANES], count;
    u8 kept[FLAT / 8 + 8]; /* bits */
};

/* Adds `count` columns of a row; up to LANES - 1 more numbers are copied. */
INLINE void flat_add(struct flat_entries *f, u32 row, const u32 *column, u32 count)
{
    const uvec same = (uvec){0} + row;
    for (u32 k = 0; k < count; k += LANES) {
        *(uvec_at *)(f->row + f->count + k) = same;
        *(uvec_at *)(f->column + f->count + k) = *(const uvec_at *)(column + k);
    }
    f->count += count;
}

static void flat_draw(const struct row_block *t, struct flat_entries *f)
{
    for (u32 k = 0; k < f->count; k += 8) {
        u32 bits = 0;
        for (u32 x = 0; x < 8; x += CALLS)
            bits |= bits_of_wide(keep_entries(t, wide_load(f->row + k + x),
                                              wide_load(f->column + k + x)))
                    << x;
        f->kept[k / 8] = (u8)bits;
    }
}

/* Bits at .. at + 31. */
INLINE u32 flat_bits(const struct flat_entries *f, u32 at)
{
    u64 word;
    __builtin_memcpy(&word, f->kept + at / 8, sizeof word);
    return (u32)(word >> at % 8);
}

/* A row of a tile. Rows come tile by tile. */
struct list_at {
    u32 tile, row;
};

INLINE struct list_at list_next(const struct row_block *t, struct list_at x)
{
    return x.row + 1 < t->rows ? (struct list_at){x.tile, x.row + 1}
                               : (struct list_at){x.tile + 1, 0};
}

/* Number of listed columns that the row has there. */
INLINE u32 list_length(const struct block *b, struct list_at x)
{
    const struct column_tile *tile = &b->tile[x.tile];
    const int list = tile->kind == TILE_DIAGONAL || tile->kind == TILE_RANGE;
    return list ? list_count(&b->column[x.row][tile->at], tile->width) : 0;
}

/* Entries from `x` on, as many as there is room for. Returns where the others begin. */
static struct list_at flat_fill(struct flat_entries *f, const struct row_block *t,
                                const struct block *b, struct list_at x)
{
    f->count = 0;
    for (; x.tile < b->tiles; x = list_next(t, x)) {
        const u32 count = list_length(b, x);
        if (f->count + count > FLAT)
            break;
        flat_add(f, t->item->row0 + x.row, &b->column[x.row][b->tile[x.tile].at], count);
    }
    return x;
}

/* Stores the draws of the rows x .. end. */
static void flat_put(const struct flat_entries *f, const struct row_block *t, struct block *b,
                     struct list_at x, struct list_at end)
{
    u32 at = 0;
    for (; x.tile != end.tile || x.row != end.row; x = list_next(t, x)) {
        const u32 count = list_length(b, x), to = b->tile[x.tile].at;
        for (u32 k = 0; k < count; k += 32)
            keep_put(b, x.row, to + k, count - k < 32 ? count - k : 32, flat_bits(f, at + k));
        at += count;
    }
}

/* Which entries of the block's lists dropout keeps. */
static void lists_keep(const struct row_block *t, struct block *b)
{
    struct flat_entries f;
    struct list_at x = {0, 0};
    while (x.tile < b->tiles) {
        const struct list_at end = flat_fill(&f, t, b, x);
        flat_draw(t, &f);
        flat_put(&f, t, b, x, end);
        x = end;
    }
}

#endif
