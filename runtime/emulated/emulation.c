/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the host compiler is given: a small machine, the kernel's own text, and how one
   block of it is run. It needs nothing but memset, memcpy and snprintf from outside. */
#include "device.h"

/* The kernel's text is compiled as it stands, the machine beneath it with all care: a launch spends
   half of its time in the machine, and a compiler three quarters of its own on improving the text. */
#ifdef __clang__
#pragma clang optimize off
#else
#pragma GCC push_options
#pragma GCC optimize("O0")
#endif
#include "kernel.cu"
#ifdef __clang__
#pragma clang optimize on
#else
#pragma GCC pop_options
#endif

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t shadow_bytes(const struct emulation_launch *l)
{
    return aligned((l->shared_bytes + 3) / 4 * sizeof(struct shadow));
}

__attribute__((visibility("default"))) size_t emulation_memory(const struct emulation_launch *l)
{
    return aligned(sizeof(struct block)) + aligned(l->shared_bytes) + shadow_bytes(l) +
           aligned(l->banks ? l->threads / WARP * sizeof(struct lately) : 0) +
           l->threads * (aligned(sizeof(struct copies)) + EMULATION_STACK_BYTES);
}

static void run_entry(const struct block *b)
{
    ((void (*)(ARGS))b->entry)(*(ARGS *)b->args);
}

/* Shared memory starts as NaN, as nobody's. */
static void lay_out(struct block *b)
{
    struct emulation_launch *l = b->launch;
    uint8_t *at = (uint8_t *)b + aligned(sizeof *b);
    b->shared = memset(at, 0xff, l->shared_bytes);
    at += aligned(l->shared_bytes);
    b->shadow = memset(at, 0, shadow_bytes(l));
    at += shadow_bytes(l);
    b->copies = (struct copies *)at;
    at += aligned(l->threads * sizeof(struct copies));
    b->lately = l->banks ? (struct lately *)at : NULL;
    for (uint32_t k = 0; l->banks && k < l->threads / WARP; k++)
        lately_init(&b->lately[k]);
    at += aligned(l->banks ? l->threads / WARP * sizeof(struct lately) : 0);
    for (uint32_t k = 0; k < l->threads; k++, at += EMULATION_STACK_BYTES) {
        b->order[k] = (uint16_t)k;
        b->copies[k].first = b->copies[k].end = b->copies[k].group = 0;
        b->thread[k] = (struct thread){.state = READY};
        b->thread[k].stack = fiber_new(at, EMULATION_STACK_BYTES, thread_body);
    }
}

__attribute__((visibility("default"))) int emulation_block(void *entry, const void *args,
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
    b->run = run_entry;
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
