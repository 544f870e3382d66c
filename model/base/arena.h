/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays one after another in one piece of memory, of the host or of a device. */
#pragma once
#include <stdint.h>

struct arena {
    uint8_t *base; /* null: only sizes are counted */
    uint64_t used;
    uint64_t line; /* arrays begin at multiples of it; 0: of 64 bytes */
};
void *arena_take(struct arena *a, uint64_t bytes); /* null where there is no base */
