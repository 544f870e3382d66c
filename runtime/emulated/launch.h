/* SPDX-License-Identifier: Apache-2.0 */
/* What the library hands to the emulated code for one block. Compiled on both sides: into the
   library, and into the shared object that the host compiler makes of the kernel's text. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { EMULATION_STACK_BYTES = 64 * 1024, EMULATION_MAX_THREADS = 1024 };

struct emulation_launch {
    uint32_t block, blocks, threads, shared_bytes;
    uint64_t seed; /* of the order that threads run in; 0: by number */
    void *memory;  /* emulation_memory_bytes() of it, aligned to 64 bytes, any content */
    float (*exp2)(float);
    float (*log2)(float);
    char error[320]; /* one line about what the kernel did wrong; empty: nothing */
};

/* The two functions of the shared object. Both depend on threads and shared_bytes alone. */
typedef size_t emulation_memory_fn(const struct emulation_launch *l);
/* Runs one block of the entry. 0, or -1 with l->error filled; the outputs are then undefined.
   */
typedef int emulation_block_fn(void *entry, const void *args, struct emulation_launch *l);
