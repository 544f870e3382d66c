/* SPDX-License-Identifier: Apache-2.0 */
/* Covers are tried from plain to rich: full lines alone first, then with each shape that the
   pattern holds. The first without residue is stated; else the one that leaves least. A walk for
   a whole statement ends early once more is left than words can say. */
#include "masks/analysis/statement.h"
#include "masks/analysis/words.h"
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
    bool done; /* the walk was not given up */
};

/* Structures of a pattern that covers may use, found once. */
struct offer {
    const struct pattern *p;
    const struct offsets *without;
    struct lines full;
    struct shapes found;
    bool searched;      /* for shapes */
    uint64_t most_left; /* runs, see cover_leftovers */
};

static void offer_init(struct offer *o, const struct pattern *p, const struct offsets *without,
                       uint64_t most_left)
{
    *o = (struct offer){.p = p, .without = without, .most_left = most_left};
    struct line_counts counts;
    line_counts_init(&counts, p);
    lines_init(&o->full, p->n);
    lines_fill(&o->full, &counts);
    line_counts_finish(&counts);
}

static void offer_finish(struct offer *o)
{
    lines_finish(&o->full);
    shapes_finish(&o->found);
}

static const struct shapes *search(struct offer *o)
{
    if (!o->searched)
        shapes_find(&o->found, o->p);
    o->searched = true;
    return &o->found;
}

static struct trial try_cover(const struct offer *o, const struct lines *lines,
                              const struct shapes *shapes)
{
    struct trial t;
    cover_init(&t.cover, lines, shapes, o->p->n_runs);
    cover_prune(&t.cover);
    t.done = cover_leftovers(&t.cover, o->p, o->most_left, &t.left);
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

static void try_shapes(struct trial *best, struct offer *o)
{
    const struct shapes *found = search(o);
    uint8_t have = (uint8_t)((found->local ? USE_LOCAL : 0) |
                             (found->blocks.k ? USE_BLOCKS : 0) | (found->ring ? USE_RING : 0));
    for (size_t k = 0; k < sizeof subsets && !is_solved(best); k++) {
        if (subsets[k] & ~have)
            continue;
        struct shapes use = {.local = subsets[k] & USE_LOCAL ? found->local : 0,
                             .ring = subsets[k] & USE_RING};
        if (subsets[k] & USE_BLOCKS)
            use.blocks = found->blocks;
        struct trial t = try_cover(o, &o->full, &use);
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
static bool say_all(struct statement *s, struct trial *t, const struct offer *o)
{
    if (!t->done)
        return false;
    forget_band(&t->cover.lines, o->without);
    say_lines(s, &t->cover, &o->full);
    s->exact = (!t->left.cells || phrase_leftovers(&s->phrase, &t->left, t->cover.n)) &&
               s->phrase.bytes <= PHRASE_MAX_BYTES;
    if (s->exact)
        keep_shapes(s, &t->cover.shapes);
    else
        phrase_finish(&s->phrase);
    return s->exact;
}

/* Diagonals that are full because blocks are large make what is left ragged: rows, columns and
   rectangles may say it all. */
static void say_rectangles(struct statement *s, const struct offer *o)
{
    uint32_t n = o->p->n;
    struct lines axes;
    lines_init(&axes, n);
    lines_copy(&axes, &o->full);
    for (int64_t d = 1 - (int64_t)n; d < n; d++)
        if (!o->without || d < o->without->low || d > o->without->high)
            axes.diagonal[d + n - 1] = 0;
    struct trial t = try_cover(o, &axes, &(struct shapes){0});
    say_all(s, &t, o);
    finish(&t);
    lines_finish(&axes);
}

/* The cover takes in what the terms say beyond it, and the band, before the rest is counted. */
static void follow_words(struct cover *c, const struct phrase *p, const struct lines *full,
                         const struct offsets *without)
{
    uint32_t n = c->n;
    for (uint32_t d = 0; p->stride && d < n; d += p->stride)
        c->lines.diagonal[n - 1 - d] = c->lines.diagonal[n - 1 + d] = 1;
    for (uint32_t j = 0; p->summary_block && j < n; j++)
        if (j % p->summary_block >= p->summary_block - p->summary)
            c->lines.column[j] = 1;
    for (int64_t o = without ? without->low : 1; without && o <= without->high; o++)
        c->lines.diagonal[o + n - 1] = full->diagonal[o + n - 1];
    cover_refresh(c);
}

/* States the structure of a cover beyond chance, and counts the remaining entries. */
static void say_part(struct statement *s, struct trial *t, const struct offer *o)
{
    lines_copy(&t->cover.lines, &o->full);
    cover_refresh(&t->cover);
    cover_prune(&t->cover);
    cover_drop_short(&t->cover, CHANCE_LENGTH, o->without);
    forget_band(&t->cover.lines, o->without);
    say_lines(s, &t->cover, &o->full);
    keep_shapes(s, &t->cover.shapes);
    follow_words(&t->cover, &s->phrase, &o->full, o->without);
    leftovers_finish(&t->left);
    s->residue = o->p->active;
    if (cover_leftovers(&t->cover, o->p, o->most_left, &t->left))
        s->residue = t->left.cells;
    else
        phrase_finish(&s->phrase);
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
static struct trial find_cover(struct offer *o)
{
    struct trial best = try_cover(o, &o->full, &(struct shapes){0});
    bool ring = o->p->n > 4 && is_full(&best.cover.lines, o->p->n - 2);
    if (is_solved(&best) && !ring)
        return best;
    if (ring && search(o)->ring) {
        finish(&best);
        best = try_cover(o, &o->full, &(struct shapes){.ring = true});
    }
    try_shapes(&best, o);
    return best;
}

/* One word in place of a statement that is missing or long. */
static void prefer_word(struct statement *s, const struct pattern *p)
{
    enum { SHORT_BYTES = 24 };
    struct phrase word = {0};
    bool is_short = s->exact && (s->phrase.n_terms == 1 || s->phrase.bytes <= SHORT_BYTES);
    if (is_short || !words_say(&word, p))
        return;
    if (s->exact && s->phrase.bytes <= word.bytes) {
        phrase_finish(&word);
        return;
    }
    statement_finish(s);
    *s = (struct statement){.phrase = word, .exact = true};
}

struct statement statement_all(const struct pattern *p, const struct offsets *without)
{
    if (is_dense(p) || !p->active)
        return is_dense(p) ? say_word("dense", "dense") : say_word("none", "empty");
    struct offer o;
    offer_init(&o, p, without, LEFTOVER_MAX_RUNS);
    struct trial best = find_cover(&o);
    struct statement s = {0};
    if (!say_all(&s, &best, &o))
        say_rectangles(&s, &o);
    finish(&best);
    offer_finish(&o);
    prefer_word(&s, p);
    return s;
}

struct statement statement_part(const struct pattern *p, const struct offsets *without)
{
    struct offer o;
    offer_init(&o, p, without, UINT64_MAX);
    struct trial best = find_cover(&o);
    struct statement s = {0};
    say_part(&s, &best, &o);
    finish(&best);
    offer_finish(&o);
    return s;
}

void statement_finish(struct statement *s)
{
    phrase_finish(&s->phrase);
    shapes_finish(&s->shapes);
}
