/* SPDX-License-Identifier: Apache-2.0 */
/* Residue classes in a plan: an item for each block_rows rows of a class, the other entries in row blocks of neighbours,
   which merge the partial results of the classes' items. Chosen if that is cheaper than row blocks alone. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include <math.h>

static bool has_entries(const struct pattern *p, uint32_t row)
{
    return p->row[row] < p->row[row + 1];
}

/* Builds one item of a class. If its rows have no other entries, or classes are whole, it owns its rows; otherwise it has
   the rows with an entry and is split. */
static void build_class(struct builder *b, const struct plan *p, const struct split *s,
                        uint32_t row0)
{
    bool alone = s->whole || !s->rest->active;
    uint32_t left = (b->row_block->all_rows - row0 + s->step - 1) / s->step;
    struct abi_item item = {.row0 = row0, .step = s->step, .split = !alone};
    item.rows = left < p->block_rows ? left : p->block_rows;
    for (uint32_t r = 0; r < item.rows; r++)
        if (alone ? !has_entries(s->rest, row0 + r * s->step)
                  : has_entries(s->classes, row0 + r * s->step))
            item.own[r / 32] |= (u32)1 << (r % 32);
    if (!item_owned_rows(&item))
        return;
    const struct residue x = {s->classes, s->whole, p->block_rows, b->place};
    residue_build(&x, &item, &b->draft[0]);
    draft_price(&b->draft[0], b->pass, &item, &b->price);
    b->total += b->draft[0].cost;
    if (!b->dry)
        tables_add_item(b->pass, &b->index, p->block_rows, item, &b->draft[0]);
}

/* If classes are whole, rows that are in no class become items of their own. */
static void add_rows_apart(struct builder *b, const struct split *s)
{
    for (uint32_t i = 0; i < s->rest->n; i++) {
        if (!has_entries(s->rest, i))
            continue;
        row_block_load(b->row_block, s->rest, i, NULL);
        struct effort e = {{0}};
        rows_count(b->row_block, 0, &e);
        b->total += price_of(&b->price, &e);
        if (!b->dry)
            cuts_add_row(b, s->rest, i);
    }
}

/* Marks the rows of the items from `first` on that merge a partial result of a class's item. */
static void mark_merged(struct builder *b, const struct split *s, uint64_t first)
{
    for (; first < b->pass->n_items; first++) {
        struct abi_item *item = &b->pass->items[first];
        for (uint32_t r = 0; r < item->rows; r++)
            if (item_owns(item, r) && has_entries(s->classes, item->row0 + r))
                item->merge[r / 32] |= (u32)1 << (r % 32);
    }
}

/* Share of one head in the cost of the launch that merges. */
static double merge_share(const struct builder *b, const struct plan *p)
{
    enum { USUAL_HEADS = 12 }; /* at least: a batch has more sequences than one */
    return b->options.merge_launch * predict_workers(p, 0) /
           (p->heads > USUAL_HEADS ? p->heads : USUAL_HEADS);
}

static double price_of_merges(const struct builder *b, const struct split *s)
{
    struct effort e = {{0}};
    for (uint32_t i = 0; i < s->classes->n; i++)
        merge_count(b->pass->fragments, has_entries(s->classes, i), &e);
    return price_of(&b->price, &e);
}

int classes_build(struct builder *b, const struct plan *p, const struct split *s,
                  struct error *e)
{
    for (uint32_t c = 0; c < s->step; c++) {
        for (uint32_t row0 = c; row0 < b->row_block->all_rows; row0 += p->block_rows * s->step)
            build_class(b, p, s, row0);
        if (builder_check_capacity(b->pass, e))
            return -1;
    }
    if (s->whole)
        add_rows_apart(b, s);
    if (s->whole || !s->rest->active)
        return 0;
    uint64_t first = b->pass->n_items;
    b->total += merge_share(b, p);
    b->total += price_of_merges(b, s);
    b->split_classes = s->classes;
    int failed = builder_row_blocks(b, p, s->rest, false, e);
    b->split_classes = NULL;
    if (failed)
        return -1;
    mark_merged(b, s, first);
    return 0;
}

/* Price of a pattern in row blocks alone, or split. */
static double try_split(struct builder *b, const struct plan *p, const struct pattern *pattern,
                        const struct split *s)
{
    b->dry = true;
    b->total = 0;
    if (s)
        classes_build(b, p, s, NULL);
    else
        builder_row_blocks(b, p, pattern, false, NULL);
    b->dry = false;
    return b->total;
}

/* Row that is a row block by itself, and therefore a global row, which cannot merge: it is kept out of the split. n if there
   is none. */
static uint32_t odd_row(const struct builder *b, const struct plan *p)
{
    const uint32_t rows = b->row_block->all_rows;
    return builder_can(b, MERGES_LAST) && rows % p->block_rows == 1 ? rows - 1 : p->n;
}

struct candidate {
    struct split split; /* empty: there is none */
    double price;
};

/* Replaces *best by the split if that is cheaper. */
static void take_cheaper(struct builder *b, const struct plan *p, const struct pattern *pattern,
                         uint32_t step, bool whole, struct candidate *best)
{
    struct candidate c;
    if (!split_make(pattern, step, whole, odd_row(b, p), &c.split))
        return;
    c.price = try_split(b, p, pattern, &c.split);
    if (c.price < best->price) {
        split_finish(&best->split);
        *best = c;
    } else {
        split_finish(&c.split);
    }
}

static struct candidate cheapest_split(struct builder *b, const struct plan *p,
                                       const struct pattern *pattern)
{
    struct candidate best = {.price = INFINITY};
    uint32_t step[SPLIT_MOST], steps = 0;
    if (builder_can(b, CAN_SPLIT | CAN_WHOLE_CLASSES))
        steps = split_candidates(pattern, step);
    for (uint32_t k = 0; k < steps; k++) {
        if (builder_can(b, CAN_SPLIT))
            take_cheaper(b, p, pattern, step[k], false, &best);
        if (builder_can(b, CAN_WHOLE_CLASSES))
            take_cheaper(b, p, pattern, step[k], true, &best);
    }
    return best;
}

double classes_price(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    struct candidate best = cheapest_split(b, p, pattern);
    split_finish(&best.split);
    return best.price;
}

/* The best split; empty if row blocks alone are nearly as cheap (LEAST_GAIN). */
void classes_choose(struct builder *b, const struct plan *p, const struct pattern *pattern,
                    struct split *ret)
{
    const struct candidate best = cheapest_split(b, p, pattern);
    *ret = best.split;
    if (!ret->step)
        return;
    struct price chosen_by = b->price;
    b->price = b->report;
    for (uint32_t k = 0; lowerings[k]; k++)
        if (lowerings[k]->kind == ABI_RESIDUE) {
            b->uses = 1u << ABI_RESIDUE;
            b->alone.seconds[k] = try_split(b, p, pattern, ret);
            b->alone.uses[k] = b->uses;
            b->alone.applied[k] = true;
        }
    b->price = chosen_by;
    if (best.price >= try_split(b, p, pattern, NULL) * (1 - LEAST_GAIN))
        split_finish(ret);
}
