/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies: tensor loads and stores (UTMALDG, UTMASTG), plain loads (UBLKCP). A load lands when every warp waits, or
   at once; a store reads shared memory when it is waited for, or at once. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/memory.h"
#include <stdlib.h>

static struct bulk *add(struct bulks *to)
{
    if (to->count == to->capacity)
        to->bulk = realloc(to->bulk, (to->capacity = 2 * to->capacity + 16) * sizeof *to->bulk);
    struct bulk *b = &to->bulk[to->count++];
    *b = (struct bulk){0};
    return b;
}

static uint64_t uniform_pair(const struct warp *w, uint32_t index)
{
    return w->ur[index] | (uint64_t)w->ur[index + 1] << 32;
}

/* The map at a generic address: of a parameter, or in device memory. */
static void read_map(struct warp *w, uint64_t address, struct tensor_map *ret)
{
    const struct program *p = w->block->program;
    const uint64_t at = address - (uint64_t)(uintptr_t)p->bank[0];
    const bool is_parameter = at >= p->parameters && at + MAP_BYTES <= p->bank_bytes[0];
    if (address % 64 || (!is_parameter && !memory_find(w->block->memory, address, MAP_BYTES)))
        fault(w, "no tensor map can be at 0x%llx", (unsigned long long)address);
    memcpy(ret, (const void *)(uintptr_t)address, sizeof *ret);
    if (!map_is_valid(ret))
        fault(w, "no tensor map is at 0x%llx", (unsigned long long)address);
}

static void need_shared(struct warp *w, const struct bulk *b)
{
    const uint32_t bytes = map_bytes(&b->map), align = b->map.swizzle ? 128 : 16;
    if (b->shared % align || b->shared < w->block->program->shared_base ||
        (uint64_t)b->shared + bytes > w->block->shared_bytes)
        fault(w, "a bulk copy of %u bytes at 0x%x of shared memory: outside, or not aligned",
              bytes, b->shared);
}

/* ---- pieces ---- */

struct visit {
    struct warp *w;
    const struct bulk *b;
};

static struct allocation *device_at(struct warp *w, const struct map_piece *p)
{
    struct allocation *a = memory_find(w->block->memory, p->device, p->inside);
    if (!a)
        fault(w, "a bulk copy of %u bytes at 0x%llx, which is not in the device's memory",
              p->inside, (unsigned long long)p->device);
    return a;
}

static void begin_piece(void *to, const struct map_piece *p)
{
    trail_copy_begins(((struct visit *)to)->w, p->shared, CHUNK);
}

static void land_piece(void *to, const struct map_piece *p)
{
    struct visit *v = to;
    uint8_t *shared = v->w->block->shared + p->shared;
    memset(shared, 0, CHUNK);
    if (p->inside) {
        const struct allocation *a = device_at(v->w, p);
        const uint8_t *from = (const uint8_t *)(uintptr_t)p->device;
        if (memchr(a->written + (from - a->bytes), 0, p->inside))
            fault(v->w, "a bulk copy from 0x%llx, which was never written",
                  (unsigned long long)p->device);
        memcpy(shared, from, p->inside);
        v->w->block->copied += p->inside;
    }
    trail_copy_ends(v->w->block->hopper, p->shared, CHUNK, v->b->bar);
}

/* Elements outside the tensor are not stored and may hold anything. */
static void begin_store_piece(void *to, const struct map_piece *p)
{
    struct warp *w = ((struct visit *)to)->w;
    if (!p->inside)
        return;
    trail_read_async(w, p->shared, CHUNK);
    trail_store(w->block, p->shared, CHUNK, 1);
}

static void end_store_piece(void *to, const struct map_piece *p)
{
    struct warp *w = ((struct visit *)to)->w;
    if (p->inside)
        trail_store(w->block, p->shared, CHUNK, -1);
}

static void store_piece(void *to, const struct map_piece *p)
{
    struct warp *w = ((struct visit *)to)->w;
    if (!p->inside)
        return;
    device_at(w, p);
    memcpy((void *)(uintptr_t)p->device, w->block->shared + p->shared, p->inside);
    memory_wrote(w->block->memory, p->device, p->inside);
}

/* ---- loads ---- */

