/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/analysis/widen.h"
#include <stddef.h>

/* The keys of row i inside the band; begin == end where there are none. */
static struct run band_row(uint32_t n, uint32_t i, struct offsets band)
{
    int64_t begin = (int64_t)i + band.low, end = (int64_t)i + band.high + 1;
    begin = begin < 0 ? 0 : begin > n ? n : begin;
    end = end < begin ? begin : end > n ? n : end;
    return (struct run){(uint32_t)begin, (uint32_t)end};
}

/* Adds a run that may overlap those before it in the row. */
static bool add_over(struct pattern *u, uint32_t i, struct run run)
{
    if (u->n_runs > u->row[i]) {
        uint32_t end = u->run[u->n_runs - 1].end;
        run.begin = run.begin < end ? end : run.begin;
    }
    return run.begin >= run.end || pattern_add(u, i, run.begin, run.end);
}

static bool fill_row(struct pattern *u, const struct pattern *p, uint32_t i, struct run band)
{
    bool ok = true, added = false;
    for (uint64_t r = p->row[i]; r < p->row[i + 1] && ok; r++) {
        if (!added && band.begin <= p->run[r].begin) {
            ok = add_over(u, i, band);
            added = true;
        }
        ok = ok && add_over(u, i, p->run[r]);
    }
    ok = ok && (added || add_over(u, i, band));
    pattern_row(u, i);
    return ok;
}

struct pattern *pattern_fill(const struct pattern *p, struct offsets band)
{
    struct pattern *u = pattern_new(p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!fill_row(u, p, i, band_row(p->n, i, band))) {
            pattern_destroy(u);
            return NULL;
        }
    }
    return pattern_finish(u);
}

static bool row_lacks(const struct pattern *p, uint32_t i, struct run band)
{
    uint64_t low = p->row[i], high = p->row[i + 1];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->run[middle].end <= band.begin)
            low = middle + 1;
        else
            high = middle;
    }
    return band.begin == band.end || low == p->row[i + 1] || p->run[low].begin >= band.end;
}

bool pattern_lacks(const struct pattern *p, struct offsets band)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (!row_lacks(p, i, band_row(p->n, i, band)))
            return false;
    return true;
}
