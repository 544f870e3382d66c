/* SPDX-License-Identifier: Apache-2.0 */
/* A block that has a processor for itself: each warp issues in order, as stall counts and scoreboards of the control codes say,
   and waits for no other warp's instructions but at barriers. What is left is latency. */
#include "tests/sass/cost/cost.h"
#include "tests/sass/cost/latency.h"
#include "tests/sass/handlers.h"
#include <stdlib.h>

static const struct {
    run_instruction *run;
    uint32_t cycles;
} latencies[] = {
    {run_load_shared, LATENCY_SHARED}, {run_load_matrix, LATENCY_SHARED},
    {run_load_local, LATENCY_SHARED},  {run_shuffle, LATENCY_SHUFFLE},
    {run_redux, LATENCY_SHUFFLE},      {run_mufu, LATENCY_SPECIAL},
    {run_f2i, LATENCY_SPECIAL},        {run_i2f, LATENCY_SPECIAL},
    {run_constant, LATENCY_CONSTANT},  {run_special, LATENCY_CONSTANT},
};

static uint32_t latency_of(const struct instruction *i)
{
    for (uint32_t k = 0; k < sizeof latencies / sizeof latencies[0]; k++)
        if (latencies[k].run == i->run)
            return latencies[k].cycles;
    return LATENCY_OTHER;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void wait_far(struct warp *w, uint64_t from, uint64_t until)
{
    if (until <= from)
        return;
    w->block->cost->waited += until - from;
    w->block->cost->trips++;
}

/* When the scoreboards that it waits for are released, `at` at the earliest. */
static uint64_t released(struct warp *w, uint32_t waits, uint64_t at)
{
    struct warp_clock *t = &w->clock;
    uint64_t near = at, far = at;
    for (uint32_t k = 0; k < COST_BOARDS; k++) {
        if (!(waits >> k & 1))
            continue;
        uint64_t *to = t->far >> k & 1 ? &far : &near;
        *to = later(*to, t->ready[k]);
    }
    wait_far(w, near, far);
    t->far &= ~waits;
    return later(near, far);
}

static void works_end(struct works *s, uint64_t at)
{
    if (s->count == s->capacity)
        s->end = realloc(s->end, (s->capacity = 2 * s->capacity + 16) * sizeof *s->end);
    s->end[s->count++] = at;
}

/* Warp 0 goes back to instruction `at`. */
static void works_turn(struct warp *w, uint32_t at)
{
    struct works *s = &w->block->cost->now;
    if (w->block->cost->single || (s->header && at > s->header))
        return;
    if (at < s->header || !s->header)
        *s = (struct works){.header = at, .capacity = s->capacity, .end = s->end};
    if (w->block->epoch != s->epoch)
        works_end(s, w->clock.next);
    s->epoch = w->block->epoch;
}

/* The block's works go to their places in the launch. */
static void works_store(struct block *b)
{
    struct cost *c = b->cost;
    if (b->wave != c->wave) {
        c->wave = b->wave;
        c->wave_first = c->works;
    }
    const uint32_t first = c->wave_first + b->index;
    const uint32_t least = first + c->now.count * b->grid + 1;
    if (b->epoch != c->now.epoch)
        works_end(&c->now, b->warp[0].clock.next);
    if (least > c->work_capacity) {
        c->work = realloc(c->work, 2 * least * sizeof *c->work);
        memset(c->work + c->work_capacity, 0, (2 * least - c->work_capacity) * sizeof *c->work);
        c->work_capacity = 2 * least;
    }
    for (uint32_t k = 0; k < c->now.count; k++) {
        const uint32_t at = first + k * b->grid;
        c->work[at] = c->now.end[k] - (k ? c->now.end[k - 1] : 0);
        c->works = c->works > at ? c->works : at + 1;
    }
    c->now =
        (struct works){.header = c->now.header, .capacity = c->now.capacity, .end = c->now.end};
}

void cost_finish(struct cost *c)
{
    free(c->sectors);
    free(c->wavefronts);
    free(c->work);
    free(c->now.end);
}

void cost_issue(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct warp_clock *t = &w->clock;
    const uint32_t at = (uint32_t)(i - w->block->program->code);
    if (!w->block->cost)
        return;
    if (at < t->last && w->index == 0)
        works_turn(w, at);
    if (at != t->last + 1)
        t->next = later(t->next, t->issued + BRANCH);
    t->last = at;
    t->issued = released(w, i->waits, t->next);
    t->next = t->issued + (i->stall ? i->stall : 1);
    if (!mask)
        return;
    if (i->run == run_mma_16816 || i->run == run_mma_1688) {
        t->issued = later(t->issued, t->tensor);
        t->tensor = t->issued + (i->run == run_mma_16816 ? TENSOR : TENSOR / 2);
        t->next = t->issued + (i->stall ? i->stall : 1);
    }
    if (i->writes < COST_BOARDS)
        t->ready[i->writes] = later(t->ready[i->writes], t->issued + latency_of(i));
    if (i->reads < COST_BOARDS)
        t->ready[i->reads] = later(t->ready[i->reads], t->issued + OPERANDS_READ);
}

void cost_commit(struct warp *w)
{
    if (w->block->cost)
        w->clock.group[w->groups % COPY_GROUPS] = w->clock.copies;
}

void cost_wait(struct warp *w, uint32_t newest)
{
    struct warp_clock *t = &w->clock;
    if (!w->block->cost || w->groups <= newest)
        return;
    const uint64_t there = t->group[(w->groups - newest - 1) % COPY_GROUPS];
    wait_far(w, t->issued, there);
    t->next = later(t->next, there + 1);
}

static uint64_t last_of(const struct block *b)
{
    uint64_t last = 0;
    for (uint32_t k = 0; k < b->warps; k++)
        last = later(last, b->warp[k].clock.next);
    return last;
}

void cost_barrier(struct block *b)
{
    const uint64_t last = b->cost ? last_of(b) : 0;
    for (uint32_t k = 0; b->cost && k < b->warps; k++)
        if (b->warp[k].paths)
            b->warp[k].clock.next = last + BARRIER;
}

void cost_end(struct block *b)
{
    if (!b->cost)
        return;
    b->cost->alone += last_of(b);
    works_store(b);
    memset(b->cost->l1, 0, sizeof b->cost->l1);
}
