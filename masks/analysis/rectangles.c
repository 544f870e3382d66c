/* SPDX-License-Identifier: Apache-2.0 */
/* Terms for the entries that a cover leaves: rows with the same remaining keys are one term. */
#include "masks/analysis/phrase.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_LEFTOVER_TERMS = 64 };

struct group {
    struct text columns; /* the keys, as a list: what the group's rows have in common */
    uint8_t *row;
};

struct groups {
    struct group of[MAX_LEFTOVER_TERMS];
    uint32_t count;
};

static void add_span(struct text *out, uint32_t begin, uint32_t end)
{
    text_add(out, out->length ? ",%u" : "%u", begin);
    if (end - begin > 1)
        text_add(out, end - begin > 2 ? "..%u" : ",%u", end - 1);
}

static bool join_group(struct groups *g, struct text *columns, uint32_t row, uint32_t n)
{
    uint32_t k = 0;
    while (k < g->count && strcmp(text_get(&g->of[k].columns), text_get(columns)) != 0)
        k++;
    if (k == MAX_LEFTOVER_TERMS) {
        text_finish(columns);
        return false;
    }
    if (k == g->count)
        g->of[g->count++] = (struct group){*columns, memory_new(n, 1)};
    else
        text_finish(columns);
    *columns = (struct text){0};
    g->of[k].row[row] = 1;
    return true;
}

static bool fill_groups(struct groups *g, const struct leftovers *l, uint32_t n)
{
    for (size_t k = 0; k < l->kept;) {
        struct text columns = {0};
        uint32_t row = l->run[k].row;
        for (; k < l->kept && l->run[k].row == row; k++)
            add_span(&columns, l->run[k].begin, l->run[k].end);
        if (!join_group(g, &columns, row, n))
            return false;
    }
    return true;
}

static void add_group(struct phrase *p, const struct group *g, uint32_t n)
{
    struct text rows = {0}, text = {0}, shown = {0};
    struct numbers list = {g->row, n, 0, 0};
    numbers_add(&rows, list, UINT32_MAX);
    text_add(&text, "(rows(%s)&columns(%s))", text_get(&rows), text_get(&g->columns));
    text_finish(&rows);
    numbers_add(&rows, list, PHRASE_SHOWN);
    const char *columns = text_get(&g->columns);
    text_add(&shown, "rows %s x columns %s", text_get(&rows),
             strlen(columns) > 4 * PHRASE_SHOWN ? "..." : columns);
    text_finish(&rows);
    phrase_add(p, text_take(&text), text_take(&shown));
}

bool phrase_leftovers(struct phrase *p, const struct leftovers *l, uint32_t n)
{
    if (l->n_runs > l->kept)
        return false;
    struct groups g = {0};
    bool fits = fill_groups(&g, l, n);
    for (uint32_t k = 0; k < g.count; k++) {
        if (fits)
            add_group(p, &g.of[k], n);
        text_finish(&g.of[k].columns);
        free(g.of[k].row);
    }
    return fits;
}
