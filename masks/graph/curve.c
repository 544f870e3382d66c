/* SPDX-License-Identifier: Apache-2.0 */
/* Hilbert's curve in 1 to 3 dimensions, by Skilling's transform of coordinates (AIP Conf. Proc. 707, 381, 2004). */
#include "masks/base/memory.h"
#include "masks/graph/order.h"
#include <stdlib.h>

enum { BITS = 20 }; /* of a coordinate */

/* Coordinates of BITS bits become those of the transposed Hilbert index. */
static void transform(uint32_t *x, uint32_t axes)
{
    const uint32_t top = 1u << (BITS - 1);
    for (uint32_t bit = top; bit > 1; bit >>= 1)
        for (uint32_t k = 0; k < axes; k++) {
            uint32_t swap = (x[0] ^ x[k]) & (bit - 1);
            if (x[k] & bit)
                x[0] ^= bit - 1;
            else
                x[0] ^= swap, x[k] ^= swap;
        }
    for (uint32_t k = 1; k < axes; k++)
        x[k] ^= x[k - 1];
    uint32_t flip = 0;
    for (uint32_t bit = top; bit > 1; bit >>= 1)
        flip ^= x[axes - 1] & bit ? bit - 1 : 0;
    for (uint32_t k = 0; k < axes; k++)
        x[k] ^= flip;
}

/* Bits of all axes, the highest first. */
static uint64_t interleave(const uint32_t *x, uint32_t axes)
{
    uint64_t key = 0;
    for (int bit = BITS - 1; bit >= 0; bit--)
        for (uint32_t k = 0; k < axes; k++)
            key = key << 1 | (x[k] >> bit & 1);
    return key;
}

struct keyed {
    uint64_t key;
    uint32_t token;
};

static int compare(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->token > y->token) - (x->token < y->token);
}

/* Smallest coordinates, and the largest extent of an axis: all have the same scale. */
static double measure(const double *point, uint32_t n, uint32_t axes, double *least)
{
    double extent = 0;
    for (uint32_t k = 0; k < axes; k++) {
        double most = least[k] = point[k];
        for (uint32_t i = 1; i < n; i++) {
            double x = point[(size_t)i * axes + k];
            least[k] = x < least[k] ? x : least[k];
            most = x > most ? x : most;
        }
        extent = most / 2 - least[k] / 2 > extent ? most / 2 - least[k] / 2 : extent;
    }
    return extent; /* halved, so that it is finite */
}

uint32_t *order_curve(const double *point, uint32_t n, uint32_t axes)
{
    double least[3], extent = measure(point, n, axes, least);
    struct keyed *keyed = memory_new(n, sizeof *keyed);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x[3] = {0};
        for (uint32_t k = 0; k < axes && extent > 0; k++)
            x[k] = (uint32_t)((point[(size_t)i * axes + k] / 2 - least[k] / 2) / extent *
                              ((1 << BITS) - 1));
        if (axes > 1)
            transform(x, axes);
        keyed[i] = (struct keyed){interleave(x, axes), i};
    }
    qsort(keyed, n, sizeof *keyed, compare);
    uint32_t *order = memory_new(n, sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = keyed[i].token;
    free(keyed);
    return order;
}
