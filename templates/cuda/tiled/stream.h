/* SPDX-License-Identifier: Apache-2.0 */
/* Columns on their way: both operands of a column tile are copied to shared memory while the tile before is
   worked on. A stream goes over all column tiles of a row block. For registers' sake the padding of shared rows
   holds what is needed seldom: copy addresses, LSE and delta of columns, words of patterns, the work item's
   index. */
#ifndef MASKC_CUDA_TILED_STREAM_H
#define MASKC_CUDA_TILED_STREAM_H
#include "cuda/tiled/partial.h"
#include "cuda/tiled/walk.h"

enum {
    USE_FIRST = 1,
    USE_SECOND = 2,
    USE_NUMBERS = 4,
    USE_PADDING = 8, /* copy addresses lie in the padding of two row blocks */
};

/* Of both operands: the address of the thread's chunk of its first column in column tile 0 of the sequence. */
struct places {
    const u8 *at[2];
};

struct stream {
    struct walk walk;
    const struct abi_args *a;
    const struct abi_tensor *first, *second; /* operands, whose rows are columns here */
    struct places from;                      /* not with USE_PADDING */
    u32 prefetched; /* what this thread prefetched for the next tile: LSE or delta of a column, or a word of the pattern */
    half_t *buffer; /* shared: tile, operand, slot */
    u32 buffers, use; /* constants; buffers: column tiles that the buffer holds (1 or 2) */
    u32 part;         /* bits 0, 1: the lane's rows take part */
    u32 pattern_word; /* pattern_word_at of its first row; not with USE_PADDING */
    u32 buffer_index; /* where in the buffer `now` is */
    u32 ahead;        /* `now` is not loaded yet */
    struct column_tile now, next;
};

DEVICE half_t *stream_operand(const struct stream *s, u32 operand)
{
    return s->buffer + (s->buffer_index * 2 + operand) * OPERAND;
}

/* ---- one column tile ---- */

/* A thread copies the same chunk of a column in every round. Where threads are not a multiple of chunks the last
   copy none. */
enum {
    COPY_COLUMNS = THREADS / CHUNKS, /* of a round */
    COPY_ROUNDS = (TILE_COLS + COPY_COLUMNS - 1) / COPY_COLUMNS,
    COPY_ALL = COPY_COLUMNS * CHUNKS == THREADS, /* all threads copy */
};

/* The first of the thread's slots; beyond all where it copies none. */
DEVICE u32 copy_slot(void)
{
    return COPY_ALL || THREAD < COPY_COLUMNS * CHUNKS ? THREAD / CHUNKS : TILE_COLS;
}

DEVICE const u8 *copy_from(const struct abi_tensor *t, const struct work_item *work)
{
    const struct view v = view_of(t, work);
    return one_place(v.data + copy_slot() % TILE_COLS * v.row +
                     THREAD % CHUNKS % HEAD_CHUNKS * 16);
}

/* Where registers are few the addresses lie behind rows of the thread's own warp, 16 bytes each. */
DEVICE half_t *places_behind(void)
{
    const u32 thread = opt_barrier(THREAD), l = thread % 32;
    return SHARED_HALF() + l / 16 * ROW_BLOCK + (thread / 32 * 16 + l % 16) * PITCH +
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

/* Contiguous columns: addresses are a constant apart. */
DEVICE void copy_range(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    const u32 there = THREAD % CHUNKS < HEAD_CHUNKS ? end_slot(ct) : 0, slot = copy_slot();
    const struct places places = places_get(s);
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        const i64 row = which ? s->second->row : s->first->row;
        const u8 *from = one_place(places.at[which] + row * (2 * ct->column));
        UNROLL
        for (u32 k = 0; k < COPY_ROUNDS && s->use >> which & 1; k++)
            if ((COPY_ALL && (k + 1) * COPY_COLUMNS <= TILE_COLS) ||
                slot + k * COPY_COLUMNS < TILE_COLS)
                copy_async_16(to + which * OPERAND + k * COPY_COLUMNS * PITCH,
                              from + row * (2 * k * COPY_COLUMNS),
                              slot + k * COPY_COLUMNS < there);
    }
}

