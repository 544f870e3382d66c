/* SPDX-License-Identifier: Apache-2.0 */
/* Joins global rows a stride apart (in the transposed plan: the summary keys of Fixed); other rows may be in between. Rows
   that see the same keys become an item of ranges, a product. If kernels skip fragments, rows that see different keys become
   an item of gathered columns with patterns: fewer and fewer queries see the summary keys of a causal Fixed. A joined item is chosen
   if it is cheaper than its rows alone. */
#include "gen/lowering/lowering.h"
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <string.h>

enum {
    LEAST = 4, /* rows of an item: a product computes at least this many, used or not */
    FURTHEST =
        256, /* distance of two neighbouring rows: the longest step of Fixed up to n = 65536 */
};

static bool see_the_same(const struct pattern *p, uint32_t a, uint32_t b)
{
    uint64_t runs = p->row[a + 1] - p->row[a];
    return p->row[b + 1] - p->row[b] == runs &&
           !memcmp(p->run + p->row[a], p->run + p->row[b], runs * sizeof *p->run);
}

/* Next waiting row that sees the same keys as row `at`; others may be in between. 0: none within FURTHEST rows. */
static uint64_t find_next(const struct builder *b, uint64_t at)
{
    const struct global_row *r = b->global_rows;
    for (uint64_t k = at + 1; k < b->n_global && r[k].row - r[at].row <= FURTHEST; k++)
        if (r[k].pattern == r[at].pattern && see_the_same(r[at].pattern, r[at].row, r[k].row))
            return k;
    return 0;
}

/* Lists the waiting rows from `first` on that see the same keys and are one step apart. Returns their number. */
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

/* Builds the item's ranges, those of its first row, in b->draft[0]. True if the item is cheaper than its rows alone. */
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

/* Joins row `first` and those like it to one item if that is cheaper. They are then no longer waiting. */
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

/* ---- rows that see different keys ---- */

enum {
    STANDS_OUT =
        4, /* times the keys of the middle row: such rows are expected to leave their row block */
    STEPS_TRIED = 4, /* from a row to the next waiting ones */
    FAILURES =
        16, /* give up a pattern after this many: its rows are not a stride apart, or share too little */
};

/* Waiting rows a step apart. */
struct chain {
    uint32_t rows, step;
    uint64_t at[ABI_MAX_BLOCK_ROWS]; /* places in b->global_rows */
};

static void find_chain(const struct builder *b, uint64_t first, uint32_t step, uint32_t most,
                       struct chain *ret)
{
    const struct global_row *r = b->global_rows;
    ret->rows = 0;
    ret->step = step;
    for (uint64_t k = first; k < b->n_global && ret->rows < most; k++) {
        const uint64_t next = r[first].row + (uint64_t)step * ret->rows;
        if (r[k].row > next)
            return;
        if (r[k].row == next && r[k].pattern == r[first].pattern)
            ret->at[ret->rows++] = k;
    }
}

/* The longest chain from `first` on, by the steps to its next neighbours. */
static void find_longest_chain(const struct builder *b, uint64_t first, uint32_t most,
                               struct chain *ret)
{
    const struct global_row *r = b->global_rows;
    struct chain other;
    ret->rows = 0;
    for (uint64_t k = first + 1; k < b->n_global && k <= first + STEPS_TRIED; k++) {
        const uint32_t step = r[k].row - r[first].row;
        if (step < 2 || step > FURTHEST || !r[k].pattern)
            continue;
        find_chain(b, first, step, most, &other);
        if (other.rows > ret->rows)
            *ret = other;
    }
}

/* Seconds of the rows as items of their own; with `expected`, the expected shares of joined items (b->joined) where there are
   any. */
static double price_rows(const struct builder *b, const struct chain *c, bool expected)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->rows; k++) {
        const struct global_row r = b->global_rows[c->at[k]];
        const uint64_t *run = r.pattern->row + r.row;
        sum += expected && b->joined && b->joined[r.row] > 0
                   ? b->joined[r.row]
                   : row_price(&b->price, pattern_row_active(r.pattern, r.row),
                               (double)(run[1] - run[0]));
    }
    return sum;
}

