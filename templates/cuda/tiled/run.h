/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: whole column tiles of a range that all rows of the row block see. An iteration of the stream finds out what
   the next tile is, builds addresses and tests bits, which is as many instructions as the products of a tile. Within a range
   that is the same for each tile, so that a run has a loop of its own: two addresses that advance, and a counter. */
#ifndef MASKC_CUDA_TILED_RUN_H
#define MASKC_CUDA_TILED_RUN_H
#include "cuda/tiled/words.h"

struct run {
    u32 left; /* column tiles */
    struct copier copier;
    const u8 *from
        [2]; /* the thread's chunk of the column tile whose copies start next, of both operands */
};

/* Number of column tiles whose copies the run starts; 0 unless the next tile and the one after it
   are whole. The tile that is copied last is not computed in the run but after it. */
DEVICE u32 run_length(const struct stream *s)
{
    const struct walk *w = &s->walk;
    const u32 any = s->buffers > 1 && s->part >> LANE_ROWS && w->column + TILE_COLS <= w->end &&
                    s->next.slots == SLOT_END * TILE_COLS;
    return any ? (w->end - w->column) / TILE_COLS : 0;
}

/* Stores where the walk goes on behind the run in the warp's notes: registers do not hold it through the run's loop. */
DEVICE void run_note_walk(const struct stream *s, u32 columns)
{
    const struct walk *w = &s->walk;
    const struct u32x4 walk = {w->piece, w->element, w->column + columns, w->end};
    const struct u32x4 next = {w->pieces_end, s->next.column + columns,
                               s->next.slots | s->part << 16, s->next.pattern};
    const u32 thread = opt_barrier(THREAD);
    u32 *to = stream_notes(s) + NOTE_WALK + thread / 32 * WALK_WORDS;
    if (thread % 32 == 0) {
        shared_put_u32x4(to, walk);
        shared_put_u32x4(to + 4, next);
        shared_put_u32(to + 8, w->length);
    }
    SYNC_WARP();
}

/* Place in the warp's notes for the address of LSE or delta of the first column after the run. */
DEVICE u32 *run_numbers(const struct stream *s)
{
    return stream_notes(s) + NOTE_WALK + THREAD / 32 * WALK_WORDS + 10;
}

/* Other lanes read the address behind the barrier of stream_arrive. */
DEVICE void run_note_numbers(const struct stream *s, u32 columns)
{
    if (THREAD % 32 == 0)
        note_address(run_numbers(s),
                     (const float *)noted_address(numbers_noted(s)) + s->walk.column + columns);
}

/* Addresses of the column tile that comes `left` ones before the end. */
DEVICE void run_places(const struct stream *s, struct run *run)
{
    const u32 *walk = stream_notes(s) + NOTE_WALK + opt_barrier(THREAD) / 32 * WALK_WORDS;
    const u32 column = shared_get_u32(walk + 2) - (run->left + 1) * TILE_COLS;
    const struct places places = places_get(s);
    UNROLL
    for (u32 which = 0; which < 2; which++)
        run->from[which] =
            places.at[which] + (which ? s->second->row : s->first->row) * (2 * column);
}

/* Begins a run, maybe one of no length. */
DEVICE struct run run_begin(const struct stream *s)
{
    struct run run = {run_length(s), copier_here(), {0, 0}};
    run_note_walk(s, run.left * TILE_COLS);
    if (run.left) {
        const struct places places = places_get(s);
        UNROLL
        for (u32 which = 0; which < 2; which++)
            run.from[which] = places.at[which] +
                              (which ? s->second->row : s->first->row) * (2 * s->walk.column);
        if (s->use & USE_NUMBERS && THREAD < 2 * TILE_COLS)
            run_note_numbers(s, run.left * TILE_COLS);
    }
    return run;
}

/* dQ, which has fewest registers, computes addresses anew for each column tile. */
DEVICE u32 run_recomputes(const struct stream *s)
{
    return (s->use & (USE_NOTES | USE_NUMBERS)) == USE_NOTES;
}

/* Starts the copies of a whole column tile. */
DEVICE void run_issue(struct stream *s, struct run *run)
{
    half_t *to = s->buffer + (s->buffer_index ^ 1) * 2 * OPERAND;
    if (run_recomputes(s))
        run_places(s, run);
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        const i64 row = which ? s->second->row : s->first->row;
        copy_columns(&run->copier, run->from[which], row, to + which * OPERAND, 1, 0);
        run->from[which] += row * (2 * TILE_COLS);
    }
    copy_async_commit();
    if (s->use & USE_NUMBERS && THREAD < 2 * TILE_COLS) {
        const float *behind = (const float *)noted_address(run_numbers(s));
        s->prefetched[0] =
            bits_of(behind[(i32)(THREAD % TILE_COLS - (run->left + 1) * TILE_COLS)]);
    }
}

/* Goes on to the run's next column tile; 0 at its end. one_value: the loop is tested at its end, or the compiler would make
   two copies of the tile's code. */
DEVICE u32 run_next(struct stream *s, struct run *run)
{
    const u32 more = run->left;
    if (more) {
        run->left--;
        s->next.pattern = 0; /* whole tiles have none */
        stream_arrive(s);
        run_issue(s, run);
    }
    return one_value(more);
}

/* Goes back to the walk. */
DEVICE void run_end(struct stream *s)
{
    const u32 *from = stream_notes(s) + NOTE_WALK + opt_barrier(THREAD) / 32 * WALK_WORDS;
    const struct u32x4 walk = shared_get_u32x4(from), next = shared_get_u32x4(from + 4);
    s->walk.piece = walk.x;
    s->walk.element = walk.y;
    s->walk.column = walk.z;
    s->walk.end = walk.w;
    s->walk.length = shared_get_u32(from + 8);
    s->walk.pieces_end = next.x;
    s->next.column = next.y;
    s->next.slots = next.z & 0xffff;
    s->part = next.z >> 16;
    s->next.pattern = next.w;
}

#endif
