/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a word of shared memory since it was written. One reader is kept in the word itself; a reader that is ordered
   after it replaces it. Several are a set, an array of clocks by thread, which words with the same readers share. If
   sets run out, readers are forgotten: a race may then be missed, but none is reported falsely. */
#pragma once
#include "clocks.h"

/* Several threads that read many words at once, and the set that the last word got. */
struct reading {
    uint32_t count, thread[4];
    int32_t when[4];
    uint16_t old_reader, reader;
    int32_t old_read, read;
    bool known; /* the four above hold */
};

static void sets_init(struct hopper *h)
{
    h->free_sets = MAX_SETS;
    for (uint32_t k = 0; k < MAX_SETS; k++)
        h->free_set[k] = MAX_SETS - 1 - k;
}

static void drop_readers(struct hopper *h, struct word_state *w)
{
    if (w->reader == READER_SET && !--h->set_words[w->read])
        h->free_set[h->free_sets++] = (uint32_t)w->read;
    w->reader = NO_READER;
    w->read = 0;
}

/* The readers are ordered before the clock. */
static bool readers_known(const struct hopper *h, const struct word_state *w,
                          const int32_t *clock)
{
    if (w->reader == NO_READER)
        return true;
    if (w->reader != READER_SET)
        return w->read <= clock[read_entry(h, w->reader)];
    const int32_t *set = h->set + (size_t)w->read * h->length;
    clock += read_entry(h, 0);
    int32_t later = 0;
    for (uint32_t t = 0; t < h->threads; t++)
        later |= set[t] > clock[t];
    return !later;
}

/* A set with the word's readers and r's, to which the word then belongs. False where there is none. */
static bool widen_set(struct hopper *h, struct word_state *w, const struct reading *r)
{
    const bool own = w->reader == READER_SET && h->set_words[w->read] == 1;
    if (!own && !h->free_sets)
        return false;
    const uint32_t k = own ? (uint32_t)w->read : h->free_set[--h->free_sets];
    int32_t *set = h->set + (size_t)k * h->length;
    if (!own && w->reader == READER_SET)
        memcpy(set, h->set + (size_t)w->read * h->length, h->threads * sizeof *set);
    else if (!own)
        memset(set, 0, h->threads * sizeof *set);
    if (w->reader < READER_SET)
        set[w->reader] = w->read;
    for (uint32_t i = 0; i < r->count; i++)
        set[r->thread[i]] = r->when[i];
    if (!own) {
        drop_readers(h, w);
        h->set_words[k] = 1;
    }
    w->reader = READER_SET;
    w->read = (int32_t)k;
    return true;
}

/* Adds r's readers to the word's. */
static void add_readers(struct hopper *h, struct word_state *w, struct reading *r)
{
    if (r->known && w->reader == r->old_reader && w->read == r->old_read &&
        (r->reader != READER_SET || h->set_words[r->read])) {
        drop_readers(h, w);
        w->reader = r->reader;
        w->read = r->read;
        h->set_words[r->read]++;
        return;
    }
    r->old_reader = w->reader;
    r->old_read = w->read;
    /* A set that only this word had changes in place; its number then means other readers. */
    r->known = w->reader != READER_SET || h->set_words[w->read] > 1;
    if (!widen_set(h, w, r)) {
        drop_readers(h, w);
        r->known = false;
    }
    r->reader = w->reader;
    r->read = w->read;
}

/* Adds the thread. A reader that is ordered before it makes way. */
static inline void add_reader(struct hopper *h, struct word_state *w, uint32_t thread,
                              int32_t *clock)
{
    clock[read_entry(h, thread)] = clock[thread];
    if (w->reader == NO_READER ||
        (w->reader < READER_SET && w->read <= clock[read_entry(h, w->reader)])) {
        w->reader = (uint16_t)thread;
        w->read = clock[thread];
        return;
    }
    struct reading r = {.count = 1, .thread = {thread}, .when = {clock[thread]}};
    add_readers(h, w, &r);
}
