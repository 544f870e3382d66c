/* SPDX-License-Identifier: Apache-2.0 */
/* Candidate subsets of a row block, from simple to mixed. Sizes of many nested prefixes grow like a geometric series:
   neighbours differ little, and pricing each takes time. */
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { TILE = 32, HALF = 16, MOST_LINES = 64 };

/* A part that a prefix adds at once, and what is worth to sort it by. */
struct part {
    double value;
    int64_t at; /* first column, offset of a diagonal, entry */
    enum { PART_COLUMNS, PART_DIAGONAL, PART_ENTRY } kind;
    uint32_t width; /* of columns */
};

struct maker {
    const struct pricer *x;
    const struct block *b;
    struct candidates *ret;
    uint64_t *words; /* of the candidate being made */
    double *column;  /* [n] sums */
    struct part *part;
    size_t parts;
};

static int by_value(const void *x, const void *y)
{
    const struct part *a = x, *b = y;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->at > b->at ? -1 : a->at < b->at; /* of equal ones the last, as --keep has it */
}

static void add_part(struct maker *m, const struct part *p)
{
    if (p->kind == PART_DIAGONAL)
        cells_diagonal(m->b, m->words, p->at);
    else if (p->kind == PART_COLUMNS)
        cells_columns(m->b, m->words, (uint32_t)p->at, (uint32_t)p->at + p->width);
    else
        cells_set(m->b, m->words, (uint32_t)(p->at / m->b->n), (uint32_t)(p->at % m->b->n));
}

static void clear(struct maker *m)
{
    memset(m->words, 0, block_words(m->b) * sizeof *m->words);
}

static void emit(struct maker *m)
{
    price_add_points(m->x, m->b, m->words, m->ret);
}

/* The size after k: 1, 2, 3, 4, then by a quarter more, or by a half. */
static size_t next_size(size_t k, size_t coarse)
{
    return k < 4 ? k + 1 : k + k / coarse;
}

/* Prefixes of the parts above 0, by falling value, of `first` to `most` parts. */
static void add_prefixes(struct maker *m, size_t most, size_t first, size_t coarse)
{
    size_t done = 0;
    qsort(m->part, m->parts, sizeof *m->part, by_value);
    clear(m);
    for (size_t k = first; k <= most && k <= m->parts; k = next_size(k, coarse)) {
        while (done < k && m->part[done].value > 0)
            add_part(m, &m->part[done++]);
        emit(m);
        if (done < k)
            return;
    }
}

static double sum_columns(const struct maker *m, uint32_t begin, uint32_t end)
{
    double sum = 0;
    for (uint32_t j = begin; j < end && j < m->b->n; j++)
        sum += m->column[j];
    return sum;
}

static double sum_diagonal(const struct block *b, int64_t offset, const uint64_t *without)
{
    double sum = 0;
    for (uint32_t r = 0; r < b->rows; r++) {
        int64_t j = (int64_t)b->row0 + r + offset;
        if (j >= 0 && j < b->n && !(without && cells_test(b, without, r, (uint32_t)j)))
            sum += b->value[(size_t)r * b->n + (size_t)j];
    }
    return sum;
}

static double sum_column(const struct block *b, uint32_t j, const uint64_t *without)
{
    double sum = 0;
    for (uint32_t r = 0; r < b->rows; r++)
        if (!cells_test(b, without, r, j))
            sum += b->value[(size_t)r * b->n + j];
    return sum;
}

static void list_columns(struct maker *m, uint32_t width)
{
    m->parts = 0;
    for (uint32_t j = 0; j < m->b->n; j += width)
        m->part[m->parts++] =
            (struct part){sum_columns(m, j, j + width), j, PART_COLUMNS, width};
}

static int64_t first_offset(const struct block *b)
{
    return 1 - (int64_t)b->row0 - b->rows;
}

static int64_t last_offset(const struct block *b)
{
    return (int64_t)b->n - 1 - b->row0;
}

static void add_lines(struct maker *m)
{
    list_columns(m, 1);
    for (int64_t o = first_offset(m->b); o <= last_offset(m->b); o++)
        m->part[m->parts++] = (struct part){sum_diagonal(m->b, o, NULL), o, PART_DIAGONAL, 0};
    add_prefixes(m, MOST_LINES, 1, 2);
}

/* The largest entries: the importance's own thresholds. */
static void add_thresholds(struct maker *m)
{
    size_t entries = (size_t)m->b->rows * m->b->n;
    for (m->parts = 0; m->parts < entries; m->parts++)
        m->part[m->parts] =
            (struct part){m->b->value[m->parts], (int64_t)m->parts, PART_ENTRY, 0};
    add_prefixes(m, entries / 2, entries / 1024 + 1, 2);
}

