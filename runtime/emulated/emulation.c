/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: see machine.h. One block at a time, in memory that the caller brings. */
#include "runtime/emulated/hopper_block.h"
#include <math.h>

static void watch_put(const void *p, uint32_t bytes, struct place at)
{
    watch_write(p, bytes, 0, at);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t shadow_bytes(const struct emulation_launch *l)
{
    return aligned((l->shared_bytes + 3) / 4 * sizeof(struct shadow));
}

size_t emulation_memory(const struct emulation_launch *l)
{
    return aligned(sizeof(struct block)) + aligned(l->shared_bytes) + shadow_bytes(l) +
           aligned(l->banks ? l->threads / WARP * sizeof(struct lately) : 0) +
           aligned(sizeof(struct latest)) + hopper_bytes(l) +
           l->threads * (aligned(sizeof(struct copies)) + EMULATION_STACK_BYTES);
}

/* Shared memory starts as NaN, as nobody's. */
static void lay_out(struct block *b)
{
    struct emulation_launch *l = b->launch;
    uint8_t *at = (uint8_t *)b + aligned(sizeof *b);
    b->face.shared = memset(at, 0xff, l->shared_bytes);
    at += aligned(l->shared_bytes);
    b->shadow = memset(at, 0, shadow_bytes(l));
    at += shadow_bytes(l);
    b->copies = (struct copies *)at;
    at += aligned(l->threads * sizeof(struct copies));
    b->lately = l->banks ? (struct lately *)at : NULL;
    for (uint32_t k = 0; l->banks && k < l->threads / WARP; k++)
        lately_init(&b->lately[k]);
    at += aligned(l->banks ? l->threads / WARP * sizeof(struct lately) : 0);
    b->latest = memset(at, 0, sizeof *b->latest);
    at += aligned(sizeof *b->latest);
    b->stacks = at;
    b->hopper_memory = at + (size_t)l->threads * EMULATION_STACK_BYTES;
    for (uint32_t k = 0; k < l->threads; k++, at += EMULATION_STACK_BYTES) {
        b->order[k] = (uint16_t)k;
        b->copies[k].first = b->copies[k].end = b->copies[k].group = 0;
        b->thread[k] = (struct thread){.state = READY};
        b->thread[k].stack = fiber_new(at, EMULATION_STACK_BYTES, thread_body);
    }
}

static const struct emulation_machine machine = {
    .barrier = barrier,
    .sync_warp = sync_warp,
    .exchange = exchange_float,
    .reduce_or = reduce_or,
    .watch_read = watch_read,
    .watch_write = watch_put,
    .watch_global_read = watch_global_read,
    .watch_global_write = watch_global_write,
    .multiply = multiply,
    .multiply_tf32 = multiply_tf32,
    .load_matrices = load_matrices,
    .start_copy = start_copy,
    .commit_copies = commit_copies,
    .await_copies = await_copies,
    .half_from = half_from,
    .float_from = float_from,
    .tf32_from = tf32_from,
    .exp2 = exp2f,
    .log2 = log2f,
    .smem_base = smem_base,
    .smem_read = smem_read,
    .smem_write = smem_write,
    .load4 = load4,
    .store4 = store4,
    .mbarrier_init = mbarrier_init,
    .mbarrier_init_fence = mbarrier_init_fence,
    .mbarrier_expect = mbarrier_expect,
    .mbarrier_arrive = mbarrier_arrive,
    .mbarrier_wait = mbarrier_wait,
    .async_fence = async_fence,
    .group_sync = group_sync,
    .group_arrive = group_arrive,
    .tma_load = tma_load,
    .tma_store = tma_store,
    .bulk_load = bulk_load,
    .bulk_commit = bulk_commit,
    .bulk_wait = bulk_wait,
    .wgmma = wgmma,
    .wgmma_fence = wgmma_fence,
    .wgmma_commit = wgmma_commit,
    .wgmma_wait = wgmma_wait,
    .set_registers = set_registers,
};

int emulation_block(emulation_enter_fn *enter, void *entry, const void *args,
                    struct emulation_launch *l)
{
    struct block *b = l->memory;
    l->error[0] = 0;
    if (l->threads % WARP || !l->threads || l->threads > EMULATION_MAX_THREADS) {
        snprintf(l->error, sizeof l->error, "%u threads are not whole warps, or too many",
                 l->threads);
        return -1;
    }
    memset(b, 0, sizeof *b);
    b->launch = l;
    b->face = (struct emulation_face){.block = l->block % l->blocks,
                                      .blocks = l->blocks,
                                      .wave = l->block / l->blocks,
                                      .waves = l->waves ? l->waves : 1,
                                      .machine = &machine};
    b->enter = enter;
    b->entry = entry;
    b->args = args;
    b->epoch = 1;
    b->random = (l->seed + 1) * 0x9e3779b97f4a7c15u ^ (l->block + 1) * 0xbf58476d1ce4e5b9u;
    b->random |= 1;
    lay_out(b);
    struct block *outer = the_block;
    the_block = b;
    int r = schedule(b);
    the_block = outer;
    return r;
}
