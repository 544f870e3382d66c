/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/arena.h"
#include <stddef.h>

enum { LINE = 64 };

void *arena_take(struct arena *a, uint64_t bytes)
{
    const uint64_t line = a->line ? a->line : LINE;
    void *ret = a->base ? a->base + a->used : NULL;
    a->used += (bytes + line - 1) / line * line;
    return ret;
}
