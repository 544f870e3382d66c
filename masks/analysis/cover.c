/* SPDX-License-Identifier: Apache-2.0 */
/* Every question here is a walk along a row, a column or a diagonal that jumps from the end of one
   covering stretch to the next, so it costs stretches and not entries. Masks can be built in which
   stretches alternate at every entry (even columns, odd diagonals); a budget in proportion to rows
   and runs stops those walks, and then the cover is given up or a line is kept. */
#include "masks/analysis/cover.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { BUDGET_PER_RUN = 32 };

enum direction { RIGHT = 1, DOWN = 2 };

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void stretch(const uint8_t *flag, uint32_t count, struct run *ret)
{
    for (uint32_t a = 0; a < count;) {
        uint32_t b = a + 1;
        while (b < count && flag[b] == flag[a])
            b++;
        for (uint32_t x = a; x < b; x++)
            ret[x] = (struct run){a, b};
        a = b;
    }
}

void cover_init(struct cover *ret, const struct lines *full, const struct shapes *shapes,
                uint64_t n_runs)
{
    uint32_t n = full->n;
    *ret = (struct cover){.n = n, .shapes = *shapes};
    lines_init(&ret->lines, n);
    lines_copy(&ret->lines, full);
    ret->diagonal = memory_new(2 * (size_t)n - 1, sizeof(struct run));
    ret->row = memory_new(n, sizeof(struct run));
    ret->column = memory_new(n, sizeof(struct run));
    cover_refresh(ret);
    ret->budget = BUDGET_PER_RUN * (int64_t)(n + n_runs) + (1 << 20);
}

void cover_refresh(struct cover *c)
{
    stretch(c->lines.diagonal, 2 * c->n - 1, c->diagonal);
    stretch(c->lines.row, c->n, c->row);
    stretch(c->lines.column, c->n, c->column);
}

void cover_finish(struct cover *c)
{
    lines_finish(&c->lines);
    free(c->diagonal);
    free(c->row);
    free(c->column);
    *c = (struct cover){0};
}

static uint32_t block_steps(uint32_t i, uint32_t j, uint32_t size, enum direction to)
{
    uint32_t steps = size;
    if (to & DOWN)
        steps = smaller(steps, size - i % size);
    if (to & RIGHT)
        steps = smaller(steps, size - j % size);
    return steps;
}

static uint32_t shape_steps(const struct cover *c, uint32_t i, uint32_t j, enum direction to)
{
    const struct shapes *s = &c->shapes;
    if (s->local && i / s->local == j / s->local)
        return block_steps(i, j, s->local, to);
    if (s->blocks.k) {
        uint32_t size = block_size(c->n, s->blocks.k);
        if (s->blocks.perm[i / size] == j / size)
            return block_steps(i, j, size, to);
    }
    return s->ring && ring_test(c->n, i, j);
}

/* Number of entries from (i, j) on, in that direction, that one part of the cover explains. 0 if no part explains (i,
   j). */
static uint32_t steps(const struct cover *c, uint32_t i, uint32_t j, enum direction to)
{
    uint32_t o = j + c->n - 1 - i;
    if (c->lines.row[i])
        return to & DOWN ? c->row[i].end - i : c->n;
    if (c->lines.column[j])
        return to & RIGHT ? c->column[j].end - j : c->n;
    if (c->lines.diagonal[o] && to == (DOWN | RIGHT))
        return c->n;
    if (c->lines.diagonal[o])
        return to == RIGHT ? c->diagonal[o].end - o : o + 1 - c->diagonal[o].begin;
    return shape_steps(c, i, j, to);
}

static bool explained(struct cover *c, uint32_t i, uint32_t j, enum direction to)
{
    while (i < c->n && j < c->n) {
        uint32_t more = steps(c, i, j, to);
        if (!more || --c->budget < 0)
            return false;
        i += to & DOWN ? more : 0;
        j += to & RIGHT ? more : 0;
    }
    return true;
}

