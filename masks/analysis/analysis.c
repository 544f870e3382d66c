/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a pattern, and its best statement. A mask without its diagonal, or with nothing above
   it, is also looked at with the missing part filled in: `strided - diagonal(0)` is then two terms
   and not a list of distances. */
#include "masks/analysis/analysis.h"
#include "masks/analysis/lines.h"
#include "masks/analysis/statement.h"
#include "masks/analysis/widen.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* --- facts ----------------------------------------------------------------------------------- */

static bool is_symmetric(const struct pattern *p, const struct line_counts *c)
{
    if (memcmp(c->row, c->column, p->n * sizeof *c->row) != 0)
        return false;
    struct pattern *t = pattern_transpose(p, NULL);
    bool equal = t && pattern_equal(p, t);
    pattern_destroy(t);
    return equal;
}

static void collect_diagonals(struct analysis *a, const struct line_counts *c)
{
    size_t count = 0, capacity = 0;
    int32_t zero = (int32_t)a->n - 1;
    for (int32_t d = 0; d <= 2 * zero; d++) {
        if ((uint32_t)c->diagonal[d] != diagonal_length(a->n, (uint32_t)d))
            continue;
        if (count && a->diagonals[count - 1].high == d - 1 - zero)
            a->diagonals[count - 1].high++;
        else
            *MEMORY_PUSH(a->diagonals, count, capacity) = (struct offsets){d - zero, d - zero};
    }
    a->n_diagonals = (uint32_t)count;
}

/* Lines with all entries on, or all but the one on the diagonal. */
static uint32_t *collect_global(const struct pattern *p, const uint32_t *active,
                                uint32_t *ret_n)
{
    uint32_t *line = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (active[i] == p->n || (p->n > 1 && active[i] == p->n - 1 && !pattern_test(p, i, i)))
            *MEMORY_PUSH(line, count, capacity) = i;
    *ret_n = (uint32_t)count;
    return line;
}

static void find_facts(struct analysis *a, const struct pattern *p)
{
    struct line_counts c;
    line_counts_init(&c, p);
    a->n = p->n;
    a->active = p->active;
    for (uint32_t i = 0; i < p->n; i++)
        a->empty_rows += !c.row[i];
    a->symmetric = is_symmetric(p, &c);
    collect_diagonals(a, &c);
    a->global_rows = collect_global(p, c.row, &a->n_global_rows);
    a->global_columns = collect_global(p, c.column, &a->n_global_columns);
    line_counts_finish(&c);
}

/* --- the statement --------------------------------------------------------------------------- */

enum { RESIDENT_BYTES = 48 }; /* statements up to here are not looked at again */

struct choice {
    struct statement said;
    struct term without;
};

static void finish(struct choice *c)
{
    statement_finish(&c->said);
    free(c->without.text);
    free(c->without.structure);
}

static bool is_word(const struct statement *s, const char *word)
{
    return s->phrase.n_terms == 1 && !strcmp(s->phrase.terms[0].text, word);
}

static size_t cost(const struct choice *c)
{
    return c->said.phrase.bytes + (c->without.text ? strlen(c->without.text) + 3 : 0);
}

static bool is_better(const struct choice *a, const struct choice *b)
{
    if (!a->said.exact || !b->said.exact)
        return a->said.exact;
    return cost(a) < cost(b) || is_word(&a->said, "dense");
}

static void keep_better(struct choice *best, struct choice other, bool better)
{
    struct choice loser = better ? *best : other;
    if (better)
        *best = other;
    finish(&loser);
}

struct band {
    struct offsets offsets;
    const char *structure;
};

static struct term say_band(const struct band *b)
{
    struct text text = {0};
    text_add(&text, "diagonal(%d", b->offsets.low);
    if (b->offsets.high > b->offsets.low)
        text_add(&text, "..%d", b->offsets.high);
    text_add(&text, ")");
    return (struct term){text_take(&text), memory_text(b->structure)};
}