DEVICE void copy_gathered(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    const u32 there = THREAD % CHUNKS < HEAD_CHUNKS ? end_slot(ct) : 0;
    const struct places places = places_get(s);
    NO_UNROLL
    for (u32 slot = copy_slot(); slot < TILE_COLS; slot += COPY_COLUMNS) {
        const i64 column =
            slot < there ? (i64)slot_column(ct, s->walk.work, slot) - copy_slot() : 0;
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

/* Where the pattern's word of row r of the row block is, counted from the first operand: four words behind each
   row of the second. */
DEVICE u32 pattern_word_at(u32 r)
{
    return OPERAND + r / 4 * PITCH + 8 * CHUNKS + r % 4 * 2;
}

/* Starts the copies of a column tile. */
DEVICE void copy_column_tile(const struct stream *s, const struct column_tile *ct, half_t *to)
{
    const u32 thread = opt_barrier(THREAD);
    to += thread / CHUNKS * PITCH + thread % CHUNKS * 8;
    if (is_gathered(ct))
        copy_gathered(s, ct, to);
    else if (ct->slots)
        copy_range(s, ct, to);
}

/* Where the address of the sequence's LSE is, for the first warp, and that of delta, for the second: in the
   padding of a column. */
DEVICE half_t *numbers_place(const struct stream *s)
{
    return s->buffer + (1 + THREAD / 32) * PITCH + 8 * CHUNKS + 4;
}

DEVICE void numbers_put(const struct stream *s, const struct work_item *work)
{
    const u64 from = (u64)(THREAD < TILE_COLS ? lse_of(s->a, work) : delta_of(s->a, work));
    const struct u32x2 x = {(u32)from, (u32)(from >> 32)};
    if (THREAD < 2 * TILE_COLS && THREAD % 32 == 0)
        shared_put_u32x2(numbers_place(s), x);
    SYNC_WARP();
}

DEVICE const float *numbers_get(const struct stream *s)
{
    const struct u32x2 x = shared_get_u32x2(numbers_place(s));
    return (const float *)(x.x | (u64)x.y << 32);
}

/* Prefetches LSE (the first 32 threads) and delta (the next 32) of one column each, */
DEVICE void read_number(struct stream *s, const struct column_tile *ct)
{
    u32 slot = THREAD % TILE_COLS;
    s->prefetched = 0;
    if (!(s->use & USE_NUMBERS) || THREAD >= 2 * TILE_COLS || slot >= end_slot(ct))
        return;
    s->prefetched = bits_of(numbers_get(s)[slot_column(ct, s->walk.work, slot)]);
}

/* and words of the pattern (the last BLOCK_ROWS threads). */
DEVICE void read_pattern(struct stream *s, const struct column_tile *ct)
{
    if (ct->pattern && THREAD >= BLOCK_ROWS)
        s->prefetched = (s->walk.work->plan->patterns +
                         (u64)(ct->pattern - 1) * BLOCK_ROWS)[THREAD - BLOCK_ROWS];
}

typedef char who_brings_numbers_brings_no_word[BLOCK_ROWS >= 2 * TILE_COLS ? 1 : -1];

/* LSE and delta of a column, in the padding of its first operand. */
DEVICE float *column_numbers(const half_t *first, u32 slot)
{
    return (float *)(first + slot * PITCH + 8 * CHUNKS);
}

/* Stores what was prefetched for the next tile, which is at buffer_index. LSE is scaled here, since arithmetic right
   behind the load would wait for it. */
DEVICE void store_prefetched(const struct stream *s, u32 buffer_index)
{
    const u32 thread =
        s->use & USE_NUMBERS ? opt_barrier(THREAD) : THREAD; /* fewer registers */
    half_t *first = s->buffer + buffer_index * 2 * OPERAND;
    if (s->use & USE_NUMBERS && thread < 2 * TILE_COLS) {
        const float number = float_of(s->prefetched);
        shared_put(column_numbers(first, thread % TILE_COLS) + thread / TILE_COLS,
                   thread < TILE_COLS ? scaled_lse(number) : number);
    }
    if (s->next.pattern && thread >= BLOCK_ROWS)
        shared_put_u32(first + pattern_word_at(thread - BLOCK_ROWS), s->prefetched);
}

DEVICE void stream_issue(struct stream *s, u32 buffer_index)
{
    copy_column_tile(s, &s->next, s->buffer + buffer_index * 2 * OPERAND);
    copy_async_commit();
    read_number(s, &s->next);
    read_pattern(s, &s->next);
}

/* ---- the stream ---- */

/* Begins at the item's first column. The buffer must be free at the first step: after a barrier, or after a
   stream that went to its end, whose last step had a barrier behind the last read. */
DEVICE void stream_start(struct stream *s, const struct work_item *work)
{
    s->walk = walk_start(work);
    s->buffer_index = s->buffers - 1;
    s->ahead = 1;
    const u32 rows = warp_rows(work, work->length) >> lane_row(0);
    s->part = one_value((rows & 1) | (rows >> 7 & 2));
    s->pattern_word = one_value(pattern_word_at(block_row(0)));
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

/* Goes on to the next column tile, which is then in shared memory for all threads; 0 at the end. The first step
   prefetches in the same loop: walk_next is much code, and so is inlined once. */
DEVICE u32 stream_step(struct stream *s)
{
    u32 ahead;
    NO_UNROLL
    do {
        ahead = s->ahead;
        if (!ahead)
            stream_arrive(s);
        s->now = s->next;
        walk_next(&s->walk, &s->next);
        if (s->buffers > 1)
            stream_issue(s, s->buffer_index ^ 1);
        s->ahead = 0;
    } while (ahead);
    return s->now.slots;
}

/* The slots of the current tile that the lane's rows see. */
struct words {
    u32 row[2];
};

DEVICE struct words stage_words(const struct stream *s)
{
    const u32 bits =
        s->now.slots == SLOT_END * TILE_COLS ? 0xffffffffu : column_tile_bits(&s->now);
    struct words w = {{bits & (0 - (s->part & 1)), bits & (0 - (s->part >> 1))}};
    if (s->now.pattern) {
        const half_t *at =
            stream_operand(s, 0) +
            (s->use & USE_PADDING ? pattern_word_at(block_row(0)) : s->pattern_word);
        w.row[0] &= shared_get_u32(at);
        w.row[1] &= shared_get_u32(at + 2 * PITCH);
    }
    return w;
}

/* Whether every row of the warp sees all 32 columns. Computed for the current tile, not stored with it as a
   flag: nothing sets `now` before the first turn, and ptxas (12.9 to 13.4) takes the next tile's flag for one
   that is undefined there (tests/sass/reproducer.ptx). */
DEVICE u32 words_are_whole(const struct words *w)
{
    return !ANY((w->row[0] & w->row[1]) != 0xffffffffu);
}

/* The slots that some row of the warp sees. */
DEVICE u32 live_slots(const struct words *w)
{
    return warp_or(w->row[0] | w->row[1]);
}

/* The words shifted to the lane's entries: bit 8 f + x % 2 of word x / 2 is place x of fragment f. */
struct seen {
    u32 row[2];
};

DEVICE struct seen seen_of(const struct words *w)
{
    struct seen s = {
        {one_value(w->row[0] >> lane_pair()), one_value(w->row[1] >> lane_pair())}};
    return s;
}

/* Whether the lane's row sees place x of fragment f. Null: all rows see all. */
DEVICE u32 sees(const struct seen *s, u32 f, u32 x)
{
    return s ? s->row[x >> 1] >> (8 * f + (x & 1)) & 1 : 1;
}

#endif
