/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that say who does what in which order: each layer's work, and its heads. */
#include "masks/base/memory.h"
#include "runtime/artifact/check.h"
#include <stdlib.h>
#include <string.h>

/* A layer's work names each item of each of its heads exactly once. base[h] counts the items of the
   heads before h, so that (head, item) becomes a place in `seen`. */
static int check_layer(const struct check *c, uint32_t layer, uint64_t *base, uint8_t *seen)
{
    const uint64_t *part = c->p->layer_work[layer];
    const uint32_t *at = c->m->at + (size_t)layer * c->m->heads;
    for (uint32_t h = 0; h < c->m->heads; h++)
        base[h + 1] = base[h] + c->p->item_first[at[h] + 1] - c->p->item_first[at[h]];
    if (!check_inside(part[0], part[1], c->p->n_work) || part[1] != base[c->m->heads])
        return check_refuse(c, "layer_work does not fit the work", layer);
    memset(seen, 0, part[1]);
    for (uint64_t k = part[0]; k < part[0] + part[1]; k++) {
        struct abi_work w = c->p->work[k];
        if (w.head >= c->m->heads || w.item < c->p->item_first[at[w.head]] ||
            w.item >= c->p->item_first[at[w.head] + 1])
            return check_refuse(c, "work names an item of another mask", k);
        uint64_t place = base[w.head] + w.item - c->p->item_first[at[w.head]];
        if (seen[place]++)
            return check_refuse(c, "work repeats an item", k);
    }
    return 0;
}

static int check_work(const struct check *c)
{
    if (c->p->n_work > UINT32_MAX)
        return error_set(c->e, ERROR_INPUT, "%s: too much work", c->where);
    uint64_t *base = memory_new((size_t)c->m->heads + 1, sizeof *base);
    uint8_t *seen = memory_new(c->p->n_work, 1);
    int r = 0;
    for (uint32_t l = 0; l < c->m->layers && r == 0; l++)
        r = check_layer(c, l, base, seen);
    free(base);
    free(seen);
    return r;
}

/* Number of a head's split items; UINT32_MAX: another item precedes one. */
static uint32_t count_partials(const struct check *c, struct abi_head h)
{
    uint32_t leading = 0, all = 0;
    for (uint32_t k = 0; k < h.items; k++) {
        all += c->p->items[h.item + k].split;
        leading += leading == k && c->p->items[h.item + k].split;
    }
    return leading == all ? all : UINT32_MAX;
}

/* The last part[2] works of a layer are exactly those that merge. */
static int check_merges(const struct check *c, const uint64_t *part)
{
    for (uint64_t k = 0; k < part[1]; k++)
        if (part[2] > part[1] ||
            (part[2] && item_merges(&c->p->items[c->p->work[part[0] + k].item]) !=
                            (k >= part[1] - part[2])))
            return check_refuse(c, "work is out of order", part[0] + k);
    return 0;
}

/* Layers that merge in a phase of their own are checked above. In others work goes head by head, and split items
   come first in each. */
static int check_order(const struct check *c)
{
    for (uint32_t l = 0; l < c->m->layers; l++)
        if (check_merges(c, c->p->layer_work[l]) < 0)
            return -1;
    for (uint32_t l = 0; l < c->m->layers && c->p->uses & ABI_SPLIT; l++) {
        const uint64_t *part = c->p->layer_work[l];
        const struct abi_head *head = c->p->heads + (size_t)l * c->m->heads;
        uint64_t k = part[0];
        if (part[2])
            continue;
        for (uint32_t h = 0; h < c->m->heads; h++)
            for (uint32_t i = 0; i < head[h].items; i++, k++)
                if (c->p->work[k].head != h ||
                    c->p->items[c->p->work[k].item].split != (i < head[h].splits))
                    return check_refuse(c, "work is out of order", k);
    }
    return 0;
}

static int check_heads(const struct check *c)
{
    const uint32_t *first = c->p->item_first;
    uint64_t count = (uint64_t)c->m->layers * c->m->heads;
    for (uint64_t k = 0; k < count && c->p->n_heads == count; k++) {
        struct abi_head h = c->p->heads[k];
        uint32_t at = c->m->at[k];
        if (h.item != first[at] || h.items != first[at + 1] - first[at] ||
            h.splits != count_partials(c, h))
            return check_refuse(c, "heads names items of another mask", k);
    }
    return c->p->n_heads == count ? 0
                                  : check_refuse(c, "heads does not list every head", count);
}

int check_schedule(const struct check *c)
{
    static int (*const steps[])(const struct check *) = {check_work, check_heads, check_order};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (steps[k](c) < 0)
            return -1;
    return 0;
}
