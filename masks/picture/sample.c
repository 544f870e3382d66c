/* SPDX-License-Identifier: Apache-2.0 */
/* Entry (i, j) belongs to cell (i * size / n, j * size / n). A run adds its covered entries to the cells at its two ends,
   and updates a difference array for all cells between: its cost does not depend on its length. */
#include "masks/picture/sample.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

static uint32_t cell_of(uint32_t n, uint32_t size, uint32_t at)
{
    return (uint32_t)((uint64_t)at * size / n);
}

static uint32_t cell_begin(uint32_t n, uint32_t size, uint32_t cell)
{
    return (uint32_t)(((uint64_t)cell * n + size - 1) / size);
}

/* Counts for one row of picture cells. */
struct cell_row {
    uint32_t n, size;
    uint64_t *part; /* [size] entries counted one by one */
    int64_t
        *whole; /* [size + 1] differences: rows in which the cell is covered from end to end */
};

static void add_run(struct cell_row *s, struct run run)
{
    uint32_t first = cell_of(s->n, s->size, run.begin),
             last = cell_of(s->n, s->size, run.end - 1);
    if (first == last) {
        s->part[first] += run.end - run.begin;
        return;
    }
    s->part[first] += cell_begin(s->n, s->size, first + 1) - run.begin;
    s->part[last] += run.end - cell_begin(s->n, s->size, last);
    s->whole[first + 1]++;
    s->whole[last]--;
}

static void finish_cell_row(struct cell_row *s, uint32_t rows, float *ret)
{
    int64_t whole = 0;
    for (uint32_t x = 0; x < s->size; x++) {
        uint32_t width = cell_begin(s->n, s->size, x + 1) - cell_begin(s->n, s->size, x);
        whole += s->whole[x];
        double active = (double)s->part[x] + (double)whole * width;
        ret[x] = (float)(active / ((double)rows * width));
    }
    memset(s->part, 0, s->size * sizeof *s->part);
    memset(s->whole, 0, (s->size + 1) * sizeof *s->whole);
}

float *pattern_sample(const struct pattern *p, uint32_t size)
{
    struct cell_row s = {p->n, size, memory_new(size, sizeof *s.part),
                         memory_new((size_t)size + 1, sizeof *s.whole)};
    float *level = memory_new((size_t)size * size, sizeof *level);
    for (uint32_t y = 0; y < size; y++) {
        uint32_t begin = cell_begin(p->n, size, y), end = cell_begin(p->n, size, y + 1);
        for (uint64_t r = p->row[begin]; r < p->row[end]; r++)
            add_run(&s, p->run[r]);
        finish_cell_row(&s, end - begin, level + (size_t)y * size);
    }
    free(s.part);
    free(s.whole);
    return level;
}
