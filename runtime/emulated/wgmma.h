/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a warpgroup (wgmma). They run when issued, when a later product is issued, or at the wait that covers them, by
   the block's timing. From issue to that wait the sums hold NaN, and neither they, nor a first operand in registers, nor
   operands in shared memory may change. The warpgroup's 128 threads meet at each of these calls, which orders each thread
   after its warp's reads, and no other access. */
#pragma once
#include "matrix.h"
#include "operands.h"

static struct warpgroup *warpgroup_of(const struct thread *t)
{
    return &the_block->hopper->warpgroup[(t - the_block->thread) / WARPGROUP];
}

static void meet_warpgroup(meet_fn *meet, void *hand, struct place at)
{
    struct thread *t = &the_block->thread[the_block->face.current];
    if (the_block->face.current / WARPGROUP >= the_block->launch->threads / WARPGROUP)
        refuse_number("is in no whole warpgroup: thread", the_block->face.current, at);
    t->meet = meet;
    t->hand = hand;
    wait_as(AT_WARPGROUP, at);
}

/* ---- registers since the last fence ---- */

static uint8_t *stack_of(uint32_t thread)
{
    return the_block->stacks + (size_t)thread * EMULATION_STACK_BYTES;
}

static uint8_t *saved_stack(uint32_t thread)
{
    return the_block->hopper->saved + (size_t)thread * EMULATION_STACK_BYTES;
}

static void meet_fence(struct thread *t)
{
    struct hopper *h = the_block->hopper;
    const uint32_t first = (uint32_t)(t - the_block->thread);
    for (uint32_t k = first; k < first + WARPGROUP; k++) {
        const uint32_t from = (uint32_t)((uint8_t *)the_block->thread[k].stack - stack_of(k));
        memcpy(saved_stack(k) + from, stack_of(k) + from, EMULATION_STACK_BYTES - from);
        h->saved_from[k] = from;
    }
}

/* Where the thread's array was saved, or null. */
static uint8_t *saved_place(uint32_t thread, const void *p, uint32_t bytes)
{
    const uint64_t from = (uint64_t)((const uint8_t *)p - stack_of(thread));
    if (from < the_block->hopper->saved_from[thread] || from > EMULATION_STACK_BYTES - bytes)
        return NULL;
    return saved_stack(thread) + from;
}

static bool has_changed(uint32_t thread, const void *p, uint32_t bytes)
{
    const uint8_t *saved = saved_place(thread, p, bytes);
    return !saved || memcmp(saved, p, bytes) != 0;
}

/* ---- arithmetic ---- */

static void read_operand(float (*ret)[MAX_N], uint64_t d, uint32_t n, bool transposed, bool f16)
{
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t k = 0; k < 16; k++) {
            uint16_t half;
            memcpy(&half, the_block->face.shared + operand_place(d, x, k, transposed), 2);
            ret[k][x] = float_from(half, f16);
        }
}

/* First operand from registers: each warp's 16 rows as struct frag_a. */
static void read_registers(float (*ret)[MAX_N], const struct flying_product *p)
{
    for (uint32_t t = 0; t < WARPGROUP; t++)
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t row = t / WARP * 16 + t % WARP / 4 + 8 * (k % 2),
                           column = 2 * (t % 4) + 8 * (k / 2);
            unpack(p->a[t][k], p->what.f16, &ret[column][row], &ret[column + 1][row]);
        }
}

static void multiply_operands(struct sums *s, const struct flying_product *p)
{
    float a[16][MAX_N], b[16][MAX_N];
    const uint32_t n = p->what.n;
    if (p->what.a)
        read_registers(a, p);
    else
        read_operand(a, p->what.a_at, 64, false, p->what.f16);
    read_operand(b, p->what.b_at, n, p->what.transposed, p->what.f16);
    if (!p->what.accumulate)
        memset(s->value, 0, sizeof s->value);
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t k = 0; k < 16; k++)
            for (uint32_t j = 0; j < n; j++)
                s->value[i][j] += a[k][i] * b[k][j];
}

