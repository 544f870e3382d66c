/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches rows of the caller's tensors: those of the next row block, and this one's of an output. Rows are about
   a page apart, so hardware does not prefetch them. A core can wait for about a dozen cache lines at once, so rows
   are prefetched a few at a time, spread over the computation. Gathered columns need none: packing has left them
   in the second cache. */
#ifndef MASKC_CPU_PREFETCH_H
#define MASKC_CPU_PREFETCH_H
#include "cpu/layout.h"

struct prefetch_tensor {
    const u8 *at;
    i64 stride; /* bytes */
    u32 rows;
};

enum { PREFETCH_TENSORS = 4 };

struct prefetch {
    struct prefetch_tensor list[PREFETCH_TENSORS + 1]; /* the last: no rows */
    u32 count, next;
    u32 rows; /* left in all */
};

/* Adds rows first, first + step, .. of a tensor, those below the length. */
static void prefetch_add(struct prefetch *x, const struct sequence *s,
                         const struct abi_tensor *t, u32 first, u32 step, u32 rows)
{
    if (!tensors_far(s) || first >= s->length)
        return;
    const u32 most = (s->length - 1 - first) / step + 1;
    rows = rows < most ? rows : most;
    x->list[x->count++] = (struct prefetch_tensor){
        .at = (const u8 *)t->data + element_at(s, t, first) * ELEMENT_BYTES,
        .stride = (i64)step * t->row * ELEMENT_BYTES,
        .rows = rows,
    };
    x->rows += rows;
}

/* Rows to prefetch at each of so many occasions. */
INLINE u32 prefetch_share(const struct prefetch *x, u32 occasions)
{
    return occasions ? (x->rows + occasions - 1) / occasions : 0;
}

/* `nearest`: into L1, else into L2. */
INLINE void prefetch_some(struct prefetch *x, u32 count, int nearest)
{
    for (; count && x->rows; count--) {
        struct prefetch_tensor *y = &x->list[x->next];
        for (u32 at = 0; at < HEAD_DIM * ELEMENT_BYTES; at += 64)
            if (nearest)
                __builtin_prefetch(y->at + at, 0, 3);
            else
                __builtin_prefetch(y->at + at, 0, 2);
        y->at += y->stride;
        x->rows--;
        if (!--y->rows)
            x->next++;
    }
}

INLINE void prefetch_rows(struct prefetch *x, u32 count)
{
    prefetch_some(x, count, 1);
}

INLINE void prefetch_rows_far(struct prefetch *x, u32 count)
{
    prefetch_some(x, count, 0);
}

#endif
