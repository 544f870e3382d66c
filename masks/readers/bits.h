/* SPDX-License-Identifier: Apache-2.0 */
/* One row of an array as bits: what is active. */
#pragma once
#include "masks/npy.h"

enum bits_problem { BITS_FINE, BITS_NEGATIVE, BITS_NAN };

/* Elements first, first + step, ... (storage indices), `count` of them. */
struct npy_row {
    const struct npy *array;
    uint64_t first, step;
    uint32_t count;
};

/* Bit k of words is on where the row's element k is != 0 (booleans, integers) or > threshold (floats,
   and integers with a threshold). Without a threshold a negative integer is a problem, at *ret_at; with
   one NaN is. */
enum bits_problem bits_read(const struct npy_row *row, const double *threshold, uint64_t *words,
                            uint32_t *ret_at);
