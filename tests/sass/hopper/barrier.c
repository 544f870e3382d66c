/* SPDX-License-Identifier: Apache-2.0 */
/* mbarriers (SYNCS), named barriers (BAR with a count), fences and setmaxnreg. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"

enum {
    COUNT_BITS = 0xfffff,
    MAX_BYTES = (1 << 20) - 1, /* that a phase may expect */
    GONE = 1,                  /* no address of an mbarrier */
};

/* ---- mbarriers ---- */

static struct mbarrier *find(struct hopper *h, uint32_t at)
{
    for (uint32_t k = 0; k < h->mbarriers; k++)
        if (h->mbarrier[k].at == at)
            return &h->mbarrier[k];
    return NULL;
}

/* The barrier, whose initialisation must be ordered before this access. */
static struct mbarrier *mbarrier_at(struct warp *w, uint32_t at)
{
    struct mbarrier *m = find(w->block->hopper, at);
    if (!m)
        fault(w, "no mbarrier was initialised at 0x%x", at);
    trail_read(w, at, 8);
    return m;
}

/* A phase ends once nothing is missing; what its arrivals released is seen by those that wait for it. */
static void check_phase(struct warp *w, struct mbarrier *m)
{
    if (m->bytes > MAX_BYTES || m->bytes < -MAX_BYTES)
        fault(w, "mbarrier at 0x%x expects %lld bytes", m->at, (long long)m->bytes);
    if (m->left || m->bytes)
        return;
    if (!m->seen_by_some)
        fault(w, "a phase of the mbarrier at 0x%x ends, and nobody waited for the one before",
              m->at);
    m->seen_by_some = false;
    clocks_join(&m->seen, &m->next);
    m->next = (struct clocks){0};
    m->phase ^= 1;
    m->left = m->count;
    memset(m->arrived, 0, sizeof m->arrived);
    w->block->hopper->events++;
}

static void arrive(struct warp *w, uint32_t at, uint32_t lane, uint32_t count)
{
    struct mbarrier *m = mbarrier_at(w, at);
    if (m->arrived[w->index] >> lane & 1)
        fault(w, "lane %u arrives twice in a phase of the mbarrier at 0x%x", lane, at);
    if (count > m->left)
        fault(w, "%u arrivals at the mbarrier at 0x%x, which lacks %u", count, at, m->left);
    m->arrived[w->index] |= 1u << lane;
    m->left -= count;
    clocks_release(w, &m->next);
    check_phase(w, m);
}

static void expect(struct warp *w, uint32_t at, uint32_t bytes)
{
    struct mbarrier *m = mbarrier_at(w, at);
    m->bytes += bytes;
}

uint32_t mbarrier_index(const struct warp *w, uint32_t at)
{
    struct hopper *h = w->block->hopper;
    const struct mbarrier *m = find(h, at);
    if (!m)
        fault(w, "no mbarrier was initialised at 0x%x", at);
    return (uint32_t)(m - h->mbarrier);
}

void mbarrier_complete(struct warp *w, uint32_t index, uint32_t bytes)
{
    struct hopper *h = w->block->hopper;
    struct mbarrier *m = &h->mbarrier[index];
    m->bytes -= bytes;
    m->next.at[ASYNC + index] = m->next.fenced[ASYNC + index] = h->moment;
    check_phase(w, m);
}

/* SYNCS.EXCH.64 URZ, [at], UR: both halves of the word hold 2^20 - count, at bits 1 and 43. */
void run_mbarrier_init(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct hopper *h = w->block->hopper;
    const uint32_t at = shared_addresses(w, &i->op[1])[first_lane(mask)];
    const uint64_t word = wide_of(w, &i->op[2])[first_lane(mask)];
    const uint32_t count = (COUNT_BITS + 1 - (uint32_t)(word >> 1)) & COUNT_BITS;
    struct mbarrier *m = find(h, at);
    if (!count || word != ((uint64_t)(COUNT_BITS + 1 - count) * (2 | UINT64_C(1) << 43)))
        fault(w, "the word of an mbarrier that is not known: 0x%llx", (unsigned long long)word);
    if (!m && h->mbarriers == MAX_MBARRIERS)
        fault(w, "too many mbarriers");
    m = m ? m : &h->mbarrier[h->mbarriers++];
    *m = (struct mbarrier){.at = at, .count = count, .left = count, .seen_by_some = true};
    shared_write(w, at, 8);
}

/* SYNCS.CCTL.IV [at] */
void run_mbarrier_invalidate(struct warp *w, const struct instruction *i, uint32_t mask)
{
    mbarrier_at(w, shared_addresses(w, &i->op[0])[first_lane(mask)])->at = GONE;
}

