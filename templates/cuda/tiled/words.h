/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of the current column tile the lane's rows see: a word of bits for each. */
#ifndef MASKC_CUDA_TILED_WORDS_H
#define MASKC_CUDA_TILED_WORDS_H
#include "cuda/tiled/stream.h"

/* The slots of the current tile that the lane's rows see. */
struct words {
    u32 row[LANE_ROWS];
};

DEVICE struct words stage_words(const struct stream *s)
{
    const u32 bits =
        s->now.slots == SLOT_END * TILE_COLS ? 0xffffffffu : column_tile_bits(&s->now);
    struct words w;
    UNROLL
    for (u32 k = 0; k < LANE_ROWS; k++)
        w.row[k] = bits & (0 - (s->part >> k & 1));
    if (s->now.pattern) {
        const u32 *at =
            pattern_words(s, s->buffer_index) + (s->use & USE_NOTES ? block_row(0) : s->row);
        UNROLL
        for (u32 k = 0; k < LANE_ROWS; k++)
            w.row[k] &= shared_get_u32(at + 8 * k);
    }
    return w;
}

/* Whether every row of the warp sees all 32 columns. Computed for the current tile, not stored with it as a
   flag: nothing sets `now` before the first iteration, and ptxas (12.9 to 13.4) takes the next tile's flag for one
   that is undefined there (tests/sass/reproducer.ptx). */
DEVICE u32 words_are_whole(const struct words *w)
{
    u32 all = w->row[0];
    UNROLL
    for (u32 k = 1; k < LANE_ROWS; k++)
        all &= w->row[k];
    return !ANY(all != 0xffffffffu);
}

/* The slots that some row of each row tile sees (see fragments.h); 0: no row of the warp sees any. */
DEVICE u64 live_slots(const struct words *w)
{
    const u64 second =
        ROW_TILES == 1 ? 0 : warp_or(w->row[LANE_ROWS - 2] | w->row[LANE_ROWS - 1]);
    return warp_or(w->row[0] | w->row[1]) | second << 32;
}

/* The words shifted to the lane's entries: bit 8 f + x % 2 of word 2 m + x / 2 is place x of fragment f of row tile m. */
struct seen {
    u32 row[LANE_ROWS];
};

DEVICE struct seen seen_of(const struct words *w)
{
    struct seen s;
    UNROLL
    for (u32 k = 0; k < LANE_ROWS; k++)
        s.row[k] = one_value(w->row[k] >> lane_pair());
    return s;
}

/* Whether the lane's row sees place x of fragment f of row tile m. Null: all rows see all. */
DEVICE u32 tile_sees(const struct seen *s, u32 m, u32 f, u32 x)
{
    return s ? s->row[2 * m + (x >> 1)] >> (8 * f + (x & 1)) & 1 : 1;
}

/* The same of the first row tile. */
DEVICE u32 sees(const struct seen *s, u32 f, u32 x)
{
    return tile_sees(s, 0, f, x);
}

#endif
