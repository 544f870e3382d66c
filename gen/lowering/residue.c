/* SPDX-License-Identifier: Apache-2.0 */
/* Residue classes: rows row0, row0 + step, .. of a mask with strides see the same columns, those of their class. With
   the columns gathered by an index list they form tiles; in a row block of neighbours only one row sees each such
   column. The planner makes these items (gen/plan/classes.c). The other entries of their rows belong to items of
   neighbours, which merge both parts (only for softmax: sparsegen needs all scores of a row at once). With CAN_WHOLE_CLASSES an item may instead have all entries of its rows. Columns that at most a quarter of its rows see
   then come last, in groups of their own. */
#include "gen/lowering/gathers.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

extern const struct lowering lowering_residue;

/* Columns of an item and their places: first those that many rows see, then the others, which begin a group of their
   own. Among the first, a column that a single row sees would keep a fragment from being skipped. */
struct columns {
    uint32_t many, all; /* counts */
    uint32_t *place;    /* [n] 1 + 32 * group + slot; 0: not seen */
};

enum { FEW = 4 }; /* at most the item's rows divided by FEW are too few */

static uint32_t groups_of(uint32_t columns)
{
    return (columns + ABI_TILE_COLS - 1) / ABI_TILE_COLS;
}

/* Counts the rows of the item that see each column, at `place`; the columns are *low .. *high - 1. */
static void count_rows(const struct pattern *p, const struct abi_item *item, uint32_t *place,
                       uint32_t *low, uint32_t *high)
{
    *low = p->n;
    *high = 0;
    for (uint32_t r = 0; r < item->rows; r++) {
        uint32_t row = item->row0 + item->step * r;
        for (uint64_t k = p->row[row]; item_owns(item, r) && k < p->row[row + 1]; k++) {
            struct run run = p->run[k];
            for (uint32_t j = run.begin; j < run.end; j++)
                place[j]++;
            *low = run.begin < *low ? run.begin : *low;
            *high = run.end > *high ? run.end : *high;
        }
    }
}

static struct columns list_columns(const struct pattern *p, const struct abi_item *item,
                                   bool whole, struct draft *d, uint32_t *place)
{
    struct columns c = {.place = place};
    uint32_t low, high, few = whole ? item_owned_rows(item) / FEW : 0;
    count_rows(p, item, place, &low, &high);
    for (uint32_t j = low; j < high; j++)
        if (place[j] > few)
            *MEMORY_PUSH(d->columns, d->n_columns, d->columns_capacity) = j;
    c.many = (uint32_t)d->n_columns;
    for (uint32_t j = low; j < high; j++)
        if (place[j] && place[j] <= few)
            *MEMORY_PUSH(d->columns, d->n_columns, d->columns_capacity) = j;
    c.all = (uint32_t)d->n_columns;
    for (uint32_t k = 0; k < c.many; k++)
        place[d->columns[k]] = 1 + k;
    for (uint32_t k = c.many; k < c.all; k++)
        place[d->columns[k]] = 1 + groups_of(c.many) * ABI_TILE_COLS + k - c.many;
    return c;
}

/* Words of the patterns of all groups: [groups][block_rows]. */
static u32 *fill_words(const struct pattern *p, const struct abi_item *item,
                       const struct columns *c, uint32_t block_rows)
{
    uint32_t groups = groups_of(c->many) + groups_of(c->all - c->many);
    u32 *words = memory_new((size_t)groups * block_rows, sizeof *words);
    for (uint32_t r = 0; r < item->rows; r++) {
        uint32_t row = item->row0 + item->step * r;
        for (uint64_t k = p->row[row]; item_owns(item, r) && k < p->row[row + 1]; k++)
            for (uint32_t j = p->run[k].begin; j < p->run[k].end; j++) {
                uint32_t at = c->place[j] - 1;
                words[(size_t)(at / ABI_TILE_COLS) * block_rows + r] |= (u32)1
                                                                        << at % ABI_TILE_COLS;
            }
    }
    return words;
}

static bool is_full(const struct abi_item *item, const u32 *word, uint32_t count)
{
    for (uint32_t r = 0; r < item->rows; r++)
        if (item_owns(item, r) && word[r] != ~(u32)0 >> (ABI_TILE_COLS - count))
            return false;
    return true;
}

static void add_group(const struct residue *x, const struct abi_item *item, struct abi_gather g,
                      const u32 *word, struct draft *d)
{
    if (!is_full(item, word, g.count)) {
        memcpy(draft_pattern(d, x->block_rows), word, x->block_rows * sizeof *word);
        g.pattern = (u32)(d->n_words / x->block_rows);
    }
    *MEMORY_PUSH(d->gathers, d->n_gathers, d->gathers_capacity) = g;
}

void residue_build(const struct residue *x, const struct abi_item *item, struct draft *d)
{
    draft_clear(d);
    struct columns c = list_columns(x->classes, item, x->whole, d, x->place);
    u32 *words = fill_words(x->classes, item, &c, x->block_rows);
    const u32 *word = words;
    for (uint32_t first = 0, end; first < c.all; first = end, word += x->block_rows) {
        uint32_t limit = first < c.many ? c.many : c.all;
        end = limit - first < ABI_TILE_COLS ? limit : first + ABI_TILE_COLS;
        add_group(x, item, (struct abi_gather){first, end - first, 0}, word, d);
    }
    free(words);
    for (uint32_t k = 0; k < c.all; k++)
        x->place[d->columns[k]] = 0;
    if (c.all)
        draft_piece(d, ABI_RESIDUE, 0, d->n_gathers, c.all);
}

static bool fits_item(uint32_t can, const struct abi_item *item)
{
    return can & CAN_PIECES && item->step > 1;
}

static void reason(const struct visits *v, double cells, struct text *out)
{
    text_add(out, "residue classes modulo %.0f: %.3g%%", (double)v->step,
             100 * (double)v->entries / cells);
}

const struct lowering lowering_residue = {
    .name = "residue",
    .part = "class group",
    .kind = ABI_RESIDUE,
    .table = TABLE_GATHERS,
    .fits_item = fits_item,
    .active = gathers_active,
    .reason = reason,
    .told = 4,
    .decode = gathers_decode,
    .columns = gathers_columns,
    .count = gathers_count,
    .executed = gathers_executed,
    .print = gathers_print,
};
