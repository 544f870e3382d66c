/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/snap/internal.h"

void cells_columns(const struct block *b, uint64_t *words, uint32_t begin, uint32_t end)
{
    for (uint32_t r = 0; r < b->rows; r++)
        for (uint32_t j = begin; j < end && j < b->n; j++)
            cells_set(b, words, r, j);
}

void cells_row(const struct block *b, uint64_t *words, uint32_t r)
{
    for (uint32_t j = 0; j < b->n; j++)
        cells_set(b, words, r, j);
}

void cells_diagonal(const struct block *b, uint64_t *words, int64_t offset)
{
    for (uint32_t r = 0; r < b->rows; r++) {
        int64_t j = (int64_t)b->row0 + r + offset;
        if (j >= 0 && j < b->n)
            cells_set(b, words, r, (uint32_t)j);
    }
}

double cells_value(const struct block *b, const uint64_t *words)
{
    double sum = 0;
    for (uint32_t r = 0; r < b->rows; r++)
        for (size_t w = 0; w < b->stride; w++)
            for (uint64_t bits = words[r * b->stride + w]; bits; bits &= bits - 1)
                sum += b->value[(size_t)r * b->n + w * 64 + (size_t)__builtin_ctzll(bits)];
    return sum;
}

uint32_t row_most(const float *value, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t j = 1; j < n; j++)
        most = value[j] >= value[most] ? j : most;
    return most;
}

void cells_keep_rows(const struct block *b, uint64_t *words)
{
    for (uint32_t r = 0; r < b->rows; r++)
        cells_set(b, words, r, row_most(b->value + (size_t)r * b->n, b->n));
}

struct pattern *cells_pattern(const struct block *b, const uint64_t *words)
{
    struct pattern *p = pattern_new(b->n);
    for (uint32_t r = 0; r < b->rows; r++) {
        pattern_add_bits(p, b->row0 + r, words + r * b->stride);
        pattern_row(p, b->row0 + r);
    }
    for (uint32_t i = b->row0 + b->rows; i < b->n; i++)
        pattern_row(p, i);
    return pattern_finish(p);
}
