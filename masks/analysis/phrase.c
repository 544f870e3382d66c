/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/analysis/phrase.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

void phrase_add(struct phrase *p, char *text, char *structure)
{
    p->bytes += strlen(text) + 1;
    *MEMORY_PUSH(p->terms, p->n_terms, p->capacity) = (struct term){text, structure};
}

void phrase_finish(struct phrase *p)
{
    for (size_t k = 0; k < p->n_terms; k++) {
        free(p->terms[k].text);
        free(p->terms[k].structure);
    }
    free(p->terms);
    *p = (struct phrase){0};
}

/* Moves the terms of *from to the end of *p. */
static void take_over(struct phrase *p, struct phrase *from)
{
    for (size_t k = 0; k < from->n_terms; k++)
        phrase_add(p, from->terms[k].text, from->terms[k].structure);
    free(from->terms);
    from->terms = NULL;
    from->n_terms = 0;
}

static void keep_shorter(struct phrase *best, struct phrase other)
{
    struct phrase loser = other.bytes < best->bytes ? *best : other;
    if (other.bytes < best->bytes)
        *best = other;
    phrase_finish(&loser);
}

/* Adds a term: "word(a,b)" in the mask language, "title a,b" to show. Adds nothing if the list is empty. */
static void add_list(struct phrase *p, const char *word, const char *title, struct numbers l)
{
    if (!numbers_count(l))
        return;
    struct text text = {0}, shown = {0};
    text_add(&text, "%s(", word);
    numbers_add(&text, l, UINT32_MAX);
    text_add(&text, ")");
    struct text list = {0};
    l.end = 0;
    numbers_add(&list, l, PHRASE_SHOWN);
    text_add(&shown, "%s %s", title, text_get(&list));
    text_finish(&list);
    phrase_add(p, text_take(&text), text_take(&shown));
}

static void add_number(struct phrase *p, const char *word, uint32_t a)
{
    struct text text = {0}, shown = {0};
    text_add(&text, "%s(%u)", word, a);
    text_add(&shown, "%s %u", word, a);
    phrase_add(p, text_take(&text), text_take(&shown));
}

/* --- offsets --------------------------------------------------------------------------------- */

/* The offsets to be stated: those that stand with both signs as distances, the others. */
struct split {
    uint32_t n;
    uint8_t *distance; /* [n] needed, and the pattern has both signs */
    uint8_t *signs;    /* [n] the pattern has both signs */
    uint8_t *other;    /* [2n - 1] needed, one sign only */
    bool lower;        /* all offsets <= 0 are full */
};

static void split_init(struct split *s, const struct lines *need, const struct lines *full)
{
    uint32_t n = need->n, zero = n - 1;
    *s = (struct split){n, memory_new(n, 1), memory_new(n, 1), memory_new(2 * (size_t)n, 1),
                        true};
    for (uint32_t d = 0; d < n; d++) {
        uint8_t minus = need->diagonal[zero - d], plus = need->diagonal[zero + d];
        s->signs[d] = full->diagonal[zero - d] && full->diagonal[zero + d];
        s->distance[d] = s->signs[d] && (minus || plus);
        s->other[zero - d] = minus && !s->signs[d];
        s->other[zero + d] = plus && !s->signs[d];
        s->lower = s->lower && full->diagonal[zero - d];
    }
}

static void split_finish(struct split *s)
{
    free(s->distance);
    free(s->signs);
    free(s->other);
}

/* Largest w such that window(w) lies in the pattern and ends at a needed distance; 0: none. */
static uint32_t find_window(const struct split *s)
{
    uint32_t window = 0;
    for (uint32_t d = 0; d < s->n && s->signs[d]; d++)
        window = s->distance[d] ? d : window;
    return window;
}

static bool holds_stride(const struct split *s, uint32_t stride)
{
    for (uint32_t d = 0; d < s->n; d += stride)
        if (!s->signs[d])
            return false;
    return true;
}

