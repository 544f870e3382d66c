/* SPDX-License-Identifier: Apache-2.0 */
/* Slots to steps. Consecutive columns are cut into runs of a whole step where that is cheapest; the other slots share steps
   with those that the same row blocks need. Steps without patterns that follow each other are one, repeated. */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* A slot outside of runs costs more than its share of a step: steps may stay unfilled, and columns come in pieces. */
#define LOOSE_FACTOR 1.25
/* Warpgroups take turns where at most one in so many of their places in the steps is made up for it. */
enum { IDLE_SHARE = 8 };

void pack_begin(struct step_builder *b)
{
    const struct step_clocks *c = &b->shape->clocks;
    for (u32 members = 0; members < 1 << ABI_GROUP_BLOCKS; members++)
        b->step_price[members] = c->step + (double)c->row_block * __builtin_popcount(members);
}

/* ---- runs ---- */

static u32 members_of(const struct slot *slot, uint32_t count)
{
    u32 members = 0;
    for (uint32_t k = 0; k < count; k++)
        members |= slot[k].members;
    return members;
}

/* Slots from `from` on that lie side by side. */
static uint64_t count_consecutive(const struct step_builder *b, uint64_t from)
{
    const struct slot_list *s = &b->slots;
    uint64_t k = from + 1;
    while (k < s->count && !(s->slot[from].column & ABI_GATHERED) &&
           s->slot[k].column == s->slot[k - 1].column + ABI_TILE_COLS)
        k++;
    return k - from;
}

/* Which of `count` consecutive slots begin a run, by the least price of all: taken[k] is 1 for these. */
static void choose_runs(struct step_builder *b, const struct slot *slot, uint64_t count)
{
    const uint32_t slots = b->shape->slots;
    b->price[count] = 0;
    for (uint64_t k = count; k--;) {
        b->price[k] = b->price[k + 1] + LOOSE_FACTOR * b->step_price[slot[k].members] / slots;
        b->taken[k] = 0;
        if (count - k < slots)
            continue;
        const double run = b->step_price[members_of(slot + k, slots)] + b->price[k + slots];
        if (run > b->price[k])
            continue;
        b->price[k] = run;
        b->taken[k] = 1;
    }
}

/* ---- steps ---- */

static bool is_run(const struct step_builder *b, const struct abi_step *s)
{
    bool run = !(s->column[0] & ABI_GATHERED);
    for (uint32_t k = 1; k < b->shape->slots; k++)
        run &= s->column[k] == s->column[0] + ABI_TILE_COLS * k;
    return run;
}

/* Column of a slot that a step lacks: past the mask, where columns cost nothing; if possible one that continues a run. */
static u32 column_past(const struct step_builder *b, const struct abi_step *s, uint32_t k)
{
    const u32 end = b->tiles * ABI_TILE_COLS, next = s->column[k - 1] + ABI_TILE_COLS;
    return s->column[k - 1] & ABI_GATHERED || next < end ? end : next;
}

/* The slots as a step. Slots that it lacks have no live column. */
static struct abi_step make_step(const struct step_builder *b, const struct slot *slot,
                                 uint32_t count)
{
    struct abi_step s = {.times = 1};
    for (uint32_t k = 0; k < b->shape->slots; k++) {
        s.column[k] = k < count ? slot[k].column : column_past(b, &s, k);
        s.live[k] = k < count ? slot[k].live : 0;
        for (uint32_t i = 0; i < ABI_GROUP_BLOCKS && k < count; i++)
            s.pattern[i][k] = slot[k].has[i];
    }
    s.run = is_run(b, &s);
    return s;
}

static bool is_plain(const struct step_builder *b, const struct abi_step *s)
{
    bool plain = s->run;
    for (uint32_t k = 0; k < b->shape->slots; k++) {
        plain &= s->live[k] == ~(u32)0;
        for (uint32_t i = 0; i < ABI_GROUP_BLOCKS; i++)
            plain &= s->pattern[i][k] < ABI_SLOT_PATTERN;
    }
    return plain;
}