/* ---- issue ---- */

/* The float of the sums that thread t of the warpgroup has at d[k]. */
static float *sum_at(struct sums *s, uint32_t t, uint32_t k)
{
    return &s->value[t / WARP * 16 + t % WARP / 4 + 8 * (k / 2 % 2)]
                    [8 * (k / 4) + 2 * (t % 4) + k % 2];
}

/* Takes the threads' arrays over: from here on they hold NaN. */
static const char *take_sums(struct sums *s, struct thread *t,
                             const struct emulation_product *p)
{
    const uint32_t first = (uint32_t)(t - the_block->thread);
    s->n = p->n;
    for (uint32_t k = 0; k < WARPGROUP; k++) {
        s->d[k] = ((const struct emulation_product *)t[k].hand)->d;
        if (has_changed(first + k, s->d[k], 2 * p->n))
            return "has changed sums of a product without wgmma_fence:";
        for (uint32_t i = 0; i < p->n / 2; i++)
            *sum_at(s, k, i) = s->d[k][i];
        memset(s->d[k], 0xff, 2 * p->n);
    }
    return NULL;
}

/* Finds the sums of a product in flight, or claims a slot; returns an error text. */
static const char *find_sums(struct warpgroup *g, struct thread *t, uint32_t *ret)
{
    const struct emulation_product *p = t->hand;
    uint32_t free = MAX_SUMS;
    for (uint32_t k = 0; k < MAX_SUMS; k++) {
        const struct sums *s = &g->sums[k];
        if (!s->n) {
            free = k;
        } else if (p->d < s->d[0] + s->n / 2 && s->d[0] < p->d + p->n / 2) {
            *ret = k;
            return s->d[0] == p->d && s->n == p->n ? NULL
                                                   : "changes the shape of sums in flight:";
        }
    }
    *ret = free;
    return free == MAX_SUMS ? "has too many sums in flight:" : take_sums(&g->sums[free], t, p);
}

static const char *take_registers(struct flying_product *p, struct thread *t)
{
    const uint32_t first = (uint32_t)(t - the_block->thread);
    for (uint32_t k = 0; k < WARPGROUP && p->what.a; k++) {
        p->a[k] = ((const struct emulation_product *)t[k].hand)->a;
        if (has_changed(first + k, p->a[k], sizeof p->a_was[k]))
            return "has changed a first operand of a product without wgmma_fence:";
        memcpy(p->a_was[k], p->a[k], sizeof p->a_was[k]);
    }
    return NULL;
}

static const char *check_product(struct thread *t)
{
    const struct emulation_product *p = t->hand;
    const bool wide = p->n == 32 || p->n == 64 || p->n == 128;
    if (!p->n || p->n > MAX_N || p->n % 16 || (!p->transposed && !wide))
        return "gives a product a wrong n:";
    for (uint32_t k = 1; k < WARPGROUP; k++) {
        const struct emulation_product *other = t[k].hand;
        if (other->n != p->n || other->accumulate != p->accumulate || other->a_at != p->a_at ||
            other->b_at != p->b_at)
            return "gives a product other operands than its warpgroup:";
    }
    const char *wrong = p->a ? NULL : check_descriptor(p->a_at);
    return wrong ? wrong : check_descriptor(p->b_at);
}

static void run_products(struct warpgroup *g, uint32_t end)
{
    for (uint32_t k = g->first; k != end; k++) {
        struct flying_product *p = &g->product[k % MAX_PRODUCTS];
        if (!p->done)
            multiply_operands(&g->sums[p->sums], p);
        p->done = true;
    }
}