/* SYNCS.ARRIVE.TRANS64 RZ, [at], x: A1T0 arrives, ART0 arrives x times, RED.A0TR expects x bytes; without these it
   expects x bytes and arrives. */
void run_mbarrier_arrive(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[1])}, x = {word_of(w, &i->op[2])};
    const bool expects = !has(i, MODIFIER_A1T0) && !has(i, MODIFIER_ART0);
    FOR_LANES
    {
        if (!(mask >> l & 1))
            continue;
        if (expects)
            expect(w, at.lane[l], x.lane[l]);
        if (!has(i, MODIFIER_A0TR))
            arrive(w, at.lane[l], l, has(i, MODIFIER_ART0) ? x.lane[l] : 1);
    }
}

/* SYNCS.PHASECHK.TRANS64[.TRYWAIT] P, [at], parity << 31: P where that phase has ended. One that has not lets other
   warps run. */
void run_mbarrier_test(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[1])}, parity = {word_of(w, &i->op[2])};
    uint32_t ended = 0;
    FOR_LANES
    {
        if (!(mask >> l & 1))
            continue;
        struct mbarrier *m = mbarrier_at(w, at.lane[l]);
        if (m->phase == parity.lane[l] >> 31)
            continue;
        m->seen_by_some = true;
        ended |= 1u << l;
        clocks_acquire(w, &m->seen);
    }
    put_predicate(w, &i->op[0], ended, mask);
    w->yields = ended != mask;
}

/* ---- named barriers ---- */

/* Lets the barrier's warps go on. */
void named_open(struct block *b, uint32_t id)
{
    struct named_barrier *n = &b->hopper->named[id];
    for (uint32_t k = 0; k < b->warps; k++) {
        struct warp *w = &b->warp[k];
        if (w->paths && w->path[0].waits == CONTROL_NAMED_SYNC && w->path[0].barrier == id) {
            w->path[0].waits = 0;
            clocks_acquire(w, &n->next);
        }
    }
    *n = (struct named_barrier){0};
    b->hopper->events++;
}

bool named_arrive(struct warp *w, uint32_t id, uint32_t threads)
{
    struct named_barrier *n;
    if (id >= NAMED_BARRIERS || !threads || threads % 32)
        fault(w, "barrier %u of %u threads is not known", id, threads);
    n = &w->block->hopper->named[id];
    if (n->expected && n->expected != threads)
        fault(w, "barrier %u is of %u threads here and of %u elsewhere", id, threads,
              n->expected);
    n->expected = threads;
    n->arrived += 32;
    clocks_release(w, &n->next);
    return n->arrived == threads;
}

/* BAR.ARV id, threads */
void run_named_arrive(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t lane = first_lane(mask), id = word_of(w, &i->op[0])[lane];
    if (mask != w->live)
        fault(w, "some lanes of the warp are at a barrier that the others are not at");
    if (named_arrive(w, id, word_of(w, &i->op[1])[lane]))
        named_open(w->block, id);
}

/* ---- fences, registers ---- */

void run_async_fence(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)i, (void)mask;
    if (w->block->hopper)
        clocks_fence(w);
}

/* USETMAXREG.DEALLOC n */
void run_registers_down(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct hopper *h = w->block->hopper;
    const uint32_t n = i->op[0].value;
    (void)mask;
    if (n > hopper_of(w)->registers)
        fault(w, "setmaxnreg.dec from %u to %u registers", hopper_of(w)->registers, n);
    h->pool += hopper_of(w)->registers - n;
    hopper_of(w)->registers = n;
    h->events++;
}

/* USETMAXREG.TRY_ALLOC UP, n */
void run_registers_up(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct hopper *h = w->block->hopper;
    const uint32_t n = i->op[1].value, has_now = hopper_of(w)->registers;
    const bool there = n <= has_now + h->pool;
    if (n < has_now)
        fault(w, "setmaxnreg.inc from %u to %u registers", has_now, n);
    if (there) {
        h->pool -= n - has_now;
        hopper_of(w)->registers = n;
    }
    put_predicate(w, &i->op[0], there ? ALL_LANES : 0, mask);
    w->yields = !there;
}

/* ELECT P, UR, p: the first lane of those with p. */
void run_elect(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t of = predicate_of(w, &i->op[2]) & mask;
    put_predicate(w, &i->op[0], of & -of, mask);
    put_word(w, &i->op[1], splat(of ? first_lane(of) : 0), mask);
}