void bulk_land(struct block *b, uint32_t which)
{
    struct hopper *h = b->hopper;
    const struct bulk one = h->loads.bulk[which];
    struct visit v = {&b->warp[0], &one};
    h->loads.bulk[which] = h->loads.bulk[--h->loads.count];
    h->moment++;
    map_pieces(&one, land_piece, &v);
    mbarrier_complete(v.w, one.bar, map_bytes(&one.map));
}

static void start_load(struct warp *w, struct bulk *b)
{
    struct hopper *h = w->block->hopper;
    need_shared(w, b);
    map_pieces(b, begin_piece, &(struct visit){w, b});
    h->events++;
    if (h->early)
        bulk_land(w->block, h->loads.count - 1);
}

/* UTMALDG.nD [UR], [UR']: UR.. are the address, the mbarrier and n coordinates; UR' is the map's address. */
void run_tensor_load(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct bulk *b = add(&w->block->hopper->loads);
    const uint32_t *ur = &w->ur[i->op[0].uniform];
    (void)mask;
    read_map(w, uniform_pair(w, i->op[1].uniform), &b->map);
    if (b->map.rank != i->bytes)
        fault(w, "a tensor map of %u dimensions", b->map.rank);
    b->shared = ur[0];
    b->bar = mbarrier_index(w, ur[1]);
    for (uint32_t k = 0; k < i->bytes; k++)
        b->at[k] = (int32_t)ur[2 + k];
    start_load(w, b);
}

/* A copy of contiguous bytes: a tensor of one dimension. */
static struct tensor_map plain_map(uint64_t address, uint32_t bytes)
{
    return (struct tensor_map){.rank = 1,
                               .element = CHUNK,
                               .address = address,
                               .size = {bytes / CHUNK, 1, 1, 1, 1},
                               .box = {bytes / CHUNK, 1, 1, 1, 1},
                               .stride = {CHUNK}};
}

/* UBLKCP.S.G [UR], [UR'], UR'': UR and the next one are the address and the mbarrier, UR' the source, UR'' counts 16
   bytes. */
void run_bulk_load(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct bulk *b = add(&w->block->hopper->loads);
    const uint32_t *ur = &w->ur[i->op[0].uniform];
    const uint64_t from = uniform_pair(w, i->op[1].uniform);
    const uint32_t chunks = word_of(w, &i->op[2])[first_lane(mask)];
    if (from % CHUNK || !chunks || chunks > UINT32_C(1) << 16)
        fault(w, "a bulk copy of %u chunks from 0x%llx", chunks, (unsigned long long)from);
    b->map = plain_map(from, chunks * CHUNK);
    b->shared = ur[0];
    b->bar = mbarrier_index(w, ur[1]);
    start_load(w, b);
}

/* ---- stores ---- */

/* UTMASTG.nD [UR], [UR']: UR.. are the address and n coordinates. */
void run_tensor_store(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct hopper_warp *own = hopper_of(w);
    struct bulk *b = add(&own->stores);
    const uint32_t *ur = &w->ur[i->op[0].uniform];
    (void)mask;
    read_map(w, uniform_pair(w, i->op[1].uniform), &b->map);
    if (b->map.rank != i->bytes)
        fault(w, "a tensor map of %u dimensions", b->map.rank);
    b->shared = ur[0];
    b->group = own->store_groups;
    for (uint32_t k = 0; k < i->bytes; k++)
        b->at[k] = (int32_t)ur[1 + k];
    need_shared(w, b);
    struct visit v = {w, b};
    map_pieces(b, begin_store_piece, &v);
    if (w->block->hopper->early)
        map_pieces(b, store_piece, &v);
}

/* UTMACMDFLUSH: commits the stores so far. */
void run_bulk_commit(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)i, (void)mask;
    hopper_of(w)->store_groups++;
}

void bulk_wait(struct warp *w, uint32_t newest)
{
    struct hopper_warp *own = hopper_of(w);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < own->stores.count; k++) {
        const struct bulk *b = &own->stores.bulk[k];
        struct visit v = {w, b};
        if (b->group + newest >= own->store_groups) {
            own->stores.bulk[kept++] = *b;
            continue;
        }
        if (!w->block->hopper->early)
            map_pieces(b, store_piece, &v);
        map_pieces(b, end_store_piece, &v);
    }
    own->stores.count = kept;
}
