/* SPDX-License-Identifier: Apache-2.0 */
/* Covers are tried from plain to rich: full lines alone first, then with each shape that the
   pattern holds. The first without residue is stated; else the one that leaves least. */
#include "gen/analysis/statement.h"
#include "masks/base/memory.h"
#include <stdlib.h>

enum { USE_LOCAL = 1, USE_BLOCKS = 2, USE_RING = 4 };
enum { CHANCE_LENGTH = 8 }; /* shorter diagonals are not taken for structure by themselves */

static const uint8_t subsets[] = {
    USE_LOCAL,
    USE_BLOCKS,
    USE_RING,
    USE_LOCAL | USE_BLOCKS,
    USE_LOCAL | USE_RING,
    USE_BLOCKS | USE_RING,
    USE_LOCAL | USE_BLOCKS | USE_RING,
};

struct trial {
    struct cover cover;
    struct leftovers left;
    bool done; /* the walk ended within its budget */
};

static struct trial try_cover(const struct pattern *p, const struct lines *full,
                              const struct shapes *shapes)
{
    struct trial t;
    cover_init(&t.cover, full, shapes, p->n_runs);
    cover_prune(&t.cover);
    t.done = cover_leftovers(&t.cover, p, &t.left);
    return t;
}

static void finish(struct trial *t)
{
    cover_finish(&t->cover);
    leftovers_finish(&t->left);
}

static bool is_better(const struct trial *a, const struct trial *b)
{
    return a->done && (!b->done || a->left.cells < b->left.cells);
}

static bool is_solved(const struct trial *t)
{
    return t->done && !t->left.cells;
}

static void try_shapes(struct trial *best, const struct pattern *p, const struct lines *full,
                       const struct shapes *found)
{
    uint8_t have = (uint8_t)((found->local ? USE_LOCAL : 0) |
                             (found->blocks.k ? USE_BLOCKS : 0) | (found->ring ? USE_RING : 0));
    for (size_t k = 0; k < sizeof subsets && !is_solved(best); k++) {
        if (subsets[k] & ~have)
            continue;
        struct shapes use = {.local = subsets[k] & USE_LOCAL ? found->local : 0,
                             .ring = subsets[k] & USE_RING};
        if (subsets[k] & USE_BLOCKS)
            use.blocks = found->blocks;
        struct trial t = try_cover(p, full, &use);
        bool better = is_better(&t, best);
        struct trial loser = better ? *best : t;
        if (better)
            *best = t;
        finish(&loser);
    }
}

static bool has_lines(const struct lines *l)
{
    struct numbers of[] = {{l->diagonal, 2 * l->n - 1}, {l->row, l->n}, {l->column, l->n}};
    return numbers_count(of[0]) || numbers_count(of[1]) || numbers_count(of[2]);
}

static void say_lines(struct statement *s, const struct cover *c, const struct lines *full)
{
    phrase_offsets(&s->phrase, &c->lines, full);
    phrase_shapes(&s->phrase, &c->shapes, !has_lines(&c->lines), c->n);
    phrase_axes(&s->phrase, &c->lines, full);
}

static void keep_shapes(struct statement *s, const struct shapes *used)
{
    s->shapes = *used;
    if (used->blocks.k)
        s->shapes.blocks.perm =
            memory_copy(used->blocks.perm, used->blocks.k * sizeof(uint32_t));
}

static void forget_band(struct lines *l, const struct offsets *band)
{
    for (int64_t o = band ? band->low : 1; band && o <= band->high; o++)
        l->diagonal[o + l->n - 1] = 0;
}

/* The words for a cover and all that it leaves; false where that is too much to say. */
static bool say_all(struct statement *s, struct trial *t, const struct lines *full,
                    const struct offsets *without)
{
    if (!t->done)
        return false;
    forget_band(&t->cover.lines, without);
    say_lines(s, &t->cover, full);
    s->exact = (!t->left.cells || phrase_leftovers(&s->phrase, &t->left, full->n)) &&
               s->phrase.bytes <= PHRASE_MAX_BYTES;
    if (!s->exact)
        phrase_finish(&s->phrase);
    return s->exact;
}

/* Diagonals that are full because blocks are large make what is left ragged: rows, columns and
   rectangles may say it all. */
static bool say_rectangles(struct statement *s, const struct pattern *p,
                           const struct lines *full, const struct offsets *without)
{
    struct lines axes;
    lines_init(&axes, p->n);
    lines_copy(&axes, full);
    for (int64_t o = 1 - (int64_t)p->n; o < p->n; o++)
        if (!without || o < without->low || o > without->high)
            axes.diagonal[o + p->n - 1] = 0;
    struct trial t = try_cover(p, &axes, &(struct shapes){0});
    bool said = say_all(s, &t, full, without);
    finish(&t);
    lines_finish(&axes);
    return said;
}

/* What there is of structure, and the count of the rest. */
static void say_part(struct statement *s, struct trial *t, const struct pattern *p,
                     const struct lines *full, const struct offsets *without)
{
    lines_copy(&t->cover.lines, full);
    cover_refresh(&t->cover);
    cover_prune(&t->cover);
    cover_drop_short(&t->cover, CHANCE_LENGTH, without);
    leftovers_finish(&t->left);
    if (!cover_leftovers(&t->cover, p, &t->left))
        return;
    s->residue = t->left.cells;
    forget_band(&t->cover.lines, without);
    say_lines(s, &t->cover, full);
}

static struct statement say_word(const char *word, const char *structure)
{
    struct statement s = {.exact = true};
    phrase_add(&s.phrase, memory_text(word), memory_text(structure));
    return s;
}

static bool is_dense(const struct pattern *p)
{
    return p->active == (uint64_t)p->n * p->n;
}

static bool is_full(const struct lines *l, uint32_t distance)
{
    return distance < l->n && l->diagonal[l->n - 1 + distance];
}

/* Full lines alone, unless the circle's closing pair shows as a distance of its own. */
static struct trial find_cover(const struct pattern *p, const struct lines *full,
                               struct shapes *found)
{
    struct trial best = try_cover(p, full, &(struct shapes){0});
    bool solved = is_solved(&best), ring = p->n > 4 && is_full(&best.cover.lines, p->n - 2);
    if (solved && !ring)
        return best;
    shapes_find(found, p);
    if (ring && found->ring) {
        finish(&best);
        best = try_cover(p, full, &(struct shapes){.ring = true});
    }
    try_shapes(&best, p, full, found);
    return best;
}

struct statement statement_make(const struct pattern *p, const struct offsets *without)
{
    if (is_dense(p) || !p->active)
        return is_dense(p) ? say_word("dense", "dense") : say_word("none", "empty");
    struct line_counts counts;
    struct lines full;
    line_counts_init(&counts, p);
    lines_init(&full, p->n);
    lines_fill(&full, &counts);
    line_counts_finish(&counts);
    struct shapes found = {0};
    struct trial best = find_cover(p, &full, &found);
    struct statement s = {0};
    if (say_all(&s, &best, &full, without)) {
        keep_shapes(&s, &best.cover.shapes);
    } else if (!say_rectangles(&s, p, &full, without)) {
        s.residue = p->active;
        say_part(&s, &best, p, &full, without);
        keep_shapes(&s, &best.cover.shapes);
    }
    finish(&best);
    shapes_finish(&found);
    lines_finish(&full);
    return s;
}

void statement_finish(struct statement *s)
{
    phrase_finish(&s->phrase);
    shapes_finish(&s->shapes);
}
