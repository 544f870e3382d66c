/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's binary tables, decoded and held against the mask. An item's entries are set in a
   bitmap of its rows, where a second visit shows at once; then each owned row must have all of the
   mask's runs and as many entries as the mask. What a split item visits of a row counts where the
   row is merged. Memory is block_rows x n bits; time follows runs. */
#include "gen/plan/check/checker.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

int checker_fail(struct checker *c, const char *what, uint32_t row, uint32_t column)
{
    return error_set(c->e, ERROR_FALSE,
                     "plan, %s, mask %u, item %u: %s at row %u, column %u of the pass",
                     c->direction, c->which, c->item, what, row, column);
}

/* The bits of `row` that lie in begin .. end - 1 must all be on; they are cleared. */
static uint32_t first_off(u64 *row, uint32_t begin, uint32_t end)
{
    for (uint32_t col = begin; col < end;) {
        uint32_t stop = (col / 64 + 1) * 64 < end ? (col / 64 + 1) * 64 : end;
        u64 bits = stop - col == 64 ? ~(u64)0 : (((u64)1 << (stop - col)) - 1) << (col % 64);
        u64 missing = bits & ~row[col / 64];
        if (missing)
            return col / 64 * 64 + (uint32_t)__builtin_ctzll(missing);
        row[col / 64] &= ~bits;
        col = stop;
    }
    return end;
}

/* Where the count is too high: the first entry left after the mask's were cleared. */
static uint32_t first_on(const struct checker *c, const u64 *row)
{
    uint64_t w = 0;
    while (w + 1 < c->words && !row[w])
        w++;
    return (uint32_t)(w * 64 + (row[w] ? (uint32_t)__builtin_ctzll(row[w]) : 0));
}

/* Adds all parts of a row. */
static int merge_parts(struct checker *c, const struct abi_item *item, uint32_t row)
{
    if (item->rows != 1 || item->step != 1 || !item->merge[0] || item->pieces ||
        item->partial_slot > c->pass->partial_slots ||
        item->partial_slots > c->pass->partial_slots - item->partial_slot)
        return checker_fail(c, "parts joined by what is not a row alone", row, 0);
    for (uint32_t k = item->partial_slot; k < item->partial_slot + item->partial_slots; k++) {
        const struct abi_item *part =
            c->partial_slot[k] ? &c->pass->items[c->partial_slot[k] - 1] : NULL;
        if (!part || part->row0 != row)
            return checker_fail(c, "a seat without a part of the row", row, k);
        if (check_split(c, part, 0, row))
            return -1;
        c->partial_slot[k] = 0;
    }
    return 0;
}

/* Adds what split items visited of a row, if they did. */
static int merge_row(struct checker *c, const struct abi_item *item, uint32_t r, uint32_t row)
{
    bool merges = item->merge[r / 32] >> (r % 32) & 1;
    if ((merges && !item->partial_slots) != (c->split_by[row] != 0))
        return checker_fail(c, "a row that is not resumed where it was begun", row, 0);
    if (item->partial_slots)
        return merge_parts(c, item, row);
    return merges ? check_split(c, &c->pass->items[c->split_by[row] - 1], r, row) : 0;
}

static int check_row(struct checker *c, const struct abi_item *item, uint32_t r)
{
    uint32_t row = item->row0 + item->step * r;
    u64 *bits = c->bits + r * c->words;
    if (c->owned[row])
        return checker_fail(c, "a row that another item owns too", row, 0);
    if (merge_row(c, item, r, row))
        return -1;
    c->owned[row] = true;
    uint64_t active = 0;
    for (uint64_t k = c->mask->row[row]; k < c->mask->row[row + 1]; k++) {
        struct run run = c->mask->run[k];
        uint32_t off = first_off(bits, run.begin, run.end);
        if (off < run.end)
            return checker_fail(c, "an active entry is not visited", row, off);
        active += run.end - run.begin;
    }
    if (c->visited[r] != active)
        return checker_fail(c, "an inactive entry is visited", row, first_on(c, bits));
    return 0;
}

static bool rows_fit(const struct checker *c, const struct abi_item *item)
{
    uint32_t limit = c->plan->block_rows, n = c->plan->n;
    if (item->rows < 1 || item->rows > limit || item->row0 >= n || item->step < 1 ||
        (uint64_t)item->step * (item->rows - 1) >= n - item->row0)
        return false;
    return item->rows == 1 || item->step > 1 || item->row0 % limit == 0;
}

/* A part is of a global row. */
static bool partial_slots_fit(const struct plan_pass *t, const struct abi_item *item)
{
    if (!item->partial_slots)
        return !item->partial_slot;
    return item->rows == 1 && item->step == 1 && item->partial_slot < t->partial_slots &&
           (!item->split || item->partial_slots == 1);
}

/* Marks a row of a split item; what it visits counts where the row is merged. */
static int mark_split(struct checker *c, const struct abi_item *item, uint32_t r)
{
    uint32_t row = item->row0 + item->step * r;
    uint32_t *mark =
        item->partial_slots ? &c->partial_slot[item->partial_slot] : &c->split_by[row];
    if (*mark)
        return checker_fail(c, "a row that another item begins too", row, 0);
    if (item->merge[r / 32] >> (r % 32) & 1)
        return checker_fail(c, "a partial item that resumes", row, 0);
    *mark = c->item + 1;
    memset(c->bits + r * c->words, 0, c->words * sizeof *c->bits);
    return 0;
}

