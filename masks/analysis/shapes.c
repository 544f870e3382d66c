/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/analysis/shapes.h"
#include "masks/base/memory.h"
#include <stdlib.h>

/* The run of row i that holds key i; 0 .. 0 where that is off. */
static struct run *find_own_runs(const struct pattern *p)
{
    struct run *own = memory_new(p->n, sizeof *own);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t r = p->row[i]; r < p->row[i + 1] && p->run[r].begin <= i; r++)
            if (p->run[r].end > i)
                own[i] = p->run[r];
    return own;
}

static bool holds_local(const struct run *own, uint32_t n, uint32_t b, int64_t *budget)
{
    for (uint32_t i = b; i < n; i++, --*budget) {
        uint32_t begin = i / b * b, end = n - begin < b ? n : begin + b;
        if (own[i].begin > begin || own[i].end < end || *budget < 0)
            return false;
    }
    return true;
}

/* Block 0 alone bounds b from above; from there downwards, most candidates fail within a few
   rows. The budget keeps a mask made for the worst case from costing n x n. */
static uint32_t find_local(const struct pattern *p)
{
    struct run *own = find_own_runs(p);
    uint32_t b = 0, end = p->n;
    while (b < p->n && own[b].end > b) {
        if (own[b].end < end)
            end = own[b].end;
        if (end < b + 1 || own[b].begin > 0)
            break;
        b++;
    }
    b = b < end ? b : end;
    int64_t budget = 16 * (int64_t)p->n + 65536;
    while (b > 1 && !holds_local(own, p->n, b, &budget))
        b--;
    free(own);
    return b > 1 ? b : 0;
}

/* Bit t is set where row i has all keys of block t on. */
static uint64_t full_blocks(const struct pattern *p, uint32_t i, uint32_t size,
                            uint32_t n_blocks)
{
    uint64_t bits = 0;
    for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++) {
        struct run run = p->run[r];
        if (run.end - run.begin < size && run.end < p->n)
            continue; /* too short for any but the last block */
        uint32_t first = (run.begin + size - 1) / size;
        uint32_t end = run.end == p->n ? n_blocks : run.end / size;
        for (uint32_t t = first; t < end; t++)
            bits |= UINT64_C(1) << t;
    }
    return bits;
}

/* full[b]: key blocks that are on for each query of block b. False once a block has none, unless
   k blocks are more than n tokens fill: then a row of blocks may well be mapped to an empty one. */
static bool fill_blocks(const struct pattern *p, uint32_t k, uint64_t *full)
{
    uint32_t size = block_size(p->n, k), n_blocks = block_size(p->n, size);
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint32_t end = p->n - b * size < size ? p->n : (b + 1) * size;
        full[b] = ~UINT64_C(0);
        for (uint32_t i = b * size; i < end && full[b]; i++)
            full[b] &= full_blocks(p, i, size, n_blocks);
        if (!full[b] && n_blocks == k)
            return false;
    }
    return true;
}

static bool test_shift(const uint64_t *full, uint32_t k, uint32_t n_blocks, uint32_t shift)
{
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint32_t to = (b + shift) % k;
        if (to < n_blocks && !(full[b] >> to & 1))
            return false;
    }
    return true;
}

static bool choose_shift(const uint64_t *full, uint32_t k, uint32_t n_blocks, uint32_t *ret)
{
    for (uint32_t shift = 1; shift < k; shift++) {
        if (!test_shift(full, k, n_blocks, shift))
            continue;
        for (uint32_t b = 0; b < k; b++)
            ret[b] = (b + shift) % k;
        return true;
    }
    return false;
}

/* Each block has one full partner and no two the same. */
static bool choose_unique(const uint64_t *full, uint32_t k, uint32_t n_blocks, uint32_t *ret)
{
    uint64_t taken = 0;
    for (uint32_t b = 0; b < n_blocks; b++) {
        if (!full[b] || full[b] & (full[b] - 1) || taken & full[b])
            return false;
        taken |= full[b];
        ret[b] = (uint32_t)__builtin_ctzll(full[b]);
    }
    return n_blocks == k;
}

static bool is_identity(const uint32_t *perm, uint32_t k)
{
    for (uint32_t b = 0; b < k; b++)
        if (perm[b] != b)
            return false;
    return true;
}

static void find_blocks(const struct pattern *p, struct blocks *ret)
{
    uint64_t full[SHAPES_MAX_BLOCKS];
    uint32_t perm[SHAPES_MAX_BLOCKS];
    for (uint32_t k = 2; k <= SHAPES_MAX_BLOCKS && k <= p->n; k++) {
        uint32_t n_blocks = block_size(p->n, block_size(p->n, k));
        if (!fill_blocks(p, k, full))
            continue;
        if (!choose_unique(full, k, n_blocks, perm) && !choose_shift(full, k, n_blocks, perm))
            continue;
        if (is_identity(perm, k))
            continue;
        *ret = (struct blocks){k, memory_copy(perm, k * sizeof *perm)};
        return;
    }
}

static bool find_ring(const struct pattern *p)
{
    uint32_t n = p->n;
    if (n < 4 || !pattern_test(p, 1, n - 1) || !pattern_test(p, n - 1, 1))
        return false;
    for (uint32_t i = 1; i + 1 < n; i++)
        if (!pattern_test(p, i, i + 1) || !pattern_test(p, i + 1, i))
            return false;
    return true;
}

void shapes_find(struct shapes *ret, const struct pattern *p)
{
    *ret = (struct shapes){.local = find_local(p), .ring = find_ring(p)};
    find_blocks(p, &ret->blocks);
}

void shapes_finish(struct shapes *s)
{
    free(s->blocks.perm);
    *s = (struct shapes){0};
}
