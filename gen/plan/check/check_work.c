/* SPDX-License-Identifier: Apache-2.0 */
/* The work lists of a plan: who does which item, in which order. */
#include "gen/plan/check/checker.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* See enum work_order. */
static bool in_order(const struct plan_pass *t, uint64_t k, u32 largest, enum work_order order)
{
    struct abi_work a = t->work[k - 1], b = t->work[k];
    const struct abi_item *x = &t->items[a.item], *y = &t->items[b.item];
    if (order == WORK_BY_HEAD && a.head != b.head)
        return a.head < b.head;
    if (order == WORK_BY_HEAD && x->split != y->split)
        return x->split;
    if (order == WORK_MERGE_LAST && item_merges(x) != item_merges(y))
        return item_merges(y);
    u32 before = work_class(x->cost, largest);
    u32 here = work_class(y->cost, largest);
    if (before != here)
        return before > here;
    return a.head < b.head || (a.head == b.head && a.item < b.item);
}

/* Each layer's list holds every item of every head once, in order. */
static int check_layer(struct checker *c, uint32_t layer, uint8_t *seen)
{
    const struct plan_pass *t = c->pass;
    const uint32_t *at = c->plan->at + (size_t)layer * c->plan->heads;
    uint64_t first = t->layer_work[layer][0], count = t->layer_work[layer][1], expected = 0;
    uint64_t merged = 0;
    if (first > t->n_work || count > t->n_work - first)
        return checker_fail(c, "work outside of its table", layer, 0);
    for (uint32_t h = 0; h < c->plan->heads; h++)
        expected += t->item_first[at[h] + 1] - t->item_first[at[h]];
    if (count != expected)
        return checker_fail(c, "a work list of another length than its items", layer, 0);
    memset(seen, 0, (t->n_items * c->plan->heads + 7) / 8);
    for (uint64_t k = first; k < first + count; k++) {
        struct abi_work w = t->work[k];
        if (w.head >= c->plan->heads || w.item < t->item_first[at[w.head]] ||
            w.item >= t->item_first[at[w.head] + 1])
            return checker_fail(c, "work that is not the head's", w.head, w.item);
        uint64_t bit = w.head * t->n_items + w.item;
        if (seen[bit / 8] >> (bit % 8) & 1)
            return checker_fail(c, "work that is done twice", w.head, w.item);
        seen[bit / 8] |= (uint8_t)(1 << (bit % 8));
    }
    u32 largest = work_largest(t, first, count);
    const enum work_order order = work_order(c->plan, t);
    for (uint64_t k = first; k < first + count; k++) {
        if (k > first && !in_order(t, k, largest, order))
            return checker_fail(c, "work out of order", t->work[k].head, t->work[k].item);
        merged += order == WORK_MERGE_LAST && item_merges(&t->items[t->work[k].item]);
    }
    return merged == t->layer_work[layer][2]
               ? 0
               : checker_fail(c, "late work miscounted", layer, 0);
}

static bool checked_before(const struct plan_pass *t, uint32_t layer)
{
    for (uint32_t l = 0; l < layer; l++)
        if (!memcmp(t->layer_work[l], t->layer_work[layer], sizeof *t->layer_work))
            return true;
    return false;
}

/* A list shared by two layers fits both only where their heads agree. */
static int check_shared(struct checker *c, uint32_t layer)
{
    const struct plan *p = c->plan;
    for (uint32_t l = 0; l < layer; l++)
        if (!memcmp(c->pass->layer_work[l], c->pass->layer_work[layer],
                    sizeof *c->pass->layer_work) &&
            memcmp(p->at + (size_t)l * p->heads, p->at + (size_t)layer * p->heads,
                   p->heads * sizeof *p->at))
            return checker_fail(c, "a work list shared by layers that differ", layer, l);
    return 0;
}

int check_work(struct checker *c)
{
    uint8_t *seen = memory_new((c->pass->n_items * c->plan->heads + 7) / 8, 1);
    int failed = 0;
    for (uint32_t l = 0; l < c->plan->layers && !failed; l++)
        failed = checked_before(c->pass, l) ? check_shared(c, l) : check_layer(c, l, seen);
    free(seen);
    return failed;
}
