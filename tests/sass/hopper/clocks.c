/* SPDX-License-Identifier: Apache-2.0 */
/* Order of events among warps, and races in shared memory. A warp counts its releases; a word remembers its writer's
   count, a chunk of 16 bytes that of each reader. An access is ordered behind another if its warp knows that count. */
#include "tests/sass/hopper/hopper.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void clocks_join(struct clocks *to, const struct clocks *from)
{
    for (uint32_t k = 0; k < CLOCKS; k++) {
        to->at[k] = larger(to->at[k], from->at[k]);
        to->fenced[k] = larger(to->fenced[k], from->fenced[k]);
    }
}

static struct clocks *knowledge(const struct warp *w)
{
    return &w->block->hopper->knows[w->index];
}

void clocks_release(struct warp *w, struct clocks *to)
{
    clocks_join(to, knowledge(w));
    knowledge(w)->at[w->index]++;
}

void clocks_acquire(struct warp *w, const struct clocks *from)
{
    clocks_join(knowledge(w), from);
}

void clocks_fence(struct warp *w)
{
    struct clocks *c = knowledge(w);
    for (uint32_t k = 0; k < CLOCKS; k++)
        c->fenced[k] = larger(c->fenced[k], c->at[k]);
    c->at[w->index]++;
}

/* ---- words ---- */

static void need_known(const struct warp *w, const struct trail *t, uint32_t at,
                       const char *what)
{
    if (t->writer == w->index || knowledge(w)->at[t->writer] >= t->stamp)
        return;
    if (t->writer >= ASYNC)
        fault(w, "race: shared memory at 0x%x is %s, its bulk copy was not waited for", at,
              what);
    fault(w, "race: shared memory at 0x%x is %s, no barrier orders this behind warp %u's write",
          at, what, t->writer);
}

static const struct trail *check_read(const struct warp *w, uint32_t at)
{
    const struct trail *t = &w->block->hopper->trail[at / 4];
    if (t->copies)
        fault(w, "shared memory at 0x%x is read before a bulk copy to it was waited for", at);
    if (!t->stamp)
        fault(w, "shared memory at 0x%x is read, and nobody wrote it", at);
    need_known(w, t, at, "read");
    return t;
}

static void note_reader(struct warp *w, uint32_t at, uint32_t bytes)
{
    struct hopper *h = w->block->hopper;
    for (uint32_t k = at / CHUNK; k <= (at + bytes - 1) / CHUNK; k++)
        h->readers[k * w->block->warps + w->index] = knowledge(w)->at[w->index];
}

void trail_read(struct warp *w, uint32_t at, uint32_t bytes)
{
    for (uint32_t k = at & ~3u; k < at + bytes; k += 4)
        check_read(w, k);
    note_reader(w, at, bytes);
}

/* Bytes from `at` on with the same last access: a word, or a chunk of four. */
static uint32_t alike(const struct warp *w, uint32_t at, uint32_t end)
{
    uint64_t x[CHUNK / 4];
    if (at % CHUNK || at + CHUNK > end)
        return 4;
    memcpy(x, &w->block->hopper->trail[at / 4], sizeof x);
    return x[0] == x[1] && x[0] == x[2] && x[0] == x[3] ? CHUNK : 4;
}

void trail_read_async(struct warp *w, uint32_t at, uint32_t bytes)
{
    for (uint32_t k = at & ~3u; k < at + bytes; k += alike(w, k, at + bytes)) {
        const struct trail *t = check_read(w, k);
        if (t->generic && knowledge(w)->fenced[t->writer] < t->stamp)
            fault(w,
                  "shared memory at 0x%x was written by an ordinary store of warp %u, and no "
                  "fence.proxy.async followed",
                  k, t->writer);
    }
    note_reader(w, at, bytes);
}

/* Nothing that is in flight, nobody's last access may be overtaken. */
static void check_write(const struct warp *w, uint32_t at, uint32_t bytes)
{
    const struct hopper *h = w->block->hopper;
    const struct clocks *c = knowledge(w);
    for (uint32_t k = at & ~3u; k < at + bytes; k += 4) {
        const struct trail *t = &h->trail[k / 4];
        if (t->copies)
            fault(w, "shared memory at 0x%x is written while a bulk copy to it is in flight",
                  k);
        if (t->stores)
            fault(w, "shared memory at 0x%x is written while a bulk store reads it", k);
        if (t->stamp)
            need_known(w, t, k, "written");
    }
    for (uint32_t k = at / CHUNK; k <= (at + bytes - 1) / CHUNK; k++)
        for (uint32_t v = 0; v < w->block->warps; v++)
            if (v != w->index && h->readers[k * w->block->warps + v] > c->at[v])
                fault(w,
                      "race: shared memory at 0x%x is written, no barrier orders this behind "
                      "warp %u's read",
                      k * CHUNK, v);
}

void trail_write(struct warp *w, uint32_t at, uint32_t bytes)
{
    struct hopper *h = w->block->hopper;
    check_write(w, at, bytes);
    for (uint32_t k = at & ~3u; k < at + bytes; k += 4) {
        struct trail *t = &h->trail[k / 4];
        t->stamp = knowledge(w)->at[w->index];
        t->writer = (uint8_t)w->index;
        t->generic = 1;
    }
    h->changes++;
}

void trail_store(struct block *b, uint32_t at, uint32_t bytes, int by)
{
    for (uint32_t k = at; k < at + bytes; k += 4) {
        struct trail *t = &b->hopper->trail[k / 4];
        t->stores = (uint8_t)(t->stores + by);
    }
}

void trail_copy_begins(struct warp *w, uint32_t at, uint32_t bytes)
{
    check_write(w, at, bytes);
    for (uint32_t k = at; k < at + bytes; k += 4)
        w->block->hopper->trail[k / 4].copies = 1;
    w->block->hopper->changes++;
}

void trail_copy_ends(struct hopper *h, uint32_t at, uint32_t bytes, uint32_t mbarrier)
{
    for (uint32_t k = at; k < at + bytes; k += 4)
        h->trail[k / 4] =
            (struct trail){.stamp = h->moment, .writer = (uint8_t)(ASYNC + mbarrier)};
    h->changes++;
}
