/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: lines of entries along diagonals (distances, rings) and down columns (globals), each
   row of a line one dot product. Pays where a tile would hold few entries. First each tile is
   weighed by a lower bound on its lines; then the chosen entries are cut into lines, longest
   first; tiles whose lines came out too short go back and the cut is made again. */
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

extern const struct lowering lowering_diagonal;

enum { ROUNDS = 3 }; /* of giving tiles back */

/* What is being cut: the entries still to be covered, as in strip.open, of the chosen tiles. */
struct cut {
    const struct strip *s;
    u32 *bits;        /* [n_touched + 1][strip_rows], by place in strip.touched */
    bool *chosen;     /* [n_touched] */
    uint32_t *starts; /* [n_touched] lines that begin there */
};

/* Entries whose upper and upper left neighbours are off must begin a line of their own. */
static uint32_t least_lines(const struct strip *s, uint32_t at)
{
    uint32_t tile = s->touched[at];
    const u32 *word = strip_tile(s, s->open, tile);
    bool left_touched = at && s->touched[at - 1] == tile - 1;
    const u32 *left = left_touched ? strip_tile(s, s->open, tile - 1) : NULL;
    uint32_t count = (uint32_t)__builtin_popcount(word[0]);
    for (uint32_t r = 1; r < s->rows; r++) {
        u32 above = word[r - 1] | word[r - 1] << 1 | (left ? left[r - 1] >> 31 : 0);
        count += (uint32_t)__builtin_popcount(word[r] & ~above);
    }
    return count;
}

static bool tile_pays(const struct strip *s, const struct price *p, uint32_t cells,
                      uint32_t lines)
{
    return cells * p->walk + lines * p->line < 32.0 * s->rows * p->partial;
}

static bool applies(const struct strip *s, const struct price *p)
{
    for (uint32_t k = 0; k < s->n_touched; k++) {
        uint32_t cells = strip_open_cells(s, s->touched[k]);
        if (cells && tile_pays(s, p, cells, least_lines(s, k)))
            return true;
    }
    return false;
}

/* A bound from below, as every line is at least one column of every row. */
static double cost(struct strip *s, const struct price *p)
{
    uint64_t solid = 32 * (uint64_t)strip_solid_tiles(s), lines = solid;
    strip_reopen(s);
    for (uint32_t k = 0; k < s->n_touched; k++)
        lines += least_lines(s, k);
    return p->item + s->rows * p->line_row + (double)s->cells * p->walk +
           (double)lines * p->line;
}

static u32 *cut_word(const struct cut *c, uint32_t at, uint32_t r)
{
    return &c->bits[(size_t)at * c->s->strip_rows + r];
}

/* Place of the tile right of place `at`, or n_touched, where all bits are off. */
static uint32_t next_place(const struct cut *c, uint32_t at)
{
    const struct strip *s = c->s;
    bool there = at + 1 < s->n_touched && s->touched[at + 1] == s->touched[at] + 1;
    return there ? at + 1 : s->n_touched;
}

/* Rows that a line from (r, bit of place at) covers. With `take` they are switched off. */
static uint32_t follow(struct cut *c, uint32_t at, uint32_t r, uint32_t bit, uint32_t step,
                       bool take)
{
    uint32_t length = 0;
    for (; r < c->s->rows && *cut_word(c, at, r) >> bit & 1; r++, length++) {
        if (take)
            *cut_word(c, at, r) &= ~((u32)1 << bit);
        bit += step;
        if (bit == ABI_TILE_COLS) {
            at = next_place(c, at);
            bit = 0;
        }
    }
    return length;
}

static void add_line(struct cut *c, struct draft *d, uint32_t at, uint32_t r, uint32_t bit,
                     uint32_t step, uint32_t length)
{
    int64_t column = (int64_t)c->s->touched[at] * ABI_TILE_COLS + bit;
    follow(c, at, r, bit, step, true);
    c->starts[at]++;
    *MEMORY_PUSH(d->lines, d->n_lines, d->lines_room) =
        (struct abi_line){(i32)(column - (int64_t)step * r), step, r, r + length};
}

/* Lines of at least `least` rows, from the top down. */
static void cut_lines(struct cut *c, struct draft *d, uint32_t least)
{
    const struct strip *s = c->s;
    for (uint32_t at = 0; at < s->n_touched; at++) {
        for (uint32_t r = 0; c->chosen[at] && r + least <= s->rows; r++) {
            u32 tried = 0, left;
            while ((left = *cut_word(c, at, r) & ~tried)) {
                uint32_t bit = (uint32_t)__builtin_ctz(left);
                uint32_t along = follow(c, at, r, bit, 1, false);
                uint32_t down = follow(c, at, r, bit, 0, false);
                uint32_t length = along >= down ? along : down;
                tried |= (u32)1 << bit;
                if (length >= least)
                    add_line(c, d, at, r, bit, along >= down, length);
            }
        }
    }
}

