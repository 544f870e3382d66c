/* SPDX-License-Identifier: Apache-2.0 */
/* A step is promising where many more entries lie on the diagonals at its multiples than would by
   chance. Rows that see far more than the others (global tokens) take no part: they are whole rows,
   and in a class they would only be cut up. */
#include "gen/plan/builder.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_CLASS = 16,    /* rows of a class: with fewer nothing is shared */
    LEAST_ENTRIES = 6,   /* of a row in its class, on average */
    STANDS_OUT = 4,      /* times the median row's entries */
    MOST_RUNS = 1 << 26, /* of both parts together */
};

/* Entries on the diagonals, over those that chance would put there. */
#define LEAST_LIFT 1.8

/* Minimum ratio to the best step's worth: a multiple of a step has half of its entries. */
#define LEAST_WORTH 0.6

static int ascending(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

uint32_t pattern_middle_row(const struct pattern *p)
{
    uint32_t *active = memory_new(p->n, sizeof *active), rows = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->row[i] < p->row[i + 1])
            active[rows++] = pattern_row_active(p, i);
    qsort(active, rows, sizeof *active, ascending);
    const uint32_t middle = rows ? active[rows / 2] : 0;
    free(active);
    return middle;
}

/* Rows with more entries than this take no part. */
static uint32_t most_active(const struct pattern *p)
{
    const uint64_t most = STANDS_OUT * (uint64_t)pattern_middle_row(p);
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* Number of entries of each diagonal, over rows with at most `most`: [2 n - 1], offset d at d + n -
   1. Prefix sums of the begins and ends of runs. */
static int64_t *count_diagonals(const struct pattern *p, uint32_t most, uint64_t *active)
{
    int64_t *count = memory_new(2 * (size_t)p->n + 1, sizeof *count), sum = 0;
    *active = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t here = pattern_row_active(p, i);
        if (here > most)
            continue;
        *active += here;
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++) {
            count[p->run[k].begin + p->n - 1 - i]++;
            count[p->run[k].end + p->n - 1 - i]--;
        }
    }
    for (size_t d = 0; d < 2 * (size_t)p->n; d++)
        count[d] = sum += count[d];
    return count;
}

static uint64_t on_multiples(const int64_t *count, uint32_t n, uint32_t step)
{
    uint64_t sum = 0;
    for (uint32_t d = (n - 1) % step; d < 2 * n - 1; d += step)
        sum += (uint64_t)count[d];
    return sum;
}

/* Keeps the list in order of falling worth. */
static uint32_t insert(uint32_t *step, double *worth, uint32_t steps, uint32_t s, double w)
{
    uint32_t at = steps < SPLIT_MOST ? steps : SPLIT_MOST;
    while (at && worth[at - 1] < w)
        at--;
    if (at == SPLIT_MOST)
        return steps;
    steps += steps < SPLIT_MOST;
    memmove(step + at + 1, step + at, (steps - at - 1) * sizeof *step);
    memmove(worth + at + 1, worth + at, (steps - at - 1) * sizeof *worth);
    step[at] = s;
    worth[at] = w;
    return steps;
}

uint32_t split_candidates(const struct pattern *p, uint32_t step[SPLIT_MOST])
{
    double worth[SPLIT_MOST];
    uint32_t steps = 0;
    uint64_t active;
    if (p->active < LEAST_ENTRIES * (uint64_t)p->n)
        return 0;
    int64_t *count = count_diagonals(p, most_active(p), &active);
    for (uint32_t s = 2; s <= p->n / LEAST_CLASS; s++) {
        uint64_t entries = on_multiples(count, p->n, s);
        double e = (double)entries;
        if (entries >= LEAST_ENTRIES * (uint64_t)p->n && e * s >= LEAST_LIFT * (double)active)
            steps = insert(step, worth, steps, s, e * e * s);
    }
    free(count);
    while (steps && worth[steps - 1] < LEAST_WORTH * worth[0])
        steps--;
    return steps;
}

/* Cuts the class's columns out of one run. */
static bool cut_run(struct split *s, uint32_t row, struct run run)
{
    uint32_t from = run.begin, first = run.begin + s->step - 1 - row % s->step;
    uint32_t j = row % s->step + (first / s->step) * s->step;
    bool fits = true;
    for (; fits && j < run.end; from = j + 1, j += s->step) {
        fits = pattern_add(s->classes, row, j, j + 1);
        if (fits && from < j)
            fits = pattern_add(s->rest, row, from, j);
    }
    if (fits && from < run.end)
        fits = pattern_add(s->rest, row, from, run.end);
    return fits && s->classes->n_runs + s->rest->n_runs <= MOST_RUNS;
}

static bool cut_row(const struct pattern *p, struct split *s, uint32_t row, bool stands_out)
{
    struct pattern *to = stands_out ? s->rest : s->classes;
    bool fits = true;
    for (uint64_t k = p->row[row]; fits && k < p->row[row + 1]; k++)
        fits = stands_out || s->whole ? pattern_add(to, row, p->run[k].begin, p->run[k].end)
                                      : cut_run(s, row, p->run[k]);
    pattern_row(s->classes, row);
    pattern_row(s->rest, row);
    return fits;
}

bool split_make(const struct pattern *p, uint32_t step, bool whole, uint32_t apart,
                struct split *ret)
{
    uint32_t most = most_active(p);
    bool fits = true;
    *ret = (struct split){step, pattern_new(p->n), pattern_new(p->n), whole};
    for (uint32_t i = 0; fits && i < p->n; i++)
        fits = cut_row(p, ret, i, i == apart || pattern_row_active(p, i) > most);
    if (!fits) {
        split_finish(ret);
        return false;
    }
    pattern_finish(ret->classes);
    pattern_finish(ret->rest);
    return true;
}

void split_finish(struct split *s)
{
    pattern_destroy(s->classes);
    pattern_destroy(s->rest);
    *s = (struct split){0};
}