/* Takes the line out to look at the rest, and puts it back where it is needed. */
static bool drop_line(struct cover *c, uint8_t *flag, uint32_t i, uint32_t j, enum direction to)
{
    *flag = 0;
    bool dropped = explained(c, i, j, to);
    *flag = !dropped;
    return dropped;
}

void cover_prune(struct cover *c)
{
    uint32_t n = c->n;
    for (uint32_t i = 0; i < n; i++)
        if (c->lines.row[i])
            drop_line(c, &c->lines.row[i], i, 0, RIGHT);
    stretch(c->lines.row, n, c->row);
    for (uint32_t j = 0; j < n; j++)
        if (c->lines.column[j])
            drop_line(c, &c->lines.column[j], 0, j, DOWN);
    stretch(c->lines.column, n, c->column);
    for (uint32_t o = 0; o < 2 * n - 1; o++)
        if (c->lines.diagonal[o])
            drop_line(c, &c->lines.diagonal[o], o < n ? n - 1 - o : 0, o < n ? 0 : o - (n - 1),
                      DOWN | RIGHT);
    stretch(c->lines.diagonal, 2 * n - 1, c->diagonal);
}

void cover_drop_short(struct cover *c, uint32_t cells, const struct offsets *keep)
{
    for (uint32_t d = 0; d < 2 * c->n - 1; d++) {
        int64_t o = (int64_t)d - (c->n - 1);
        if (diagonal_length(c->n, d) < cells && !(keep && o >= keep->low && o <= keep->high))
            c->lines.diagonal[d] = 0;
    }
    cover_refresh(c);
}

static uint32_t next_block(uint32_t at, uint32_t j, uint32_t next)
{
    return at > j ? smaller(at, next) : next;
}

/* The first key after j, which is not explained itself, that may be; at most n. */
static uint32_t next_explained(const struct cover *c, uint32_t i, uint32_t j)
{
    uint32_t o = j + c->n - 1 - i, n = c->n;
    uint32_t next = smaller(c->column[j].end, j + (c->diagonal[o].end - o));
    const struct shapes *s = &c->shapes;
    if (s->local)
        next = next_block(i / s->local * s->local, j, next);
    if (s->blocks.k) {
        uint32_t size = block_size(n, s->blocks.k);
        next = next_block(s->blocks.perm[i / size] * size, j, next);
    }
    if (s->ring && i) {
        next = next_block(i - 1, j, next);
        next = next_block(i + 1, j, next);
        next = next_block(i == 1 ? n - 1 : i == n - 1 ? 1 : 0, j, next);
    }
    return smaller(next, n);
}

static void leave(struct leftovers *l, uint32_t row, uint32_t begin, uint32_t end)
{
    l->cells += end - begin;
    struct leftover *last = l->kept ? &l->run[l->kept - 1] : NULL;
    if (last && l->n_runs == l->kept && last->row == row && last->end == begin) {
        last->end = end;
        return;
    }
    if (l->n_runs++ < LEFTOVER_MAX_RUNS)
        *MEMORY_PUSH(l->run, l->kept, l->capacity) = (struct leftover){row, begin, end};
}

static bool walk_run(struct cover *c, uint32_t i, struct run run, struct leftovers *ret)
{
    for (uint32_t j = run.begin; j < run.end;) {
        if (--c->budget < 0)
            return false;
        uint32_t more = steps(c, i, j, RIGHT);
        if (more) {
            j += more;
            continue;
        }
        uint32_t end = smaller(next_explained(c, i, j), run.end);
        leave(ret, i, j, end);
        j = end;
    }
    return true;
}

bool cover_leftovers(struct cover *c, const struct pattern *p, uint64_t most,
                     struct leftovers *ret)
{
    *ret = (struct leftovers){0};
    c->budget = BUDGET_PER_RUN * (int64_t)(p->n + p->n_runs) + (1 << 20);
    for (uint32_t i = 0; i < p->n; i++) {
        if (c->lines.row[i])
            continue;
        for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++)
            if (!walk_run(c, i, p->run[r], ret) || ret->n_runs > most)
                return false;
    }
    return true;
}

void leftovers_finish(struct leftovers *l)
{
    free(l->run);
    *l = (struct leftovers){0};
}
