/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to shared memory that run beside the thread (cp.async). Nothing arrives before the thread
   waits for it: until then its place holds NaN, and a read of it is reported. So a missing wait
   is an error however fast a real machine would have been. */
#pragma once
#include "shared.h"

enum { COPY_BYTES = 16, MAX_COPIES = 1024 };

struct copy {
    void *to;
    const void *from; /* null: zeros */
    uint32_t group;
    struct place at;
};

/* Copies of one thread, in order. Groups are numbered; the last is still open. */
struct copies {
    uint32_t first, end; /* modulo MAX_COPIES */
    uint32_t group;
    struct copy at[MAX_COPIES];
};

static void start_copy(void *to, const void *from, uint32_t there, struct place at)
{
    struct block *b = the_block;
    struct copies *c = &b->copies[b->face.current];
    if ((uintptr_t)from % COPY_BYTES)
        refuse_access("copies from a misaligned address to what lies", to, at);
    if (c->end - c->first == MAX_COPIES)
        refuse_access("has too many copies on their way", to, at);
    watch_write(to, COPY_BYTES, UNDER_WAY, at);
    memset(to, 0xff, COPY_BYTES);
    b->launch->copies += there != 0;
    c->at[c->end++ % MAX_COPIES] = (struct copy){to, there ? from : NULL, c->group, at};
}

static void commit_copies(void)
{
    the_block->copies[the_block->face.current].group++;
}

static void land(const struct copy *copy)
{
    struct shadow *s = the_block->shadow + ((uint8_t *)copy->to - the_block->face.shared) / 4;
    for (uint32_t k = 0; k < COPY_BYTES / 4; k++)
        s[k].write = my_tag();
    if (copy->from)
        memcpy(copy->to, copy->from, COPY_BYTES);
    else
        memset(copy->to, 0, COPY_BYTES);
}

/* All groups but the newest `left` of those that are complete. */
static void await_copies(uint32_t left)
{
    struct copies *c = &the_block->copies[the_block->face.current];
    while (c->first != c->end && c->at[c->first % MAX_COPIES].group + left < c->group)
        land(&c->at[c->first++ % MAX_COPIES]);
}

static void finish_copies(void)
{
    const struct copies *c = &the_block->copies[the_block->face.current];
    const struct copy *next = &c->at[c->first % MAX_COPIES];
    if (c->first != c->end)
        refuse_access("ends while a copy is on its way", next->to, next->at);
}