/* The statement of p with the band filled in, less the band. */
static void try_band(struct choice *best, const struct pattern *p, struct band band)
{
    struct pattern *wide = pattern_fill(p, band.offsets);
    if (!wide)
        return;
    struct choice c = {statement_all(wide, &band.offsets), say_band(&band)};
    keep_better(best, c, is_better(&c, best));
    pattern_destroy(wide);
}

static struct choice choose_all(const struct pattern *p, bool lacks)
{
    struct choice best = {statement_all(p, NULL), {0}};
    int32_t last = (int32_t)p->n - 1;
    if (!last || !p->active)
        return best;
    if (lacks)
        try_band(&best, p, (struct band){{0, 0}, "minus diagonal"});
    if (best.said.exact && cost(&best) <= RESIDENT_BYTES)
        return best;
    struct band upper = {{lacks ? 0 : 1, last}, "minus upper half"};
    struct band lower = {{-last, lacks ? 0 : -1}, "minus lower half"};
    if (pattern_lacks(p, upper.offsets))
        try_band(&best, p, upper);
    else if (pattern_lacks(p, lower.offsets))
        try_band(&best, p, lower);
    return best;
}

static struct choice choose_part(const struct pattern *p, bool lacks)
{
    struct choice best = {statement_part(p, NULL), {0}};
    struct band band = {{0, 0}, "minus diagonal"};
    struct pattern *wide = lacks ? pattern_fill(p, band.offsets) : NULL;
    if (!wide)
        return best;
    struct choice c = {statement_part(wide, &band.offsets), say_band(&band)};
    keep_better(&best, c, c.said.residue < best.said.residue);
    pattern_destroy(wide);
    return best;
}

static struct choice choose(const struct pattern *p)
{
    bool lacks = pattern_lacks(p, (struct offsets){0, 0});
    struct choice best = choose_all(p, lacks);
    if (best.said.exact)
        return best;
    finish(&best);
    return choose_part(p, lacks);
}

/* Moves the chosen statement into *a. */
static void take(struct analysis *a, struct choice *c)
{
    struct statement *s = &c->said;
    a->terms = s->phrase.terms;
    a->n_terms = (uint32_t)s->phrase.n_terms;
    a->stride = s->phrase.stride;
    a->summary_block = s->phrase.summary_block;
    a->summary = s->phrase.summary;
    a->local = s->shapes.local;
    a->blocks = s->shapes.blocks;
    a->without = c->without;
    a->residue = s->residue;
    a->exact = s->exact;
}

/* Blocks on the diagonal are blocks with the identity. */
static void fill_identity(struct analysis *a)
{
    if (a->blocks.k || !a->local || a->without.text || a->n_terms != 1 || a->residue)
        return;
    uint32_t k = block_size(a->n, a->local);
    if (block_size(a->n, k) != a->local)
        return;
    a->blocks = (struct blocks){k, memory_new(k, sizeof *a->blocks.perm)};
    for (uint32_t b = 0; b < k; b++)
        a->blocks.perm[b] = b;
}

struct analysis *analysis_run(const struct pattern *p)
{
    struct analysis *a = memory_new(1, sizeof *a);
    find_facts(a, p);
    struct choice c = choose(p);
    take(a, &c);
    fill_identity(a);
    return a;
}

void analysis_destroy(struct analysis *a)
{
    if (!a)
        return;
    for (uint32_t k = 0; k < a->n_terms; k++) {
        free(a->terms[k].text);
        free(a->terms[k].structure);
    }
    free(a->terms);
    free(a->without.text);
    free(a->without.structure);
    free(a->diagonals);
    free(a->global_rows);
    free(a->global_columns);
    free(a->blocks.perm);
    free(a);
}

char *analysis_expression(const struct analysis *a)
{
    if (!a->exact)
        return NULL;
    struct text out = {0};
    bool brackets = a->without.text && a->n_terms > 1;
    text_add(&out, "%s", brackets ? "(" : "");
    for (uint32_t k = 0; k < a->n_terms; k++)
        text_add(&out, "%s%s", k ? " | " : "", a->terms[k].text);
    text_add(&out, "%s", brackets ? ")" : "");
    if (a->without.text)
        text_add(&out, " - %s", a->without.text);
    return text_take(&out);
}
