/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows that see the same keys, a stride apart (over keys: the columns that Fixed shares), whatever stands
   between: together they are an item of ranges, a product, where that is cheaper than each by itself. */
#include "gen/plan/builder.h"
#include "masks/base/memory.h"
#include <string.h>

enum {
    LEAST = 4,      /* rows: a product has so many at least, of which the others are idle */
    FURTHEST = 256, /* rows from one to the next: the longest step of Fixed up to n = 65536 */
};

static bool see_the_same(const struct pattern *p, uint32_t a, uint32_t b)
{
    uint64_t runs = p->row[a + 1] - p->row[a];
    return p->row[b + 1] - p->row[b] == runs &&
           !memcmp(p->run + p->row[a], p->run + p->row[b], runs * sizeof *p->run);
}

/* The next of the waiting rows that sees what row `at` sees; others may stand between. 0: there is none near. */
static uint64_t find_next(const struct builder *b, uint64_t at)
{
    const struct global_row *r = b->global_rows;
    for (uint64_t k = at + 1; k < b->n_global && r[k].row - r[at].row <= FURTHEST; k++)
        if (r[k].pattern == r[at].pattern && see_the_same(r[at].pattern, r[at].row, r[k].row))
            return k;
    return 0;
}

/* The waiting rows from `first` on that see the same, a step apart: which they are and how many. */
static uint32_t find_alike(const struct builder *b, const struct plan *p, uint64_t first,
                           uint64_t *ret)
{
    const struct global_row *r = b->global_rows;
    uint32_t count = 0;
    for (uint64_t k = first; count < p->block_rows; k = find_next(b, k)) {
        if (count && !k)
            break;
        if (count > 1 && r[k].row - r[ret[count - 1]].row != r[ret[1]].row - r[ret[0]].row)
            break;
        ret[count++] = k;
    }
    return count;
}

/* Builds the item's ranges, those of its first row, in b->draft[0]. True if that is cheaper than rows by themselves. */
static bool build_draft(struct builder *b, const struct pattern *p, const struct abi_item *item)
{
    struct draft *d = &b->draft[0];
    const uint32_t row0 = item->row0, keys = pattern_row_active(p, row0);
    draft_clear(d);
    for (uint64_t k = p->row[row0]; k < p->row[row0 + 1]; k++) {
        struct abi_range range = {p->run[k].begin, p->run[k].end};
        *MEMORY_PUSH(d->ranges, d->n_ranges, d->ranges_capacity) = range;
    }
    draft_piece(d, ABI_BLOCKS, 0, d->n_ranges, keys);
    draft_price(d, b->pass, item, &b->price);
    return item->rows * row_price(&b->price, keys, (double)d->n_ranges) > d->cost;
}

/* Row `first` and those like it as one item, if that is cheaper. They wait no longer. */
static bool join(struct builder *b, const struct plan *p, uint64_t first)
{
    const struct global_row *r = b->global_rows + first;
    uint64_t alike[ABI_MAX_BLOCK_ROWS];
    const uint32_t rows = find_alike(b, p, first, alike);
    bool some = r->pattern->row[r->row] < r->pattern->row[r->row + 1];
    if (rows < LEAST || !some)
        return false;
    struct abi_item item = {.row0 = r->row, .rows = rows};
    item.step = b->global_rows[alike[1]].row - r->row;
    if (item.step == 1 || !build_draft(b, r->pattern, &item))
        return false;
    for (uint32_t i = 0; i < rows; i++) {
        item.own[i / 32] |= (u32)1 << (i % 32);
        b->global_rows[alike[i]].pattern = NULL;
    }
    tables_add_item(b->pass, &b->index, p->block_rows, item, &b->draft[0]);
    return true;
}

void joins_build(struct builder *b, const struct plan *p)
{
    for (uint64_t k = 0; k < b->n_global; k++) {
        const struct global_row r = b->global_rows[k];
        if (r.pattern && !join(b, p, k))
            tables_add_row(b->pass, r.pattern, r.row);
    }
    b->n_global = 0;
}
