/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk and tensor copies. A load's bytes land when it is issued, when nothing else can run, or in between, by the block's
   timing; until then its place holds NaN. A store reads and writes once it is committed, or when its thread waits for it. */
#pragma once
#include "mbarriers.h"

/* ---- boxes ---- */

static const char *check_map(const struct emulated_tensor_map *m)
{
    if (m->magic != EMULATED_TENSOR_MAP)
        return "uses bytes that are no tensor map";
    if (m->address % 16 || m->element_bytes != 2 || m->stride[0] != 2 || m->swizzle != 128)
        return "uses a tensor map with a wrong address, element or swizzle";
    for (uint32_t k = 0; k < EMULATED_TENSOR_MAP_DIMENSIONS; k++)
        if (!m->extent[k] || !m->box[k] || m->box[k] > 256 ||
            (k && (m->stride[k] % 16 || m->stride[k] >> 40)))
            return "uses a tensor map with a wrong extent, box or stride";
    return m->box[0] * m->element_bytes == m->swizzle
               ? NULL
               : "uses a tensor map whose box is not 128 bytes wide";
}

static uint32_t box_rows(const struct emulated_tensor_map *m)
{
    return m->box[1] * m->box[2] * m->box[3];
}

/* Row k of the box in global memory from its first element on, or null where it is outside; *ret elements are inside. A
   coordinate below 0 in the first dimension has no use here and is outside. */
static uint8_t *box_row(const struct emulated_tensor_map *m, const int32_t *box, uint32_t k,
                        uint32_t *ret)
{
    const uint32_t place[] = {0, k % m->box[1], k / m->box[1] % m->box[2],
                              k / m->box[1] / m->box[2]};
    uint64_t at = m->address;
    for (uint32_t d = 0; d < EMULATED_TENSOR_MAP_DIMENSIONS; d++) {
        const int64_t x = (int64_t)box[d] + place[d];
        if (x < 0 || x >= m->extent[d])
            return NULL;
        at += (uint64_t)x * m->stride[d];
    }
    const uint32_t inside = m->extent[0] - (uint32_t)box[0];
    *ret = inside < m->box[0] ? inside : m->box[0];
    return (uint8_t *)(uintptr_t)at;
}

/* Byte of chunk c, 16 bytes, of a row at `at` under the swizzle: as the address's bits 7 to 9 say. */
static uint32_t chunk_place(uint32_t at, uint32_t c)
{
    return at | 16 * (c ^ (at >> 7 & 7));
}

/* Moves a box's rows between global and shared memory. Returns bytes that are inside of the tensor. */
static uint64_t move_box(const struct emulated_tensor_map *m, const int32_t *box, uint32_t at,
                         bool load)
{
    uint64_t moved = 0;
    for (uint32_t k = 0; k < box_rows(m); k++, at += m->swizzle) {
        uint32_t inside = 0;
        uint8_t *global = box_row(m, box, k, &inside);
        for (uint32_t c = 0; c < m->swizzle / 16; c++) {
            uint8_t *shared = the_block->face.shared + chunk_place(at, c);
            const uint32_t elements = inside <= 8 * c      ? 0
                                      : inside < 8 * c + 8 ? inside - 8 * c
                                                           : 8;
            if (load)
                memset(shared, 0, 16);
            if (elements && load)
                memcpy(shared, global + 16 * c, 2 * elements);
            else if (elements)
                memcpy(global + 16 * c, shared, 2 * elements);
            moved += 2 * elements;
        }
    }
    return moved;
}

/* ---- loads ---- */

static void land_load(const struct load *l)
{
    uint64_t moved = l->bytes;
    if (l->map.magic)
        moved = move_box(&l->map, l->box, l->to, true);
    else
        memcpy(the_block->face.shared + l->to, l->from, l->bytes);
    the_block->launch->copies += moved / 16;
}

/* Completes the mbarrier's first load that is still in flight. */
static void land_first(struct mbarrier *m)
{
    struct hopper *h = the_block->hopper;
    const uint32_t k = m->first;
    struct load *l = &h->load[k];
    land_load(l);
    m->landed += l->bytes;
    m->first = l->next;
    l->next = h->free_load;
    h->free_load = k;
}

static void land_all(struct mbarrier *m)
{
    while (m->first != NOWHERE)
        land_first(m);
    try_phase(m);
}

/* Issues a load for the running thread; the data arrive now or later. */
static void issue_load(const struct load *what, uint32_t bar, uint32_t alignment,
                       struct place place)
{
    struct hopper *h = the_block->hopper;
    struct mbarrier *m = mbarrier_at(bar, place);
    const uint32_t k = h->free_load;
    const char *wrong = check_place(what->to, what->bytes, alignment);
    if (wrong)
        refuse(wrong, what->to, place);
    if (!m->fenced)
        refuse("copies by an mbarrier without mbarrier_init_fence", bar, place);
    if (k == NOWHERE)
        refuse("has too many copies in flight", what->to, place);
    begin_async_write(what->to, what->bytes, (uint32_t)(m - h->mbarrier), m->phase + 1, place);
    memset(the_block->face.shared + what->to, 0xff, what->bytes);
    h->free_load = h->load[k].next;
    h->load[k] = *what;
    h->load[k].next = NOWHERE;
    if (m->first == NOWHERE)
        m->first = k;
    else
        h->load[m->last].next = k;
    m->last = k;
    m->issued += what->bytes;
    m->loaded = m->phase + 1;
    if (h->timing == EAGER || (h->timing == MIXED && draw(the_block, 2)))
        while (m->first != NOWHERE)
            land_first(m);
    check_bytes(m, place);
}

