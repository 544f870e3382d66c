/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of entries along diagonals (distances, rings) and down columns (globals), each row of a line one
   dot product. They pay where a tile would hold few entries. First each tile is weighed by a lower bound on its
   lines; then the entries of the chosen tiles are cut into lines (cut.h); tiles whose lines came out too short go
   back, and the cut is made again. */
#include "gen/cost/margins.h"
#include "gen/lowering/cut.h"
#include "gen/lowering/fragments.h"
#include "masks/base/memory.h"
#include <stdlib.h>

extern const struct lowering lowering_diagonal;

enum { ROUNDS = 3 }; /* of giving tiles back */

/* Columns of a tile that have an entry: each is brought once, however many lines see it. */
static uint32_t tile_columns(const struct row_block *s, const u32 *word)
{
    u32 any = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        any |= word[r];
    return (uint32_t)__builtin_popcount(any);
}

static bool tile_pays(const struct row_block *s, const struct price *p, const u32 *word,
                      uint32_t cells, uint32_t lines)
{
    return s->lines_alone || price_lines(p, s->rows, cells, lines, tile_columns(s, word)) <
                                 (1 - LEAST_TILE_GAIN) * tile_price(s, p, word);
}

static bool applies(const struct row_block *s, const struct price *p)
{
    if (p->walk <= 0)
        return false;
    for (uint32_t k = 0; k < s->n_touched; k++)
        if (tile_pays(s, p, row_block_tile(s, s->bits, s->touched[k]), s->count[k],
                      s->starts[k]))
            return true;
    return false;
}

/* Adds the work of `lines` lines that visit `columns` columns, without that of their entries. */
static void count_lines(uint32_t rows, double lines, double columns, struct effort *ret)
{
    ret->count[UNIT_COLUMN] += line_columns(rows, columns, lines);
    ret->count[UNIT_LINE] += lines;
    ret->count[UNIT_LINE_ROW] += rows;
}

/* A bound from below: an entry without a neighbour above or upper left begins a line. */
static void count_alone(struct row_block *s, struct effort *ret)
{
    uint64_t lines = (uint64_t)ABI_TILE_COLS * row_block_solid_tiles(s), columns = lines;
    for (uint32_t k = 0; k < s->n_touched; k++) {
        lines += s->starts[k];
        columns += tile_columns(s, row_block_tile(s, s->bits, s->touched[k]));
    }
    ret->count[UNIT_WALK] += line_entries(s->rows, (double)s->cells, (double)lines);
    count_lines(s->rows, (double)lines, (double)columns, ret);
}

static const u32 *open_word(const struct row_block *s, uint32_t at)
{
    return row_block_tile(s, s->open, s->touched[at]);
}

static uint32_t choose(struct cut *c, const struct price *p)
{
    uint32_t chosen = 0;
    for (uint32_t at = 0; at < c->s->n_touched; at++) {
        uint32_t cells = row_block_open_cells(c->s, c->s->touched[at]);
        uint32_t starts = c->s->starts[at] < cells ? c->s->starts[at] : cells;
        c->chosen[at] = cells && tile_pays(c->s, p, open_word(c->s, at), cells, starts);
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
        uint32_t cells = row_block_open_cells(c->s, c->s->touched[at]);
        if (tile_pays(c->s, p, open_word(c->s, at), cells, c->starts[at]))
            continue;
        c->chosen[at] = false;
        some = true;
    }
    return some;
}

static void take(struct cut *c, struct row_block *s, struct draft *d, uint64_t first)
{
    uint64_t count = d->n_lines - first;
    lines_sort(d->lines + first, count);
    draft_piece(d, ABI_DIAGONAL, first, count, count);
    for (uint32_t at = 0; at < s->n_touched; at++)
        if (c->chosen[at])
            row_block_close(s, s->touched[at]);
}

static void build(struct row_block *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_lines;
    struct cut c = {
        .s = s,
        .bits = memory_new(((size_t)s->n_touched + 1) * s->block_rows, sizeof *c.bits),
        .chosen = memory_new(s->n_touched, sizeof *c.chosen),
        .starts = memory_new(s->n_touched, sizeof *c.starts),
    };
    if (choose(&c, p)) {
        cut_lines(&c, d);
        for (uint32_t round = 0; round < ROUNDS && give_back(&c, p); round++) {
            d->n_lines = first;
            cut_lines(&c, d);
        }
        if (d->n_lines > first)
            take(&c, s, d, first);
    }
    free(c.bits);
    free(c.chosen);
    free(c.starts);
}

static bool decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    (void)block_rows;
    if (piece->first > t->n_lines || piece->count > t->n_lines - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        const struct abi_line *line = &t->lines[piece->first + k];
        if (line->step > 1 || line->row_begin >= line->row_end || line->row_end > item->rows)
            return false;
        if (!v->line(v->context, line))
            return false;
    }
    return true;
}

static uint64_t columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    (void)t;
    return piece->count;
}

static uint64_t executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n)
{
    (void)item, (void)n;
    uint64_t cells = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        cells += t->lines[k].row_end - t->lines[k].row_begin;
    return cells;
}

/* Keys from `begin` to `end` - 1 that no line before had: lines come in the order of col0. */
static uint32_t new_columns(int64_t *seen, int64_t begin, int64_t end)
{
    begin = begin > *seen ? begin : *seen;
    *seen = end > *seen ? end : *seen;
    return end > begin ? (uint32_t)(end - begin) : 0;
}

/* Groups of LINE_GRAIN rows that the line reaches into. */
static uint32_t grains(const struct abi_line *l)
{
    return (l->row_end + LINE_GRAIN - 1) / LINE_GRAIN - l->row_begin / LINE_GRAIN;
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    int64_t seen[2] = {INT64_MIN, INT64_MIN}; /* by step */
    uint64_t columns = 0, entries = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        const struct abi_line *l = &t->lines[k];
        int64_t begin = l->col0 + (int64_t)l->step * l->row_begin,
                rows = l->row_end - l->row_begin;
        entries += grains(l) * LINE_GRAIN;
        columns += new_columns(&seen[l->step], begin, begin + (l->step ? rows : 1));
    }
    ret->count[UNIT_WALK] += (double)entries;
    ret->count[UNIT_MIXED] += (double)entries;
    count_lines(item->rows, piece->count, (double)columns, ret);
}

static void print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    (void)block_rows;
    uint64_t cells = executed(t, item, piece, 0);
    count_print(out, piece->count, "line");
    text_add(out, ", %llu entr%s:", (unsigned long long)cells, cells == 1 ? "y" : "ies");
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

static void reason(const struct visits *v, double cells, struct text *out)
{
    text_add(out, "lines, too few entries for tiles: %.3g%%, %.3g each",
             100 * (double)v->entries / cells, (double)v->entries / (double)v->parts);
}

const struct lowering lowering_diagonal = {
    .name = "diagonal",
    .part = "line",
    .kind = ABI_DIAGONAL,
    .table = TABLE_LINES,
    .optional = true,
    .fits_item = item_is_row_block,
    .reason = reason,
    .told = 5,
    .applies = applies,
    .count_alone = count_alone,
    .bounds = true,
    .build = build,
    .decode = decode,
    .columns = columns,
    .count = count,
    .executed = executed,
    .print = print,
};
