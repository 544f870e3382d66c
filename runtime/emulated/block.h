/* SPDX-License-Identifier: Apache-2.0 */
/* A block of threads as fibers, and what makes them wait: barriers and warp collectives.
   Threads run one after the other in an order drawn anew each time, each until it has to wait;
   then whoever is complete goes on. Where nobody can, the kernel has diverged, and the error
   says who waits where. */
#pragma once
#include "fibers.h"
#include "launch.h"
#include "machine.h"
#include <stdbool.h>
#include <stdio.h>

enum { WARP = 32 };
enum thread_state {
    READY,
    AT_BARRIER,
    AT_COLLECTIVE,
    AT_WARPGROUP,
    AT_NAMED,
    AT_MBARRIER,
    ENDED
};

struct thread;

/* Collective operation of a warp, run when all its lanes have arrived: t[0] .. t[WARP - 1]. */
typedef void meet_fn(struct thread *t);

struct thread {
    void *stack; /* where it goes on */
    enum thread_state state;
    struct place at;     /* where it waits */
    meet_fn *meet;       /* collective: what for ... */
    void *hand;          /* ... and the lane's part in it, on its own stack */
    uint32_t on, parity; /* named barrier; mbarrier and parity */
};

struct shadow; /* shared.h */
struct copies; /* copies.h */
struct lately; /* banks.h */
struct latest; /* global.h */
struct hopper; /* hopper.h */
struct mbarrier;

struct block {
    struct emulation_face face;
    struct emulation_launch *launch;
    void *scheduler; /* the caller's stack */
    emulation_enter_fn *enter;
    void *entry;
    const void *args;
    uint32_t epoch; /* barriers passed, counted from 1 */
    uint64_t random;
    uint32_t warp_epoch[EMULATION_MAX_THREADS / WARP]; /* warp barriers since the last one */
    struct shadow *shadow;
    struct copies *copies; /* of each thread */
    struct lately *lately; /* of each warp, or null */
    struct latest *latest;
    struct hopper *hopper; /* null: uses nothing of sm_90 */
    uint8_t *hopper_memory, *stacks;
    uint16_t order[EMULATION_MAX_THREADS];
    uint32_t next; /* place in the order: who runs when the running thread waits */
    struct thread thread[EMULATION_MAX_THREADS];
};

/* The block that this thread of the system works on. */
static __thread struct block *the_block __attribute__((tls_model("initial-exec")));

/* ---- a thread's side ---- */

/* The stack of the next thread in the order that is ready, which becomes the running one; null after the last. */
static void *next_ready(struct block *b)
{
    while (b->next < b->launch->threads) {
        b->face.current = b->order[b->next++];
        const struct thread *t = &b->thread[b->face.current];
        if (t->state == READY)
            return t->stack;
    }
    return NULL;
}

static void wait_as(enum thread_state state, struct place at)
{
    struct block *b = the_block;
    struct thread *t = &b->thread[b->face.current];
    t->state = state;
    t->at = at;
    void *next = next_ready(b);
    fiber_switch(&t->stack, next ? next : b->scheduler);
}

/* Stops the block: its threads never run again. The first error stays. */
static void fail_block(struct block *b)
{
    fiber_switch(&b->thread[b->face.current].stack, b->scheduler);
}

static void barrier(struct place at)
{
    wait_as(AT_BARRIER, at);
}

/* Waits for the warp, all of which come with the same function. */
static void meet_warp(meet_fn *meet, void *hand, struct place at)
{
    struct thread *t = &the_block->thread[the_block->face.current];
    t->meet = meet;
    t->hand = hand;
    wait_as(AT_COLLECTIVE, at);
}

static void finish_copies(void);                        /* copies.h */
static void count_warp(struct block *b, uint32_t warp); /* banks.h */

/* hopper_block.h */
static void finish_hopper(void);
static void finish_hopper_block(void);
static void order_block(struct block *b);
static void order_warp_reads(struct block *b, uint32_t first);
static bool release_hopper(struct block *b, bool moved);
static void describe_hopper(const struct block *b, const struct thread *t, char *out,
                            size_t bytes);

static void thread_body(void)
{
    struct block *b = the_block;
    b->enter(&b->face, b->entry, b->args);
    finish_copies();
    finish_hopper();
    wait_as(ENDED, (struct place){"", 0});
}

/* ---- the scheduler's side ---- */

static uint32_t draw(struct block *b, uint32_t below)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return (uint32_t)((b->random >> 32) * below >> 32);
}

static void shuffle_order(struct block *b)
{
    for (uint32_t k = b->launch->threads; b->launch->seed && k > 1; k--) {
        uint32_t with = draw(b, k);
        uint16_t other = b->order[with];
        b->order[with] = b->order[k - 1];
        b->order[k - 1] = other;
    }
}

