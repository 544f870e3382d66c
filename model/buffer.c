/* SPDX-License-Identifier: Apache-2.0 */
#include "model/buffer.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

void buffer_grow(void **data, uint64_t *bytes, uint64_t wanted)
{
    enum { LARGE = 2 << 20 };
    if (*bytes >= wanted)
        return;
    free(*data);
    *bytes = wanted;
    if (wanted < LARGE)
        *data = memory_aligned(wanted, 1);
    else
        *data = memset(memory_large(bytes), 0, wanted);
}
