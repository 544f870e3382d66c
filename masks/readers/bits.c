/* SPDX-License-Identifier: Apache-2.0 */
/* Eight bytes at a time for bytes in a row; an inner loop per element type for the rest. */
#include "masks/readers/bits.h"
#include <string.h>

static uint64_t load_8(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Bit k: byte k of x is not zero. The sum sets the high bit of a byte whose low bits are not all
   zero; the product gathers the eight flags into the highest byte. */
static uint64_t nonzero_bytes(uint64_t x)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t flags = ((x & low) + low) | x;
    return ((flags >> 7) & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080) >> 56;
}

static void read_bytes(const uint8_t *p, uint32_t count, uint64_t *words)
{
    uint32_t k = 0;
    for (; k + 8 <= count; k += 8)
        words[k / 64] |= nonzero_bytes(load_8(p + k)) << k % 64;
    for (; k < count; k++)
        words[k / 64] |= (uint64_t)(p[k] != 0) << k % 64;
}

/* The sign of a little-endian integer. */
static bool is_negative(const struct npy *a, uint64_t index)
{
    return a->data[(index + 1) * a->item_bytes - 1] & 0x80;
}

static bool is_zero(const struct npy *a, uint64_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, a->data + index * a->item_bytes, a->item_bytes);
    return bits == 0;
}

static enum bits_problem read_integers(const struct npy_row *row, uint64_t *words,
                                       uint32_t *ret_at)
{
    const struct npy *a = row->array;
    uint64_t index = row->first;
    for (uint32_t k = 0; k < row->count; k++, index += row->step) {
        if (a->type == NPY_INT && is_negative(a, index)) {
            *ret_at = k;
            return BITS_NEGATIVE;
        }
        words[k / 64] |= (uint64_t)!is_zero(a, index) << k % 64;
    }
    return BITS_FINE;
}

static enum bits_problem read_single(const struct npy_row *row, double threshold,
                                     uint64_t *words, uint32_t *ret_at)
{
    uint64_t index = row->first;
    for (uint32_t k = 0; k < row->count; k++, index += row->step) {
        float x;
        memcpy(&x, row->array->data + index * sizeof x, sizeof x);
        if (x != x) {
            *ret_at = k;
            return BITS_NAN;
        }
        words[k / 64] |= (uint64_t)(x > threshold) << k % 64;
    }
    return BITS_FINE;
}

static enum bits_problem read_any(const struct npy_row *row, double threshold, uint64_t *words,
                                  uint32_t *ret_at)
{
    uint64_t index = row->first;
    for (uint32_t k = 0; k < row->count; k++, index += row->step) {
        double x = npy_get(row->array, index);
        if (x != x) {
            *ret_at = k;
            return BITS_NAN;
        }
        words[k / 64] |= (uint64_t)(x > threshold) << k % 64;
    }
    return BITS_FINE;
}

enum bits_problem bits_read(const struct npy_row *row, const double *threshold, uint64_t *words,
                            uint32_t *ret_at)
{
    const struct npy *a = row->array;
    memset(words, 0, ((size_t)row->count + 63) / 64 * sizeof *words);
    if (threshold && a->type == NPY_FLOAT && a->item_bytes == 4)
        return read_single(row, *threshold, words, ret_at);
    if (threshold)
        return read_any(row, *threshold, words, ret_at);
    if (a->item_bytes > 1 || a->type == NPY_INT || row->step > 1)
        return read_integers(row, words, ret_at);
    read_bytes(a->data + row->first, row->count, words);
    return BITS_FINE;
}
