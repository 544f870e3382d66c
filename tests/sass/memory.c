/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, and a thread's local memory. */
#include "tests/sass/memory.h"
#include "tests/sass/handlers.h"
#include <stdlib.h>

/* ---- allocations ---- */

void *memory_allocate(struct memory *m, uint64_t bytes)
{
    struct allocation a = {.size = bytes};
    if (m->count == MAX_ALLOCATIONS)
        return NULL;
    a.bytes = aligned_alloc(256, (bytes + 255) / 256 * 256);
    a.written = calloc(bytes ? bytes : 1, 1);
    a.touched = calloc(bytes / SECTOR + 1, 1);
    m->allocation[m->count++] = a;
    return a.bytes;
}

void memory_lend(struct memory *m, const void *bytes, uint64_t size)
{
    if (m->count == MAX_ALLOCATIONS)
        abort();
    struct allocation a = {
        .bytes = (uint8_t *)(uintptr_t)bytes, .size = size, .written = malloc(size ? size : 1)};
    memset(a.written, 1, size);
    m->allocation[m->count++] = a;
}

void memory_unlend(struct memory *m, const void *bytes)
{
    for (uint32_t k = 0; k < m->count; k++) {
        if (m->allocation[k].bytes != bytes)
            continue;
        free(m->allocation[k].written);
        m->allocation[k] = m->allocation[--m->count];
        return;
    }
}

bool memory_free(struct memory *m, void *p)
{
    for (uint32_t k = 0; k < m->count; k++) {
        if (m->allocation[k].bytes != p)
            continue;
        free(p);
        free(m->allocation[k].written);
        free(m->allocation[k].touched);
        m->allocation[k] = m->allocation[--m->count];
        return true;
    }
    return false;
}

static bool inside(const struct allocation *a, uint64_t address, uint64_t bytes)
{
    const uint64_t at = address - (uint64_t)(uintptr_t)a->bytes;
    return at <= a->size && bytes <= a->size - at;
}

struct allocation *memory_find(struct memory *m, uint64_t address, uint64_t bytes)
{
    if (m->last < m->count && inside(&m->allocation[m->last], address, bytes))
        return &m->allocation[m->last];
    for (m->last = 0; m->last < m->count; m->last++)
        if (inside(&m->allocation[m->last], address, bytes))
            return &m->allocation[m->last];
    return NULL;
}

void memory_untouch(struct memory *m)
{
    for (uint32_t k = 0; k < m->count; k++)
        if (m->allocation[k].touched)
            memset(m->allocation[k].touched, 0, m->allocation[k].size / SECTOR + 1);
}

void memory_wrote(struct memory *m, uint64_t address, uint64_t bytes)
{
    struct allocation *a = memory_find(m, address, bytes);
    if (a)
        memset(a->written + (address - (uint64_t)(uintptr_t)a->bytes), 1, bytes);
}

/* ---- loads and stores ---- */

/* Where each lane goes: a register pair, or a register without its sign, and what is added. */
static wide_lanes addresses(const struct warp *w, const struct operand *o)
{
    const bool zero = o->index == ZERO_REGISTER;
    wide_lanes x = zero      ? (wide_lanes){0}
                   : o->wide ? join(w->r[o->index], w->r[o->index + 1])
                             : widen(w->r[o->index]);
    if (o->uniform != ZERO_REGISTER)
        x += o->wide ? (uint64_t)w->ur[o->uniform]
                     : (uint64_t)w->ur[o->uniform] | (uint64_t)w->ur[o->uniform + 1] << 32;
    return x + (uint64_t)(int64_t)(int32_t)o->value;
}

/* The lane's bytes, which must be allocated and aligned. */
static uint8_t *lane_at(const struct warp *w, uint64_t address, uint32_t bytes,
                        uint8_t **written)
{
    struct allocation *a = memory_find(w->block->memory, address, bytes);
    if (!a)
        fault(w, "%u bytes at 0x%lx are not in the device's memory", bytes,
              (unsigned long)address);
    if (address % bytes)
        fault(w, "%u bytes at 0x%lx are not aligned", bytes, (unsigned long)address);
    *written = a->written + (address - (uint64_t)(uintptr_t)a->bytes);
    return (uint8_t *)(uintptr_t)address;
}

static const uint8_t *lane_known(const struct warp *w, uint64_t address, uint32_t bytes)
{
    uint8_t *written;
    const uint8_t *at = lane_at(w, address, bytes, &written);
    if (memchr(written, 0, bytes))
        fault(w, "%u bytes at 0x%lx were never written", bytes, (unsigned long)address);
    return at;
}

static void extend(const struct instruction *i, uint32_t word[4])
{
    if (has(i, MODIFIER_S16))
        word[0] = (uint32_t)(int16_t)word[0];
    else if (has(i, MODIFIER_S8))
        word[0] = (uint32_t)(int8_t)word[0];
}

void run_load(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const wide_lanes at = addresses(w, &i->op[1]);
    const uint32_t words = (i->bytes + 3) / 4;
    union each x[4];
    cost_global(w, i, (const uint64_t *)&at, mask, false);
    FOR_LANES
    {
        uint32_t word[4] = {0};
        if (mask >> l & 1)
            memcpy(word, lane_known(w, at[l], i->bytes), i->bytes);
        extend(i, word);
        for (uint32_t k = 0; k < words; k++)
            x[k].lane[l] = word[k];
    }
    for (uint32_t k = 0; k < words && i->op[0].index != ZERO_REGISTER; k++)
        put_register(w, i->op[0].index + k, x[k].all, mask);
}

void run_store(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const wide_lanes at = addresses(w, &i->op[0]);
    union each x[4];
    cost_global(w, i, (const uint64_t *)&at, mask, true);
    for (uint32_t k = 0; k < (i->bytes + 3u) / 4; k++)
        x[k].all = register_at(w, i->op[1].index, k);
    FOR_LANES
    {
        uint32_t word[4];
        uint8_t *written;
        if (!(mask >> l & 1))
            continue;
        for (uint32_t k = 0; k < (i->bytes + 3u) / 4; k++)
            word[k] = x[k].lane[l];
        memcpy(lane_at(w, at[l], i->bytes, &written), word, i->bytes);
        memset(written, 1, i->bytes);
    }
}

/* ---- local memory ---- */

static uint32_t *local_at(struct warp *w, uint32_t address, uint32_t lane)
{
    if (address / 4 >= LOCAL_WORDS || address % 4)
        fault(w, "local memory at 0x%x", address);
    if (!w->local)
        w->local = calloc(LOCAL_WORDS * 32u, sizeof *w->local);
    return &w->local[address / 4 * 32 + lane];
}

static lanes local_addresses(const struct warp *w, const struct operand *o)
{
    return register_at(w, o->index, 0) + (o->uniform == ZERO_REGISTER ? 0 : w->ur[o->uniform]) +
           o->value;
}

void run_load_local(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes at = local_addresses(w, &i->op[1]);
    for (uint32_t k = 0; k < i->bytes / 4u; k++) {
        lanes x = {0};
        FOR_LANES if (mask >> l & 1) x[l] = *local_at(w, at[l] + 4 * k, l);
        put_register(w, i->op[0].index + k, x, mask);
    }
}

void run_store_local(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes at = local_addresses(w, &i->op[0]);
    for (uint32_t k = 0; k < i->bytes / 4u; k++) {
        const lanes x = register_at(w, i->op[1].index, k);
        FOR_LANES if (mask >> l & 1) * local_at(w, at[l] + 4 * k, l) = x[l];
    }
}
