/* SPDX-License-Identifier: Apache-2.0 */
/* Masks with another number of keys than of queries, held in the square of the larger number. */
#include "masks/rectangle.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* Which rows and columns of the square are taken: so many from the first on. */
struct cut {
    uint32_t row, rows, column, columns;
};

static void cut_row(struct pattern *to, uint32_t i, const struct pattern *p,
                    const struct cut *c)
{
    const uint32_t end = c->column + c->columns;
    for (uint64_t r = p->row[c->row + i]; r < p->row[c->row + i + 1]; r++) {
        const uint32_t first = p->run[r].begin > c->column ? p->run[r].begin : c->column;
        const uint32_t last = p->run[r].end < end ? p->run[r].end : end;
        if (first < last) /* fewer runs than p has: there is room */
            pattern_add(to, i, first - c->column, last - c->column);
    }
}

static struct pattern *cut_pattern(const struct pattern *p, const struct cut *c)
{
    struct pattern *to = pattern_new(p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        if (i < c->rows)
            cut_row(to, i, p, c);
        pattern_row(to, i);
    }
    return pattern_finish(to);
}

struct mask *mask_rectangle(const struct mask *m, uint32_t queries, uint32_t keys,
                            enum mask_align align, struct error *e)
{
    const uint32_t side = queries > keys ? queries : keys;
    if (!queries || !keys || side != m->n) {
        error_set(e, ERROR_INPUT,
                  "%s: %u queries and %u keys need a mask of length %u, this one has %u",
                  m->source, queries, keys, side, m->n);
        return NULL;
    }
    const bool end = align == MASK_ALIGN_END;
    const struct cut c = {end ? side - queries : 0, queries, end ? side - keys : 0, keys};
    struct pattern **made = memory_new(m->n_patterns, sizeof *made);
    struct pattern **given = memory_new((size_t)m->layers * m->heads, sizeof *given);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        made[k] = cut_pattern(m->pattern[k], &c);
    for (size_t k = 0; k < (size_t)m->layers * m->heads; k++)
        given[k] = made[m->at[k]];
    struct mask *ret = mask_new(m->layers, m->heads, given, m->source);
    free(made);
    free(given);
    return ret;
}

bool mask_within(const struct mask *m, uint32_t queries, uint32_t keys)
{
    for (uint32_t k = 0; k < m->n_patterns; k++) {
        const struct pattern *p = m->pattern[k];
        if (queries < p->n && p->row[queries] != p->n_runs)
            return false;
        for (uint64_t r = 0; r < p->n_runs; r++)
            if (p->run[r].end > keys)
                return false;
    }
    return true;
}
