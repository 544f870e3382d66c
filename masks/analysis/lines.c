/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/analysis/lines.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* Keys begin .. end - 1 of row i lie on diagonals begin - i .. end - 1 - i. */
static void add_row(struct line_counts *c, const struct pattern *p, uint32_t i)
{
    uint32_t zero = p->n - 1 - i;
    for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++) {
        uint32_t begin = p->run[r].begin, end = p->run[r].end;
        c->row[i] += end - begin;
        c->column[begin]++;
        c->column[end]--;
        c->diagonal[zero + begin]++;
        c->diagonal[zero + end]--;
    }
}

void line_counts_init(struct line_counts *ret, const struct pattern *p)
{
    uint32_t n = p->n;
    *ret = (struct line_counts){n, memory_new(2 * (size_t)n, sizeof *ret->diagonal),
                                memory_new(n, sizeof *ret->row),
                                memory_new((size_t)n + 1, sizeof *ret->column)};
    for (uint32_t i = 0; i < n; i++)
        add_row(ret, p, i);
    for (uint32_t j = 1; j < n; j++)
        ret->column[j] += ret->column[j - 1];
    for (uint32_t d = 1; d < 2 * n - 1; d++)
        ret->diagonal[d] += ret->diagonal[d - 1];
}

void line_counts_finish(struct line_counts *c)
{
    free(c->diagonal);
    free(c->row);
    free(c->column);
    *c = (struct line_counts){0};
}

void lines_init(struct lines *ret, uint32_t n)
{
    *ret =
        (struct lines){n, memory_new(2 * (size_t)n - 1, 1), memory_new(n, 1), memory_new(n, 1)};
}

void lines_fill(struct lines *l, const struct line_counts *c)
{
    for (uint32_t i = 0; i < l->n; i++) {
        l->row[i] = c->row[i] == l->n;
        l->column[i] = c->column[i] == l->n;
    }
    for (uint32_t d = 0; d < 2 * l->n - 1; d++)
        l->diagonal[d] = (uint32_t)c->diagonal[d] == diagonal_length(l->n, d);
}

void lines_copy(struct lines *ret, const struct lines *l)
{
    memcpy(ret->row, l->row, l->n);
    memcpy(ret->column, l->column, l->n);
    memcpy(ret->diagonal, l->diagonal, 2 * (size_t)l->n - 1);
}

void lines_finish(struct lines *l)
{
    free(l->diagonal);
    free(l->row);
    free(l->column);
    *l = (struct lines){0};
}