/* True if s goes on where `last` ends, so that it is `last` once more. */
static bool repeats(const struct step_builder *b, const struct abi_step *last,
                    const struct abi_step *s)
{
    return is_plain(b, last) && is_plain(b, s) &&
           s->column[0] == last->column[0] + last->times * b->shape->slots * ABI_TILE_COLS &&
           !memcmp(last->pattern, s->pattern, sizeof s->pattern);
}

static void add_step(struct step_builder *b, const struct abi_group *g, struct plan_steps *t,
                     const struct slot *slot, uint32_t count)
{
    const struct abi_step s = make_step(b, slot, count);
    struct abi_step *last = t->n_steps > g->step ? &t->steps[t->n_steps - 1] : NULL;
    if (last && repeats(b, last, &s))
        last->times++;
    else
        *MEMORY_PUSH(t->steps, t->n_steps, t->steps_capacity) = s;
}

/* ---- loose slots ---- */

static int by_members_and_column(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;
    const int m = __builtin_popcount(a->members), n = __builtin_popcount(b->members);
    if (m != n)
        return m > n ? -1 : 1;
    if (a->members != b->members)
        return a->members < b->members ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static int by_column(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;
    return a->column < b->column ? -1 : a->column > b->column;
}

/* The slot from `from` on that adds the fewest row blocks to these. */
static uint64_t find_nearest(const struct slot_list *list, uint64_t from, u32 members)
{
    uint64_t best = from;
    int least = ABI_GROUP_BLOCKS + 1;
    for (uint64_t k = from; k < list->count && least; k++) {
        const int more = __builtin_popcount(list->slot[k].members & ~members);
        if (more >= least)
            continue;
        least = more;
        best = k;
    }
    return best;
}

/* Moves the slots that share most row blocks with slot `from` behind it, for one step; returns the step's slots. */
static uint32_t take_together(struct step_builder *b, uint64_t from)
{
    struct slot_list *list = &b->loose;
    u32 members = list->slot[from].members;
    uint32_t count = 1;
    for (; count < b->shape->slots && from + count < list->count; count++) {
        const uint64_t place = from + count, k = find_nearest(list, place, members);
        const struct slot found = list->slot[k];
        members |= found.members;
        memmove(&list->slot[place + 1], &list->slot[place], (size_t)(k - place) * sizeof found);
        list->slot[place] = found;
    }
    qsort(&list->slot[from], count, sizeof *list->slot, by_column);
    return count;
}

static void add_loose(struct step_builder *b, const struct abi_group *g, struct plan_steps *t)
{
    if (!b->loose.count)
        return;
    qsort(b->loose.slot, b->loose.count, sizeof *b->loose.slot, by_members_and_column);
    for (uint64_t k = 0; k < b->loose.count;) {
        const uint32_t count = take_together(b, k);
        add_step(b, g, t, &b->loose.slot[k], count);
        k += count;
    }
}

static void add_runs(struct step_builder *b, const struct abi_group *g, struct plan_steps *t)
{
    const uint32_t slots = b->shape->slots;
    b->loose.count = 0;
    for (uint64_t from = 0, count; from < b->slots.count; from += count) {
        const struct slot *slot = &b->slots.slot[from];
        count = count_consecutive(b, from);
        choose_runs(b, slot, count);
        for (uint64_t k = 0; k < count; k += b->taken[k] ? slots : 1)
            if (b->taken[k])
                add_step(b, g, t, slot + k, slots);
            else
                *MEMORY_PUSH(b->loose.slot, b->loose.count, b->loose.capacity) = slot[k];
    }
}

/* ---- turns ---- */

bool step_has(const struct abi_step *s, uint32_t row_block)
{
    u32 any = 0;
    for (uint32_t k = 0; k < ABI_STEP_SLOTS; k++)
        any |= s->pattern[row_block][k];
    return any != ABI_SLOT_EMPTY;
}

/* Row blocks of the shape that have nothing in the step. */
static uint32_t count_idle(const struct step_builder *b, const struct abi_step *s)
{
    uint32_t idle = 0;
    for (uint32_t k = 0; k < b->shape->warpgroups; k++)
        idle += !step_has(s, k);
    return idle;
}

static void fill_idle(struct step_builder *b, struct abi_step *s)
{
    const u32 zeros[STEP_ROWS] = {0};
    const u32 none =
        ABI_SLOT_PATTERN + pattern_intern(b->source->pass, &b->index, zeros, STEP_ROWS) - 1;
    for (uint32_t k = 0; k < b->shape->warpgroups; k++)
        if (!step_has(s, k))
            s->pattern[k][0] = none;
}

/* Gives idle row blocks a pattern of zeros. A repeated step is taken apart, as it can have none. */
static void fill_all(struct step_builder *b, const struct abi_group *g, struct plan_steps *t)
{
    const uint64_t count = t->n_steps - g->step;
    struct abi_step *old = memory_copy(&t->steps[g->step], count * sizeof *old);
    t->n_steps = g->step;
    for (uint64_t k = 0; k < count; k++) {
        const bool idle = count_idle(b, &old[k]);
        const u32 times = idle ? old[k].times : 1;
        for (u32 i = 0; i < times; i++) {
            struct abi_step s = old[k];
            for (uint32_t j = 0; j < ABI_STEP_SLOTS && idle; j++)
                s.column[j] += i * b->shape->slots * ABI_TILE_COLS;
            if (idle) {
                s.times = 1;
                fill_idle(b, &s);
            }
            *MEMORY_PUSH(t->steps, t->n_steps, t->steps_capacity) = s;
        }
    }
    free(old);
}

static void order_turn(struct step_builder *b, struct abi_group *g, struct plan_steps *t)
{
    uint64_t idle = 0, all = 0;
    if (!b->shape->in_turn || group_row_blocks(g) < b->shape->warpgroups)
        return;
    for (uint64_t k = g->step; k < t->n_steps; k++) {
        idle += (uint64_t)t->steps[k].times * count_idle(b, &t->steps[k]);
        all += (uint64_t)t->steps[k].times * b->shape->warpgroups;
    }
    g->in_turn = all && idle * IDLE_SHARE <= all;
    if (g->in_turn && idle)
        fill_all(b, g, t);
}

/* ---- the group ---- */

/* Row blocks that have a pattern in the step. */
static uint32_t count_patterns(const struct abi_step *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ABI_GROUP_BLOCKS; i++) {
        bool any = false;
        for (uint32_t k = 0; k < ABI_STEP_SLOTS; k++)
            any |= s->pattern[i][k] >= ABI_SLOT_PATTERN;
        count += any;
    }
    return count;
}

