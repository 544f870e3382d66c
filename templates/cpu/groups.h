/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the plan become groups of columns, groups become blocks: see row_block.h. */
#ifndef MASKC_CPU_GROUPS_H
#define MASKC_CPU_GROUPS_H

static u32 pattern_live(const u32 *pattern)
{
    u32 live = 0;
    for (u32 k = 0; k < BLOCKS; k++) {
        u32 any = 0;
        for (u32 r = 0; r < MICRO_ROWS; r++)
            any |= pattern[k * MICRO_ROWS + r];
        live |= (u32)(any != 0) << k;
    }
    return live;
}

/* Those of a gather below the length, which come first. */
static void gather_group(const struct row_block *t, const struct abi_gather *gather,
                         struct group *g)
{
    const u32 *column = t->plan->columns + gather->first;
    g->kind = GROUP_COLUMNS;
    g->first = gather->first;
    g->width = gather->count;
    while (g->width && column[g->width - 1] >= t->s.length)
        g->width--;
    g->pattern = gather->pattern;
    if (g->pattern)
        g->live &= pattern_live(t->plan->patterns + (u64)(g->pattern - 1) * BLOCK_ROWS);
}

/* Bit k: row r sees column k of a gathered group. */
INLINE u32 columns_seen(const struct row_block *t, const struct group *g, u32 r)
{
    u32 all = g->width < TILE ? (1u << g->width) - 1 : 0xffffffff;
    if (g->pattern)
        all &= t->plan->patterns[(u64)(g->pattern - 1) * BLOCK_ROWS + r];
    return row_live(t, r) ? all : 0;
}

/* Are its score columns as a panel's, the same for all rows? */
INLINE int group_is_panel(const struct group *g)
{
    return g->kind == GROUP_PANEL || g->kind == GROUP_COLUMNS;
}

INLINE u32 group_column(const struct row_block *t, const struct group *g, u32 c)
{
    return g->kind == GROUP_COLUMNS ? t->plan->columns[g->first + c] : g->first + c;
}

/* Matrix units: panels begin at halves of tiles, so that a band that ends in the middle of one takes
   the half of the next along. Row blocks with an entry in half `h` of a tile. */
static u32 half_live(const struct abi_plan *p, struct abi_tile tile, u32 h)
{
    if (!tile.pattern)
        return BLOCKS_ALL;
    const u32 *pattern = p->patterns + (u64)(tile.pattern - 1) * BLOCK_ROWS;
    u32 live = 0;
    for (u32 k = 0; k < BLOCKS; k++) {
        uvec any = {0};
        for (u32 r = 0; r < MICRO_ROWS; r += LANES)
            any |= (uvec)load((const float *)(const void *)(pattern + k * MICRO_ROWS + r));
        u32 words = 0;
        for (u32 r = 0; r < LANES; r++)
            words |= any[r];
        live |= (u32)((words >> (TILE / 2 * h) & 0xffff) != 0) << k;
    }
    return live;
}

/* From tile `entry` of the piece, whose first half may be used up (`offset`). */
static void halves_group(struct row_block *t, const struct abi_piece *piece, struct group *g)
{
    const struct abi_tile *tile = t->plan->tiles + piece->first + t->entry;
    u32 first = t->offset ? 0 : half_live(t->plan, tile[0], 0);
    u32 second = half_live(t->plan, tile[0], 1);
    u32 live = first | second;
    g->first = tile->col0;
    g->pattern = tile->pattern;
    t->entry++;
    t->offset = 0;
    if (!first) {
        g->first += TILE / 2;
        g->shift = TILE / 2;
        if (second && t->entry < piece->count && tile[1].pattern &&
            tile[1].col0 == tile[0].col0 + TILE) {
            g->next = tile[1].pattern;
            t->offset = TILE / 2;
            live |= half_live(t->plan, tile[1], 0);
        }
    }
    g->live &= live;
    u32 left = g->first < t->s.length ? t->s.length - g->first : 0;
    g->width = left < TILE ? left : TILE;
}

/* Takes the next group of `piece`; its width is 0 where nothing of it is below the length. */
static struct group group_next(struct row_block *t, const struct abi_piece *piece, u32 room)
{
    const struct abi_plan *p = t->plan;
    struct group g = {.live = t->live_blocks, .columns = 0xffffffff};
    if (MATRIX && piece->kind == ABI_TILES) {
        halves_group(t, piece, &g);
    } else if (piece->kind == ABI_TILES) {
        struct abi_tile tile = p->tiles[piece->first + t->entry++];
        u32 left = tile.col0 < t->s.length ? t->s.length - tile.col0 : 0;
        g.first = tile.col0;
        g.width = left < TILE ? left : TILE;
        g.pattern = tile.pattern;
        if (g.pattern)
            g.live &= pattern_live(p->patterns + (u64)(g.pattern - 1) * BLOCK_ROWS);
    } else if (piece_gathers(piece->kind)) {
        gather_group(t, &p->gathers[piece->first + t->entry++], &g);
    } else if (piece->kind == ABI_DIAGONAL) {
        u32 left = piece->count - t->entry;
        g.kind = GROUP_LINES;
        g.first = piece->first + t->entry;
        g.width = left < room ? left : room;
        t->entry += g.width;
    } else {
        struct abi_range range = p->ranges[piece->first + t->entry];
        u32 end = range.end < t->s.length ? range.end : t->s.length;
        u32 most = piece->kind == ABI_ROWS ? room : TILE;
        g.kind = piece->kind == ABI_ROWS ? GROUP_RANGE : GROUP_PANEL;
        g.first = range.begin + t->offset;
        u32 left = g.first < end ? end - g.first : 0;
        /* matrix units: see MATRIX_COLS */
        u32 skip = MATRIX && left && g.kind == GROUP_PANEL ? g.first % MATRIX_COLS : 0;
        g.first -= skip;
        left += skip;
        g.columns <<= skip;
        g.width = left < most ? left : most;
        t->offset += g.width - skip;
        if (g.width == left) {
            t->offset = 0;
            t->entry++;
        }
    }
    if (MATRIX && g.width < TILE)
        g.columns &= (1u << g.width) - 1;
    return g;
}

/* The next block of groups; false where the pieces are used up and it stays empty. */
static int block_next(struct row_block *t, struct block *b)
{
    b->groups = b->cols = b->walks = 0;
    while (t->piece < t->item->pieces && b->cols < CHUNK_COLS) {
        const struct abi_piece *piece = &t->plan->pieces[t->item->piece + t->piece];
        if (t->entry >= piece->count) {
            t->piece++;
            t->entry = 0;
            continue;
        }
        struct group g = group_next(t, piece, CHUNK_COLS - b->cols);
        if (!g.width || (group_is_panel(&g) && !g.live))
            continue;
        g.gap = MATRIX && group_is_panel(&g) ? -b->cols % TILE : 0;
        g.at = b->cols + g.gap;
        b->cols = g.at + (MATRIX && group_is_panel(&g) ? TILE : g.width);
        b->walks |= !group_is_panel(&g);
        b->group[b->groups++] = g;
    }
    return b->groups != 0;
}

#endif
