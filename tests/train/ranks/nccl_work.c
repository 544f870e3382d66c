/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ranks/nccl_work.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* Numbers whose sums depend on the order. */
static float number(uint32_t rank, uint64_t k)
{
    uint64_t x = (k + 1) * UINT64_C(0x9e3779b97f4a7c15) + rank * UINT64_C(0xd1342543de82ef95);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    return (float)ldexp((double)(int32_t)x, -(int)(x >> 40 & 31));
}

static float tree(uint32_t first, uint32_t ranks, uint64_t k)
{
    return ranks == 1 ? number(first, k)
                      : tree(first, ranks / 2, k) + tree(first + ranks / 2, ranks / 2, k);
}

/* The sums of two halves go on at the same time. */
static int sum_halves(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    const uint64_t half = count / 2;
    c->begin_sum(c, x + half, count - half);
    if (half)
        c->begin_sum(c, x, half);
    return c->end_sums(c, 0, e);
}

static int check_sum(const struct comm *c, uint64_t count, struct error *e)
{
    float *x = memory_new(count, sizeof *x);
    for (uint64_t k = 0; k < count; k++)
        x[k] = number(c->rank, k);
    int r = sum_halves(c, x, count, e);
    for (uint64_t k = 0; k < count && r == 0; k++) {
        const float line = number(0, k) + number(1, k) + number(2, k); /* the mock's order */
        if (x[k] != (c->size == 3 ? line : tree(0, c->size, k)))
            r = error_set(e, ERROR_FALSE, "element %u of %u is %.9g", (unsigned)k,
                          (unsigned)count, (double)x[k]);
    }
    free(x);
    return r;
}

int sum_arrays(const struct comm *c, struct error *e)
{
    static const uint64_t counts[] = {1, 64, 129, 1000, 70001, 3};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        if (check_sum(c, counts[k], e) < 0)
            return -1;
    return 0;
}

/* Numbers of the host go by TCP, also where they are more than a piece. */
int sum_numbers(const struct comm *c, struct error *e)
{
    enum { COUNT = 20000 };
    double *x = memory_new(COUNT, sizeof *x);
    uint64_t ranks = 1;
    for (uint64_t k = 0; k < COUNT; k++)
        x[k] = (double)number(c->rank, k);
    int r = c->sum_f64(c, x, COUNT, e);
    for (uint64_t k = 0; k < COUNT && r == 0; k++)
        if (x[k] != ((double)number(0, k) + (double)number(1, k)) +
                        ((double)number(2, k) + (double)number(3, k)))
            r = error_set(e, ERROR_FALSE, "element %u", (unsigned)k);
    free(x);
    if (r == 0)
        r = c->sum_u64(c, &ranks, 1, e);
    return r < 0 || ranks == c->size ? r
                                     : error_set(e, ERROR_FALSE, "%u ranks", (unsigned)ranks);
}

/* Each rank sends to the next; then only the last one to the first. */
int move_arrays(const struct comm *c, struct error *e)
{
    enum { COUNT = 50000 };
    const uint32_t next = (c->rank + 1) % c->size, last = c->size - 1,
                   before = (c->rank + last) % c->size;
    float *x = memory_new(COUNT, sizeof *x), *y = memory_new(COUNT, sizeof *y);
    for (uint64_t k = 0; k < COUNT; k++)
        x[k] = number(c->rank, k);
    int r = c->move_array(c, &(struct comm_move){next, before, x, y, COUNT, COUNT}, e);
    for (uint64_t k = 0; k < COUNT && r == 0; k++)
        if (y[k] != number(before, k))
            r = error_set(e, ERROR_FALSE, "element %u", (unsigned)k);
    const struct comm_move one = {c->rank == last ? 0 : c->size, c->rank ? c->size : last, x, y,
                                  c->rank == last ? 7 : 0,       c->rank ? 0 : 7};
    if (r == 0)
        r = c->move_array(c, &one, e);
    if (r == 0 && c->rank == 0 && y[6] != number(last, 6))
        r = error_set(e, ERROR_FALSE, "the last rank's number is %g", (double)y[6]);
    free(x);
    free(y);
    return r;
}

int sum_and_move(const struct comm *c, struct error *e)
{
    return check_sum(c, 200, e) < 0 ? -1 : move_arrays(c, e);
}

int sum_twice(const struct comm *c, struct error *e)
{
    return check_sum(c, 200, e) < 0 ? -1 : check_sum(c, 200, e);
}
