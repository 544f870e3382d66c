/* SPDX-License-Identifier: Apache-2.0 */
/* The memory traffic of a launch on an H100, counted from addresses, and the time that one block would take on an SM of its own.
   Only for programs whose warps all run the same code: kernels of cuda_hopper are not timed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct block;
struct warp;
struct instruction;

enum {
    SECTOR = 32, /* bytes; what L2 and DRAM move */
    COPY_GROUPS = 8,
    COST_BOARDS = 6,  /* scoreboards of a warp */
    L1_SECTORS = 512, /* of a block's share of L1: 16 KB */
};

/* The works that a block has done: turns of its outermost loop that pass a barrier. Work k of block b is the launch's
   b + k * blocks. */
struct works {
    uint32_t
        header; /* instruction: the lowest that warp 0 jumped back to so far, of all blocks */
    uint32_t epoch; /* of the block at the last end */
    uint32_t count, capacity;
    uint64_t *end; /* cycles of warp 0 */
};

/* Cost of all blocks of a launch. */
struct cost {
    uint64_t *sectors; /* [program->count] between L1 and L2 */
    uint64_t l1
        [L1_SECTORS]; /* of the block that runs, by their number modulo L1_SECTORS: what loads left in L1 */
    uint64_t *wavefronts; /* [program->count] of shared memory and L1 */
    uint64_t fetched,
        stored; /* sectors that the launch reads, and writes, for the first time: what DRAM moves at least */
    uint64_t alone;  /* cycles, blocks one after another */
    uint64_t waited; /* of these, all warps': until a load or copy from L2 or DRAM was there */
    uint64_t trips;  /* such waits */
    uint64_t *work;  /* [works] cycles of each work in a block that is alone */
    uint32_t works, work_capacity;
    struct works now;          /* of the block that runs */
    uint32_t wave, wave_first; /* of that block, and the wave's first work */
    bool single;               /* each block has one work */
};

/* When a warp of a block that is alone may go on, in cycles. */
struct warp_clock {
    uint64_t next;   /* its next instruction */
    uint64_t issued; /* its last one */
    uint64_t tensor; /* the tensor pipe is free */
    uint64_t ready[COST_BOARDS];
    uint64_t copies; /* those since the last commit have arrived */
    uint64_t
        group[COPY_GROUPS]; /* all up to the commit have: by its number modulo COPY_GROUPS */
    uint32_t last;          /* instruction */
    uint32_t far;           /* scoreboards of loads from L2 or DRAM, a bit each */
};

/* All of these do nothing in a block without `cost`. */

/* Before the instruction runs for the lanes of `mask`. */
void cost_issue(struct warp *w, const struct instruction *i, uint32_t mask);
/* A load from device memory, or a store there, of `bytes` at each lane's address. */
void cost_global(struct warp *w, const struct instruction *i, const uint64_t at[32],
                 uint32_t mask, bool stores);
/* An access to shared memory; matrices are of 16 bytes a lane. */
void cost_shared(struct warp *w, const struct instruction *i, const uint32_t at[32],
                 uint32_t mask, uint32_t bytes);
/* cp.async of the lanes of `mask`; those of `there` read. */
void cost_copy(struct warp *w, const struct instruction *i, const uint32_t to[32],
               const uint64_t from[32], uint32_t mask, uint32_t there);
void cost_commit(struct warp *w);
/* All but the newest `newest` of the warp's groups must have arrived. */
void cost_wait(struct warp *w, uint32_t newest);
/* All warps that are left stand at the block's barrier. */
void cost_barrier(struct block *b);
void cost_end(struct block *b);
void cost_finish(struct cost *c);
