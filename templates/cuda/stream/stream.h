/* SPDX-License-Identifier: Apache-2.0 */
/* Columns on their way: both operands of a group of columns are copied to shared memory while the group
   before is worked on. A stream goes over all groups of a strip. */
#ifndef MASKC_CUDA_STREAM_STREAM_H
#define MASKC_CUDA_STREAM_STREAM_H
#include "cuda/stream/partial.h"
#include "cuda/stream/walk.h"

enum {
    USE_FIRST = 1,
    USE_SECOND = 2,
    USE_NUMBERS = 4,
    USE_PADDING = 8, /* of two strips, for what a thread copies from */
};

/* A group, and what the lane's rows see of it. */
struct stage {
    struct group group;
    u32 word[2]; /* slots that they see, where these count (stage_words) */
};

/* Of both operands: the thread's chunk of the column that it copies first, were the group the sequence's first. */
struct places {
    const u8 *at[2];
};

struct stream {
    struct walk walk;
    const struct abi_args *a;
    const struct abi_tensor *first, *second; /* operands, whose rows are columns here */
    struct places from;                      /* not with USE_PADDING */
    float number;     /* USE_NUMBERS: LSE or state of a column, which this thread brings next */
    half_t *buffer;   /* shared: group, operand, slot */
    u32 buffers, use; /* constants: groups that the buffer holds (1 or 2) */
    u32 part;         /* bits 0, 1: the lane's rows take part */
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

/* A thread copies the same chunk of a column in every turn; where the threads are not a multiple of the
   chunks the last ones copy none. */
enum {
    COPY_COLUMNS = THREADS / CHUNKS, /* of a turn */
    COPY_TURNS = (GROUP + COPY_COLUMNS - 1) / COPY_COLUMNS,
    COPY_ALL = COPY_COLUMNS * CHUNKS == THREADS, /* all threads do */
};

/* The first of the thread's slots; beyond all where it copies none. */
DEVICE u32 copy_slot(void)
{
    return COPY_ALL || THREAD < COPY_COLUMNS * CHUNKS ? THREAD / CHUNKS : GROUP;
}

DEVICE const u8 *copy_from(const struct abi_tensor *t, const struct job *j)
{
    const struct view v = view_of(t, j);
    return one_place(v.data + copy_slot() % GROUP * v.row + THREAD % CHUNKS % HEAD_CHUNKS * 16);
}

/* Where registers are few they lie behind the rows of the thread's own warp, 16 bytes each, where these are
   padded. */
DEVICE half_t *places_behind(void)
{
    const u32 thread = afresh(THREAD), lane = thread % 32;
    return SHARED_HALF() + lane / 16 * STRIP + (thread / 32 * 16 + lane % 16) * PITCH +
           8 * CHUNKS;
}

DEVICE void places_put(struct stream *s, const struct places *p)
{
    const u64 first = (u64)p->at[0], second = (u64)p->at[1];
    const struct u32x4 x = {(u32)first, (u32)(first >> 32), (u32)second, (u32)(second >> 32)};
    if (s->use & USE_PADDING)
        shared_put_u32x4(places_behind(), x);
    else
        s->from = *p;
}

DEVICE struct places places_get(const struct stream *s)
{
    struct places p = s->from;
    if (s->use & USE_PADDING) {
        const struct u32x4 x = shared_get_u32x4(places_behind());
        p.at[0] = (const u8 *)(x.x | (u64)x.y << 32);
        p.at[1] = (const u8 *)(x.z | (u64)x.w << 32);
    }
    return p;
}

/* Neighbours: addresses are a constant apart. */
DEVICE void copy_range(const struct stream *s, const struct group *g, half_t *to)
{
    const u32 there = THREAD % CHUNKS < HEAD_CHUNKS ? group_end(g) : 0, slot = copy_slot();
    const struct places places = places_get(s);
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        const i64 row = which ? s->second->row : s->first->row;
        const u8 *from = one_place(places.at[which] + row * (2 * g->column));
        UNROLL
        for (u32 k = 0; k < COPY_TURNS && s->use >> which & 1; k++)
            if ((COPY_ALL && (k + 1) * COPY_COLUMNS <= GROUP) ||
                slot + k * COPY_COLUMNS < GROUP)
                copy_async_16(to + which * OPERAND + k * COPY_COLUMNS * PITCH,
                              from + row * (2 * k * COPY_COLUMNS),
                              slot + k * COPY_COLUMNS < there);
    }
}

DEVICE void copy_gathered(const struct stream *s, const struct group *g, half_t *to)
{
    const u32 there = THREAD % CHUNKS < HEAD_CHUNKS ? group_end(g) : 0;
    const struct places places = places_get(s);
    NO_UNROLL
    for (u32 slot = copy_slot(); slot < GROUP; slot += COPY_COLUMNS) {
        const i64 column =
            slot < there ? (i64)group_column(g, s->walk.job, slot) - copy_slot() : 0;
        UNROLL
        for (u32 which = 0; which < 2; which++) {
            const i64 row = which ? s->second->row : s->first->row;
            if (s->use >> which & 1)
                copy_async_16(to + which * OPERAND, places.at[which] + 2 * column * row,
                              slot < there);
        }
        to += COPY_COLUMNS * PITCH;
    }
}

