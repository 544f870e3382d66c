/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows that see the same keys, a stride apart (over keys: the columns that Fixed shares): together
   they are an item of ranges, a product, where that is cheaper than each by itself. */
#include "gen/plan/builder.h"
#include "masks/base/memory.h"
#include <string.h>

enum { LEAST = 4 }; /* rows: a product has so many at least, of which the others are idle */

static bool see_the_same(const struct pattern *p, uint32_t a, uint32_t b)
{
    uint64_t runs = p->row[a + 1] - p->row[a];
    return p->row[b + 1] - p->row[b] == runs &&
           !memcmp(p->run + p->row[a], p->run + p->row[b], runs * sizeof *p->run);
}

/* How many of the long rows from `first` on, which ascend, are one item, and how far apart they are. */
static uint32_t find_alike(const struct builder *b, const struct plan *p, uint64_t first,
                           uint32_t *step)
{
    const struct global_row *r = b->global_rows + first;
    uint32_t count = 1;
    *step = first + 1 < b->n_global ? r[1].row - r[0].row : 1;
    while (first + count < b->n_global && count < p->block_rows &&
           r[count].row - r[count - 1].row == *step &&
           see_the_same(r->pattern, r->row, r[count].row))
        count++;
    return count;
}

/* Their ranges, in b->draft[0], and what rows by themselves cost. */
static double build_draft(struct builder *b, const struct global_row *r, uint32_t rows)
{
    const struct pattern *p = r->pattern;
    struct draft *d = &b->draft[0];
    uint32_t keys = pattern_row_active(p, r->row);
    draft_clear(d);
    d->cost = b->price.item + rows * b->price.item_row;
    for (uint64_t k = p->row[r->row]; k < p->row[r->row + 1]; k++) {
        struct abi_range range = {p->run[k].begin, p->run[k].end};
        *MEMORY_PUSH(d->ranges, d->n_ranges, d->ranges_capacity) = range;
        d->cost += price_range(&b->price, rows, range.end - range.begin);
    }
    draft_piece(d, ABI_BLOCKS, 0, d->n_ranges, keys);
    double row = b->price.row_item + b->price.row * keys;
    return rows * (row + b->price.row_range * (double)(d->n_ranges - 1));
}

void joins_build(struct builder *b, const struct plan *p)
{
    for (uint64_t k = 0; k < b->n_global;) {
        const struct global_row *r = b->global_rows + k;
        struct abi_item item = {.row0 = r->row};
        item.rows = find_alike(b, p, k, &item.step);
        bool some = r->pattern->row[r->row] < r->pattern->row[r->row + 1];
        if (item.rows < LEAST || item.step == 1 || !some ||
            build_draft(b, r, item.rows) <= b->draft[0].cost) {
            tables_add_row(b->pass, r->pattern, r->row);
            k++;
            continue;
        }
        for (uint32_t i = 0; i < item.rows; i++)
            item.own[i / 32] |= (u32)1 << (i % 32);
        tables_add_item(b->pass, &b->index, p->block_rows, item, &b->draft[0]);
        k += item.rows;
    }
    b->n_global = 0;
}
