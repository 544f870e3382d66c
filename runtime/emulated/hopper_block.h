/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a block into one of sm_90 (at its first smem_base()), and schedules its threads. */
#pragma once
#include "global.h"
#include "wgmma.h"

/* ---- memory ---- */

static size_t round_64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Bytes of each part of the state, in the order in which hopper_lay_out() hands them out. */
enum hopper_part { STATE, CLOCKS, ARRIVALS, WORDS, SETS, WARPGROUPS, SAVED, PARTS };

static size_t part_bytes(const struct emulation_launch *l, enum hopper_part part)
{
    const size_t clock = clock_length(l->threads) * sizeof(int32_t);
    const size_t bytes[PARTS] = {
        [STATE] = sizeof(struct hopper),
        [CLOCKS] = l->threads * clock,
        [ARRIVALS] = (2 * MAX_MBARRIERS + NAMED_BARRIERS) * clock,
        [WORDS] = ((size_t)l->shared_bytes + 3) / 4 * sizeof(struct word_state),
        [SETS] = MAX_SETS * clock,
        [WARPGROUPS] = l->threads / WARPGROUP * sizeof(struct warpgroup),
        [SAVED] = (size_t)l->threads * EMULATION_STACK_BYTES,
    };
    return round_64(bytes[part]);
}

/* Pages that a block does not touch cost nothing: most of the sets, and all where it has no use for sm_90. */
static size_t hopper_bytes(const struct emulation_launch *l)
{
    size_t sum = 0;
    for (enum hopper_part k = 0; k < PARTS; k++)
        sum += part_bytes(l, k);
    return sum;
}

static void init_barriers(struct hopper *h, int32_t *clocks)
{
    for (uint32_t k = 0; k < MAX_MBARRIERS; k++, clocks += 2 * h->length) {
        h->mbarrier[k].arriving = clocks;
        h->mbarrier[k].done = clocks + h->length;
    }
    for (uint32_t k = 0; k < NAMED_BARRIERS; k++, clocks += h->length)
        h->named[k].arriving = memset(clocks, 0, h->length * sizeof *clocks);
}

static void init_words(struct hopper *h, uint32_t shared_bytes)
{
    memset(h->words, 0, ((size_t)shared_bytes + 3) / 4 * sizeof *h->words);
    for (uint32_t k = 0; k < shared_bytes / 4; k++)
        h->words[k].reader = NO_READER;
}

static void init_state(struct hopper *h, const struct emulation_launch *l)
{
    memset(h, 0, offsetof(struct hopper, load));
    h->threads = l->threads;
    h->length = clock_length(l->threads);
    h->timing = l->seed % TIMINGS;
    sets_init(h);
    for (uint32_t k = 0; k < MAX_LOADS; k++)
        h->load[k].next = k + 1 < MAX_LOADS ? k + 1 : NOWHERE;
}

static void init_threads(struct hopper *h)
{
    memset(h->clock, 0, (size_t)h->threads * h->length * sizeof *h->clock);
    for (uint32_t k = 0; k < h->threads; k++) {
        clock_of(h, k)[k] = 1;
        h->saved_from[k] = EMULATION_STACK_BYTES;
    }
    for (uint32_t k = 0; k < h->threads / WARPGROUP; k++) {
        struct warpgroup *g = &h->warpgroup[k];
        memset(g, 0, offsetof(struct warpgroup, sums));
        for (uint32_t s = 0; s < MAX_SUMS; s++)
            g->sums[s].n = 0;
    }
}

static struct hopper *hopper_lay_out(uint8_t *memory, const struct emulation_launch *l)
{
    uint8_t *part[PARTS];
    for (enum hopper_part k = 0; k < PARTS; memory += part_bytes(l, k), k++)
        part[k] = memory;
    struct hopper *h = (struct hopper *)part[STATE];
    init_state(h, l);
    h->clock = (int32_t *)part[CLOCKS];
    h->words = (struct word_state *)part[WORDS];
    h->set = (int32_t *)part[SETS];
    h->warpgroup = (struct warpgroup *)part[WARPGROUPS];
    h->saved = part[SAVED];
    init_barriers(h, (int32_t *)part[ARRIVALS]);
    init_words(h, l->shared_bytes);
    init_threads(h);
    return h;
}

/* ---- the machine ---- */

static uint32_t smem_base(struct place place)
{
    struct block *b = the_block;
    if (b->launch->shared_bytes < SMEM_SLACK)
        refuse_number("needs 1024 bytes of shared memory and has", b->launch->shared_bytes,
                      place);
    if (!b->hopper && b->epoch > 1)
        refuse_number("calls smem_base() after a barrier: number", b->epoch - 1, place);
    if (!b->hopper)
        b->hopper = hopper_lay_out(b->hopper_memory, b->launch);
    return SMEM_SLACK;
}

static void load4(uint32_t *r, uint32_t row, struct place place)
{
    struct matrix_load load = {r, (const uint16_t *)(the_block->face.shared + row)};
    read_words(row, 16, EMULATION_MATRIX, place);
    meet_warp(meet_load, &load, place);
}