/* Starts bringing a group's columns. */
DEVICE void copy_group(const struct stream *s, const struct group *g, half_t *to)
{
    const u32 thread = afresh(THREAD);
    to += thread / CHUNKS * PITCH + thread % CHUNKS * 8;
    if (is_gathered(g))
        copy_gathered(s, g, to);
    else if (g->slots)
        copy_range(s, g, to);
}

/* Where the sequence's LSE are, for the first warp, and its states, for the second: behind a row of columns. */
DEVICE half_t *numbers_place(const struct stream *s)
{
    return s->buffer + OPERAND + (1 + THREAD / 32) * PITCH + 8 * CHUNKS;
}

DEVICE void numbers_put(const struct stream *s, const struct job *j)
{
    const u64 from = (u64)(THREAD < GROUP ? lse_of(s->a, j) : state_of(s->a, j));
    const struct u32x2 x = {(u32)from, (u32)(from >> 32)};
    if (THREAD < 2 * GROUP && THREAD % 32 == 0)
        shared_put_u32x2(numbers_place(s), x);
    SYNC_WARP();
}

DEVICE const float *numbers_get(const struct stream *s)
{
    const struct u32x2 x = shared_get_u32x2(numbers_place(s));
    return (const float *)(x.x | (u64)x.y << 32);
}

/* The first 32 threads bring LSE, the next 32 the state, one column each. */
DEVICE void read_number(struct stream *s, const struct group *g)
{
    u32 slot = THREAD % GROUP;
    s->number = 0;
    if (!(s->use & USE_NUMBERS) || THREAD >= 2 * GROUP || slot >= group_end(g))
        return;
    const float number = numbers_get(s)[group_column(g, s->walk.job, slot)];
    s->number = THREAD < GROUP ? lse_in_units(number) : number;
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

/* What the pattern lets the lane's rows see; nobody waits for it here. */
DEVICE void read_words(struct stage *to, const struct stream *s)
{
    const u32 pattern = to->group.pattern;
    to->word[0] = 0 - (s->part & 1);
    to->word[1] = 0 - (s->part >> 1);
    if (!pattern)
        return;
    const u32 row = strip_row(0);
    const u32 *rows = s->walk.job->plan->patterns + (u64)(pattern - 1) * STRIP_ROWS + row;
    UNROLL
    for (u32 which = 0; which < 2; which++)
        if (s->part >> which & 1)
            to->word[which] = rows[8 * which];
}

DEVICE void stream_advance(struct stream *s)
{
    s->next.group = s->after;
    read_words(&s->next, s);
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
    s->part = one_value(job_has(j, strip_row(0), j->length) |
                        job_has(j, strip_row(1), j->length) << 1);
    const struct places places = {{copy_from(s->first, j), copy_from(s->second, j)}};
    places_put(s, &places);
    if (s->use & USE_NUMBERS)
        numbers_put(s, j);
    s->after.column = s->after.slots = s->after.pattern = 0;
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

/* The slots that the lane's rows see of the group that is worked on. */
struct words {
    u32 row[2];
};

DEVICE struct words stage_words(const struct stage *g)
{
    const u32 bits = group_bits(&g->group);
    const struct words w = {{g->word[0] & bits, g->word[1] & bits}};
    return w;
}

/* Does every row of the warp see all 32 columns? Asked of the group as it is worked on: kept with the stage as a
   flag, ptxas (12.9 to 13.4) holds it in predicates that the next group's overwrites before it is tested. */
DEVICE u32 stage_is_whole(const struct stage *g)
{
    return g->group.slots == SLOT_END * GROUP && !ANY((g->word[0] & g->word[1]) != 0xffffffffu);
}

/* The slots that some row of the warp sees. */
DEVICE u32 live_slots(const struct words *w)
{
    return warp_or(w->row[0] | w->row[1]);
}

/* Words as the lane's entries have them: bit 8 f + x % 2 of word x / 2 is place x of fragment f. */
struct seen {
    u32 row[2];
};

DEVICE struct seen seen_of(const struct words *w)
{
    struct seen s = {
        {one_value(w->row[0] >> lane_pair()), one_value(w->row[1] >> lane_pair())}};
    return s;
}

/* Whether the lane's row sees the entry at place x of fragment f. Null: all rows see all. */
DEVICE u32 sees(const struct seen *s, u32 f, u32 x)
{
    return s ? s->row[x >> 1] >> (8 * f + (x & 1)) & 1 : 1;
}

#endif
