/* SPDX-License-Identifier: Apache-2.0 */
/* Columns on their way: both operands of a column tile are copied to shared memory while the tile before is
   worked on. A stream goes over all column tiles of a row block:

       stream_start
       do {
           stream_next               starts the copies of the tile after `now`
           work                      on `now`; in the first iteration, stream_is_first, on rows of the row block
           stream_arrive             waits for those copies
       } while (stream_goes_on)
*/
#ifndef MASKC_CUDA_TILED_STREAM_H
#define MASKC_CUDA_TILED_STREAM_H
#include "cuda/tiled/partial.h"
#include "cuda/tiled/walk.h"

enum {
    USE_FIRST = 1,
    USE_SECOND = 2,
    USE_NUMBERS = 4,
    USE_NOTES = 8, /* copy addresses are in the notes */
};

/* The address of the thread's chunk of its first column in column tile 0 of the sequence, for both operands. */
struct places {
    const u8 *at[2];
};

struct stream {
    struct walk walk;
    const struct abi_args *a;
    const struct abi_tensor *first, *second; /* operands, whose rows are columns here */
    struct places from;                      /* not with USE_NOTES */
    u32 prefetched
        [ROW_TILES]; /* what this thread prefetched for the next tile: LSE or delta of a column, or words of the
                                  pattern */
    half_t *buffer;   /* shared: tile, operand, slot */
    u32 buffers, use; /* constants; buffers: column tiles that the buffer holds (1 or 2) */
    u32 part; /* bits below LANE_ROWS: the lane's rows take part; bit LANE_ROWS: all rows of the row block do */
    u32 row;  /* block_row(0); not with USE_NOTES */
    u32 buffer_index; /* where in the buffer `now` is */
    struct column_tile now, next;
};

DEVICE half_t *stream_operand(const struct stream *s, u32 operand)
{
    return s->buffer + (s->buffer_index * 2 + operand) * OPERAND;
}

DEVICE u32 *stream_notes(const struct stream *s)
{
    return (u32 *)(s->buffer + s->buffers * 2 * OPERAND);
}

/* ---- one column tile ---- */

/* A thread copies the same chunk of a column in every round. Where threads are not a multiple of chunks the last
   copy none. */
enum {
    COPY_COLUMNS = THREADS / CHUNKS, /* of a round */
    COPY_ROUNDS = (TILE_COLS + COPY_COLUMNS - 1) / COPY_COLUMNS,
    COPY_ALL = COPY_COLUMNS * CHUNKS == THREADS, /* all threads copy */
};

/* Copies of a thread: the first of its slots, beyond all if it copies none; its chunk; and their destination. An
   optimisation barrier: computed at each use, not held in registers. */
struct copier {
    u32 slot, chunk, place;
};

DEVICE struct copier copier_here(void)
{
    const u32 thread = opt_barrier(THREAD);
    const u32 slot = COPY_ALL || thread < COPY_COLUMNS * CHUNKS ? thread / CHUNKS : TILE_COLS;
    const struct copier c = {slot, thread % CHUNKS, chunk_place(slot, thread % CHUNKS)};
    return c;
}

DEVICE const u8 *copy_from(const struct abi_tensor *t, const struct work_item *work)
{
    const struct view v = view_of(t, work);
    const struct copier c = copier_here();
    return one_place(v.data + c.slot % TILE_COLS * v.row + c.chunk % HEAD_CHUNKS * 16);
}

/* Where registers are few the addresses are noted. */
DEVICE u32 *places_noted(const struct stream *s)
{
    return stream_notes(s) + NOTE_PLACES + 4 * opt_barrier(THREAD);
}

DEVICE void places_put(struct stream *s, const struct places *p)
{
    const u64 first = (u64)p->at[0], second = (u64)p->at[1];
    const struct u32x4 x = {(u32)first, (u32)(first >> 32), (u32)second, (u32)(second >> 32)};
    if (s->use & USE_NOTES)
        shared_put_u32x4(places_noted(s), x);
    else
        s->from = *p;
}

DEVICE struct places places_get(const struct stream *s)
{
    struct places p = s->from;
    if (s->use & USE_NOTES) {
        const struct u32x4 x = shared_get_u32x4(places_noted(s));
        p.at[0] = (const u8 *)(x.x | (u64)x.y << 32);
        p.at[1] = (const u8 *)(x.z | (u64)x.w << 32);
    }
    return p;
}

/* Where its chunk goes in round k. */
DEVICE u32 copier_place(const struct copier *c, u32 k)
{
    if (COPY_COLUMNS % 8 == 0) /* permuted alike */
        return c->place + k * COPY_COLUMNS * PITCH;
    return chunk_place(c->slot + k * COPY_COLUMNS, c->chunk);
}

