/* SPDX-License-Identifier: Apache-2.0 */
/* Sectors and wavefronts, counted from addresses. */
#include "tests/sass/cost/cost.h"
#include "tests/sass/cost/latency.h"
#include "tests/sass/machine.h"
#include "tests/sass/memory.h"

/* A set of up to two values a lane. */
struct distinct {
    uint64_t value[64];
    uint32_t count;
};

static bool add(struct distinct *d, uint64_t value)
{
    for (uint32_t k = d->count; k-- > 0;)
        if (d->value[k] == value)
            return false;
    d->value[d->count++] = value;
    return true;
}

static uint32_t index_of(const struct warp *w, const struct instruction *i)
{
    return (uint32_t)(i - w->block->program->code);
}

/* Whether the launch touches the sector for the first time; notes that. */
static bool is_new(const struct warp *w, uint64_t sector, bool stores)
{
    struct allocation *a = memory_find(w->block->memory, sector * SECTOR, 1);
    if (!a || !a->touched)
        return false;
    uint8_t *at = &a->touched[sector - (uint64_t)(uintptr_t)a->bytes / SECTOR];
    const uint8_t bit = stores ? TOUCHED_WRITTEN : TOUCHED_READ;
    const bool first = !(*at & bit) && (stores || !(*at & TOUCHED_WRITTEN));
    *at |= bit;
    return first;
}

/* The number of sectors new to the launch. */
static uint32_t touch(struct warp *w, const struct distinct *d, bool stores)
{
    uint32_t first = 0;
    for (uint32_t k = 0; k < d->count; k++)
        first += is_new(w, d->value[k], stores);
    *(stores ? &w->block->cost->stored : &w->block->cost->fetched) += first;
    return first;
}

/* Leaves those that L1 lacks, which then has them. */
static void drop_hits(struct cost *c, struct distinct *d)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < d->count; k++) {
        uint64_t *at = &c->l1[d->value[k] % L1_SECTORS];
        if (*at != d->value[k])
            d->value[kept++] = *at = d->value[k];
    }
    d->count = kept;
}

void cost_global(struct warp *w, const struct instruction *i, const uint64_t at[32],
                 uint32_t mask, bool stores)
{
    struct cost *c = w->block->cost;
    struct distinct d = {.count = 0};
    if (!c)
        return;
    FOR_LANES if (mask >> l & 1) add(&d, at[l] / SECTOR);
    c->wavefronts[index_of(w, i)] += (d.count * SECTOR + WAVEFRONT - 1) / WAVEFRONT;
    if (!stores)
        drop_hits(c, &d);
    c->sectors[index_of(w, i)] += d.count;
    const uint32_t first = touch(w, &d, stores);
    if (!stores && i->writes < COST_BOARDS) {
        struct warp_clock *t = &w->clock;
        const uint64_t ready = t->issued + (first     ? LATENCY_DRAM
                                            : d.count ? LATENCY_L2
                                                      : LATENCY_L1);
        t->ready[i->writes] = t->ready[i->writes] > ready ? t->ready[i->writes] : ready;
        t->far |= 1u << i->writes;
    }
}

/* Wavefronts of lanes that go together: the most different words of a bank. */
static uint32_t conflicts(const uint32_t at[32], uint32_t lanes_of_it, uint32_t bytes)
{
    uint32_t bank[BANKS_OF_SHARED] = {0}, most = 1;
    struct distinct words = {.count = 0};
    FOR_LANES
    {
        for (uint32_t k = 0; lanes_of_it >> l & 1 && k < (bytes + 3) / 4; k++) {
            const uint32_t word = at[l] / 4 + k;
            if (add(&words, word) && ++bank[word % BANKS_OF_SHARED] > most)
                most = bank[word % BANKS_OF_SHARED];
        }
    }
    return most;
}

/* 32 lanes of 4 bytes, 16 of 8 or 8 of 16 go together. */
static uint32_t wavefronts_of(const uint32_t at[32], uint32_t mask, uint32_t bytes)
{
    const uint32_t together = bytes <= 4 ? 32 : WAVEFRONT / bytes;
    uint32_t sum = 0;
    for (uint32_t first = 0; first < 32; first += together) {
        const uint32_t part = mask & (ALL_LANES >> (32 - together)) << first;
        sum += part ? conflicts(at, part, bytes) : 0;
    }
    return sum;
}

void cost_shared(struct warp *w, const struct instruction *i, const uint32_t at[32],
                 uint32_t mask, uint32_t bytes)
{
    struct cost *c = w->block->cost;
    if (!c)
        return;
    const uint32_t sum = wavefronts_of(at, mask, bytes);
    c->wavefronts[index_of(w, i)] += sum;
    if (i->writes < COST_BOARDS)
        w->clock.ready[i->writes] += sum - 1; /* the last one's data */
}

/* A sector of device memory is fetched once for each sector of shared memory that takes a part of it. */
void cost_copy(struct warp *w, const struct instruction *i, const uint32_t to[32],
               const uint64_t from[32], uint32_t mask, uint32_t there)
{
    struct cost *c = w->block->cost;
    struct distinct pairs = {.count = 0}, sectors = {.count = 0};
    if (!c)
        return;
    FOR_LANES
    {
        if (!(mask & there) || !(mask & there & 1u << l))
            continue;
        add(&sectors, from[l] / SECTOR);
        add(&pairs, from[l] / SECTOR << 16 | (to[l] / SECTOR & 0xffff));
    }
    c->sectors[index_of(w, i)] += pairs.count;
    c->wavefronts[index_of(w, i)] += wavefronts_of(to, mask, i->bytes);
    if (!sectors.count)
        return;
    const uint32_t first = touch(w, &sectors, false);
    const uint64_t ready = w->clock.issued + (first ? LATENCY_DRAM : LATENCY_L2);
    w->clock.copies = w->clock.copies > ready ? w->clock.copies : ready;
}
