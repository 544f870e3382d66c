/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/cuda/train_ops_rows.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SEED = UINT64_C(0x123456789);
static const uint32_t BELOW = 13107; /* of 65536: p = 0.2 */

/* ---- dropout, as its definition says ---- */

static void philox(uint32_t c[4], uint64_t seed)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t even = UINT64_C(0xD2511F53) * c[0], odd = UINT64_C(0xCD9E8D57) * c[2];
        const uint32_t x = (uint32_t)(odd >> 32) ^ c[1] ^ key0,
                       z = (uint32_t)(even >> 32) ^ c[3] ^ key1;
        c[0] = x;
        c[1] = (uint32_t)odd;
        c[2] = z;
        c[3] = (uint32_t)even;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

static double factor(const uint32_t *place, uint32_t r, uint32_t column)
{
    uint32_t c[4] = {column / 8, place[2 * r + 1], place[2 * r], 3};
    philox(c, SEED);
    const uint32_t word = c[column % 4], draw = column % 8 < 4 ? word & 0xffff : word >> 16;
    return draw < BELOW ? 0 : 65536.0 / (65536 - BELOW);
}

static struct train_args dropping(const uint32_t *place)
{
    return (struct train_args){.rows = TRAIN_TEST_ROWS,
                               .seed = SEED,
                               .site = 3,
                               .keep_below = BELOW,
                               .keep_scale = 65536.0f / (float)(65536 - BELOW),
                               .place = place};
}

static uint32_t *places(void)
{
    uint32_t *ret = memory_new(2 * (size_t)TRAIN_TEST_ROWS, sizeof *ret);
    for (uint32_t k = 0; k < 2 * (uint32_t)TRAIN_TEST_ROWS; k++)
        ret[k] = k * 7 % 40;
    bench_lend(ret, 2 * (size_t)TRAIN_TEST_ROWS * sizeof *ret);
    return ret;
}

void bench_take_back(void *p)
{
    bench_unlend(p);
    free(p);
}

/* ---- LayerNorm ---- */

static const float EPS = 1e-5f;

/* Computes in float64 the results of train_norm for x and a residual. */
static void find_truth(const struct bench *b, const uint32_t *place, const struct matrix *of[2],
                       double *normed, double *of_row, double *truth)
{
    const uint32_t n = b->s.hidden;
    for (uint32_t r = 0; r < TRAIN_TEST_ROWS; r++) {
        double mean = 0, variance = 0, *v = normed + (size_t)r * n;
        for (uint32_t k = 0; k < n; k++)
            mean += (v[k] = (of[0]->value[r * n + k] + b->bias.value[k]) * factor(place, r, k) +
                            of[1]->value[r * n + k]) /
                    n;
        for (uint32_t k = 0; k < n; k++)
            variance += (v[k] - mean) * (v[k] - mean) / n;
        of_row[r] = 1 / sqrt(variance + (double)EPS);
        for (uint32_t k = 0; k < n; k++) {
            v[k] = (v[k] - mean) * of_row[r];
            truth[r * n + k] = v[k] * b->gain.value[k] + b->shift.value[k];
        }
    }
}

/* Forward with dropout and a residual, then its way back with dropout again. */
void train_normalises(const struct bench *b)
{
    const uint32_t n = b->s.hidden;
    struct matrix x = matrix_new(TRAIN_TEST_ROWS * n, true, 0),
                  residual = matrix_new(TRAIN_TEST_ROWS * n, b->s.wide, 0),
                  z = matrix_new(TRAIN_TEST_ROWS * n, b->s.wide, 0),
                  inverse = matrix_new(TRAIN_TEST_ROWS, true, 0),
                  y = matrix_new(TRAIN_TEST_ROWS * n, b->s.wide, 0),
                  d = matrix_new(TRAIN_TEST_ROWS * n, true, 0),
                  dropped = matrix_new(TRAIN_TEST_ROWS * n, b->s.wide, 0);
    uint32_t *place = places();
    double *normed = memory_new(TRAIN_TEST_ROWS * (size_t)n, sizeof *normed),
           *truth = memory_new(TRAIN_TEST_ROWS * (size_t)n, sizeof *truth),
           *of_row = memory_new(TRAIN_TEST_ROWS, sizeof *of_row);
    struct train_args a = dropping(place);
    find_truth(b, place, (const struct matrix *[]){&x, &residual}, normed, of_row, truth);
    a.eps = EPS;
    a.x = x.bytes;
    a.bias = b->bias.bytes;
    a.residual = residual.bytes;
    a.gain = b->gain.bytes;
    a.shift = b->shift.bytes;
    a.z = z.bytes;
    a.inverse = inverse.bytes;
    a.y = y.bytes;
    bench_train(b, "train_norm", &a);
    matrix_compare(&y, truth, "train_norm");
    matrix_compare(&z, normed, "train_norm, normalised");
    matrix_compare(&inverse, of_row, "train_norm, inverse");
    /* back, by what the tape has */
    for (uint32_t r = 0; r < TRAIN_TEST_ROWS; r++) {
        double g = 0, gz = 0;
        for (uint32_t k = 0; k < n; k++) {
            g += d.value[r * n + k] * b->gain.value[k] / n;
            gz += d.value[r * n + k] * b->gain.value[k] * matrix_read(&z, r * n + k) / n;
        }
        for (uint32_t k = 0; k < n; k++)
            truth[r * n + k] =
                matrix_read(&inverse, r) *
                (d.value[r * n + k] * b->gain.value[k] - g - matrix_read(&z, r * n + k) * gz);
    }
    a.wide_z = a.wide_y = b->s.wide;
    a.d = d.bytes;
    a.y = dropped.bytes;
    bench_train(b, "train_norm_back", &a);
    matrix_compare(&d, truth, "train_norm_back");
    for (uint32_t k = 0; k < TRAIN_TEST_ROWS * n; k++)
        truth[k] *= factor(place, k / n, k % n);
    matrix_compare(&dropped, truth, "train_norm_back, dropped");
    struct matrix *all[] = {&x, &residual, &z, &inverse, &y, &d, &dropped};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        matrix_finish(all[k]);
    bench_take_back(place);
    free(normed);
    free(truth);
    free(of_row);
}

