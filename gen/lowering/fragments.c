/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/fragments.h"

enum { GROUP_STEP = 16 }; /* where groups of a range may begin */

static uint32_t rounded(uint32_t x, uint32_t to)
{
    return (x + to - 1) / to * to;
}

/* Columns that some row of a band sees; all if there are no words. */
static u32 band_word(const u32 *word, uint32_t rows, uint32_t band)
{
    u32 any = 0;
    for (uint32_t r = band; word && r < band + FRAGMENT_ROWS && r < rows; r++)
        any |= word[r];
    return word ? any : ~(u32)0;
}

uint64_t fragment_cells(const u32 *word, uint32_t rows, uint32_t columns)
{
    uint64_t cells = 0;
    for (uint32_t band = 0; band < rows; band += FRAGMENT_ROWS) {
        u32 any = band_word(word, rows, band);
        uint32_t high = rows - band < FRAGMENT_ROWS ? rows - band : FRAGMENT_ROWS;
        for (uint32_t c = 0; c < columns; c += FRAGMENT_COLS) {
            uint32_t wide = columns - c < FRAGMENT_COLS ? columns - c : FRAGMENT_COLS;
            cells += any >> c & 0xff ? high * wide : 0;
        }
    }
    return cells;
}

double fragment_entries(const u32 *word, uint32_t rows)
{
    double fragments = 0;
    for (uint32_t band = 0; band < rows; band += FRAGMENT_ROWS)
        for (u32 any = band_word(word, rows, band); any; any >>= FRAGMENT_COLS)
            fragments += (any & 0xff) != 0;
    return fragments * FRAGMENT_ROWS * FRAGMENT_COLS;
}

double halves_entries(const u32 *word, uint32_t rows)
{
    u32 any = 0;
    for (uint32_t r = 0; word && r < rows; r++)
        any |= word[r];
    bool half = word && (!(any & 0xffff) || !(any >> 16));
    return (half ? ABI_TILE_COLS / 2.0 : ABI_TILE_COLS) * rows;
}

/* Work of a tile: columns that are brought for it, and entries that kernels compute. */
struct tile_work {
    double gathered, entries;
};

static struct tile_work work_of(bool fragments, bool halves, const u32 *word, uint32_t rows)
{
    if (halves)
        return (struct tile_work){0, halves_entries(word, rows)};
    if (fragments)
        return (struct tile_work){ABI_TILE_COLS, fragment_entries(word, rows)};
    return (struct tile_work){0, (double)ABI_TILE_COLS * rows};
}

void tile_count(bool fragments, bool halves, const u32 *word, uint32_t rows, double times,
                struct effort *ret)
{
    const struct tile_work w = work_of(fragments, halves, word, rows);
    ret->count[UNIT_GATHER] += times * w.gathered;
    ret->count[word ? UNIT_PARTIAL : UNIT_FULL] += times * w.entries;
}

double tile_price(const struct row_block *s, const struct price *p, const u32 *word)
{
    const struct tile_work w = work_of(s->fragments, s->halves, word, s->rows);
    return w.gathered * p->gather + w.entries * (word ? p->partial : p->full);
}

double whole_tile_price(const struct row_block *s, const struct price *p)
{
    const struct tile_work w = work_of(s->fragments, s->halves, NULL, s->rows);
    return w.gathered * p->gather + w.entries * p->partial;
}

double fragments_price(const struct row_block *s, const struct price *p, const u32 *word)
{
    return work_of(s->fragments, s->halves, word, s->rows).entries * p->partial;
}

/* Groups begin at a multiple of 16; of them all columns up to the range's end are brought. */
void range_count(bool fragments, struct abi_range range, uint32_t rows, struct effort *ret)
{
    if (!fragments) {
        ret->count[UNIT_FULL] += range_entries(rows, range.end - range.begin);
        return;
    }
    uint32_t columns =
        rounded(range.end, FRAGMENT_COLS) - range.begin / FRAGMENT_COLS * FRAGMENT_COLS;
    ret->count[UNIT_GATHER] += range.end - range.begin / GROUP_STEP * GROUP_STEP;
    ret->count[UNIT_FULL] += (double)columns * rounded(rows, FRAGMENT_ROWS);
}

double row_block_range_price(const struct row_block *s, const struct price *p,
                             struct abi_range range)
{
    struct effort e = {{0}};
    range_count(s->fragments, range, s->rows, &e);
    return price_of(p, &e);
}
