/* SPDX-License-Identifier: Apache-2.0 */
/* A block whose warps run apart: its rounds, and its end. */
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/handlers.h"
#include <stdio.h>
#include <stdlib.h>

struct hopper *hopper_new(const struct block *b)
{
    struct hopper *h = calloc(1, sizeof *h);
    const uint32_t words = b->shared_bytes / 4 + 4, chunks = b->shared_bytes / CHUNK + 1;
    h->early = b->early;
    h->trail = calloc(words, sizeof *h->trail);
    h->readers = calloc((size_t)chunks * b->warps, sizeof *h->readers);
    for (uint32_t k = 0; k < b->warps && k < MAX_WARPS; k++) {
        h->knows[k].at[k] = 1;
        h->warp[k].registers = b->program->registers;
    }
    return h;
}

void hopper_destroy(struct hopper *h, uint32_t warps)
{
    if (!h)
        return;
    for (uint32_t k = 0; k < warps; k++) {
        free(h->warp[k].stores.bulk);
        products_destroy(h->warp[k].products);
    }
    free(h->loads.bulk);
    free(h->trail);
    free(h->readers);
    free(h->kept);
    free(h);
}

bool runs_apart(const struct instruction *i)
{
    return i->run == run_mbarrier_init || i->run == run_named_arrive ||
           i->run == run_product_issue || i->run == run_tensor_load ||
           i->run == run_bulk_load || i->run == run_tensor_store ||
           i->run == run_registers_down || i->run == run_registers_up ||
           (i->control == CONTROL_BLOCK_SYNC && i->operands == 2);
}

/* Reports the wait of the first warp that has not ended. */
_Noreturn static void fault_deadlock(struct block *b)
{
    const struct hopper *h = b->hopper;
    const struct warp *w = b->warp;
    char text[300] = "";
    size_t used = 0;
    while (!w->paths)
        w++;
    for (uint32_t k = 0; k < h->mbarriers && used < sizeof text - 60; k++)
        if (h->mbarrier[k].left != h->mbarrier[k].count || h->mbarrier[k].bytes)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "; 0x%x lacks %u and %lld bytes", h->mbarrier[k].at,
                                     h->mbarrier[k].left, (long long)h->mbarrier[k].bytes);
    fault(w, "deadlock: no warp can go on%s", text);
}

/* All copies that some mbarrier waits for. */
static void land_some(struct block *b)
{
    struct hopper *h = b->hopper;
    const uint32_t bar = h->loads.bulk[block_draw(b, h->loads.count)].bar;
    for (uint32_t k = h->loads.count; k-- > 0;)
        if (k < h->loads.count && h->loads.bulk[k].bar == bar)
            bulk_land(b, k);
}

void hopper_advance(struct block *b)
{
    struct hopper *h = b->hopper;
    h->quiet = h->events ? 0 : h->quiet + 1;
    h->events = 0;
    if (h->quiet < 2)
        return;
    h->quiet = 0;
    if (!h->loads.count)
        fault_deadlock(b);
    land_some(b);
}

/* Warps of a warpgroup issue the same products: a GPU would wait for the missing ones. */
static void check_warpgroup(const struct warp *w)
{
    const struct block *b = w->block;
    const uint32_t first = w->index / 4 * 4;
    for (uint32_t k = first; k < first + 4 && k < b->warps; k++)
        if (!b->warp[k].paths && b->hopper->warp[k].issued != hopper_of(w)->issued)
            fault(w, "warps %u and %u of a warpgroup issued different products", k, w->index);
}

void hopper_end(struct warp *w)
{
    struct hopper *h = w->block->hopper;
    bool last = true;
    h->events++;
    check_warpgroup(w);
    if (hopper_of(w)->stores.count)
        fault(w, "the warp ends, and nobody waited for a bulk store");
    if (products_pending(hopper_of(w)))
        fault(w, "the warp ends, and nobody waited for its products");
    for (uint32_t k = 0; k < w->block->warps; k++)
        last = last && !w->block->warp[k].paths;
    if (last && h->loads.count)
        fault(w, "the block ends, and nobody waited for a bulk copy");
}