struct matrix_store {
    const uint32_t *from;
    uint8_t *row;
};

static void meet_store(struct thread *t)
{
    for (uint32_t lane = 0; lane < WARP; lane++)
        for (uint32_t m = 0; m < 4; m++)
            memcpy(((const struct matrix_store *)t[8 * m + lane / 4].hand)->row +
                       4 * (lane % 4),
                   &((const struct matrix_store *)t[lane].hand)->from[m], 4);
}

static void store4(uint32_t row, const uint32_t *x, struct place place)
{
    struct matrix_store store = {x, the_block->face.shared + row};
    write_words(row, 16, place);
    meet_warp(meet_store, &store, place);
}

static void meet_registers(struct thread *t)
{
    (void)t;
}

static void set_registers(uint32_t n, struct place place)
{
    if (n < 24 || n > 256 || n % 8)
        refuse_number("asks for a wrong number of registers:", n, place);
    meet_warp(meet_registers, NULL, place);
}

/* ---- the scheduler's side ---- */

static bool release_warpgroup(struct block *b, uint32_t first)
{
    struct thread *t = &b->thread[first];
    for (uint32_t k = 0; k < WARPGROUP; k++)
        if (t[k].state != AT_WARPGROUP)
            return false;
    for (uint32_t k = 0; k < WARPGROUP; k++)
        if (t[k].meet != t->meet || !same_place(t, t + k)) {
            report(b, "a warpgroup diverged", first, first + k);
            return false;
        }
    t->meet(t);
    for (uint32_t k = first; k < first + WARPGROUP; k += WARP) {
        order_reads(b->hopper, k);
        count_warp(b, k / WARP);
    }
    for (uint32_t k = 0; k < WARPGROUP; k++)
        t[k].state = READY;
    return true;
}

/* Threads whose phase has ended, and those that a named barrier let go. */
static bool release_waiting(struct block *b)
{
    bool moved = false;
    for (uint32_t k = 0; k < b->launch->threads; k++) {
        struct thread *t = &b->thread[k];
        if (t->state == AT_MBARRIER && phase_has_ended(&b->hopper->mbarrier[t->on], t->parity))
            t->state = READY;
        moved |= t->state == READY;
    }
    return moved;
}

/* Lands the loads that one thread waits for; which thread is drawn. */
static bool land_awaited(struct block *b)
{
    const uint32_t threads = b->launch->threads, skip = draw(b, threads);
    for (uint32_t k = 0; k < threads; k++) {
        const struct thread *t = &b->thread[(k + skip) % threads];
        struct mbarrier *m = &b->hopper->mbarrier[t->on % MAX_MBARRIERS];
        if (t->state == AT_MBARRIER && m->first != NOWHERE) {
            land_all(m);
            return true;
        }
    }
    return false;
}

/* Lands some loads while others run. */
static void land_some(struct hopper *h)
{
    for (uint32_t k = 0; k < h->mbarriers; k++)
        if (h->mbarrier[k].first != NOWHERE && !draw(the_block, 4)) {
            land_first(&h->mbarrier[k]);
            try_phase(&h->mbarrier[k]);
        }
}

static bool release_hopper(struct block *b, bool moved)
{
    if (b->hopper->timing == MIXED)
        land_some(b->hopper);
    for (uint32_t k = 0; k + WARPGROUP <= b->launch->threads && !b->launch->error[0];
         k += WARPGROUP)
        moved |= release_warpgroup(b, k);
    moved |= release_waiting(b);
    return b->launch->error[0] || moved || (land_awaited(b) && (release_waiting(b), true));
}

static void describe_hopper(const struct block *b, const struct thread *t, char *out,
                            size_t bytes)
{
    const struct mbarrier *m = &b->hopper->mbarrier[t->on % MAX_MBARRIERS];
    const struct named_barrier *n = &b->hopper->named[t->on % NAMED_BARRIERS];
    if (t->state == AT_NAMED)
        snprintf(out, bytes, "waits at named barrier %u (%u of %u threads)", t->on, n->arrived,
                 n->threads);
    else
        snprintf(out, bytes,
                 "waits for parity %u of mbarrier at byte %u (%u arrivals, %lld bytes missing)",
                 t->parity, m->offset, m->missing, (long long)m->expected - m->landed);
}

/* All threads of the block passed a barrier. */
static void order_block(struct block *b)
{
    if (b->hopper)
        order_threads(b->hopper, 0, b->hopper->threads);
}

static void order_warp(struct block *b, uint32_t first)
{
    if (b->hopper)
        order_threads(b->hopper, first, WARP);
}

static void order_warp_reads(struct block *b, uint32_t first)
{
    if (b->hopper)
        order_reads(b->hopper, first);
}

static void finish_hopper(void)
{
    if (!the_block->hopper)
        return;
    check_stores();
    check_products();
}

static void finish_hopper_block(void)
{
    if (the_block->hopper)
        check_loads();
}
