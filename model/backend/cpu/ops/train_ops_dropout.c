/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout of rows. Philox4x32-10 (Salmon et al. 2011) is drawn for CALLS counters at once, a lane each. */
#include "model/backend/cpu/ops/train_ops_level.h"

enum { CALLS = PART / 8 };

/* Words stand in 64 bits, of which the high 32 mean nothing: products of vectors take them so. */
struct lane {
    uint64_t x, y, z, w;
};

static inline struct lane philox(struct lane c, uint32_t key0, uint32_t key1)
{
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        uint64_t even = 0xD2511F53 * (c.x & 0xffffffff), odd = 0xCD9E8D57 * (c.z & 0xffffffff);
        c = (struct lane){odd >> 32 ^ c.y ^ key0, odd, even >> 32 ^ c.w ^ key1, even};
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    return c;
}

/* The draws of columns 8 call .. 8 call + PART, four to a word: a call's low halves, then its high ones. */
static void draw(const struct row_dropout *d, struct row_place row, uint32_t call,
                 uint64_t draws[PART / 4])
{
    const uint32_t key0 = (uint32_t)d->seed, key1 = (uint32_t)(d->seed >> 32), site = d->site;
#pragma omp simd
    for (uint32_t k = 0; k < CALLS; k++) {
        struct lane c = {call + k, row.position, row.sample, site};
        c = philox(c, key0, key1);
        draws[2 * k] = (c.x & 0xffff) | (c.y & 0xffff) << 16 | (c.z & 0xffff) << 32 | c.w << 48;
        draws[2 * k + 1] = (c.x >> 16 & 0xffff) | (c.y & 0xffff0000) |
                           (c.z & 0xffff0000) << 16 | (c.w & 0xffff0000) << 32;
    }
}

/* Drops out columns first .. first + count - 1 of a row; `first` is a multiple of PART. */
static void drop_part(const struct row_dropout *d, struct row_place row, uint32_t first,
                      uint32_t count, const float *x, float *y)
{
    uint64_t draws[PART / 4];
    uint16_t each[PART];
    const uint32_t below = d->keep_below;
    const float scale = d->keep_scale;
    draw(d, row, first / 8, draws);
    memcpy(each, draws, sizeof each);
#pragma omp simd
    for (uint32_t k = 0; k < count; k++)
        y[k] = each[k] < below ? 0 : x[k] * scale;
}

void train_drop_f32(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                    uint32_t size, const float *x, float *y)
{
    if (!d->keep_below) {
        if (x != y)
            memcpy(y, x, (size_t)rows * size * sizeof *y);
        return;
    }
    for (uint32_t r = 0; r < rows; r++, x += size, y += size)
        for (uint32_t at = 0; at < size; at += PART)
            drop_part(d, row[r], at, part_of(size, at), x + at, y + at);
}

void train_drop_bf16(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                     uint32_t size, const float *x, uint16_t *y)
{
    float part[PART];
    if (!d->keep_below) {
        round_row((uint64_t)rows * size, x, y);
        return;
    }
    for (uint32_t r = 0; r < rows; r++, x += size, y += size)
        for (uint32_t at = 0; at < size; at += PART) {
            drop_part(d, row[r], at, part_of(size, at), x + at, part);
            round_row(part_of(size, at), part, y + at);
        }
}
