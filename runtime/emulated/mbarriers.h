/* SPDX-License-Identifier: Apache-2.0 */
/* mbarriers and named barriers: they count arrivals, mbarriers also bytes, and order threads. */
#pragma once
#include "words.h"

static bool set_bit(uint64_t *bits, uint32_t k)
{
    const bool was = bits[k / 64] >> (k % 64) & 1;
    bits[k / 64] |= (uint64_t)1 << (k % 64);
    return was;
}

/* ---- mbarriers ---- */

static void mbarrier_init(uint32_t at, uint32_t count, struct place place)
{
    struct hopper *h = the_block->hopper;
    struct word_state *w = access_words(at, 8, EMULATION_WRITE, place);
    if (!count || count >= 1u << 20)
        refuse("initialises an mbarrier with a wrong count", at, place);
    if (w->flags || w[1].flags)
        refuse("initialises an mbarrier where something else is", at, place);
    if (h->mbarriers == MAX_MBARRIERS)
        refuse("initialises too many mbarriers", at, place);
    struct mbarrier *m = &h->mbarrier[h->mbarriers];
    int32_t *arriving = m->arriving, *done = m->done;
    *m = (struct mbarrier){.offset = at, .count = count, .missing = count, .at = place};
    m->arriving = memset(arriving, 0, h->length * sizeof *arriving);
    m->done = memset(done, 0, h->length * sizeof *done);
    m->first = m->last = NOWHERE;
    m->initialiser = the_block->face.current;
    m->initialised = my_clock()[m->initialiser];
    w[0].flags = w[1].flags = WORD_MBARRIER;
    w[0].writer = w[1].writer = (uint16_t)h->mbarriers++;
}

static void mbarrier_init_fence(void)
{
    struct hopper *h = the_block->hopper;
    for (uint32_t k = 0; k < h->mbarriers; k++)
        h->mbarrier[k].fenced |= h->mbarrier[k].initialiser == the_block->face.current;
}

/* The mbarrier there, whose initialisation the running thread is ordered after. */
static struct mbarrier *mbarrier_at(uint32_t at, struct place place)
{
    const char *wrong = check_place(at, 8, 8);
    if (!wrong && !(words_at(at)->flags & WORD_MBARRIER))
        wrong = "uses an mbarrier that nobody initialised";
    if (wrong)
        refuse(wrong, at, place);
    struct mbarrier *m = &the_block->hopper->mbarrier[words_at(at)->writer];
    if (m->initialised > my_clock()[m->initialiser])
        refuse("uses an mbarrier without a barrier after its initialisation", at, place);
    return m;
}

/* Ends the phase if all have arrived and all bytes have landed. */
static void try_phase(struct mbarrier *m)
{
    struct hopper *h = the_block->hopper;
    if (m->missing || m->landed != m->expected)
        return;
    m->phase++;
    m->arriving[h->threads + (m - h->mbarrier)] = (int32_t)m->phase;
    clock_join(m->done, m->arriving, h->length);
    memset(m->arriving, 0, h->length * sizeof *m->arriving);
    memset(m->arrived, 0, sizeof m->arrived);
    m->missing = m->count;
    m->issued = m->expected = m->landed = 0;
}

/* After an arrival or the issue of a copy. */
static void check_bytes(struct mbarrier *m, struct place place)
{
    if (!m->missing && m->issued > m->expected)
        refuse("lets copies bring more bytes than the phase expects to an mbarrier", m->offset,
               place);
    try_phase(m);
}

static void arrive(struct mbarrier *m, uint32_t bytes, struct place place)
{
    if (!m->missing)
        refuse("arrives beyond the count of an mbarrier", m->offset, place);
    if (set_bit(m->arrived, the_block->face.current))
        refuse("arrives twice in one phase of an mbarrier", m->offset, place);
    m->missing--;
    m->expected += bytes;
    release(the_block->hopper, the_block->face.current, m->arriving);
    check_bytes(m, place);
}

static void mbarrier_arrive(uint32_t at, struct place place)
{
    arrive(mbarrier_at(at, place), 0, place);
}

static void mbarrier_expect(uint32_t at, uint32_t bytes, struct place place)
{
    struct mbarrier *m = mbarrier_at(at, place);
    if (bytes >= 1u << 20)
        refuse("expects too many bytes of an mbarrier", at, place);
    arrive(m, bytes, place);
}

static bool phase_has_ended(const struct mbarrier *m, uint32_t parity)
{
    return (m->phase & 1) != parity;
}

static void mbarrier_wait(uint32_t at, uint32_t parity, struct place place)
{
    struct hopper *h = the_block->hopper;
    struct mbarrier *m = mbarrier_at(at, place);
    struct thread *t = &the_block->thread[the_block->face.current];
    if (parity > 1)
        refuse("waits for a parity that is neither 0 nor 1 of an mbarrier", at, place);
    t->on = (uint32_t)(m - h->mbarrier);
    t->parity = parity;
    while (!phase_has_ended(m, parity))
        wait_as(AT_MBARRIER, place);
    m->seen = m->phase;
    acquire(h, the_block->face.current, m->done);
}

/* ---- named barriers ---- */

static struct named_barrier *arrive_named(uint32_t id, uint32_t threads, struct place place)
{
    struct named_barrier *n = &the_block->hopper->named[id % NAMED_BARRIERS];
    if (!id || id >= NAMED_BARRIERS)
        refuse_number("uses a named barrier that is not one of 1 to 15:", id, place);
    if (!threads || threads % WARP || threads > the_block->launch->threads)
        refuse_number("gives a named barrier a wrong number of threads:", threads, place);
    if (n->arrived && n->threads != threads)
        refuse_number("gives a named barrier another number of threads than others:", threads,
                      place);
    if (set_bit(n->by, the_block->face.current))
        refuse_number("arrives twice at named barrier", id, place);
    n->threads = threads;
    n->arrived++;
    release(the_block->hopper, the_block->face.current, n->arriving);
    return n;
}

/* All have come: those that wait go on. */
static void end_named(struct named_barrier *n)
{
    struct block *b = the_block;
    const uint32_t id = (uint32_t)(n - b->hopper->named);
    for (uint32_t k = 0; k < b->launch->threads; k++)
        if (b->thread[k].state == AT_NAMED && b->thread[k].on == id) {
            acquire(b->hopper, k, n->arriving);
            b->thread[k].state = READY;
        }
    memset(n->arriving, 0, b->hopper->length * sizeof *n->arriving);
    memset(n->by, 0, sizeof n->by);
    n->arrived = 0;
}

static void group_arrive(uint32_t id, uint32_t threads, struct place place)
{
    struct named_barrier *n = arrive_named(id, threads, place);
    if (n->arrived == threads)
        end_named(n);
}

static void group_sync(uint32_t id, uint32_t threads, struct place place)
{
    struct named_barrier *n = arrive_named(id, threads, place);
    struct thread *t = &the_block->thread[the_block->face.current];
    if (n->arrived == threads) {
        acquire(the_block->hopper, the_block->face.current, n->arriving);
        end_named(n);
        return;
    }
    t->on = id;
    wait_as(AT_NAMED, place);
}