static void cut_all(struct cut *c, struct draft *d)
{
    const struct strip *s = c->s;
    for (uint32_t at = 0; at < s->n_touched; at++) {
        c->starts[at] = 0;
        const u32 *open = strip_tile(s, s->open, s->touched[at]);
        size_t bytes = s->strip_rows * sizeof *open;
        if (c->chosen[at])
            memcpy(cut_word(c, at, 0), open, bytes);
        else
            memset(cut_word(c, at, 0), 0, bytes);
    }
    cut_lines(c, d, s->rows);
    cut_lines(c, d, s->rows / 4 + 1);
    cut_lines(c, d, 1);
}

static uint32_t choose(struct cut *c, const struct price *p)
{
    uint32_t chosen = 0;
    for (uint32_t at = 0; at < c->s->n_touched; at++) {
        uint32_t cells = strip_open_cells(c->s, c->s->touched[at]);
        c->chosen[at] = cells && tile_pays(c->s, p, cells, least_lines(c->s, at));
        chosen += c->chosen[at];
    }
    return chosen;
}

static bool give_back(struct cut *c, const struct price *p)
{
    bool some = false;
    for (uint32_t at = 0; at < c->s->n_touched; at++) {
        if (!c->chosen[at])
            continue;
        uint32_t cells = strip_open_cells(c->s, c->s->touched[at]);
        if (tile_pays(c->s, p, cells, c->starts[at]))
            continue;
        c->chosen[at] = false;
        some = true;
    }
    return some;
}

static int by_place(const void *x, const void *y)
{
    const struct abi_line *a = x, *b = y;
    if (a->step != b->step)
        return a->step < b->step ? 1 : -1;
    if (a->col0 != b->col0)
        return a->col0 < b->col0 ? -1 : 1;
    return a->row_begin < b->row_begin ? -1 : a->row_begin > b->row_begin;
}

static void take(struct cut *c, struct strip *s, const struct price *p, struct draft *d,
                 uint64_t first)
{
    uint64_t count = d->n_lines - first, cells = 0;
    for (uint64_t k = first; k < d->n_lines; k++)
        cells += d->lines[k].row_end - d->lines[k].row_begin;
    qsort(d->lines + first, count, sizeof *d->lines, by_place);
    d->cost += s->rows * p->line_row + (double)cells * p->walk + (double)count * p->line;
    draft_piece(d, ABI_DIAGONAL, first, count, count);
    for (uint32_t at = 0; at < s->n_touched; at++)
        if (c->chosen[at])
            memset(strip_tile(s, s->open, s->touched[at]), 0, s->strip_rows * sizeof *s->open);
}

static void build(struct strip *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_lines;
    struct cut c = {
        .s = s,
        .bits = memory_new(((size_t)s->n_touched + 1) * s->strip_rows, sizeof *c.bits),
        .chosen = memory_new(s->n_touched, sizeof *c.chosen),
        .starts = memory_new(s->n_touched, sizeof *c.starts),
    };
    if (choose(&c, p)) {
        cut_all(&c, d);
        for (uint32_t round = 0; round < ROUNDS && give_back(&c, p); round++) {
            d->n_lines = first;
            cut_all(&c, d);
        }
        if (d->n_lines > first)
            take(&c, s, p, d, first);
    }
    free(c.bits);
    free(c.chosen);
    free(c.starts);
}

static bool decode(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    (void)strip_rows;
    if (piece->first > t->n_lines || piece->count > t->n_lines - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        const struct abi_line *line = &t->lines[piece->first + k];
        if (line->step > 1 || line->row_begin >= line->row_end || line->row_end > item->rows)
            return false;
        for (uint32_t r = line->row_begin; r < line->row_end; r++) {
            int64_t column = (int64_t)line->col0 + (int64_t)line->step * r;
            if (column < 0 || column >= UINT32_MAX)
                return false;
            if (!v->range(v->context, r, (uint32_t)column, (uint32_t)column + 1))
                return false;
        }
    }
    return true;
}

static uint64_t columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    (void)t;
    return piece->count;
}

static void print(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    (void)strip_rows;
    uint64_t cells = 0;
    for (uint32_t k = 0; k < piece->count; k++)
        cells += t->lines[piece->first + k].row_end - t->lines[piece->first + k].row_begin;
    text_add(out, "%u lines, %llu entries:", piece->count, (unsigned long long)cells);
    for (uint32_t k = 0; k < piece->count && k < 12; k++) {
        const struct abi_line *line = &t->lines[piece->first + k];
        if (line->step)
            text_add(out, " %+lld", (long long)line->col0 - item->row0);
        else
            text_add(out, " column %d", line->col0);
        if (line->row_begin || line->row_end != item->rows)
            text_add(out, "(%u..%u)", item->row0 + line->row_begin,
                     item->row0 + line->row_end - 1);
    }
    text_add(out, piece->count > 12 ? " ...\n" : "\n");
}

const struct lowering lowering_diagonal = {
    .name = "diagonal",
    .kind = ABI_DIAGONAL,
    .optional = true,
    .applies = applies,
    .cost = cost,
    .build = build,
    .decode = decode,
    .columns = columns,
    .print = print,
};
