/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing runs without ever holding n x n bits. Column j of the result has a run from each row
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

struct pattern *pattern_transpose(const struct pattern *p, struct error *e)
{
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
