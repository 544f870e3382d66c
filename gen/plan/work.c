/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* An item as it is sorted. Expensive items come first, so that the last to finish is small; items whose costs are within
   a factor of four are ordered by head and row block. On a CPU each head is a list of its own, split items first: a core
   then still has the head's packed operands, the keys and values of the row block before, and partial sums in its
   cache. On CUDA items wait only between launches, so the items of all heads that merge come last, in a launch of their
   own. */
struct entry {
    u32 list, merge, split, class, cost;
    struct abi_work work;
};

static int descending(u32 a, u32 b)
{
    return a > b ? -1 : a < b;
}

static int by_class_and_head(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = descending(b->list, a->list);
    if (!order)
        order = descending(b->merge, a->merge);
    if (!order)
        order = descending(a->split, b->split);
    if (!order)
        order = descending(a->class, b->class);
    if (!order)
        order = descending(b->work.head, a->work.head);
    return order ? order : descending(b->work.item, a->work.item);
}

u32 work_class(u32 cost, u32 largest)
{
    u32 class = 16;
    while (class && cost < largest / 4) {
        largest /= 4;
        class --;
    }
    return class;
}

u32 work_largest(const struct plan_pass *t, uint64_t first, uint64_t count)
{
    u32 largest = 0;
    for (uint64_t k = first; k < first + count; k++) {
        u32 cost = t->items[t->work[k].item].cost;
        largest = cost > largest ? cost : largest;
    }
    return largest;
}

enum work_order work_order(const struct plan *p, const struct plan_pass *pass)
{
    if (!(p->can & MERGES_LAST))
        return WORK_BY_HEAD;
    return pass->uses & ABI_SPLIT ? WORK_MERGE_LAST : WORK_BY_COST;
}

static uint64_t count_layer(const struct plan *p, const struct plan_pass *t, const uint32_t *at)
{
    uint64_t count = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        count += t->item_first[at[h] + 1] - t->item_first[at[h]];
    return count;
}

static struct entry entry_of(const struct abi_item *item, enum work_order order,
                             struct abi_work work)
{
    return (struct entry){
        .list = order == WORK_BY_HEAD ? work.head : 0,
        .merge = order == WORK_MERGE_LAST && item_merges(item),
        .split = order == WORK_BY_HEAD && item->split,
        .cost = item->cost,
        .work = work,
    };
}

/* Returns how many merge in a launch of their own. */
static uint64_t sort_layer(const struct plan *p, const struct plan_pass *t, const uint32_t *at,
                           struct abi_work *out, uint64_t count)
{
    struct entry *list = memory_new(count, sizeof *list);
    const enum work_order order = work_order(p, t);
    uint64_t k = 0, merged = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        for (u32 i = t->item_first[at[h]]; i < t->item_first[at[h] + 1]; i++) {
            list[k] = entry_of(&t->items[i], order, (struct abi_work){h, i});
            merged += list[k++].merge;
        }
    u32 largest = 0;
    for (k = 0; k < count; k++)
        largest = list[k].cost > largest ? list[k].cost : largest;
    for (k = 0; k < count; k++)
        list[k].class = work_class(list[k].cost, largest);
    qsort(list, count, sizeof *list, by_class_and_head);
    for (k = 0; k < count; k++)
        out[k] = list[k].work;
    free(list);
    return merged;
}

/* An earlier layer with the same masks, or `layer` itself. */
static uint32_t find_twin(const struct plan *p, uint32_t layer)
{
    const uint32_t *at = p->at + (size_t)layer * p->heads;
    for (uint32_t l = 0; l < layer; l++)
        if (!memcmp(p->at + (size_t)l * p->heads, at, p->heads * sizeof *at))
            return l;
    return layer;
}

static void list_heads(const struct plan *p, struct plan_pass *t)
{
    t->n_heads = (uint64_t)p->layers * p->heads;
    t->heads = memory_new(t->n_heads, sizeof *t->heads);
    for (uint64_t k = 0; k < t->n_heads; k++) {
        u32 first = t->item_first[p->at[k]], count = t->item_first[p->at[k] + 1] - first;
        t->heads[k] = (struct abi_head){first, count, 0};
        while (t->heads[k].splits < count && t->items[first + t->heads[k].splits].split)
            t->heads[k].splits++;
    }
}

void work_build(const struct plan *p, struct plan_pass *t)
{
    list_heads(p, t);
    t->layer_work = memory_new(p->layers, sizeof *t->layer_work);
    for (uint32_t l = 0; l < p->layers; l++) {
        const uint32_t *at = p->at + (size_t)l * p->heads;
        uint32_t twin = find_twin(p, l);
        if (twin < l) {
            memcpy(t->layer_work[l], t->layer_work[twin], sizeof *t->layer_work);
            continue;
        }
        uint64_t count = count_layer(p, t, at);
        t->work = memory_resize(t->work, t->n_work + count, sizeof *t->work);
        t->layer_work[l][0] = t->n_work;
        t->layer_work[l][1] = count;
        t->layer_work[l][2] = sort_layer(p, t, at, t->work + t->n_work, count);
        t->n_work += count;
    }
}

/* ---- the time of a list ---- */

/* Above this many items the prediction is the workers' mean load, or the longest item. */
enum { EXACT_ITEMS = 1 << 17 };

/* A heap of the workers' finishing times, the earliest at [0]. */
static void push_down(double *time, uint32_t workers)
{
    for (uint32_t k = 0;;) {
        uint32_t child = 2 * k + 1;
        if (child + 1 < workers && time[child + 1] < time[child])
            child++;
        if (child >= workers || time[k] <= time[child])
            return;
        double swap = time[k];
        time[k] = time[child];
        time[child] = swap;
        k = child;
    }
}

static double longest_first(const struct plan_pass *t, uint64_t first, uint64_t end,
                            uint32_t batch, uint32_t workers)
{
    double *time = memory_new(workers, sizeof *time), last = 0;
    for (uint64_t k = first; k < end; k++) {
        for (uint32_t b = 0; b < batch; b++) {
            time[0] += t->items[t->work[k].item].cost * 1e-9;
            last = time[0] > last ? time[0] : last;
            push_down(time, workers);
        }
    }
    free(time);
    return last;
}

static double span_of(const struct plan_pass *t, uint64_t first, uint64_t end, uint32_t batch,
                      uint32_t workers)
{
    if ((end - first) * batch <= EXACT_ITEMS)
        return longest_first(t, first, end, batch, workers);
    double sum = 0, longest = 0;
    for (uint64_t k = first; k < end; k++) {
        double cost = t->items[t->work[k].item].cost * 1e-9;
        sum += cost * batch;
        longest = cost > longest ? cost : longest;
    }
    return sum / workers > longest ? sum / workers : longest;
}

double work_span(const struct plan_pass *t, uint32_t layer, uint32_t batch, uint32_t workers)
{
    const uint64_t *part = t->layer_work[layer], end = part[0] + part[1], merge = end - part[2];
    return span_of(t, part[0], merge, batch, workers) + span_of(t, merge, end, batch, workers);
}