static double price_step(const struct step_clocks *c, const struct abi_step *s, bool in_turn)
{
    uint32_t has = 0, gathered = 0;
    for (uint32_t i = 0; i < ABI_GROUP_BLOCKS; i++)
        has += step_has(s, i);
    for (uint32_t k = 0; k < ABI_STEP_SLOTS; k++)
        gathered += s->column[k] & ABI_GATHERED ? (u32)__builtin_popcount(s->live[k]) : 0;
    return c->step + (double)(in_turn ? c->turn : c->row_block) * has +
           (double)c->pattern * count_patterns(s) + (double)c->gathered * gathered;
}

static u32 price_group(const struct step_builder *b, const struct abi_group *g,
                       const struct plan_steps *t)
{
    const struct step_clocks *c = &b->shape->clocks;
    double sum = 0;
    for (uint64_t k = g->step; k < t->n_steps; k++)
        sum += t->steps[k].times * price_step(c, &t->steps[k], g->in_turn);
    sum += c->group;
    return sum > (double)UINT32_MAX ? UINT32_MAX : (u32)sum;
}

void pack_steps(struct step_builder *b, struct abi_group *g, struct plan_steps *t)
{
    g->step = (u32)t->n_steps;
    add_runs(b, g, t);
    add_loose(b, g, t);
    order_turn(b, g, t);
    g->steps = (u32)(t->n_steps - g->step);
    g->cost = price_group(b, g, t);
}
