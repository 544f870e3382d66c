/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: what was allocated, and which bytes of it were ever written. Addresses are the host's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { MAX_ALLOCATIONS = 1024, TOUCHED_READ = 1, TOUCHED_WRITTEN = 2 };

struct allocation {
    uint8_t *bytes;
    uint64_t size;
    uint8_t *written; /* a byte for each, 0 or 1 */
    uint8_t *touched; /* for each 32 bytes: TOUCHED_READ.. in this launch; null: lent memory */
};

struct memory {
    struct allocation allocation[MAX_ALLOCATIONS];
    uint32_t count;
    uint32_t last; /* where the last access was found */
};

/* Aligned to 256 bytes; null when there are too many. */
void *memory_allocate(struct memory *m, uint64_t bytes);
/* Host memory, all of it written, that kernels may use until memory_unlend. */
void memory_lend(struct memory *m, const void *bytes, uint64_t size);
void memory_unlend(struct memory *m, const void *bytes);
/* False: no such allocation. */
bool memory_free(struct memory *m, void *p);
/* The allocation that [address, address + bytes) lies in, or null. */
struct allocation *memory_find(struct memory *m, uint64_t address, uint64_t bytes);
/* A new launch: nothing is touched. */
void memory_untouch(struct memory *m);
/* The host or a kernel wrote there. */
void memory_wrote(struct memory *m, uint64_t address, uint64_t bytes);