static void add_other(struct phrase *p, const struct split *s)
{
    int64_t least = 1 - (int64_t)s->n;
    add_list(p, "diagonal", "diagonal", (struct numbers){s->other, 2 * s->n - 1, least, 0});
}

static struct phrase say_distances(const struct split *s, uint32_t window, uint32_t stride)
{
    struct phrase p = {.stride = stride};
    uint8_t *rest = memory_copy(s->distance, s->n);
    if (window)
        memset(rest, 0, window + 1);
    for (uint32_t d = 0; stride && d < s->n; d += stride)
        rest[d] = 0;
    struct numbers list = {rest, s->n, 0, 0};
    bool main_alone = rest[0] && numbers_count(list) == 1;
    if (window)
        add_number(&p, "window", window);
    add_list(&p, main_alone ? "diagonal" : "distance", main_alone ? "diagonal" : "distance",
             list);
    if (stride)
        add_number(&p, "stride", stride);
    add_other(&p, s);
    free(rest);
    return p;
}

static struct phrase say_causal(const struct split *s)
{
    struct phrase p = {0};
    uint8_t *rest = memory_new(s->n, 1);
    phrase_add(&p, memory_text("causal"), memory_text("causal"));
    for (uint32_t d = 1; d < s->n; d++)
        rest[d] = s->distance[d] || s->other[s->n - 1 + d];
    add_list(&p, "diagonal", "diagonal", (struct numbers){rest, s->n, 0, 0});
    free(rest);
    return p;
}

/* A stride of one distance besides 0 would be a distance by another name. */
static struct phrase say_offsets(const struct split *s)
{
    enum { STRIDES = 4 };
    struct phrase best = say_distances(s, 0, 0);
    uint32_t window = find_window(s), strides = 0;
    if (window)
        keep_shorter(&best, say_distances(s, window, 0));
    for (uint32_t stride = 2; stride < (s->n + 1) / 2 && strides < STRIDES; stride++) {
        if (!holds_stride(s, stride))
            continue;
        strides++;
        keep_shorter(&best, say_distances(s, 0, stride));
        if (window)
            keep_shorter(&best, say_distances(s, window, stride));
    }
    if (s->lower)
        keep_shorter(&best, say_causal(s));
    return best;
}

void phrase_offsets(struct phrase *p, const struct lines *need, const struct lines *full)
{
    struct numbers needed = {need->diagonal, 2 * need->n - 1, 0, 0};
    if (!numbers_count(needed))
        return;
    struct split s;
    split_init(&s, need, full);
    struct phrase said = say_offsets(&s);
    split_finish(&s);
    p->stride = said.stride;
    take_over(p, &said);
}

/* --- rows and columns ------------------------------------------------------------------------ */

/* The most columns at the end of each block of b that are all on. */
static uint32_t find_summary(const uint8_t *full, uint32_t n, uint32_t b)
{
    uint32_t c = 0;
    for (; c < b; c++)
        for (uint32_t j = b - 1 - c; j < n; j += b)
            if (!full[j])
                return c;
    return c;
}

static uint32_t count_outside(const uint8_t *need, uint32_t n, uint32_t b, uint32_t c)
{
    uint32_t outside = 0;
    for (uint32_t j = 0; j < n; j++)
        outside += need[j] && j % b < b - c;
    return outside;
}

/* Smallest block first; the one that leaves the fewest columns to list wins. */
static void choose_summary(struct phrase *p, const uint8_t *need, const uint8_t *full,
                           uint32_t n)
{
    enum { CANDIDATES = 8 };
    uint32_t least = numbers_count((struct numbers){need, n, 0, 0}), seen = 0;
    for (uint32_t b = 2; b <= n / 2 && seen < CANDIDATES && least > 2; b++) {
        uint32_t c = find_summary(full, n, b);
        if (!c)
            continue;
        seen++;
        uint32_t outside = count_outside(need, n, b, c);
        if (outside >= least || n / b < 3)
            continue;
        least = outside;
        p->summary_block = b;
        p->summary = c;
    }
}

