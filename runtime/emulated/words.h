/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of a block of sm_90 under watch: each 4 bytes know by clocks who wrote and who read them last, whether a copy
   or an ordinary store wrote them, and which products and bulk stores still read them.

   Functions that check return a complaint, or null. */
#pragma once
#include "readers.h"

static struct word_state *words_at(uint32_t at)
{
    return the_block->hopper->words + at / 4;
}

/* smem_base() is SMEM_SLACK, so that all of the slack is outside. */
static const char *check_place(uint32_t at, uint32_t bytes, uint32_t alignment)
{
    const uint32_t end = the_block->launch->shared_bytes;
    if (at < SMEM_SLACK || at > end || bytes > end - at)
        return "goes outside";
    return at % alignment ? "is misaligned" : NULL;
}

/* Its words; the access is counted among those of the banks. */
static struct word_state *access_words(uint32_t at, uint32_t bytes,
                                       enum emulation_access access, struct place place)
{
    const char *wrong = check_place(at, bytes, bytes);
    if (wrong)
        refuse(wrong, at, place);
    if (the_block->lately)
        note_access(at, bytes, access, place);
    return words_at(at);
}

/* ---- the running thread's ordinary accesses ---- */

static const char *explain_word(const struct word_state *w)
{
    if (w->flags & WORD_MBARRIER)
        return "reads an mbarrier";
    if (!w->flags)
        return "reads what nobody wrote";
    return w->flags & WORD_ORDINARY
               ? "reads what another wrote without a barrier in between"
               : "reads what a copy brings without waiting for its mbarrier";
}

static void read_words(uint32_t at, uint32_t bytes, enum emulation_access access,
                       struct place place)
{
    struct hopper *h = the_block->hopper;
    struct word_state *w = access_words(at, bytes, access, place);
    int32_t *clock = my_clock();
    for (uint32_t k = 0; k < bytes / 4; k++) {
        if (!(w[k].flags & WORD_WRITTEN) || w[k].written > clock[w[k].writer])
            refuse(explain_word(&w[k]), at + 4 * k, place);
        add_reader(h, &w[k], the_block->face.current, clock);
    }
}

/* Error text if the clock's owner may not write the word; null if it may. */
static const char *check_overwrite(const struct word_state *w, const int32_t *clock)
{
    if (w->flags & WORD_MBARRIER)
        return "overwrites an mbarrier";
    if (w->pending)
        return "overwrites what a product or a bulk store still reads";
    if (w->flags && w->written > clock[w->writer])
        return w->flags & WORD_ORDINARY
                   ? "overwrites what another wrote without a barrier in between"
                   : "overwrites what a copy has still to bring";
    return readers_known(the_block->hopper, w, clock)
               ? NULL
               : "overwrites what another may still read: no barrier in between";
}

static void write_words(uint32_t at, uint32_t bytes, struct place place)
{
    struct hopper *h = the_block->hopper;
    struct word_state *w = access_words(at, bytes, EMULATION_WRITE, place);
    const int32_t *clock = my_clock();
    for (uint32_t k = 0; k < bytes / 4; k++) {
        const char *wrong = check_overwrite(&w[k], clock);
        if (wrong)
            refuse(wrong, at + 4 * k, place);
        drop_readers(h, &w[k]);
        w[k].writer = (uint16_t)the_block->face.current;
        w[k].written = clock[w[k].writer];
        w[k].flags = WORD_WRITTEN | WORD_ORDINARY;
    }
}

static const void *smem_read(uint32_t at, uint32_t bytes, struct place place)
{
    read_words(at, bytes, EMULATION_READ, place);
    return the_block->face.shared + at;
}

static void *smem_write(uint32_t at, uint32_t bytes, struct place place)
{
    write_words(at, bytes, place);
    return the_block->face.shared + at;
}

/* ---- copies and products ---- */

/* Ordinary stores are visible to them after an async_fence() of the writer, and a barrier. */
static bool is_fenced(const struct word_state *w, const int32_t *clock)
{
    return !(w->flags & WORD_ORDINARY) ||
           w->written <= clock[fence_entry(the_block->hopper, w->writer)];
}

/* The running thread starts a copy to the words, which lands in a phase of an mbarrier. */
static void begin_async_write(uint32_t at, uint32_t bytes, uint32_t mbarrier, uint32_t phase,
                              struct place place)
{
    struct hopper *h = the_block->hopper;
    struct word_state *w = words_at(at);
    const int32_t *clock = my_clock();
    const struct word_state *last = NULL;
    for (uint32_t k = 0; k < bytes / 4; k++, last = &w[k - 1]) {
        struct word_state before = w[k];
        if (last && before.reader == READER_SET && before.read == last->read)
            before.reader = NO_READER;
        const char *wrong = check_overwrite(&before, clock);
        if (!wrong && !is_fenced(&w[k], clock))
            wrong = "copies to what an ordinary store wrote without async_fence";
        if (wrong)
            refuse(wrong, at + 4 * k, place);
    }
    for (uint32_t k = 0; k < bytes / 4; k++) {
        drop_readers(h, &w[k]);
        w[k].writer = (uint16_t)(h->threads + mbarrier);
        w[k].written = (int32_t)phase;
        w[k].flags = WORD_WRITTEN;
    }
}

/* Something that the clock's owner starts will read the words. */
static const char *begin_async_read(uint32_t at, uint32_t bytes, const int32_t *clock)
{
    struct word_state *w = words_at(at);
    for (uint32_t k = 0; k < bytes / 4; k++) {
        if (!(w[k].flags & WORD_WRITTEN) || w[k].written > clock[w[k].writer])
            return explain_word(&w[k]);
        if (!is_fenced(&w[k], clock))
            return "hands over what an ordinary store wrote without async_fence";
    }
    for (uint32_t k = 0; k < bytes / 4; k++)
        w[k].pending += w[k].pending < UINT8_MAX;
    return NULL;
}

/* The thread reads something; its clock. */
static int32_t note_read(uint32_t thread)
{
    const struct hopper *h = the_block->hopper;
    int32_t *clock = clock_of(h, thread);
    return clock[read_entry(h, thread)] = clock[thread];
}

/* It has read them, and the threads of r know. */
static void end_async_read(uint32_t at, uint32_t bytes, struct reading *r)
{
    struct word_state *w = words_at(at);
    for (uint32_t k = 0; k < bytes / 4; k++) {
        w[k].pending--;
        add_readers(the_block->hopper, &w[k], r);
    }
}
