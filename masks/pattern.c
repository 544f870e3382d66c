/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/pattern.h"
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct pattern *pattern_new(uint32_t n)
{
    struct pattern *p = memory_new(1, sizeof *p);
    p->n = n;
    p->row = memory_new((size_t)n + 1, sizeof *p->row);
    return p;
}

void pattern_destroy(struct pattern *p)
{
    if (!p)
        return;
    free(p->row);
    free(p->run);
    free(p);
}

bool pattern_add(struct pattern *p, uint32_t row, uint32_t begin, uint32_t end)
{
    p->active += end - begin;
    if (p->n_runs > p->row[row] && p->run[p->n_runs - 1].end == begin) {
        p->run[p->n_runs - 1].end = end;
        return true;
    }
    if (p->n_runs >= PATTERN_MAX_RUNS)
        return false;
    *MEMORY_PUSH(p->run, p->n_runs, p->capacity) = (struct run){begin, end};
    return true;
}

void pattern_row(struct pattern *p, uint32_t row)
{
    p->row[row + 1] = p->n_runs;
}

struct pattern *pattern_finish(struct pattern *p)
{
    p->run = memory_resize(p->run, p->n_runs, sizeof *p->run);
    p->capacity = p->n_runs;
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &p->n, sizeof p->n);
    XXH3_64bits_update(state, p->row, ((size_t)p->n + 1) * sizeof *p->row);
    XXH3_64bits_update(state, p->run, p->n_runs * sizeof *p->run);
    p->hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return p;
}

bool pattern_test(const struct pattern *p, uint32_t i, uint32_t j)
{
    uint64_t low = p->row[i], high = p->row[i + 1];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->run[middle].end <= j)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->row[i + 1] && p->run[low].begin <= j;
}

uint32_t pattern_row_active(const struct pattern *p, uint32_t i)
{
    uint32_t sum = 0;
    for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++)
        sum += p->run[r].end - p->run[r].begin;
    return sum;
}

bool pattern_equal(const struct pattern *a, const struct pattern *b)
{
    return a->n == b->n && a->hash == b->hash && a->n_runs == b->n_runs &&
           !memcmp(a->row, b->row, ((size_t)a->n + 1) * sizeof *a->row) &&
           !memcmp(a->run, b->run, a->n_runs * sizeof *a->run);
}

double pattern_bytes(const struct pattern *p)
{
    return ((double)p->n + 1) * sizeof *p->row + (double)p->n_runs * sizeof *p->run;
}

struct pattern *pattern_copy(const struct pattern *p)
{
    struct pattern *c = memory_copy(p, sizeof *p);
    c->row = memory_copy(p->row, ((size_t)p->n + 1) * sizeof *p->row);
    c->run = memory_copy(p->run, p->n_runs * sizeof *p->run);
    c->capacity = c->n_runs;
    return c;
}

struct pattern *pattern_crop(const struct pattern *p, uint32_t n)
{
    struct pattern *c = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t r = p->row[i]; r < p->row[i + 1] && p->run[r].begin < n; r++)
            pattern_add(c, i, p->run[r].begin, p->run[r].end < n ? p->run[r].end : n);
        pattern_row(c, i);
    }
    return pattern_finish(c);
}

struct pattern *pattern_from_bytes(const uint8_t *bytes, uint32_t n, uint64_t stride)
{
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *row = bytes + i * stride;
        for (uint32_t j = 0; j < n;) {
            while (j < n && !row[j])
                j++;
            uint32_t begin = j;
            while (j < n && row[j])
                j++;
            if (begin < j)
                pattern_add(p, i, begin, j);
        }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}

/* First bit at or after `j` that equals `on`, or n. */
static uint32_t next_bit(const uint64_t *row, uint32_t n, uint32_t j, bool on)
{
    while (j < n) {
        uint64_t word = (on ? row[j / 64] : ~row[j / 64]) >> (j % 64);
        if (word) {
            j += (uint32_t)__builtin_ctzll(word);
            return j < n ? j : n;
        }
        j = (j / 64 + 1) * 64;
    }
    return n;
}

bool pattern_add_bits(struct pattern *p, uint32_t row, const uint64_t *words)
{
    uint32_t n = p->n;
    bool fits = true;
    for (uint32_t j = next_bit(words, n, 0, true); j < n && fits;
         j = next_bit(words, n, j, true)) {
        uint32_t begin = j;
        j = next_bit(words, n, j, false);
        fits = pattern_add(p, row, begin, j);
    }
    pattern_row(p, row);
    return fits;
}

uint32_t pattern_count_runs(const uint64_t *words, uint32_t n)
{
    uint32_t sum = 0;
    uint64_t before = 0;
    for (uint32_t k = 0; k < (n + 63) / 64; k++) {
        sum += (uint32_t)__builtin_popcountll(words[k] & ~(words[k] << 1 | before));
        before = words[k] >> 63;
    }
    return sum;
}

enum { SAMPLED_ROWS = 61, RUN_COPIES = 3 };

static double estimate_runs(const struct pattern_rows *s)
{
    double sum = 0;
    for (uint64_t k = 0; k < SAMPLED_ROWS; k++)
        sum += (double)s->count(s->context, (uint32_t)(k * UINT64_C(2654435761) % s->n));
    return sum / SAMPLED_ROWS * s->n;
}

int pattern_refuse_rows(const struct pattern_rows *s, double runs, struct error *e)
{
    return error_set(e, ERROR_INPUT,
                     "%s about %.2g runs of active keys, at most 2^31 (2.1e+09) are held; %s",
                     s->what, runs, s->remedy);
}

int pattern_check_rows(const struct pattern_rows *s, struct error *e)
{
    const double run = RUN_COPIES * sizeof(struct run), memory = memory_physical();
    double most = (double)s->n * ((s->n + 1) / 2); /* every other key */
    bool many = most > (double)PATTERN_MAX_RUNS,
         large = memory > 0 && s->held + run * most > memory;
    double runs = many || large ? estimate_runs(s) : 0;
    if (runs > (double)PATTERN_MAX_RUNS)
        return pattern_refuse_rows(s, runs, e);
    if (!large || s->held + run * runs <= memory)
        return 0;
    return error_set(e, ERROR_UNAVAILABLE,
                     "%s about %.2g runs of active keys, which need about %.1f GB; this "
                     "machine has %.1f GB; %s",
                     s->what, runs, (s->held + run * runs) / 1e9, memory / 1e9, s->remedy);
}

struct pattern *pattern_from_bits(const uint64_t *words, uint32_t n, uint64_t words_per_row)
{
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++)
        pattern_add_bits(p, i, words + i * words_per_row);
    return pattern_finish(p);
}
