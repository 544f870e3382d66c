/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks. A thread's clock says of every thread, and of every mbarrier's copies, how much of its past the thread is
   ordered after. An access is a race if its thread's clock lacks the access before it, whatever order threads run in.

   Entries: [t] thread t, which counts what it released; [threads + m] phases of mbarrier m whose bytes have landed;
   [fence_entry(t)] the part of thread t's past that is before its last async_fence(); [read_entry(t)] thread t's reads. A
   collective of a warp orders reads of its lanes before what they do next (lanes load together), but not their writes. */
#pragma once
#include "hopper.h"

enum { MAX_CLOCK = 3 * EMULATION_MAX_THREADS + MAX_MBARRIERS + 16 };

static uint32_t clock_length(uint32_t threads)
{
    return (3 * threads + MAX_MBARRIERS + 15) / 16 * 16;
}

static inline uint32_t fence_entry(const struct hopper *h, uint32_t thread)
{
    return h->threads + MAX_MBARRIERS + thread;
}

static inline uint32_t read_entry(const struct hopper *h, uint32_t thread)
{
    return 2 * h->threads + MAX_MBARRIERS + thread;
}

static inline int32_t *clock_of(const struct hopper *h, uint32_t thread)
{
    return h->clock + (size_t)thread * h->length;
}

static inline int32_t *my_clock(void)
{
    return clock_of(the_block->hopper, the_block->face.current);
}

static void clock_join(int32_t *to, const int32_t *from, uint32_t length)
{
    for (uint32_t k = 0; k < length; k++)
        to[k] = from[k] > to[k] ? from[k] : to[k];
}

/* Latest clock that is before both. */
static void clock_meet(int32_t *to, const int32_t *from, uint32_t length)
{
    for (uint32_t k = 0; k < length; k++)
        to[k] = from[k] < to[k] ? from[k] : to[k];
}

/* Others who acquire `to` are ordered after all that the thread did so far. */
static void release(struct hopper *h, uint32_t thread, int32_t *to)
{
    int32_t *mine = clock_of(h, thread);
    mine[read_entry(h, thread)] = mine[thread];
    clock_join(to, mine, h->length);
    mine[thread]++;
}

static void acquire(struct hopper *h, uint32_t thread, const int32_t *from)
{
    clock_join(clock_of(h, thread), from, h->length);
}

/* Threads first .. first + count - 1 meet at a barrier. */
static void order_threads(struct hopper *h, uint32_t first, uint32_t count)
{
    int32_t all[MAX_CLOCK];
    memset(all, 0, h->length * sizeof *all);
    for (uint32_t t = first; t < first + count; t++)
        release(h, t, all);
    for (uint32_t t = first; t < first + count; t++)
        acquire(h, t, all);
}

/* The lanes of a warp came together: each is ordered after the others' reads. */
static void order_reads(struct hopper *h, uint32_t first)
{
    int32_t reads[WARP];
    for (uint32_t k = 0; k < WARP; k++)
        reads[k] = clock_of(h, first + k)[first + k]++;
    for (uint32_t k = 0; k < WARP; k++)
        clock_join(clock_of(h, first + k) + read_entry(h, first), reads, WARP);
}

static void async_fence(void)
{
    struct hopper *h = the_block->hopper;
    int32_t *mine = my_clock();
    mine[fence_entry(h, the_block->face.current)] = mine[the_block->face.current]++;
}
