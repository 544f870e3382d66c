/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/fragments.h"

enum { GROUP_STEP = 16 }; /* where groups of a range may begin */

static uint32_t rounded(uint32_t x, uint32_t to)
{
    return (x + to - 1) / to * to;
}

/* What the rows of a band see together. */
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

double tile_price(const struct row_block *s, const struct price *p, const u32 *word)
{
    double entry = word ? p->partial : p->full;
    if (s->halves)
        return halves_entries(word, s->rows) * entry;
    if (!s->fragments)
        return (double)ABI_TILE_COLS * s->rows * entry;
    return ABI_TILE_COLS * p->gather + fragment_entries(word, s->rows) * entry;
}

void fragments_count(const u32 *word, uint32_t rows, struct effort *ret)
{
    ret->count[UNIT_GATHER] += ABI_TILE_COLS;
    ret->count[word ? UNIT_PARTIAL : UNIT_FULL] += fragment_entries(word, rows);
}

/* Groups begin at a multiple of 16; of them all columns up to the range's end are brought. */
void fragments_count_range(struct abi_range range, uint32_t rows, struct effort *ret)
{
    uint32_t columns =
        rounded(range.end, FRAGMENT_COLS) - range.begin / FRAGMENT_COLS * FRAGMENT_COLS;
    ret->count[UNIT_GATHER] += range.end - range.begin / GROUP_STEP * GROUP_STEP;
    ret->count[UNIT_FULL] += (double)columns * rounded(rows, FRAGMENT_ROWS);
}

double row_block_range_price(const struct row_block *s, const struct price *p,
                             struct abi_range range)
{
    struct effort e = {{0}};
    if (!s->fragments)
        return price_range(p, s->rows, range.end - range.begin);
    fragments_count_range(range, s->rows, &e);
    return price_of(p, &e);
}
