/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/buffer.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { LARGE = 2 << 20 };

uint64_t buffer_bytes(uint64_t wanted)
{
    return wanted < LARGE ? wanted : memory_large_bytes(wanted);
}

void buffer_grow(void **data, uint64_t *bytes, uint64_t wanted)
{
    if (*bytes >= wanted)
        return;
    free(*data);
    *bytes = wanted;
    if (wanted < LARGE)
        *data = memory_aligned(wanted, 1);
    else
        *data = memset(memory_large(bytes), 0, wanted);
}
