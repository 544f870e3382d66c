/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that a head's items read. With another number of keys than of queries they may be few: a window at the end
   of 4096 keys is all that one query sees. Operands are packed for these alone, a group of columns at a time. Kernels with
   as many keys as queries pack all columns. */
#ifndef MASKC_CPU_USED_H
#define MASKC_CPU_USED_H
#include "cpu/layout.h"

enum {
    USED_WORDS = 64,
    USED_GROUPS = 64 * USED_WORDS,
    USED_SHIFT = 6, /* a group has 64 columns, or more where 64 would make too many groups */
    USED_MARGIN =
        2 * TILE, /* products read tiles of 32 from a multiple of 16, vectors two at a time */
};

struct used {
    u64 group[USED_WORDS]; /* a bit for each */
    u32 shift;             /* a group has 2^shift columns */
};

INLINE int used_at(const struct used *u, u32 column)
{
    const u32 group = column >> u->shift;
    return !RECTANGULAR || (u->group[group / 64] >> group % 64 & 1);
}

/* The first used column from `column` on; if none is below `end`, some number that is not either. */
INLINE u32 used_from(const struct used *u, u32 column, u32 end)
{
    while (column < end && !used_at(u, column))
        column = ((column >> u->shift) + 1) << u->shift;
    return column;
}

#if RECTANGULAR
/* Columns begin .. end - 1, and those that products with them may read. */
static void used_mark(struct used *u, u32 begin, u32 end)
{
    const u32 first = (begin < USED_MARGIN ? 0 : begin - USED_MARGIN) >> u->shift;
    const u32 last = (end + USED_MARGIN) >> u->shift;
    for (u32 k = first; begin < end && k <= last && k < USED_GROUPS; k++)
        u->group[k / 64] |= (u64)1 << k % 64;
}

static void used_mark_piece(struct used *u, const struct abi_plan *p,
                            const struct abi_piece *piece)
{
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        if (piece->kind == ABI_BLOCKS || piece->kind == ABI_ROWS) {
            used_mark(u, p->ranges[k].begin, p->ranges[k].end);
        } else if (piece->kind == ABI_TILES) {
            used_mark(u, p->tiles[k].col0, p->tiles[k].col0 + TILE);
        } else if (piece->kind == ABI_DIAGONAL) {
            const struct abi_line *x = &p->lines[k];
            const u32 column = (u32)(x->col0 + (i32)(x->step * x->row_begin));
            used_mark(u, column, column + 1 + x->step * (x->row_end - x->row_begin - 1));
        } else {
            const struct abi_gather *x = &p->gathers[k];
            for (u32 c = x->first; c < x->first + x->count; c++)
                used_mark(u, p->columns[c], p->columns[c] + 1);
        }
    }
}

static void used_mark_head(struct used *u, const struct abi_plan *p, u32 h)
{
    const struct abi_head *head = &p->heads[h];
    for (u32 i = head->item; i < head->item + head->items; i++)
        for (u32 k = 0; k < p->items[i].pieces; k++)
            used_mark_piece(u, p, &p->pieces[p->items[i].piece + k]);
}

/* The columns of operand k that items of the head read, or of all query heads that share it. */
static void used_find(struct used *u, const struct sequence *s, enum operand_kind k)
{
    const int of_keys = k < OPERAND_QUERY;
    const u32 heads = GROUPED && of_keys ? s->a->group : 1;
    for (u32 w = 0; w < USED_WORDS; w++)
        u->group[w] = 0;
    u->shift = USED_SHIFT;
    while ((s->a->n + USED_MARGIN) >> u->shift >= USED_GROUPS)
        u->shift++;
    for (u32 h = s->h; h < s->h + heads; h++)
        used_mark_head(u, of_keys ? &s->a->forward : &s->a->transposed, h);
}
#else
static void used_find(struct used *u, const struct sequence *s, enum operand_kind k)
{
    (void)s, (void)k;
    u->shift = USED_SHIFT;
}
#endif

#endif
