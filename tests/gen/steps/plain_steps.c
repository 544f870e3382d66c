/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/steps/plain_steps.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct plain {
    const struct plan *plan;
    const struct plan_pass *pass;
    const struct plan_steps *steps;
    uint8_t *visits, *owned; /* [n][n], [n] */
    bool ok;
};

static void visit(struct plain *d, const struct abi_item *item, u32 r, u64 column)
{
    if (column >= d->plan->n || item->row0 + r >= d->plan->n)
        d->ok = false;
    else
        d->visits[(size_t)(item->row0 + r) * d->plan->n + column]++;
}

/* Bit c of a slot as a column of the mask; n where it is outside of the list of gathered columns. */
static u64 column_of(const struct plain *d, u32 first, u32 c)
{
    if (!(first & ABI_GATHERED))
        return (u64)first + c;
    const u64 place = (u64)(first - ABI_GATHERED) + c;
    return place < d->pass->n_columns ? d->pass->columns[place] : d->plan->n;
}

static void visit_slot(struct plain *d, const struct abi_item *item, const struct abi_step *s,
                       u32 k, u32 slot, u64 past)
{
    const u32 has = s->pattern[k][slot];
    d->ok &= has < 2 || has - 2 < d->pass->n_patterns;
    for (u32 r = 0; d->ok && r < item->rows && has; r++) {
        if (!(item->own[r / 32] >> r % 32 & 1))
            continue;
        const u32 word = has == 1 ? s->live[slot] : d->pass->patterns[64 * (u64)(has - 2) + r];
        d->ok &= !(word & ~s->live[slot]);
        for (u32 c = 0; c < 32; c++)
            if (word >> c & 1)
                visit(d, item, r, column_of(d, s->column[slot], c) + past);
    }
}

static void visit_step(struct plain *d, const struct abi_item *item, const struct abi_step *s,
                       u32 k)
{
    const u64 width = 32 * d->steps->slots;
    d->ok &= s->times > 0 && s->times * width <= d->plan->n + width;
    for (u32 slot = 0; slot < d->steps->slots; slot++) {
        d->ok &= !s->run || s->column[slot] == s->column[0] + 32 * slot;
        d->ok &= s->times == 1 || (s->run && s->live[slot] == ~0u && s->pattern[k][slot] < 2);
        d->ok &= !s->run || !(s->column[slot] & ABI_GATHERED);
    }
    for (u32 i = 0; d->ok && i < s->times; i++)
        for (u32 slot = 0; slot < d->steps->slots; slot++)
            visit_slot(d, item, s, k, slot, i * width);
}

static void visit_group(struct plain *d, const struct abi_group *g, u32 first, u32 end)
{
    u32 items = 0;
    bool alone = false;
    d->ok &= (u64)g->step + g->steps <= d->steps->n_steps;
    for (u32 k = 0; d->ok && k < 4; k++) {
        if (g->item[k] == ABI_NO_ITEM)
            continue;
        d->ok &= k < d->steps->warpgroups && g->item[k] >= first && g->item[k] < end;
        if (!d->ok)
            return;
        const struct abi_item *item = &d->pass->items[g->item[k]];
        for (u32 r = 0; r < item->rows && !item->split; r++)
            d->owned[item->row0 + r] += item->own[r / 32] >> r % 32 & 1;
        for (u32 i = g->step; d->ok && i < g->step + g->steps; i++) {
            const u32 *has = d->steps->steps[i].pattern[k];
            visit_step(d, item, &d->steps->steps[i], k);
            d->ok &= !g->in_turn || has[0] || has[1] || has[2] || has[3];
        }
        d->ok &= !item_merges(item);
        alone |= item->rows == 1;
        items++;
    }
    d->ok &= items && (!alone || items == 1) && g->cost && g->in_turn < 2 &&
             (!g->in_turn || items == d->steps->warpgroups);
}

static void visit_mask(struct plain *d, const struct mask *m, u32 which, bool transposed)
{
    const u32 n = d->plan->n;
    memset(d->visits, 0, (size_t)n * n);
    memset(d->owned, 0, n);
    d->ok &= d->steps->group_first[which + 1] <= d->steps->n_groups;
    for (u32 k = d->steps->group_first[which]; d->ok && k < d->steps->group_first[which + 1];
         k++)
        visit_group(d, &d->steps->groups[k], d->pass->item_first[which],
                    d->pass->item_first[which + 1]);
    for (u32 k = d->pass->item_first[which]; k < d->pass->item_first[which + 1]; k++)
        if (item_merges(&d->pass->items[k])) /* its parts are in groups */
            d->owned[d->pass->items[k].row0]++;
    for (u32 i = 0; i < n; i++) {
        d->ok &= d->owned[i] == 1;
        for (u32 j = 0; j < n; j++)
            d->ok &= d->visits[(size_t)i * n + j] ==
                     (transposed ? pattern_test(m->pattern[which], j, i)
                                 : pattern_test(m->pattern[which], i, j));
    }
}

bool plain_steps_equal(const struct plan *p, enum machine_pass pass, const struct mask *m)
{
    const bool transposed = pass == PASS_DKV;
    struct plain d = {.plan = p,
                      .pass = transposed ? &p->transposed : &p->forward,
                      .steps = &p->steps[pass],
                      .ok = true};
    d.visits = memory_new((size_t)p->n * p->n, 1);
    d.owned = memory_new(p->n, 1);
    for (u32 k = 0; k < p->n_masks && d.ok; k++)
        visit_mask(&d, m, k, transposed);
    free(d.visits);
    free(d.owned);
    return d.ok;
}
