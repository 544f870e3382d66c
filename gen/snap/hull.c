/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/snap/internal.h"
#include <stdlib.h>

void points_finish(struct points *p)
{
    for (uint32_t k = 0; k < p->count; k++)
        free(p->point[k].words);
    free(p->point);
    *p = (struct points){0};
}

static int by_price(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->price != y->price)
        return x->price < y->price ? -1 : 1;
    return x->value > y->value ? -1 : x->value < y->value;
}

/* True if the middle point is on or below the line from a to c. */
static bool is_below(const struct point *a, const struct point *b, const struct point *c)
{
    return (c->value - b->value) * (b->price - a->price) >=
           (b->value - a->value) * (c->price - b->price);
}

/* A gain that is no more than the rounding of sums is none. */
static bool is_gain(const struct point *from, const struct point *to)
{
    return to->value > from->value * (1 + 1e-12);
}

void points_hull(struct points *p)
{
    struct point *at = p->point;
    uint32_t count = 0;
    if (!p->count)
        return;
    qsort(at, p->count, sizeof *at, by_price);
    for (uint32_t k = 0; k < p->count; k++) {
        struct point next = at[k];
        if (count && !is_gain(&at[count - 1], &next)) {
            free(next.words);
            continue;
        }
        while (count > 1 && is_below(&at[count - 2], &at[count - 1], &next))
            free(at[--count].words);
        at[count++] = next;
    }
    p->count = count;
}
