/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of the current column tile the lane's rows see: a word of bits for each of its two rows. */
#ifndef MASKC_CUDA_TILED_WORDS_H
#define MASKC_CUDA_TILED_WORDS_H
#include "cuda/tiled/stream.h"

/* The slots of the current tile that the lane's rows see. */
struct words {
    u32 row[2];
};

DEVICE struct words stage_words(const struct stream *s)
{
    const u32 bits =
        s->now.slots == SLOT_END * TILE_COLS ? 0xffffffffu : column_tile_bits(&s->now);
    struct words w = {{bits & (0 - (s->part & 1)), bits & (0 - (s->part >> 1 & 1))}};
    if (s->now.pattern) {
        const u32 *at =
            pattern_words(s, s->buffer_index) + (s->use & USE_NOTES ? block_row(0) : s->row);
        w.row[0] &= shared_get_u32(at);
        w.row[1] &= shared_get_u32(at + 8);
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