static int check_item(struct checker *c, const struct abi_item *item)
{
    if (!rows_fit(c, item))
        return checker_fail(c, "rows outside of the mask or of the row block's grid",
                            item->row0, 0);
    if (!partial_slots_fit(c->pass, item))
        return checker_fail(c, "seats that are not there", item->row0, 0);
    memset(c->visited, 0, sizeof c->visited);
    if (check_pieces(c, item))
        return -1;
    c->uses |= item->split ? (u32)ABI_SPLIT : 0;
    for (uint32_t r = 0; r < ABI_MAX_BLOCK_ROWS; r++) {
        if (!item_owns(item, r)) {
            if (item->merge[r / 32] >> (r % 32) & 1)
                return checker_fail(c, "a row that is resumed and not owned", item->row0 + r,
                                    0);
            continue;
        }
        if (r >= item->rows)
            return checker_fail(c, "an owned row beyond the item's", item->row0 + r, 0);
        if (item->split ? mark_split(c, item, r) : check_row(c, item, r))
            return -1;
    }
    if (item->kernel != (u32)item_kernel(&c->kernels, c->pass, item))
        return checker_fail(c, "a kernel that the item does not take", item->row0, 0);
    return item->cost ? 0 : checker_fail(c, "a cost of 0", item->row0, 0);
}

/* All items of the mask that are split, or all that are not. */
static int check_items(struct checker *c, u32 first, u32 end, bool split)
{
    for (c->item = first; c->item < end; c->item++) {
        const struct abi_item *item = &c->pass->items[c->item];
        if (item->split > 1)
            return checker_fail(c, "neither partial nor whole", item->row0, 0);
        if (item->split == split && check_item(c, item))
            return -1;
    }
    return 0;
}

static int check_mask(struct checker *c)
{
    const struct plan_pass *t = c->pass;
    u32 first = t->item_first[c->which], end = t->item_first[c->which + 1];
    memset(c->owned, 0, c->plan->n * sizeof *c->owned);
    memset(c->split_by, 0, c->plan->n * sizeof *c->split_by);
    memset(c->partial_slot, 0, t->partial_slots * sizeof *c->partial_slot);
    c->item = first;
    if (first > end || end > t->n_items)
        return checker_fail(c, "items outside of their table", 0, 0);
    if (check_items(c, first, end, true) || check_items(c, first, end, false))
        return -1;
    for (uint32_t row = 0; row < c->rows; row++)
        if (!c->owned[row])
            return checker_fail(c, "a row that no item owns", row, 0);
    for (uint32_t k = 0; k < t->partial_slots; k++)
        if (c->partial_slot[k])
            return checker_fail(c, "a part that is not joined",
                                t->items[c->partial_slot[k] - 1].row0, k);
    return 0;
}

static int check_pass(const struct plan *p, const struct plan_pass *t, const struct mask *m,
                      bool transposed, struct error *e)
{
    struct checker c = {.plan = p, .pass = t, .rows = plan_sides(p, transposed).rows, .e = e};
    c.kernels = family_item_kernels(p->target, &p->config);
    c.direction = transposed ? "transposed" : "forward";
    c.words = (p->n + 63) / 64;
    c.bits = memory_new(c.words * p->block_rows, sizeof *c.bits);
    c.owned = memory_new(p->n, sizeof *c.owned);
    c.split_by = memory_new(p->n, sizeof *c.split_by);
    c.partial_slot = memory_new(t->partial_slots, sizeof *c.partial_slot);
    int failed = 0;
    for (c.which = 0; c.which < p->n_masks && !failed; c.which++) {
        struct pattern *transpose =
            transposed ? pattern_transpose(m->pattern[c.which], e) : NULL;
        c.mask = transposed ? transpose : m->pattern[c.which];
        failed = c.mask ? check_mask(&c) : -1;
        pattern_destroy(transpose);
    }
    if (!failed && (c.uses != t->uses || c.max_cols != t->max_cols))
        failed = checker_fail(&c, "`uses` or `max_cols` do not say what the items need", 0, 0);
    if (!failed)
        failed = check_work(&c);
    free(c.bits);
    free(c.owned);
    free(c.split_by);
    free(c.partial_slot);
    return failed;
}

int plan_check(const struct plan *p, const struct mask *m, struct error *e)
{
    if (p->n != m->n || p->heads != m->heads || p->layers != m->layers ||
        p->n_masks != m->n_patterns ||
        memcmp(p->at, m->at, (size_t)m->heads * m->layers * sizeof *m->at))
        return error_set(e, ERROR_FALSE, "the plan was made for another mask");
    if (check_pass(p, &p->forward, m, false, e))
        return -1;
    if (p->config.request.backward && check_pass(p, &p->transposed, m, true, e))
        return -1;
    for (int k = 0; k < PASSES; k++)
        if (check_steps(p, (enum machine_pass)k, m, e))
            return -1;
    return 0;
}
