/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory. A shadow of each word says who wrote and who read it since the block's last barrier, so that
   a race, a word that nobody wrote and a copy that nobody waited for are faults. Copies land when their warp
   waits for them, not before. Where warps run apart, hopper/clocks.c takes the shadow's place. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/memory.h"
#include <stdlib.h>

struct shadow {
    uint32_t epoch;   /* 1 + the barriers before the last write; 0: never written */
    uint32_t read;    /* likewise of `readers` */
    uint32_t readers; /* warps */
    uint8_t writer;
    uint8_t copies; /* on their way to it */
};

struct shadow *shadow_new(uint32_t bytes)
{
    return calloc(bytes / 4 + 4, sizeof(struct shadow));
}

void shadow_destroy(struct shadow *s)
{
    free(s);
}

static struct shadow *shadow_at(const struct warp *w, uint32_t at, uint32_t bytes)
{
    const struct block *b = w->block;
    if (at < b->program->shared_base || at > b->shared_bytes || bytes > b->shared_bytes - at)
        fault(w, "%u bytes at 0x%x are outside of shared memory", bytes, at);
    if (at % bytes)
        fault(w, "%u bytes at 0x%x of shared memory are not aligned", bytes, at);
    return &b->shadow[at / 4];
}

/* Nothing but the last barrier stands between this access and another warp's. */
static void need_barrier(const struct warp *w)
{
    if (w->block->needed && w->block->epoch)
        w->block->needed[w->block->opened] = 1;
}

static void note_read(struct warp *w, uint32_t at, uint32_t bytes)
{
    struct shadow *s = shadow_at(w, at, bytes);
    const uint32_t now = w->block->epoch + 1;
    if (w->block->hopper)
        trail_read(w, at, bytes);
    for (uint32_t k = 0; k < (bytes + 3) / 4 && !w->block->hopper; k++, s++) {
        if (s->copies)
            fault(w, "shared memory at 0x%x is read before a copy to it was waited for",
                  at + 4 * k);
        if (!s->epoch)
            fault(w, "shared memory at 0x%x is read, and nobody wrote it", at + 4 * k);
        if (s->epoch == now && s->writer != w->index)
            fault(
                w,
                "race: shared memory at 0x%x is read, warp %u wrote it since the last barrier",
                at + 4 * k, s->writer);
        if (s->epoch + 1 == now && s->writer != w->index)
            need_barrier(w);
        s->readers = (s->read == now ? s->readers : 0) | 1u << w->index;
        s->read = now;
    }
}

static void note_write(struct warp *w, uint32_t at, uint32_t bytes)
{
    struct shadow *s = shadow_at(w, at, bytes);
    const uint32_t now = w->block->epoch + 1;
    if (w->block->hopper)
        trail_write(w, at, bytes);
    for (uint32_t k = 0; k < (bytes + 3) / 4 && !w->block->hopper; k++, s++) {
        if (s->copies)
            fault(w, "shared memory at 0x%x is written while a copy to it is on its way",
                  at + 4 * k);
        if (s->epoch == now && s->writer != w->index)
            fault(w,
                  "race: shared memory at 0x%x is written, warp %u wrote it since the last "
                  "barrier",
                  at + 4 * k, s->writer);
        if (s->read == now && s->readers & ~(1u << w->index))
            fault(w,
                  "race: shared memory at 0x%x is written, another warp read it since the last "
                  "barrier",
                  at + 4 * k);
        if ((s->epoch && s->epoch + 1 == now && s->writer != w->index) ||
            (s->read && s->read + 1 == now && s->readers & ~(1u << w->index)))
            need_barrier(w);
        s->epoch = now;
        s->writer = (uint8_t)w->index;
    }
}

void shared_write(struct warp *w, uint32_t at, uint32_t bytes)
{
    note_write(w, at, bytes);
}

lanes shared_addresses(const struct warp *w, const struct operand *o)
{
    const uint32_t more = o->value + (o->uniform == ZERO_REGISTER ? 0 : w->ur[o->uniform]);
    return register_at(w, o->index, 0) * o->scale + more;
}

/* ---- loads and stores ---- */

void run_load_shared(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[1])};
    const uint32_t words = (i->bytes + 3) / 4;
    union each x[4] = {{{0}}};
    uint32_t word[4] = {0}, last = UINT32_MAX;
    cost_shared(w, i, at.lane, mask, i->bytes);
    FOR_LANES
    {
        if (!(mask >> l & 1))
            continue;
        if (at.lane[l] != last) {
            last = at.lane[l];
            note_read(w, last, i->bytes);
            memcpy(word, w->block->shared + last, i->bytes);
        }
        for (uint32_t k = 0; k < words; k++)
            x[k].lane[l] = word[k];
    }
    for (uint32_t k = 0; k < words && i->op[0].index != ZERO_REGISTER; k++)
        put_register(w, i->op[0].index + k, x[k].all, mask);
}

void run_store_shared(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[0])};
    cost_shared(w, i, at.lane, mask, i->bytes);
    for (uint32_t k = 0; k < (i->bytes + 3u) / 4; k++) {
        const union each x = {register_at(w, i->op[1].index, k)};
        FOR_LANES
        {
            if (!(mask >> l & 1))
                continue;
            if (k == 0)
                note_write(w, at.lane[l], i->bytes);
            memcpy(w->block->shared + at.lane[l] + 4 * k, &x.lane[l],
                   i->bytes < 4 ? i->bytes : 4);
        }
    }
}

/* LDSM: lane l names row l % 8 of matrix l / 8, 8 halves. Lane l gets halves 2 (l % 4), + 1 of row l / 4 of
   each matrix; transposed, of column l / 4. */