static void say_columns(struct phrase *p, uint8_t *columns, uint32_t n)
{
    uint32_t b = p->summary_block, c = p->summary;
    if (b) {
        struct text text = {0}, shown = {0};
        text_add(&text, "summary(%u,%u)", b, c);
        text_add(&shown, "summary %u,%u", b, c);
        phrase_add(p, text_take(&text), text_take(&shown));
    }
    for (uint32_t j = 0; b && j < n; j++)
        columns[j] = columns[j] && j % b < b - c;
    add_list(p, "columns", "global columns", (struct numbers){columns, n, 0, n});
}

/* Adds the columns as a list, or as a summary and a list of the others, whichever is shorter. */
static void add_columns(struct phrase *p, uint8_t *columns, const uint8_t *full, uint32_t n)
{
    struct phrase list = {0}, summary = {0};
    say_columns(&list, columns, n);
    choose_summary(&summary, columns, full, n);
    say_columns(&summary, columns, n);
    keep_shorter(&list, summary);
    take_over(p, &list);
    p->summary_block = list.summary_block;
    p->summary = list.summary;
}

void phrase_axes(struct phrase *p, const struct lines *need, const struct lines *full)
{
    uint32_t n = need->n;
    uint8_t *both = memory_new(n, 1), *rows = memory_new(n, 1), *columns = memory_new(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        both[i] = need->row[i] && full->column[i];
        rows[i] = need->row[i] && !both[i];
        columns[i] = need->column[i] && !both[i];
    }
    add_list(p, "global", "global", (struct numbers){both, n, 0, n});
    add_list(p, "rows", "global rows", (struct numbers){rows, n, 0, n});
    add_columns(p, columns, full->column, n);
    free(both);
    free(rows);
    free(columns);
}

/* --- shapes ---------------------------------------------------------------------------------- */

static bool is_shift(const struct blocks *b, uint32_t *ret)
{
    *ret = b->perm[0];
    for (uint32_t k = 0; k < b->k; k++)
        if (b->perm[k] != (k + *ret) % b->k)
            return false;
    return true;
}

static void add_blocks(struct phrase *p, const struct blocks *b)
{
    struct text text = {0}, list = {0}, shown = {0};
    uint32_t shift;
    for (uint32_t k = 0; k < b->k; k++)
        text_add(&list, "%s%u", k ? "," : "", b->perm[k] + 1);
    if (is_shift(b, &shift)) {
        text_add(&text, "blocks(%u, shift=%u)", b->k, shift);
        text_add(&shown, "blocks %u shift %u", b->k, shift);
    } else {
        text_add(&text, "blocks(%u, perm=[%s])", b->k, text_get(&list));
        text_add(&shown, "blocks %u perm %s", b->k, text_get(&list));
    }
    text_finish(&list);
    phrase_add(p, text_take(&text), text_take(&shown));
}

/* Blocks on the diagonal are `blocks` where they are all there is and few, else `local`. */
static bool say_identity(const struct shapes *s, uint32_t n, struct blocks *ret)
{
    enum { FEW = 16 };
    uint32_t k = block_size(n, s->local);
    if (k > FEW || block_size(n, k) != s->local || s->blocks.k || s->ring)
        return false;
    *ret = (struct blocks){k, memory_new(k, sizeof(uint32_t))};
    for (uint32_t b = 0; b < k; b++)
        ret->perm[b] = b;
    return true;
}

void phrase_shapes(struct phrase *p, const struct shapes *s, bool alone, uint32_t n)
{
    struct blocks identity = {0};
    if (s->local && alone && say_identity(s, n, &identity))
        add_blocks(p, &identity);
    else if (s->local)
        add_number(p, "local", s->local);
    free(identity.perm);
    if (s->blocks.k)
        add_blocks(p, &s->blocks);
    if (s->ring)
        phrase_add(p, memory_text("ring"), memory_text("ring"));
}