/* Copies of an operand's columns, whose addresses are a constant apart: of slots below `end`, or all (`whole`). */
DEVICE void copy_columns(const struct copier *c, const u8 *from, i64 row, half_t *to, u32 whole,
                         u32 end)
{
    UNROLL
    for (u32 k = 0; k < COPY_ROUNDS; k++) {
        const u32 slot = c->slot + k * COPY_COLUMNS;
        if ((COPY_ALL && (k + 1) * COPY_COLUMNS <= TILE_COLS) || slot < TILE_COLS)
            copy_async_16(to + copier_place(c, k), from + row * (2 * k * COPY_COLUMNS),
                          (HEAD_CHUNKS == CHUNKS || c->chunk < HEAD_CHUNKS) &&
                              (whole || slot < end));
    }
}

/* Contiguous columns. */
DEVICE void copy_range(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    const struct copier c = copier_here();
    const struct places places = places_get(s);
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        const i64 row = which ? s->second->row : s->first->row;
        const u8 *from = one_place(places.at[which] + row * (2 * ct->column));
        if (s->use >> which & 1)
            copy_columns(&c, from, row, to + which * OPERAND, 0, end_slot(ct));
    }
}

/* Loads the columns of all rounds before their copies, so that it waits once. */
DEVICE void copy_gathered(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    const struct copier c = copier_here();
    const u32 there = c.chunk < HEAD_CHUNKS ? end_slot(ct) : 0;
    const struct places places = places_get(s);
    u32 column[COPY_ROUNDS];
    UNROLL
    for (u32 k = 0; k < COPY_ROUNDS; k++) {
        const u32 slot = c.slot + k * COPY_COLUMNS;
        column[k] = slot < there ? slot_column(ct, s->walk.work, slot) : c.slot;
    }
    UNROLL
    for (u32 k = 0; k < 2 * COPY_ROUNDS; k++) {
        const u32 which = k % 2, slot = c.slot + k / 2 * COPY_COLUMNS;
        const i64 row = which ? s->second->row : s->first->row;
        if (s->use >> which & 1 &&
            ((COPY_ALL && (k / 2 + 1) * COPY_COLUMNS <= TILE_COLS) || slot < TILE_COLS))
            copy_async_16(to + which * OPERAND + copier_place(&c, k / 2),
                          places.at[which] + 2 * ((i64)column[k / 2] - c.slot) * row,
                          slot < there);
    }
}

/* The pattern's words of a column tile in the notes, by row of the row block. */
DEVICE u32 *pattern_words(const struct stream *s, u32 buffer_index)
{
    return stream_notes(s) + NOTE_PATTERN + buffer_index * BLOCK_ROWS;
}

/* LSE and delta of a column of a column tile, one behind the other, in the notes. */
DEVICE float *column_numbers(const struct stream *s, u32 buffer_index, u32 slot)
{
    return (float *)(stream_notes(s) + NOTE_COLUMNS) + 2 * (buffer_index * TILE_COLS + slot);
}

/* Starts the copies of a column tile. */
DEVICE void copy_column_tile(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    if (is_gathered(ct))
        copy_gathered(s, ct, to);
    else if (ct->slots)
        copy_range(s, ct, to);
}

/* Where the address of the sequence's LSE is, for the first warp, and that of delta, for the second. */
DEVICE u32 *numbers_noted(const struct stream *s)
{
    return stream_notes(s) + NOTE_NUMBERS + 2 * (THREAD / 32 % 2);
}

DEVICE void numbers_put(const struct stream *s, const struct work_item *work)
{
    if (THREAD < 2 * TILE_COLS && THREAD % 32 == 0)
        note_address(numbers_noted(s),
                     THREAD < TILE_COLS ? lse_of(s->a, work) : delta_of(s->a, work));
    SYNC_WARP();
}

/* Prefetches LSE (the first 32 threads) or delta (the next 32), one column for each thread. */
DEVICE void read_number(struct stream *s, const struct column_tile *ct)
{
    u32 slot = THREAD % TILE_COLS;
    s->prefetched[0] = 0;
    if (!(s->use & USE_NUMBERS) || THREAD >= 2 * TILE_COLS || slot >= end_slot(ct))
        return;
    const float *numbers = (const float *)noted_address(numbers_noted(s));
    s->prefetched[0] = bits_of(numbers[slot_column(ct, s->walk.work, slot)]);
}

/* Number of threads, the block's last ones, that prefetch the pattern's words, one or two each. */
DEVICE u32 word_threads(const struct stream *s)
{
    return ROW_TILES > 1 && !(s->use & USE_NUMBERS) ? THREADS : THREADS / 2;
}

