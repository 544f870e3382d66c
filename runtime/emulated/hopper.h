/* SPDX-License-Identifier: Apache-2.0 */
/* State of a block that uses the primitives of sm_90a (templates/cuda/hopper/device.h). Named barriers, mbarriers and
   asynchronous copies order only some threads, so such a block has vector clocks (clocks.h) instead of the tags of shared.h.

   Copies and products run late, early or at random times, by the seed: each order is possible on the hardware. */
#pragma once
#include "banks.h"
#include "tensor_map.h"

enum {
    WARPGROUP = 128,
    MAX_WARPGROUPS = EMULATION_MAX_THREADS / WARPGROUP,
    MAX_MBARRIERS = 96,
    NAMED_BARRIERS = 16,
    MAX_SETS = 4096,   /* of readers */
    MAX_LOADS = 8192,  /* in flight */
    MAX_STORES = 256,  /* not waited for */
    MAX_PRODUCTS = 64, /* of a warpgroup, in flight */
    MAX_SUMS = 8,      /* arrays of sums of a warpgroup, in flight */
    MAX_N = 128,
    SMEM_SLACK =
        1024, /* of the block's shared memory: smem_base() may be that far from its start */
    NOWHERE = 0xffffffff
};

enum timing { LAZY, EAGER, MIXED, TIMINGS }; /* seed % TIMINGS */

enum { WORD_WRITTEN = 1, WORD_ORDINARY = 2 /* by a store, not a copy */, WORD_MBARRIER = 4 };
enum { NO_READER = 0xffff, READER_SET = 0xfffe };

/* 4 bytes of shared memory. `writer` is an index in clocks; an mbarrier's word has its number there. */
struct word_state {
    int32_t written,
        read; /* the writer's clock; the reader's, or the number of a set of readers */
    uint16_t writer, reader;
    uint8_t flags, pending; /* pending: products and bulk stores that still read it */
};

/* A phase ends once nobody is missing and all bytes have landed. */
struct mbarrier {
    uint32_t offset, count, missing, phase; /* phases that have ended */
    uint32_t issued, expected, landed;      /* bytes of this phase */
    uint32_t first, last;                   /* loads in flight, or NOWHERE */
    uint32_t loaded, seen; /* last phase with a load; last phase that a thread waited for */
    uint32_t initialiser;
    int32_t initialised; /* its clock */
    bool fenced;
    struct place at;
    uint64_t arrived[EMULATION_MAX_THREADS / 64]; /* threads, in this phase */
    int32_t *arriving, *done; /* clocks: of this phase's arrivals, of the ended phases */
};

struct named_barrier {
    uint32_t threads, arrived; /* threads: 0 where none has arrived */
    uint64_t by[EMULATION_MAX_THREADS / 64];
    int32_t *arriving;
};

struct load {
    struct emulated_tensor_map map; /* magic 0: a bulk copy of `bytes` */
    int32_t box[4];
    const void *from;
    uint32_t to, bytes, next; /* next: in the mbarrier's list, or in the list of free ones */
};

struct store {
    struct emulated_tensor_map map;
    int32_t box[4];
    uint32_t from, thread;
    bool committed;
    struct place at;
};

/* n / 2 floats of each thread that a product in flight owns; `value` is by row and column. */
struct sums {
    float *d[WARPGROUP];
    uint32_t n, group; /* n 0: not in use; group: of its last product */
    float value[64][MAX_N];
};

struct flying_product {
    struct emulation_product what; /* the first lane's */
    uint32_t sums, group;
    bool done;
    const uint32_t *a[WARPGROUP];
    uint32_t a_was[WARPGROUP][4];
    struct place at;
};

struct warpgroup {
    uint32_t first, end; /* products in flight, modulo MAX_PRODUCTS */
    uint32_t group;      /* groups committed */
    struct sums sums[MAX_SUMS];
    struct flying_product product[MAX_PRODUCTS];
};

struct hopper {
    uint32_t threads, length; /* length: of a clock */
    enum timing timing;
    int32_t *clock; /* [threads][length] */
    struct word_state *words;
    int32_t *set; /* [MAX_SETS][length] */
    uint32_t set_words[MAX_SETS], free_sets, free_set[MAX_SETS];
    uint32_t mbarriers, stores, free_load;
    struct mbarrier mbarrier[MAX_MBARRIERS];
    struct named_barrier named[NAMED_BARRIERS];
    struct store store[MAX_STORES];
    struct load load[MAX_LOADS];
    struct warpgroup *warpgroup;
    uint8_t *saved; /* stacks as of each thread's last wgmma_fence() */
    uint32_t saved_from[EMULATION_MAX_THREADS];
};

/* Describes an error once: the first one stays. */
static __attribute__((noinline)) void complain(const char *what, uint32_t offset,
                                               struct place at)
{
    struct block *b = the_block;
    if (!b->launch->error[0])
        snprintf(b->launch->error, sizeof b->launch->error,
                 "block %u: thread %u %s at byte %u of %u of shared memory, in %s (line %d)",
                 b->launch->block, b->face.current, what, offset, b->launch->shared_bytes,
                 at.function, at.line);
}

/* The same by the running thread, which never goes on. */
static __attribute__((noinline)) void refuse(const char *what, uint32_t offset, struct place at)
{
    complain(what, offset, at);
    fail_block(the_block);
}

static __attribute__((noinline)) void refuse_number(const char *what, uint64_t number,
                                                    struct place at)
{
    struct block *b = the_block;
    snprintf(b->launch->error, sizeof b->launch->error,
             "block %u: thread %u %s %llu, in %s (line %d)", b->launch->block, b->face.current,
             what, (unsigned long long)number, at.function, at.line);
    fail_block(b);
}