void run_load_matrix(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[1])};
    uint16_t half[32][8];
    if (mask != ALL_LANES)
        fault(w, "LDSM by some lanes of the warp only");
    cost_shared(w, i, at.lane, mask, 16);
    FOR_LANES
    {
        note_read(w, at.lane[l], 16);
        memcpy(half[l], w->block->shared + at.lane[l], 16);
    }
    for (uint32_t m = 0; m < 4; m++) {
        union each x;
        FOR_LANES
        {
            const uint32_t row = 8 * m + l / 4, pair = l % 4 * 2;
            x.lane[l] =
                has(i, MODIFIER_MT88)
                    ? half[8 * m + pair][l / 4] | (uint32_t)half[8 * m + pair + 1][l / 4] << 16
                    : half[row][pair] | (uint32_t)half[row][pair + 1] << 16;
        }
        put_register(w, i->op[0].index + m, x.all, mask);
    }
}

/* STSM: the reverse of LDSM; lane l names row l % 8 of matrix l / 8. */
void run_store_matrix(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each at = {shared_addresses(w, &i->op[0])};
    uint16_t half[32][8];
    if (mask != ALL_LANES)
        fault(w, "STSM by some lanes of the warp only");
    cost_shared(w, i, at.lane, mask, 16);
    for (uint32_t m = 0; m < 4; m++) {
        const union each x = {register_at(w, i->op[1].index, m)};
        FOR_LANES for (uint32_t e = 0; e < 2; e++)
        {
            const uint32_t row = l / 4, column = l % 4 * 2 + e;
            half[8 * m + (has(i, MODIFIER_MT88) ? column : row)]
                [has(i, MODIFIER_MT88) ? row : column] = (uint16_t)(x.lane[l] >> 16 * e);
        }
    }
    FOR_LANES
    {
        note_write(w, at.lane[l], 16);
        memcpy(w->block->shared + at.lane[l], half[l], 16);
    }
}

/* ---- copies ---- */

static wide_lanes global_addresses(const struct warp *w, const struct operand *o)
{
    return join(register_at(w, o->index, 0), register_at(w, o->index, 1)) +
           (uint64_t)(int64_t)(int32_t)o->value +
           (o->uniform == ZERO_REGISTER ? 0 : (uint64_t)w->ur[o->uniform]);
}

static void mark_copies(const struct warp *w, const struct copy *c, int by)
{
    FOR_LANES
    {
        struct shadow *s = c->mask >> l & 1 ? shadow_at(w, c->to[l], c->bytes) : NULL;
        for (uint32_t k = 0; s && k < c->bytes / 4; k++)
            s[k].copies = (uint8_t)(s[k].copies + by);
    }
}

static void read_lane(const struct warp *w, uint64_t from, struct copy *c, uint32_t l)
{
    const struct allocation *a = memory_find(w->block->memory, from, c->bytes);
    if (!a || from % c->bytes)
        fault(w, "a copy from 0x%lx, which is not in the device's memory or not aligned",
              (unsigned long)from);
    if (memchr(a->written + (from - (uint64_t)(uintptr_t)a->bytes), 0, c->bytes))
        fault(w, "a copy from 0x%lx, which was never written", (unsigned long)from);
    memcpy(c->data[l], (const uint8_t *)(uintptr_t)from, c->bytes);
}

/* LDGSTS [to], [from], P: zeros where P does not hold. */
void run_copy(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each to = {shared_addresses(w, &i->op[0])};
    const wide_lanes from = global_addresses(w, &i->op[1]);
    const uint32_t there = i->operands > 2 ? predicate_of(w, &i->op[2]) : ALL_LANES;
    if (w->block->hopper)
        fault(w, "cp.async beside mbarriers is not known");
    if (w->copies == w->copy_capacity)
        w->copy =
            realloc(w->copy, (w->copy_capacity = 2 * w->copy_capacity + 16) * sizeof *w->copy);
    cost_copy(w, i, to.lane, (const uint64_t *)&from, mask, there);
    struct copy *c = &w->copy[w->copies];
    *c = (struct copy){.mask = mask, .bytes = i->bytes, .group = w->groups};
    FOR_LANES
    {
        if (!(mask >> l & 1))
            continue;
        c->to[l] = to.lane[l];
        note_write(w, to.lane[l], i->bytes);
        if (there >> l & 1)
            read_lane(w, from[l], c, l);
    }
    mark_copies(w, c, 1);
    w->copies++;
}

void run_copy_commit(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)i;
    if (mask != w->live)
        fault(w, "copies are committed by some lanes of the warp only");
    cost_commit(w);
    w->groups++;
}

/* DEPBAR.LE SB0, n: all but the newest n groups have arrived. Other scoreboards are scoreboard.c's. */
void run_copy_wait(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t newest = i->op[1].value;
    uint32_t kept = 0;
    (void)mask;
    if (w->block->hopper)
        bulk_wait(w, newest);
    if (i->op[0].index != 0)
        fault(w, "DEPBAR of a scoreboard other than SB0 is not known");
    cost_wait(w, newest);
    for (uint32_t k = 0; k < w->copies; k++) {
        struct copy *c = &w->copy[k];
        if (c->group + newest >= w->groups) {
            w->copy[kept++] = *c;
            continue;
        }
        mark_copies(w, c, -1);
        FOR_LANES if (c->mask >> l & 1)
        {
            note_write(w, c->to[l], c->bytes);
            memcpy(w->block->shared + c->to[l], c->data[l], c->bytes);
        }
    }
    w->copies = kept;
}
