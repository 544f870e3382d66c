/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing runs without ever holding n x n bits, unless they are so many that bits are smaller.
   Column j of the result has a run from each row
   i where M[i-1][j] = 0 and M[i][j] = 1 up to the next row where that flips back. So two rows are
   merged at a time, and only the keys that change between them cost anything. */
#include "masks/base/memory.h"
#include "masks/pattern.h"
#include <stdlib.h>

/* Calls visit for each maximal range of keys in row i that are on in `i` and off in `other`
   (other may be n: an empty row). Stops where visit returns false. */
typedef bool (*visit_range)(void *context, uint32_t begin, uint32_t end);

static bool row_minus(const struct pattern *p, uint32_t i, uint32_t other, visit_range visit,
                      void *context)
{
    uint64_t b = other < p->n ? p->row[other] : 0, b_end = other < p->n ? p->row[other + 1] : 0;
    uint64_t r = i < p->n ? p->row[i] : 0, r_end = i < p->n ? p->row[i + 1] : 0;
    for (; r < r_end; r++) {
        uint32_t from = p->run[r].begin, end = p->run[r].end;
        while (b < b_end && p->run[b].end <= from)
            b++;
        for (uint64_t c = b; from < end; c++) {
            uint32_t stop = c < b_end && p->run[c].begin < end ? p->run[c].begin : end;
            if (from < stop && !visit(context, from, stop))
                return false;
            from = c < b_end ? p->run[c].end : end;
        }
    }
    return true;
}

struct counting {
    uint64_t *count, total;
};

static bool count_range(void *context, uint32_t begin, uint32_t end)
{
    struct counting *c = context;
    c->total += end - begin;
    for (uint32_t j = begin; j < end; j++)
        c->count[j + 1]++;
    return c->total <= PATTERN_MAX_RUNS;
}

struct filling {
    struct pattern *t;
    uint64_t *at; /* next run of each column */
    uint32_t row;
};

static bool open_range(void *context, uint32_t begin, uint32_t end)
{
    struct filling *f = context;
    for (uint32_t j = begin; j < end; j++)
        f->t->run[f->at[j]].begin = f->row;
    return true;
}

static bool close_range(void *context, uint32_t begin, uint32_t end)
{
    struct filling *f = context;
    for (uint32_t j = begin; j < end; j++)
        f->t->run[f->at[j]++].end = f->row;
    return true;
}

enum { BITS_MAX_N = 16384 };

/* True if one bit per entry is the shorter form. Two copies of n x n bits then need less than 64 MiB. */
static bool prefers_bits(const struct pattern *p)
{
    return p->n <= BITS_MAX_N && p->n_runs / 8 > (uint64_t)p->n * (p->n / 64) / 64;
}

/* Transposes 64 x 64 bits in place: halves swap their off-diagonal quarters, then quarters theirs. */
static void transpose_block(uint64_t block[64])
{
    uint64_t keep = 0x00000000ffffffff;
    for (uint32_t half = 32; half; half /= 2, keep ^= keep << half) {
        for (uint32_t k = 0; k < 64; k = (k + half + 1) & ~half) {
            uint64_t swap = (block[k] >> half ^ block[k + half]) & keep;
            block[k] ^= swap << half;
            block[k + half] ^= swap;
        }
    }
}

static void set_row(uint64_t *row, const struct run *run, const struct run *end)
{
    for (; run < end; run++) {
        for (uint32_t j = run->begin; j < run->end;) {
            uint32_t stop = (j / 64 + 1) * 64 < run->end ? (j / 64 + 1) * 64 : run->end;
            uint64_t below = stop % 64 ? ((uint64_t)1 << (stop % 64)) - 1 : ~(uint64_t)0;
            row[j / 64] |= below & ~(uint64_t)0 << (j % 64);
            j = stop;
        }
    }
}

/* The 64 x 64 bits at word x of rows 64 y .. of `from`, turned, to word y of rows 64 x .. of `to`. */
static void move_block(const uint64_t *from, uint64_t *to, size_t words, size_t y, size_t x)
{
    uint64_t block[64];
    for (size_t k = 0; k < 64; k++)
        block[k] = from[(64 * y + k) * words + x];
    transpose_block(block);
    for (size_t k = 0; k < 64; k++)
        to[(64 * x + k) * words + y] = block[k];
}

static struct pattern *transpose_bits(const struct pattern *p)
{
    size_t words = ((size_t)p->n + 63) / 64;
    uint64_t *from = memory_new(64 * words * words, sizeof *from);
    uint64_t *to = memory_new(64 * words * words, sizeof *to);
    for (uint32_t i = 0; i < p->n; i++)
        set_row(from + i * words, p->run + p->row[i], p->run + p->row[i + 1]);
    for (size_t y = 0; y < words; y++)
        for (size_t x = 0; x < words; x++)
            move_block(from, to, words, y, x);
    struct pattern *t = pattern_from_bits(to, p->n, words);
    free(from);
    free(to);
    return t;
}

struct pattern *pattern_transpose(const struct pattern *p, struct error *e)
{
    if (prefers_bits(p))
        return transpose_bits(p);
    struct pattern *t = pattern_new(p->n);
    struct counting counting = {.count = t->row};
    for (uint32_t i = 0; i < p->n; i++) {
        if (!row_minus(p, i, i ? i - 1 : p->n, count_range, &counting)) {
            pattern_destroy(t);
            error_set(e, ERROR_INPUT,
                      "the transposed mask has more than 2^31 runs of active queries");
            return NULL;
        }
    }
    for (uint32_t j = 0; j < p->n; j++)
        t->row[j + 1] += t->row[j];
    t->n_runs = counting.total;
    t->active = p->active;
    t->run = memory_new(t->n_runs, sizeof *t->run);
    struct filling f = {t, memory_copy(t->row, ((size_t)p->n + 1) * sizeof *t->row), 0};
    for (uint32_t i = 0; i <= p->n; i++) {
        f.row = i;
        row_minus(p, i ? i - 1 : p->n, i, close_range, &f);
        row_minus(p, i, i ? i - 1 : p->n, open_range, &f);
    }
    free(f.at);
    return pattern_finish(t);
}
