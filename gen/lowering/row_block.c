/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/row_block.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct row_block *row_block_new(uint32_t rows, uint32_t columns, uint32_t block_rows)
{
    struct row_block *s = memory_new(1, sizeof *s);
    s->all_rows = rows;
    s->tiles = (columns + ABI_TILE_COLS - 1) / ABI_TILE_COLS;
    s->block_rows = block_rows;
    s->bits = memory_new((size_t)s->tiles * block_rows, sizeof *s->bits);
    s->open = memory_new((size_t)s->tiles * block_rows, sizeof *s->open);
    s->touched = memory_new(s->tiles, sizeof *s->touched);
    s->count = memory_new(s->tiles, sizeof *s->count);
    s->starts = memory_new(s->tiles, sizeof *s->starts);
    s->touched_map = memory_new(s->tiles / 64 + 1, sizeof *s->touched_map);
    return s;
}

void row_block_destroy(struct row_block *s)
{
    if (!s)
        return;
    free(s->common);
    free(s->spare);
    free(s->solid);
    free(s->solid_open);
    free(s->bits);
    free(s->open);
    free(s->touched);
    free(s->count);
    free(s->starts);
    free(s->touched_map);
    free(s);
}

static void clear(struct row_block *s)
{
    for (uint32_t k = 0; k < s->n_touched; k++)
        memset(row_block_tile(s, s->bits, s->touched[k]), 0, s->block_rows * sizeof *s->bits);
    s->n_touched = s->n_common = s->n_solid = 0;
    s->owned = 0;
    s->cells = 0;
    s->equal = false;
}

static void take_ownership(struct row_block *s, const u32 *own)
{
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++) {
        uint32_t here = s->rows > 32 * w ? s->rows - 32 * w : 0;
        u32 all = here >= 32 ? ~(u32)0 : ((u32)1 << here) - 1;
        s->own[w] = own ? own[w] & all : all;
        s->owned += (uint32_t)__builtin_popcount(s->own[w]);
    }
}

/* common = common and the runs of row r. */
static void intersect(struct row_block *s, uint32_t r)
{
    const struct pattern *p = s->pattern;
    const struct run *run = p->run + p->row[block_row(s, r)];
    const struct run *end = p->run + p->row[block_row(s, r) + 1];
    uint32_t count = 0;
    for (uint32_t k = 0; k < s->n_common && run < end;) {
        struct abi_range a = s->common[k];
        uint32_t from = a.begin > run->begin ? a.begin : run->begin;
        uint32_t stop = a.end < run->end ? a.end : run->end;
        if (from < stop)
            *MEMORY_PUSH(s->spare, count, s->spare_capacity) = (struct abi_range){from, stop};
        if (a.end < run->end)
            k++;
        else
            run++;
    }
    struct abi_range *swap = s->common;
    uint32_t capacity = s->common_capacity;
    s->common = s->spare, s->common_capacity = s->spare_capacity;
    s->spare = swap, s->spare_capacity = capacity;
    s->n_common = count;
}

static void start_common(struct row_block *s, uint32_t r)
{
    const struct pattern *p = s->pattern;
    for (uint64_t k = p->row[block_row(s, r)]; k < p->row[block_row(s, r) + 1]; k++)
        *MEMORY_PUSH(s->common, s->n_common, s->common_capacity) =
            (struct abi_range){p->run[k].begin, p->run[k].end};
}

static void find_common(struct row_block *s)
{
    bool first = true;
    for (uint32_t r = 0; r < s->rows; r++) {
        if (!row_block_owns(s, r))
            continue;
        if (first)
            start_common(s, r);
        else if (s->n_common)
            intersect(s, r);
        first = false;
    }
}

static void find_solid(struct row_block *s)
{
    for (uint32_t k = 0; k < s->n_common; k++) {
        uint32_t begin =
            (s->common[k].begin + ABI_TILE_COLS - 1) & ~(uint32_t)(ABI_TILE_COLS - 1);
        uint32_t end = s->common[k].end & ~(uint32_t)(ABI_TILE_COLS - 1);
        if (begin >= end)
            continue;
        uint32_t count = s->n_solid;
        *MEMORY_PUSH(s->solid_open, count, s->open_capacity) = 1;
        *MEMORY_PUSH(s->solid, s->n_solid, s->solid_capacity) = (struct abi_range){begin, end};
    }
}

static void set_word(struct row_block *s, uint32_t r, uint32_t tile, u32 word)
{
    row_block_tile(s, s->bits, tile)[r] |= word;
    s->touched_map[tile / 64] |= (uint64_t)1 << (tile % 64);
}