static void meet_wgmma(struct thread *t)
{
    const struct hopper *h = the_block->hopper;
    struct warpgroup *g = warpgroup_of(t);
    struct flying_product *p = &g->product[g->end % MAX_PRODUCTS];
    const uint32_t first = (uint32_t)(t - the_block->thread);
    p->what = *(const struct emulation_product *)t->hand;
    p->group = g->group;
    p->done = false;
    p->at = t->at;
    the_block->face.current = first;
    const char *wrong = check_product(t);
    if (g->end - g->first == MAX_PRODUCTS)
        wrong = "has too many products in flight:";
    wrong = wrong ? wrong : take_registers(p, t);
    wrong = wrong ? wrong : find_sums(g, t, &p->sums);
    if (wrong)
        complain(wrong, p->what.b_at & FIELD, t->at);
    if (wrong || !begin_operands(first, &p->what, t->at))
        return;
    g->sums[p->sums].group = g->group;
    g->end++;
    the_block->launch->products += p->what.n / 2; /* 4 warps, 8 columns each */
    if (h->timing == EAGER || (h->timing == MIXED && draw(the_block, 2)))
        run_products(g, g->end);
}

static void wgmma(const struct emulation_product *p, struct place at)
{
    meet_warpgroup(meet_wgmma, (void *)p, at);
}

/* ---- groups and waits ---- */

static void meet_commit(struct thread *t)
{
    warpgroup_of(t)->group++;
}

/* Returns the product's registers and operands to the threads. */
static void end_product(struct thread *t, const struct flying_product *p)
{
    for (uint32_t k = 0; k < WARPGROUP && p->what.a; k++)
        if (memcmp(p->a[k], p->a_was[k], sizeof p->a_was[k]) != 0)
            complain("changes a first operand of a product in flight:", p->what.b_at & FIELD,
                     p->at);
    end_operands((uint32_t)(t - the_block->thread), &p->what);
}

static void give_sums(struct thread *t, struct sums *s)
{
    static const uint8_t poison[2 * MAX_N] = {[0 ... 2 * MAX_N - 1] = 0xff};
    const uint32_t first = (uint32_t)(t - the_block->thread);
    for (uint32_t k = 0; k < WARPGROUP; k++) {
        if (memcmp(s->d[k], poison, 2 * s->n) != 0)
            complain("changes sums of a product in flight:", 0, t->at);
        for (uint32_t i = 0; i < s->n / 2; i++)
            s->d[k][i] = *sum_at(s, k, i);
        uint8_t *saved = saved_place(first + k, s->d[k], 2 * s->n);
        if (saved)
            memcpy(saved, s->d[k], 2 * s->n);
    }
    s->n = 0;
}

static void meet_wait(struct thread *t)
{
    const uint32_t left = *(const uint32_t *)t->hand;
    struct warpgroup *g = warpgroup_of(t);
    uint32_t end = g->first;
    the_block->face.current = (uint32_t)(t - the_block->thread);
    while (end != g->end && g->product[end % MAX_PRODUCTS].group + left < g->group)
        end++;
    run_products(g, end);
    for (; g->first != end; g->first++)
        end_product(t, &g->product[g->first % MAX_PRODUCTS]);
    for (uint32_t k = 0; k < MAX_SUMS; k++)
        if (g->sums[k].n && g->sums[k].group + left < g->group)
            give_sums(t, &g->sums[k]);
}

static void wgmma_fence(struct place at)
{
    meet_warpgroup(meet_fence, NULL, at);
}

static void wgmma_commit(struct place at)
{
    meet_warpgroup(meet_commit, NULL, at);
}

static void wgmma_wait(uint32_t left, struct place at)
{
    meet_warpgroup(meet_wait, &left, at);
}

static void check_products(void)
{
    const struct hopper *h = the_block->hopper;
    const uint32_t k = the_block->face.current / WARPGROUP;
    if (k >= the_block->launch->threads / WARPGROUP)
        return;
    const struct warpgroup *g = &h->warpgroup[k];
    if (g->first != g->end)
        refuse("ends while a product is in flight, operand", 0,
               g->product[g->first % MAX_PRODUCTS].at);
}
