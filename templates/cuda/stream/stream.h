/* SPDX-License-Identifier: Apache-2.0 */
/* Columns on their way: both operands of a group of columns are copied to shared memory while the group
   before is worked on. A stream goes over all groups of a strip. */
#ifndef MASKC_CUDA_STREAM_STREAM_H
#define MASKC_CUDA_STREAM_STREAM_H
#include "cuda/stream/partial.h"
#include "cuda/stream/walk.h"

enum {
    OPERAND = GROUP * PITCH,    /* halves: one operand of a group */
    STRIP = STRIP_ROWS * PITCH, /* of a strip */
    USE_FIRST = 1,
    USE_SECOND = 2,
    USE_NUMBERS = 4,
};

/* A group, and what the lane's rows see of it. */
struct stage {
    struct group group;
    u32 word[2]; /* slots that they see */
};

struct stream {
    struct walk walk;
    const struct abi_args *a;
    const struct abi_tensor *first, *second; /* operands, whose rows are columns here */
    float number;     /* USE_NUMBERS: LSE or state of a column, which this thread brings next */
    half_t *buffer;   /* shared: group, operand, slot */
    u32 buffers, use; /* constants: groups that the buffer holds (1 or 2) */
    u32 part;         /* bits 0, 1: the lane's rows take part; 2: all of the warp do */
    u32 turn;         /* where in the buffer `now` is */
    u32 ahead;        /* steps to look ahead before there is a group for `now` */
    struct stage now, next;
    struct group after; /* known early, so that nobody waits for the tables */
};

DEVICE half_t *stream_operand(const struct stream *s, u32 operand)
{
    return s->buffer + (s->turn * 2 + operand) * OPERAND;
}

/* ---- one group ---- */

/* Starts bringing a group's columns. */
DEVICE void copy_group(struct stream *s, const struct group *g, half_t *to)
{
    const struct job here = job_again(s->walk.job);
    const struct view first = view_of(s->first, &here), second = view_of(s->second, &here);
    if (!g->slots)
        return;
    NO_UNROLL
    for (u32 k = THREAD; k < GROUP * CHUNKS; k += THREADS) {
        u32 slot = k / CHUNKS, chunk = k % CHUNKS, at = slot * PITCH + 8 * chunk;
        u32 there = slot < group_end(g) && chunk < HEAD_CHUNKS;
        u32 column = there ? group_column(g, s->walk.job, slot) : 0;
        i64 a = there ? 2 * (column * s->first->row) + 16 * chunk
                      : 0; /* no register holds 2 rows */
        i64 b = there ? 2 * (column * s->second->row) + 16 * chunk : 0;
        if (s->use & USE_FIRST)
            copy_async_16(to + at, first.data + a, there);
        if (s->use & USE_SECOND)
            copy_async_16(to + OPERAND + at, second.data + b, there);
    }
}

/* The first 32 threads bring LSE, the next 32 the state, one column each. */
DEVICE void read_number(struct stream *s, const struct group *g)
{
    u32 slot = THREAD % GROUP;
    s->number = 0;
    if (!(s->use & USE_NUMBERS) || THREAD >= 2 * GROUP || slot >= group_end(g))
        return;
    u32 column = group_column(g, s->walk.job, slot);
    const struct job here = job_again(s->walk.job);
    s->number = THREAD < GROUP ? lse_in_units(lse_of(s->a, &here)[column])
                               : state_of(s->a, &here)[column];
}

/* They lie behind the column's first operand, where rows are padded. */
DEVICE float *column_numbers(const half_t *first, u32 slot)
{
    return (float *)(first + slot * PITCH + 8 * CHUNKS);
}

DEVICE void put_number(struct stream *s, u32 turn)
{
    float *to = column_numbers(s->buffer + turn * 2 * OPERAND, THREAD % GROUP);
    if (s->use & USE_NUMBERS && THREAD < 2 * GROUP)
        shared_put(to + THREAD / GROUP, s->number);
}

DEVICE void stream_issue(struct stream *s, u32 turn)
{
    copy_group(s, &s->next.group, s->buffer + turn * 2 * OPERAND);
    copy_async_commit();
    read_number(s, &s->next.group);
}

DEVICE void stream_advance(struct stream *s)
{
    struct group *g = &s->next.group;
    *g = s->after;
    UNROLL
    for (u32 which = 0; which < 2; which++)
        s->next.word[which] =
            group_word(g, s->walk.job, strip_row(which), s->part >> which & 1);
    walk_next(&s->walk, &s->after);
}

/* ---- the stream ---- */

/* Begins at the item's first column. The buffer must be free when the first step is taken: a barrier
   stands before that, or a stream that went to its end, since its last step has one and nothing of the
   buffer is read after it. */
DEVICE void stream_start(struct stream *s, const struct job *j)
{
    s->walk = walk_start(j);
    s->turn = s->buffers - 1;
    s->ahead = 2;
    s->part = job_has(j, strip_row(0), j->length) | job_has(j, strip_row(1), j->length) << 1;
    s->part |= ANY(s->part != 3) ? 0 : 4;
    s->after.slots = s->after.pattern = 0;
}

/* What is on its way is there for all. */
DEVICE void stream_arrive(struct stream *s)
{
    if (s->buffers > 1) {
        s->turn ^= 1;
        put_number(s, s->turn);
    } else {
        SYNC();
        stream_issue(s, 0);
        put_number(s, 0);
    }
    COPY_ASYNC_WAIT(0);
    SYNC();
}

/* Goes on to the next group, which is then in shared memory for all; 0 at the end. The first step looks
   ahead in the same loop: the text of a walk is long, and so it stands once. */
DEVICE u32 stream_step(struct stream *s)
{
    u32 ahead;
    NO_UNROLL
    do {
        ahead = s->ahead;
        if (!ahead)
            stream_arrive(s);
        s->now = s->next;
        stream_advance(s);
        if (s->buffers > 1)
            stream_issue(s, s->turn ^ 1);
        s->ahead = ahead ? ahead - 1 : 0;
    } while (ahead);
    return s->now.group.slots;
}

/* Does every row of the warp see all 32 columns? Asked of the group as it is worked on: kept with the stage as a
   flag, ptxas (12.9 to 13.4) holds it in predicates that the next group's overwrites before it is tested. */
DEVICE u32 stage_is_whole(const struct stream *s)
{
    const struct group *g = &s->now.group;
    return s->part >> 2 && !g->pattern && g->slots == SLOT_END * GROUP;
}

/* A bit for each fragment in which some row of the warp sees a column. */
DEVICE u32 live_fragments(const u32 word[2])
{
    u32 seen = warp_or(word[0] | word[1]), live = 0;
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++)
        live |= (u32)((seen >> (8 * f) & 0xff) != 0) << f;
    return live;
}

/* Words as the lane's entries have them: bit 8 f + x % 2 of word x / 2 is place x of fragment f. */
struct seen {
    u32 row[2];
};

DEVICE struct seen seen_of(const u32 word[2])
{
    struct seen s = {{one_value(word[0] >> lane_pair()), one_value(word[1] >> lane_pair())}};
    return s;
}

/* Whether the lane's row sees the entry at place x of fragment f. */
DEVICE u32 sees(const struct seen *s, u32 f, u32 x)
{
    return s->row[x >> 1] >> (8 * f + (x & 1)) & 1;
}

#endif
