/* SPDX-License-Identifier: Apache-2.0 */
/* A code point passes clean -> ideograph -> (lower) -> decompose -> order -> mark -> lower -> put; ASCII
   takes a short cut. Order and alignments follow the Rust library to the letter: after reordering,
   the k-th code point that began a source character takes the k-th source character's place. */
#include "model/tokenizer/base/words.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/aligned.h"
#include "model/tokenizer/base/sigma.h"
#include <stdlib.h>
#include <string.h>

struct held {
    uint32_t point;
    uint8_t class; /* canonical combining class */
    bool begins;   /* the first of a source character's decomposition */
};

struct normaliser {
    struct words *w;
    const uint8_t *flags;
    const struct word_rules *rules;
    const char *text;
    uint32_t from, to;
    struct span at; /* the source of what comes next */
    bool whole;     /* the words are not cut: the normalised text is kept */
    void (*sink)(void *context, const struct word *w);
    void *context;
};

void words_finish(struct words *w)
{
    free(w->bytes);
    free(w->begin);
    free(w->end);
    free(w->held);
    free(w->source);
    *w = (struct words){0};
}

static void flush(struct normaliser *p)
{
    struct words *w = p->w;
    if (w->chars == 0 || p->whole)
        return;
    bool fits = w->chars <= p->rules->max_chars;
    struct word word = {w->bytes, w->begin,    w->end, fits ? w->size : 0,
                        w->chars, w->begin[0], w->last};
    p->sink(p->context, &word);
    w->size = w->chars = 0;
}

static void grow(struct words *w)
{
    w->capacity = w->capacity ? 2 * w->capacity : 256;
    w->bytes = memory_resize(w->bytes, w->capacity, 1);
    w->begin = memory_resize(w->begin, w->capacity, sizeof *w->begin);
    w->end = memory_resize(w->end, w->capacity, sizeof *w->end);
}

static inline void append(struct normaliser *p, uint32_t point)
{
    struct words *w = p->w;
    w->last = p->at.end;
    if (w->chars++ >= p->rules->max_chars && !p->whole)
        return;
    if (w->size + 4 > w->capacity)
        grow(w);
    uint32_t n = 1;
    if (point < 0x80)
        w->bytes[w->size] = (char)point;
    else
        n = unicode_encode(point, w->bytes + w->size);
    for (uint32_t k = 0; k < n; k++) {
        w->begin[w->size + k] = p->at.begin;
        w->end[w->size + k] = p->at.end;
    }
    w->size += n;
}

/* Takes a normalised code point: a space, punctuation, or part of a word. */
static inline void put(struct normaliser *p, uint32_t point)
{
    uint8_t flags = p->flags[point];
    if (p->whole || !(flags & (POINT_SPACE | POINT_PUNCTUATION))) {
        append(p, point);
        return;
    }
    flush(p);
    if (flags & POINT_PUNCTUATION) {
        append(p, point);
        flush(p);
    }
}

static void put_lower(struct normaliser *p, uint32_t point)
{
    uint32_t lower[UNICODE_MAX_LOWER] = {point}, n = 1;
    if (p->rules->lowercase && !p->rules->google && p->flags[point] & POINT_LOWERED)
        n = unicode_lower(point, lower);
    for (uint32_t k = 0; k < n; k++)
        put(p, lower[k]);
}

/* Stable sort by class. Counting sort where there are many, so that no text is slow. */
static void order(struct held *held, uint32_t count)
{
    if (count > 32) {
        uint32_t place[257] = {0};
        struct held *copy = memory_copy(held, count * sizeof *held);
        for (uint32_t k = 0; k < count; k++)
            place[copy[k].class + 1]++;
        for (uint32_t c = 0; c < 256; c++)
            place[c + 1] += place[c];
        for (uint32_t k = 0; k < count; k++)
            held[place[copy[k].class]++] = copy[k];
        free(copy);
        return;
    }
    for (uint32_t k = 1; k < count; k++) {
        struct held x = held[k];
        uint32_t to = k;
        for (; to && held[to - 1].class > x.class; to--)
            held[to] = held[to - 1];
        held[to] = x;
    }
}

static void release(struct normaliser *p)
{
    struct words *w = p->w;
    order(w->held, w->n_held);
    for (uint32_t k = 0, next = 0; k < w->n_held; k++) {
        if (w->held[k].begins)
            p->at = w->source[next++];
        if (!(p->flags[w->held[k].point] & POINT_MARK))
            put_lower(p, w->held[k].point);
    }
    w->n_held = w->n_source = 0;
}

static void hold(struct normaliser *p, uint32_t point, bool begins, struct span source)
{
    struct words *w = p->w;
    *MEMORY_PUSH(w->held, w->n_held, w->held_capacity) =
        (struct held){point, (uint8_t)unicode_combining_class(point), begins};
    if (!begins)
        return;
    *MEMORY_PUSH(w->source, w->n_source, w->source_capacity) = source;
}