static void run_ready(struct block *b)
{
    shuffle_order(b);
    b->next = 0;
    void *first = next_ready(b);
    if (first)
        fiber_switch(&b->scheduler, first);
}

static void describe(const struct block *b, uint32_t index, char *out, size_t bytes)
{
    static const char *const doing[] = {"runs", "waits at the barrier", "waits for its warp",
                                        "waits for its warpgroup"};
    const struct thread *t = &b->thread[index];
    char waits[100] = "";
    if (t->state == AT_NAMED || t->state == AT_MBARRIER)
        describe_hopper(b, t, waits, sizeof waits);
    if (t->state == ENDED)
        snprintf(out, bytes, "thread %u has ended", index);
    else
        snprintf(out, bytes, "thread %u %s in %s (line %d)", index,
                 waits[0] ? waits : doing[t->state], t->at.function, t->at.line);
}

static void report(struct block *b, const char *what, uint32_t one, uint32_t other)
{
    char first[150], second[150];
    describe(b, one, first, sizeof first);
    describe(b, other, second, sizeof second);
    snprintf(b->launch->error, sizeof b->launch->error, "block %u: %s: %s, %s",
             b->launch->block, what, first, second);
}

static bool same_place(const struct thread *a, const struct thread *b)
{
    return a->state == b->state && a->at.line == b->at.line &&
           (a->at.function == b->at.function || !strcmp(a->at.function, b->at.function));
}

/* Lanes of one warp all wait for each other: they do what they met for. */
static bool release_warp(struct block *b, uint32_t first)
{
    struct thread *t = &b->thread[first];
    for (uint32_t lane = 0; lane < WARP; lane++)
        if (t[lane].state != AT_COLLECTIVE)
            return false;
    for (uint32_t lane = 0; lane < WARP; lane++) {
        if (t[lane].meet != t->meet || !same_place(t, t + lane)) {
            report(b, "a warp diverged", first, first + lane);
            return false;
        }
    }
    t->meet(t);
    order_warp_reads(b, first);
    count_warp(b, first / WARP);
    for (uint32_t lane = 0; lane < WARP; lane++)
        t[lane].state = READY;
    return true;
}

/* All threads wait at one barrier. One that has ended will never come: that is an error too. */
static bool release_barrier(struct block *b)
{
    for (uint32_t k = 0; k < b->launch->threads; k++)
        if (b->thread[k].state != AT_BARRIER)
            return false;
    for (uint32_t k = 1; k < b->launch->threads; k++)
        if (!same_place(b->thread, &b->thread[k])) {
            report(b, "threads are at different barriers", 0, k);
            return false;
        }
    for (uint32_t k = 0; k < b->launch->threads; k++)
        b->thread[k].state = READY;
    for (uint32_t k = 0; k < b->launch->threads; k += WARP)
        count_warp(b, k / WARP);
    b->epoch++;
    order_block(b);
    memset(b->warp_epoch, 0, sizeof b->warp_epoch);
    return true;
}

static bool all_ended(const struct block *b)
{
    for (uint32_t k = 0; k < b->launch->threads; k++)
        if (b->thread[k].state != ENDED)
            return false;
    return true;
}

/* First thread from `from` on that is elsewhere than `than` (null: anywhere) and has not ended; or `threads`. */
static uint32_t find_waiting(const struct block *b, uint32_t from, const struct thread *than)
{
    uint32_t k = from;
    while (k < b->launch->threads &&
           (b->thread[k].state == ENDED || (than && same_place(than, &b->thread[k]))))
        k++;
    return k;
}

/* Nobody can go on: names the first thread that waits and one that is elsewhere, or has ended. */
static void report_stuck(struct block *b)
{
    const uint32_t threads = b->launch->threads, first = find_waiting(b, 0, NULL);
    uint32_t other = find_waiting(b, first, &b->thread[first]);
    if (other == threads)
        for (other = 0; other + 1 < threads && b->thread[other].state != ENDED;)
            other++;
    report(b, "threads wait for each other", first, other);
}

static int schedule(struct block *b)
{
    while (!all_ended(b)) {
        run_ready(b);
        bool moved = false;
        for (uint32_t k = 0; k < b->launch->threads && !b->launch->error[0]; k += WARP)
            moved |= release_warp(b, k);
        if (b->hopper && !b->launch->error[0])
            moved = release_hopper(b, moved);
        if (!moved && !b->launch->error[0] && !all_ended(b) && !release_barrier(b) &&
            !b->launch->error[0])
            report_stuck(b);
        if (b->launch->error[0])
            return -1;
    }
    for (uint32_t k = 0; k < b->launch->threads; k += WARP)
        count_warp(b, k / WARP);
    finish_hopper_block();
    return b->launch->error[0] ? -1 : 0;
}
