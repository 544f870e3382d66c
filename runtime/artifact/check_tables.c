/* SPDX-License-Identifier: Apache-2.0 */
/* The tables below the items: after these checks a piece points to entries that are there, and these to
   columns of the mask. */
#include "runtime/artifact/check.h"

static int check_ranges(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_ranges; k++) {
        struct abi_range r = c->p->ranges[k];
        if (r.begin >= r.end || r.end > c->m->n)
            return check_refuse(c, "ranges leaves the mask", k);
    }
    return 0;
}

/* Bits of columns past the mask must be off in all rows. */
static bool tail_is_off(const struct check *c, struct abi_tile t)
{
    if (t.col0 + ABI_TILE_COLS <= c->m->n)
        return true;
    if (t.pattern == 0)
        return false;
    const u32 *word = c->p->patterns + (size_t)(t.pattern - 1) * c->block_rows;
    u32 beyond = ~UINT32_C(0) << (c->m->n - t.col0);
    for (uint32_t r = 0; r < c->block_rows; r++)
        if (word[r] & beyond)
            return false;
    return true;
}

static int check_tiles(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_tiles; k++) {
        struct abi_tile t = c->p->tiles[k];
        if (t.col0 >= c->m->n || t.col0 % ABI_TILE_COLS)
            return check_refuse(c, "tiles leaves the mask", k);
        if (t.pattern > c->p->n_patterns)
            return check_refuse(c, "tiles names a pattern that is not there", k);
        if (!tail_is_off(c, t))
            return check_refuse(c, "tiles is on beyond the mask", k);
    }
    return 0;
}

static int check_lines(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_lines; k++) {
        struct abi_line l = c->p->lines[k];
        if (l.step > 1 || l.row_begin >= l.row_end || l.row_end > c->block_rows)
            return check_refuse(c, "lines has no proper rows", k);
        int64_t first = (int64_t)l.col0 + (int64_t)l.step * l.row_begin;
        int64_t last = (int64_t)l.col0 + (int64_t)l.step * (l.row_end - 1);
        if (first < 0 || last >= c->m->n)
            return check_refuse(c, "lines leaves the mask", k);
    }
    return 0;
}

/* Columns ascend, so that those below a length come first. */
static int check_gather(const struct check *c, uint64_t k)
{
    struct abi_gather g = c->p->gathers[k];
    if (g.count < 1 || g.count > ABI_TILE_COLS ||
        !check_inside(g.first, g.count, c->p->n_columns))
        return check_refuse(c, "gathers leaves the columns", k);
    if (g.pattern > c->p->n_patterns)
        return check_refuse(c, "gathers names a pattern that is not there", k);
    const u32 *column = c->p->columns + g.first;
    for (uint32_t i = 0; i < g.count; i++)
        if (column[i] >= c->m->n || (i && column[i] <= column[i - 1]))
            return check_refuse(c, "gathers has no ascending columns of the mask", k);
    u32 beyond = g.pattern && g.count < ABI_TILE_COLS ? ~UINT32_C(0) << g.count : 0;
    for (uint32_t r = 0; beyond && r < c->block_rows; r++)
        if (c->p->patterns[(size_t)(g.pattern - 1) * c->block_rows + r] & beyond)
            return check_refuse(c, "gathers is on beyond its columns", k);
    return 0;
}

static int check_gathers(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_gathers; k++)
        if (check_gather(c, k) < 0)
            return -1;
    return 0;
}

static int check_pieces(const struct check *c)
{
    for (uint64_t k = 0; k < c->p->n_pieces; k++) {
        struct abi_piece piece = c->p->pieces[k];
        if (piece.kind >= ABI_KINDS)
            return check_refuse(c, "pieces is of an unknown kind", k);
        const struct check_kind *kind = &check_kinds[piece.kind];
        if (!check_inside(piece.first, piece.count, kind->size(c->p)))
            return check_refuse(c, "pieces leaves its table", k);
        if (kind->columns(c->p, piece) != piece.cols)
            return check_refuse(c, "pieces counts its columns wrongly", k);
    }
    return 0;
}

int check_tables(const struct check *c)
{
    static int (*const steps[])(const struct check *) = {check_ranges, check_tiles, check_lines,
                                                         check_gathers, check_pieces};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (steps[k](c) < 0)
            return -1;
    return 0;
}