static void tma_load(uint32_t to, const void *map, uint32_t bar, const int32_t *box,
                     struct place place)
{
    struct load l = {.to = to};
    if ((uintptr_t)map % 64)
        refuse("uses a misaligned tensor map for a copy to what lies", to, place);
    memcpy(&l.map, map, sizeof l.map);
    const char *wrong = check_map(&l.map);
    if (wrong)
        refuse(wrong, to, place);
    memcpy(l.box, box, sizeof l.box);
    l.bytes = box_rows(&l.map) * l.map.swizzle;
    issue_load(&l, bar, l.map.swizzle, place);
}

static void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t bar,
                      struct place place)
{
    const struct load l = {.to = to, .from = from, .bytes = bytes};
    if ((uintptr_t)from % 16 || bytes % 16 || !bytes)
        refuse("copies from a misaligned address, or not whole 16 bytes, to what lies", to,
               place);
    issue_load(&l, bar, 16, place);
}

/* ---- stores ---- */

/* Number of chunks of row k of the store's box with elements in the tensor. Bytes outside are not stored: they may be
   anything. */
static uint32_t chunks_inside(const struct store *s, uint32_t k)
{
    uint32_t inside = 0;
    box_row(&s->map, s->box, k, &inside);
    return (inside + 7) / 8;
}

static const char *begin_store(const struct store *s)
{
    const char *wrong = NULL;
    for (uint32_t k = 0; k < box_rows(&s->map); k++)
        for (uint32_t c = 0; c < chunks_inside(s, k) && !wrong; c++)
            wrong =
                begin_async_read(chunk_place(s->from + k * s->map.swizzle, c), 16, my_clock());
    return wrong;
}

static void end_store(const struct store *s, struct reading *r)
{
    move_box(&s->map, s->box, s->from, false);
    for (uint32_t k = 0; k < box_rows(&s->map); k++)
        for (uint32_t c = 0; c < chunks_inside(s, k); c++)
            end_async_read(chunk_place(s->from + k * s->map.swizzle, c), 16, r);
}

static void tma_store(const void *map, uint32_t from, const int32_t *box, struct place place)
{
    struct hopper *h = the_block->hopper;
    struct store s = {.from = from, .thread = the_block->face.current, .at = place};
    if ((uintptr_t)map % 64)
        refuse("uses a misaligned tensor map for a copy of what lies", from, place);
    memcpy(&s.map, map, sizeof s.map);
    memcpy(s.box, box, sizeof s.box);
    const char *wrong = check_map(&s.map);
    wrong = wrong ? wrong : check_place(from, box_rows(&s.map) * s.map.swizzle, s.map.swizzle);
    wrong = wrong ? wrong : begin_store(&s);
    if (h->stores == MAX_STORES)
        wrong = "has too many bulk stores in flight";
    if (wrong)
        refuse(wrong, from, place);
    h->store[h->stores++] = s;
}

static void bulk_commit(void)
{
    struct hopper *h = the_block->hopper;
    for (uint32_t k = 0; k < h->stores; k++) {
        struct store *s = &h->store[k];
        if (s->thread != the_block->face.current || s->committed)
            continue;
        s->committed = true;
        if (h->timing == EAGER || (h->timing == MIXED && draw(the_block, 2)))
            move_box(&s->map, s->box, s->from, false);
    }
}

/* The thread's committed stores end; reading early or now is the same, as nobody may write there in between. */
static void bulk_wait(void)
{
    struct hopper *h = the_block->hopper;
    const uint32_t me = the_block->face.current;
    struct reading r = {.count = 1, .thread = {me}, .when = {note_read(me)}};
    uint32_t left = 0;
    for (uint32_t k = 0; k < h->stores; k++) {
        struct store *s = &h->store[k];
        if (s->thread == me && s->committed) {
            end_store(s, &r);
        } else {
            h->store[left++] = *s;
        }
    }
    h->stores = left;
}

/* ---- the end ---- */

static void check_stores(void)
{
    const struct hopper *h = the_block->hopper;
    for (uint32_t k = 0; k < h->stores; k++)
        if (h->store[k].thread == the_block->face.current)
            refuse("ends while a bulk store reads", h->store[k].from, h->store[k].at);
}

/* After all threads have ended: somebody must have waited for each load. */
static void check_loads(void)
{
    const struct hopper *h = the_block->hopper;
    for (uint32_t k = 0; k < h->mbarriers; k++)
        if (h->mbarrier[k].loaded > h->mbarrier[k].seen)
            complain("ends without a wait for the copies of an mbarrier", h->mbarrier[k].offset,
                     h->mbarrier[k].at);
}