/* ---- sums ---- */

void train_sums_columns(const struct bench *b, uint32_t columns)
{
    enum { CHUNKS = (TRAIN_TEST_ROWS + TRAIN_CHUNK - 1) / TRAIN_CHUNK };
    struct matrix x = matrix_new(TRAIN_TEST_ROWS * columns, b->s.wide, 0),
                  z = matrix_new(TRAIN_TEST_ROWS * columns, true, 0),
                  part = matrix_new(2 * CHUNKS * columns, true, 0),
                  y = matrix_new(2 * columns, true, 0);
    double *truth = memory_copy(y.value, 2 * columns * sizeof *truth);
    struct train_args a = {.rows = TRAIN_TEST_ROWS,
                           .columns = columns,
                           .wide = b->s.wide,
                           .wide_z = 1,
                           .x = x.bytes,
                           .z = z.bytes,
                           .part = part.bytes};
    for (uint32_t k = 0; k < TRAIN_TEST_ROWS * columns; k++) {
        truth[k % columns] += x.value[k] * z.value[k];
        truth[columns + k % columns] += x.value[k];
    }
    bench_train(b, "train_columns", &a);
    float *from = part.bytes, *to = y.bytes;
    a = (struct train_args){
        .columns = 2 * columns,
        .sums = 2,
        .sum = {{from + CHUNKS * columns, to, CHUNKS, columns, columns, 0, 0},
                {from, to + columns, CHUNKS, columns, columns, 0, 0}}};
    bench_train(b, "train_add_parts", &a);
    matrix_compare(&y, truth, "train_columns");
    matrix_finish(&x);
    matrix_finish(&z);
    matrix_finish(&part);
    matrix_finish(&y);
    free(truth);
}

void train_adds_segments(const struct bench *b)
{
    static const uint32_t lists[] = {0,  2, 3, 9,
                                     11, /* begin */
                                     4,  8, 1, 0,
                                     2,  3, 5, 6,
                                     7,  1, 2,                 /* from */
                                     5,  0, 2, TRAIN_NOWHERE}; /* target */
    enum { SEGMENTS = 4, FROM = SEGMENTS + 1, TARGET = FROM + 11 };
    const uint32_t n = b->s.hidden;
    uint32_t *list = memory_copy(lists, sizeof lists);
    struct matrix x = matrix_new(9 * n, true, 0), y = matrix_new(6 * n, true, 0);
    double *truth = memory_copy(y.value, 6 * n * sizeof *truth);
    bench_lend(list, sizeof lists);
    for (uint32_t s = 0; s < SEGMENTS - 1; s++)
        for (uint32_t k = list[s]; k < list[s + 1]; k++)
            for (uint32_t i = 0; i < n; i++)
                truth[list[TARGET + s] * n + i] += x.value[list[FROM + k] * n + i];
    const struct train_args a = {.rows = SEGMENTS,
                                 .wide = 1,
                                 .adds = 1,
                                 .begin = list,
                                 .from = list + FROM,
                                 .target = list + TARGET,
                                 .x = x.bytes,
                                 .y = y.bytes};
    bench_train(b, "train_segments", &a);
    matrix_compare(&y, truth, "train_segments");
    matrix_finish(&x);
    matrix_finish(&y);
    bench_take_back(list);
    free(truth);
}

/* ---- weights ---- */

/* As it lies, and transposed. */
static void packs(const struct bench *b, uint32_t rows, uint32_t columns, bool transposed)
{
    struct matrix x = matrix_new(rows * columns, true, 0),
                  y = matrix_new(rows * columns, b->s.wide, 0);
    double *truth = memory_new(rows * columns, sizeof *truth);
    const struct train_pack p = {.rows = rows,
                                 .columns = columns,
                                 .wide_y = b->s.wide,
                                 .row = transposed ? 1 : columns,
                                 .column = transposed ? rows : 1,
                                 .x = (const float *)x.bytes,
                                 .y = y.bytes,
                                 .tiles = (rows + 31) / 32 * ((columns + 31) / 32)};
    for (uint32_t k = 0; k < rows * columns; k++)
        truth[k] = x.value[k / columns * p.row + k % columns * p.column];
    bench_train(b, "train_pack",
                &(struct train_args){.count = p.tiles, .packs = 1, .pack = {p}});
    matrix_compare(&y, truth, "train_pack");
    matrix_finish(&x);
    matrix_finish(&y);
    free(truth);
}

/* Two in one launch. */
static void packs_two(const struct bench *b)
{
    enum { FIRST = 33 * 5, SECOND = 4 * 70 };
    struct matrix x = matrix_new(FIRST + SECOND, true, 0),
                  y = matrix_new(FIRST + SECOND, true, 0);
    float *from = x.bytes, *to = y.bytes;
    const struct train_args a = {.count = 5,
                                 .packs = 2,
                                 .pack = {{from, to, 5, 1, 33, 5, 1, 2},
                                          {from + FIRST, to + FIRST, 70, 1, 4, 70, 1, 3}}};
    bench_train(b, "train_pack", &a);
    matrix_compare(&y, x.value, "train_pack, two");
    matrix_finish(&x);
    matrix_finish(&y);
}

void train_packs(const struct bench *b)
{
    packs(b, 70, 45, false);
    packs(b, 45, 70, true);
    packs_two(b);
}