/* Parts included if their value is above `rate` (value a second) times their price. */
enum { WITH_GATHERS = 1, WITH_LINES = 2, WITH_ROWS = 4 };

static void take_columns(struct maker *m, double rate, int with)
{
    const struct block *b = m->b;
    const struct price *p = &m->x->price;
    double scattered = rate * (p->gather + b->rows * p->full);
    for (uint32_t j = 0; j < b->n; j += HALF) {
        double whole = sum_columns(m, j, j + HALF) - rate * b->rows * HALF * p->full, some = 0;
        uint32_t end = j + HALF < b->n ? j + HALF : b->n;
        for (uint32_t c = j; c < end && with & WITH_GATHERS && p->gather > 0; c++)
            some += m->column[c] > scattered ? m->column[c] - scattered : 0;
        if (whole > 0 && whole >= some)
            cells_columns(b, m->words, j, end);
        for (uint32_t c = j; c < end && some > 0 && some > whole; c++)
            if (m->column[c] > scattered)
                cells_columns(b, m->words, c, c + 1);
    }
}

static void take_lines(struct maker *m, double rate)
{
    const struct block *b = m->b;
    const struct price *p = &m->x->price;
    double entry = p->walk + p->mixed;
    for (int64_t o = first_offset(b); o <= last_offset(b); o++)
        if (sum_diagonal(b, o, m->words) > rate * (b->rows * entry + p->line))
            cells_diagonal(b, m->words, o);
    for (uint32_t j = 0; j < b->n; j++)
        if (sum_column(b, j, m->words) > rate * (b->rows * entry + p->line))
            cells_columns(b, m->words, j, j + 1);
}

static void take_rows(struct maker *m, double rate)
{
    const struct block *b = m->b;
    const struct price *p = &m->x->price;
    for (uint32_t r = 0; r < b->rows; r++) {
        double sum = 0;
        for (uint32_t j = 0; j < b->n; j++)
            sum += cells_test(b, m->words, r, j) ? 0 : b->value[(size_t)r * b->n + j];
        if (sum > rate * (p->row_item + b->n * p->row))
            cells_row(b, m->words, r);
    }
}

static void add_mix(struct maker *m, double rate, int with)
{
    clear(m);
    take_columns(m, rate, with);
    if (with & WITH_LINES && m->x->price.walk > 0)
        take_lines(m, rate);
    if (with & WITH_ROWS)
        take_rows(m, rate);
    emit(m);
}

static void add_mixes(struct maker *m)
{
    static const double times[] = {.15, .3, .5, .75, 1, 1.4, 2, 3, 5, 8, 14, 25, 50};
    static const int with[] = {WITH_GATHERS, WITH_LINES, WITH_GATHERS | WITH_LINES,
                               WITH_GATHERS | WITH_ROWS};
    const struct block *b = m->b;
    double mean = sum_columns(m, 0, b->n) / ((double)b->rows * b->n * m->x->price.full);
    for (size_t t = 0; t < sizeof times / sizeof *times; t++)
        for (size_t w = 0; w < sizeof with / sizeof *with; w++)
            add_mix(m, mean * times[t], with[w]);
}

static void find_columns(struct maker *m)
{
    for (uint32_t r = 0; r < m->b->rows; r++)
        for (uint32_t j = 0; j < m->b->n; j++)
            m->column[j] += m->b->value[(size_t)r * m->b->n + j];
}

void candidates_list(const struct pricer *x, const struct block *b, struct candidates *ret)
{
    struct maker m = {.x = x,
                      .b = b,
                      .ret = ret,
                      .words = memory_new(block_words(b), sizeof *m.words),
                      .column = memory_new(b->n, sizeof *m.column),
                      .part =
                          memory_new((size_t)(b->rows + 2) * b->n + b->rows, sizeof *m.part)};
    find_columns(&m);
    emit(&m); /* off */
    cells_columns(b, m.words, 0, b->n);
    emit(&m);
    list_columns(&m, TILE);
    add_prefixes(&m, m.parts, 1, 4);
    list_columns(&m, HALF);
    add_prefixes(&m, m.parts, 1, 4);
    list_columns(&m, 1);
    add_prefixes(&m, b->n / 2, 1, 3);
    if (x->price.walk > 0)
        add_lines(&m);
    add_thresholds(&m);
    add_mixes(&m);
    free(m.words);
    free(m.column);
    free(m.part);
}