/* Builds the rows as one item in b->draft[0]. */
static struct abi_item draft_chain(struct builder *b, const struct plan *p,
                                   const struct chain *c)
{
    const struct global_row r = b->global_rows[c->at[0]];
    const struct residue x = {r.pattern, false, p->block_rows, b->place};
    struct abi_item item = {.row0 = r.row, .rows = c->rows, .step = c->step};
    for (uint32_t i = 0; i < c->rows; i++)
        item.own[i / 32] |= (u32)1 << (i % 32);
    residue_build(&x, &item, &b->draft[0]);
    draft_price(&b->draft[0], b->pass, &item, &b->price);
    return item;
}

static bool is_cheaper(const struct draft *joined, double alone)
{
    return joined->pieces && joined->cost <= alone * (1 - LEAST_ROWS_GAIN);
}

static void leave(struct builder *b, const struct chain *c)
{
    for (uint32_t i = 0; i < c->rows; i++)
        b->global_rows[c->at[i]].pattern = NULL;
}

/* Joins the rows of a chain to one item if that is cheaper and not longer than a worker's share of a launch that fills the
   GPU. They are then no longer waiting. */
static bool join_chain(struct builder *b, const struct plan *p, const struct chain *c)
{
    const double alone = price_rows(b, c, false), expected = price_rows(b, c, true);
    const double total = b->total - expected + alone;
    const struct abi_item item = draft_chain(b, p, c);
    const double joined = b->draft[0].cost;
    if (!is_cheaper(&b->draft[0], alone) ||
        joined > total * p->heads * plan_full_batch(p) / predict_workers(p, 0))
        return false;
    tables_add_item(b->pass, &b->index, p->block_rows, item, &b->draft[0]);
    b->total += joined - expected;
    leave(b, c);
    return true;
}

/* Sets the price of each row of the chain for row blocks (b->joined) if the rows are cheaper together. */
static bool expect_chain(struct builder *b, const struct plan *p, const struct chain *c)
{
    draft_chain(b, p, c);
    if (!is_cheaper(&b->draft[0], price_rows(b, c, false)))
        return false;
    for (uint32_t k = 0; k < c->rows; k++)
        b->joined[b->global_rows[c->at[k]].row] = b->draft[0].cost / c->rows;
    leave(b, c);
    return true;
}

static void each_chain(struct builder *b, const struct plan *p,
                       bool (*take)(struct builder *b, const struct plan *p,
                                    const struct chain *c))
{
    struct chain c;
    uint32_t failures = 0;
    for (uint64_t k = 0; k < b->n_global && failures < FAILURES; k++) {
        if (!b->global_rows[k].pattern)
            continue;
        find_longest_chain(b, k, p->block_rows, &c);
        if (c.rows >= LEAST)
            failures += !take(b, p, &c);
    }
}

void joins_expect(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    const uint32_t most = pattern_middle_row(pattern);
    b->n_global = 0;
    if (!b->joined)
        b->joined = memory_new(p->n, sizeof *b->joined);
    memset(b->joined, 0, p->n * sizeof *b->joined);
    for (uint32_t i = 0; i < p->n; i++)
        if (pattern_row_active(pattern, i) > (uint64_t)STANDS_OUT * most)
            *MEMORY_PUSH(b->global_rows, b->n_global, b->global_capacity) =
                (struct global_row){pattern, i};
    if (2 * b->n_global < p->n)
        each_chain(b, p, expect_chain);
    b->n_global = 0;
}

static void drop_joined(struct builder *b)
{
    uint64_t left = 0;
    for (uint64_t k = 0; k < b->n_global; k++)
        if (b->global_rows[k].pattern)
            b->global_rows[left++] = b->global_rows[k];
    b->n_global = left;
}

void joins_build_nested(struct builder *b, const struct plan *p)
{
    each_chain(b, p, join_chain);
    drop_joined(b);
}