/* Canonical decomposition; combining points wait until the next starter. */
static void decompose(struct normaliser *p, uint32_t point, bool begins, struct span source)
{
    uint32_t part[UNICODE_MAX_DECOMPOSITION] = {point}, n = 1;
    if (p->flags[point] & POINT_DECOMPOSED)
        n = unicode_decompose(point, part);
    for (uint32_t k = 0; k < n; k++) {
        bool first = begins && k == 0;
        if (p->flags[part[k]] & POINT_COMBINING) {
            hold(p, part[k], first, source);
            continue;
        }
        if (p->w->n_held)
            release(p);
        if (first)
            p->at = source;
        if (!(p->flags[part[k]] & POINT_MARK))
            put_lower(p, part[k]);
    }
}

static void normalise(struct normaliser *p, uint32_t point, struct span source)
{
    if (p->rules->strip_accents) {
        decompose(p, point, true, source);
        return;
    }
    p->at = source;
    put_lower(p, point);
}

/* Google's order: lower case before anything else. */
static void lower_first(struct normaliser *p, uint32_t point, struct span source)
{
    uint32_t lower[UNICODE_MAX_LOWER] = {point}, n = 1;
    if (point == SIGMA_CAPITAL)
        lower[0] = sigma_lower(p->text, p->from, p->to, source.begin, p->flags);
    else if (p->flags[point] & POINT_LOWERED)
        n = unicode_lower(point, lower);
    for (uint32_t k = 0; k < n; k++)
        normalise(p, lower[k], source);
}

static void between_words(struct normaliser *p)
{
    if (p->w->n_held)
        release(p);
    flush(p);
}

/* A blank of the text, or one that is put beside an ideograph. */
static void take_blank(struct normaliser *p, uint32_t point, struct span source)
{
    between_words(p);
    if (!p->whole)
        return;
    p->at = source;
    append(p, point);
}

static void take(struct normaliser *p, uint32_t point, struct span source)
{
    uint8_t flags = p->flags[point];
    if (p->rules->clean && flags & POINT_DROPPED)
        return;
    if (flags & POINT_SPACE) {
        take_blank(p, p->rules->clean ? ' ' : point, source);
        return;
    }
    bool alone = p->rules->ideographs && flags & POINT_IDEOGRAPH;
    if (alone)
        take_blank(p, ' ', source);
    if (p->rules->google && p->rules->lowercase)
        lower_first(p, point, source);
    else
        normalise(p, point, source);
    if (alone)
        take_blank(p, ' ', source);
}

/* Fast path: ASCII without flags but a lower case goes straight into the word. */
static inline bool take_letter(struct normaliser *p, uint8_t byte, uint32_t at)
{
    if (byte >= 0x80 || p->flags[byte] & ~POINT_LOWERED || p->w->n_held)
        return false;
    bool lower = p->rules->lowercase && p->flags[byte] & POINT_LOWERED;
    p->at = (struct span){at, at + 1};
    append(p, lower ? byte | 0x20u : byte);
    return true;
}

static void run(struct normaliser *p)
{
    const uint8_t *bytes = (const uint8_t *)p->text;
    for (uint32_t at = p->from, n = 1; at < p->to; at += n) {
        uint32_t point;
        n = 1;
        if (take_letter(p, bytes[at], at))
            continue;
        n = unicode_decode(bytes + at, bytes + p->to, &point);
        take(p, point, (struct span){at, at + n});
    }
    between_words(p);
}

void words_split(struct words *w, const struct word_splitter *s, const char *text,
                 uint32_t from, uint32_t to)
{
    struct normaliser p = {w,     s->unicode->flags, s->rules,  text, from, to, {0, 0},
                           false, s->sink,           s->context};
    run(&p);
}

void words_normalise(struct words *w, const struct word_splitter *s, const char *text,
                     uint32_t from, uint32_t to)
{
    struct normaliser p = {w,   s->unicode->flags, s->rules, text, from, to, {0, 0}, true, NULL,
                           NULL};
    w->size = w->chars = 0;
    run(&p);
    w->chars = 0;
}

static void hand_on(const struct words *w, const struct word_splitter *s, uint32_t from,
                    uint32_t to, uint32_t chars)
{
    if (!chars)
        return;
    struct word word = {w->bytes + from, w->begin + from,
                        w->end + from,   chars <= s->rules->max_chars ? to - from : 0,
                        chars,           w->begin[from],
                        w->end[to - 1]};
    s->sink(s->context, &word);
}

void words_cut(const struct words *w, const struct word_splitter *s, uint32_t from, uint32_t to)
{
    const uint8_t *bytes = (const uint8_t *)w->bytes;
    uint32_t begin = from, chars = 0;
    for (uint32_t at = from, n; at < to; at += n) {
        uint32_t point;
        n = unicode_decode(bytes + at, bytes + to, &point);
        uint8_t flags = s->unicode->flags[point];
        if (!(flags & (POINT_SPACE | POINT_PUNCTUATION))) {
            begin = chars++ ? begin : at;
            continue;
        }
        hand_on(w, s, begin, at, chars);
        chars = 0;
        if (flags & POINT_PUNCTUATION)
            hand_on(w, s, at, at + n, 1);
    }
    hand_on(w, s, begin, to, chars);
}