DEVICE void read_pattern(struct stream *s, const struct column_tile *ct)
{
    const u32 threads = word_threads(s), first = THREADS - threads;
    if (!ct->pattern || THREAD < first)
        return;
    const u32 *words = s->walk.work->plan->patterns + (u64)(ct->pattern - 1) * BLOCK_ROWS;
    UNROLL
    for (u32 k = 0; k < BLOCK_ROWS / threads; k++)
        s->prefetched[k] = words[THREAD - first + k * threads];
}

typedef char threads_without_numbers[THREADS / 2 >= 2 * TILE_COLS ? 1 : -1];

/* Stores what was prefetched for the next tile, which is at buffer_index. LSE is scaled here, since arithmetic right
   behind the load would wait for it. */
DEVICE void store_prefetched(const struct stream *s, u32 buffer_index)
{
    const u32 thread =
        s->use & USE_NUMBERS ? opt_barrier(THREAD) : THREAD; /* fewer registers */
    if (s->use & USE_NUMBERS && thread < 2 * TILE_COLS) {
        const float number = float_of(s->prefetched[0]);
        shared_put(column_numbers(s, buffer_index, thread % TILE_COLS) + thread / TILE_COLS,
                   thread < TILE_COLS ? scaled_lse(number) : number);
    }
    const u32 threads = word_threads(s), first = THREADS - threads;
    if (!s->next.pattern || thread < first)
        return;
    u32 *words = pattern_words(s, buffer_index) + thread - first;
    UNROLL
    for (u32 k = 0; k < BLOCK_ROWS / threads; k++)
        shared_put_u32(words + k * threads, s->prefetched[k]);
}

DEVICE void stream_issue(struct stream *s, u32 buffer_index)
{
    copy_column_tile(s, &s->next, s->buffer + buffer_index * 2 * OPERAND);
    copy_async_commit();
    read_number(s, &s->next);
    read_pattern(s, &s->next);
}

/* ---- the stream ---- */

/* `slots` of a tile that comes before the first. */
enum { BEFORE_FIRST = 1 << 30 };

/* Whether all rows of the row block are the item's and take part; the same for the whole block. */
DEVICE u32 item_is_full(const struct work_item *work)
{
    u32 own = 0xffffffffu;
    UNROLL
    for (u32 k = 0; k < BLOCK_ROWS / 32; k++)
        own &= work->item->own[k];
    return work->item->rows == BLOCK_ROWS && own == 0xffffffffu &&
           row_position(work, BLOCK_ROWS - 1) < work->length;
}

/* Begins at the item's first column. `warp` has a bit for each of the warp's rows that take part. The buffer must be free at
   the first step: after a barrier, or after a stream that went to its end, whose last step had a barrier behind the last
   read. */
DEVICE void stream_start(struct stream *s, const struct work_item *work, u32 warp)
{
    s->walk = walk_start(work);
    s->buffer_index = s->buffers - 1;
    s->next.slots = BEFORE_FIRST;
    s->next.column = s->next.pattern = 0;
    s->next.stored = 0;
    const u32 rows = warp >> opt_barrier(THREAD) % 32 / 4;
    u32 part = (ALL_APART && item_is_full(work)) << LANE_ROWS;
    UNROLL
    for (u32 k = 0; k < LANE_ROWS; k++)
        part |= (rows >> 8 * k & 1) << k;
    s->part = one_value(part);
    s->row = one_value(block_row(0));
    const struct places places = {{copy_from(s->first, work), copy_from(s->second, work)}};
    places_put(s, &places);
    if (s->use & USE_NUMBERS)
        numbers_put(s, work);
}

/* Waits until the tile on its way is there for all threads. */
DEVICE void stream_arrive(struct stream *s)
{
    if (s->buffers > 1) {
        s->buffer_index ^= 1;
        store_prefetched(s, s->buffer_index);
    } else {
        SYNC();
        stream_issue(s, 0);
        store_prefetched(s, 0);
    }
    COPY_ASYNC_WAIT(0);
    SYNC();
}

/* Goes on to the column tile that arrived last and starts the copies of the next one. */
DEVICE void stream_next(struct stream *s)
{
    s->now = s->next;
    walk_next(&s->walk, &s->next);
    if (s->buffers > 1)
        stream_issue(s, s->buffer_index ^ 1);
}

DEVICE u32 stream_is_first(const struct stream *s)
{
    return s->now.slots == BEFORE_FIRST;
}

/* Whether a column tile arrived. */
DEVICE u32 stream_goes_on(const struct stream *s)
{
    return s->next.slots;
}

/* In the first iteration: waits for the row block's rows, which each warp copied for itself before the stream started. */
DEVICE void stream_wait_for_rows(const struct stream *s)
{
    if (s->buffers > 1)
        COPY_ASYNC_WAIT(1); /* the first column tile may still be on its way */
    else
        COPY_ASYNC_WAIT(0);
    SYNC_WARP();
}

#endif
