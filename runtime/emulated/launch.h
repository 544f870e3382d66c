/* SPDX-License-Identifier: Apache-2.0 */
/* A block of emulated code as the library runs it, and what it counts. */
#pragma once
#include "runtime/emulated/machine.h"
#include <stddef.h>

enum {
    EMULATION_STACK_BYTES = 64 * 1024 + 17 * 64,
    EMULATION_MAX_THREADS = 1024,
    EMULATION_MAX_SITES = 128
};

enum emulation_access {
    EMULATION_READ,
    EMULATION_WRITE,
    EMULATION_MATRIX, /* a matrix load */
    EMULATION_COPY,   /* the end of an asynchronous copy */
    EMULATION_ACCESSES
};

/* An access to shared memory in the kernel's text, and what its warps asked for. A bank serves one
   word of 4 bytes at a time; 4 bytes a lane are served for the whole warp at once, 8 for half of it,
   16 for a quarter, as a matrix load is matrix by matrix. */
struct emulation_site {
    char function[48];
    int line; /* of the text in one piece */
    enum emulation_access access;
    uint32_t bytes;
    uint64_t requests;   /* of a warp */
    uint64_t wavefronts; /* that the banks needed for them */
    uint64_t least;      /* that they would need without conflicts */
};

struct emulation_banks {
    uint32_t count;
    uint64_t missed; /* accesses that were too many to keep until the warp met */
    struct emulation_site site[EMULATION_MAX_SITES];
};

/* Work that the blocks of an entry made the machine do, over all places of the text. */
struct emulation_entry {
    char name[48];
    uint64_t products; /* of a warp on its matrix unit, each 16 x 8 x 16 (tf32: x 8) */
    uint64_t copies;   /* asynchronous ones, 16 bytes each; not zeros for what is not there */
};

enum { EMULATION_MAX_ENTRIES = 8 };

struct emulation_work {
    uint32_t count;
    struct emulation_entry entry[EMULATION_MAX_ENTRIES];
};

struct emulation_launch {
    uint32_t block, blocks, threads, shared_bytes;
    uint32_t waves; /* blocks counts those of a wave, `block` goes on over all; 0: one wave */
    uint64_t
        seed; /* of the order that threads run in, 0: by number; of the timing of copies (hopper.h) */
    void *memory; /* emulation_memory() bytes, aligned to 64 bytes, any content */
    struct emulation_banks *banks; /* null: not counted; else added to */
    uint64_t products, copies;     /* as in struct emulation_entry; added to */
    char error[320]; /* one line about what the kernel did wrong; empty: nothing */
};

/* Bytes that a block needs, by threads, shared_bytes, and whether there are banks. */
size_t emulation_memory(const struct emulation_launch *l);
/* Runs one block of the entry of the object that `enter` is of. 0, or -1 with l->error filled; the outputs
   are then undefined. */
int emulation_block(emulation_enter_fn *enter, void *entry, const void *args,
                    struct emulation_launch *l);