static void set_bits(struct row_block *s, uint32_t r, uint32_t begin, uint32_t end)
{
    uint32_t tile = begin / 32, last = (end - 1) / 32;
    u32 from = ~(u32)0 << (begin % 32), until = ~(u32)0 >> (31 - (end - 1) % 32);
    if (tile == last) {
        set_word(s, r, tile, from & until);
        return;
    }
    set_word(s, r, tile, from);
    while (++tile < last)
        set_word(s, r, tile, ~(u32)0);
    set_word(s, r, last, until);
}

/* The parts of a run that no solid range covers; *k is the first solid range that may matter. */
static void set_open_bits(struct row_block *s, uint32_t r, struct run run, uint32_t *k)
{
    uint32_t from = run.begin;
    while (from < run.end) {
        while (*k < s->n_solid && s->solid[*k].end <= from)
            (*k)++;
        struct abi_range next =
            *k < s->n_solid ? s->solid[*k] : (struct abi_range){run.end, run.end};
        if (next.begin > from)
            set_bits(s, r, from, next.begin < run.end ? next.begin : run.end);
        from = next.end;
    }
}

static void load_row(struct row_block *s, uint32_t r)
{
    const struct pattern *p = s->pattern;
    const struct run *run = p->run + p->row[block_row(s, r)];
    const struct run *end = p->run + p->row[block_row(s, r) + 1];
    uint32_t active = 0, k = 0;
    for (; run < end; run++) {
        active += run->end - run->begin;
        if (s->n_solid)
            set_open_bits(s, r, *run, &k);
        else
            set_bits(s, r, run->begin, run->end);
    }
    s->active[r] = active;
    s->cells += active;
}

/* Do the common ranges say all there is? */
static bool find_equal(const struct row_block *s)
{
    uint64_t shared = 0;
    for (uint32_t k = 0; k < s->n_common; k++)
        shared += s->common[k].end - s->common[k].begin;
    return shared * s->owned == s->cells;
}

static void list_touched(struct row_block *s)
{
    for (uint32_t w = 0; w <= s->tiles / 64; w++) {
        for (uint64_t word = s->touched_map[w]; word; word &= word - 1)
            s->touched[s->n_touched++] = w * 64 + (uint32_t)__builtin_ctzll(word);
        s->touched_map[w] = 0;
    }
}

static void count_bits(struct row_block *s, uint32_t at)
{
    const u32 *word = row_block_tile(s, s->bits, s->touched[at]);
    bool left_touched = at && s->touched[at - 1] + 1 == s->touched[at];
    const u32 *left = left_touched ? word - s->block_rows : NULL;
    uint32_t count = (uint32_t)__builtin_popcount(word[0]), starts = count;
    for (uint32_t r = 1; r < s->rows; r++) {
        u32 above = word[r - 1] | word[r - 1] << 1 | (left ? left[r - 1] >> 31 : 0);
        count += (uint32_t)__builtin_popcount(word[r]);
        starts += (uint32_t)__builtin_popcount(word[r] & ~above);
    }
    s->count[at] = count;
    s->starts[at] = starts;
}

void row_block_load(struct row_block *s, const struct pattern *p, uint32_t row0, const u32 *own)
{
    clear(s);
    s->pattern = p;
    s->row0 = row0;
    const uint32_t left = s->all_rows - row0;
    s->rows = left < s->block_rows ? left : s->block_rows;
    take_ownership(s, own);
    find_common(s);
    find_solid(s);
    for (uint32_t r = 0; r < s->rows; r++)
        if (row_block_owns(s, r))
            load_row(s, r);
        else
            s->active[r] = pattern_row_active(p, block_row(s, r));
    s->equal = find_equal(s);
    list_touched(s);
    for (uint32_t k = 0; k < s->n_touched; k++)
        count_bits(s, k);
}

void row_block_reopen(struct row_block *s)
{
    if (s->n_solid)
        memset(s->solid_open, 1, s->n_solid);
    for (uint32_t k = 0; k < s->n_touched; k++)
        memcpy(row_block_tile(s, s->open, s->touched[k]),
               row_block_tile(s, s->bits, s->touched[k]), s->block_rows * sizeof *s->open);
}

uint32_t row_block_open_cells(const struct row_block *s, uint32_t tile)
{
    const u32 *word = row_block_tile(s, s->open, tile);
    uint32_t cells = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        cells += (uint32_t)__builtin_popcount(word[r]);
    return cells;
}

bool row_block_is_open(const struct row_block *s, uint32_t tile)
{
    const u32 *word = row_block_tile(s, s->open, tile);
    u32 any = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        any |= word[r];
    return any;
}

void row_block_close(struct row_block *s, uint32_t tile)
{
    memset(row_block_tile(s, s->open, tile), 0, s->block_rows * sizeof *s->open);
}

uint32_t row_block_solid_tiles(const struct row_block *s)
{
    uint32_t tiles = 0;
    for (uint32_t k = 0; k < s->n_solid; k++)
        tiles += (s->solid[k].end - s->solid[k].begin) / ABI_TILE_COLS;
    return tiles;
}
