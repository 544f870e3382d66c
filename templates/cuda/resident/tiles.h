/* SPDX-License-Identifier: Apache-2.0 */
/* The column tiles that a warp tile of 16 rows visits: mask bits, which of a tile's four 16 x 8 fragments are
   live (the same for the whole warp), products over a tile, and dropout. */
#ifndef MASKC_CUDA_RESIDENT_TILES_H
#define MASKC_CUDA_RESIDENT_TILES_H
#include "cuda/resident/head.h"
#include "philox.h"

/* 16 x 32 entries. */
struct resident_scores {
    struct frag_c at[4];
};

struct resident_tile {
    u32 col0;
    u32 seen; /* bit 8 f + e: entry e of fragment f, of those that the lane holds; RESIDENT_HIDES */
    u32 any; /* `seen` of all lanes together: 0 where nothing is to be done */
};

/* In `seen`, in either half of a tile: some lane of the warp does not see some entry. */
enum { RESIDENT_HIDES = 0x00100010 };

struct resident_walk {
    const struct abi_plan *plan;
    u32 row0;      /* of the warp's 16 rows */
    u32 row_block; /* the lane's first row within its row block */
    u32 piece, pieces_end, tile, tiles_end;
    struct abi_tile ahead; /* the next one, if the walk prefetches */
    u32 looks;             /* a constant: whether it does; not where registers are few */
};

/* Begins the visit of a warp tile. `looks`: a constant, whether the walk prefetches. Plans of this family have only
   tiles. */
DEVICE struct resident_walk resident_walk_at(const struct abi_plan *plan,
                                             const struct resident_head *head, u32 row0,
                                             u32 looks)
{
    struct resident_walk w;
    struct abi_head entry = plan->heads[head->h];
    u32 item = row0 / BLOCK_ROWS;
    w.plan = plan;
    w.looks = !RESIDENT_CUT && looks;
    w.row0 = row0;
    w.row_block = row0 % BLOCK_ROWS + resident_row();
    w.piece = w.pieces_end = w.tile = w.tiles_end = 0;
    if (row0 < head->length && item < entry.items) {
        const struct abi_item *at = plan->items + entry.item + item;
        w.piece = at->piece;
        w.pieces_end = at->piece + at->pieces;
    }
    return w;
}

/* The lane's bits of a column tile, in row `row` and the one 8 below; 0 at or beyond the length. */
DEVICE u32 resident_bits(const struct abi_plan *p, struct abi_tile t, u32 block_row, u32 row,
                         u32 length)
{
    u32 mantissa = length - t.col0, word = mantissa < 32 ? (1u << mantissa) - 1 : 0xffffffffu;
    u32 upper = row < length ? word : 0, lower = row + 8 < length ? word : 0;
    if (t.pattern) { /* the same for the whole warp */
        const u32 *at = p->patterns + (u64)(t.pattern - 1) * BLOCK_ROWS + block_row;
        upper &= at[0];
        lower &= at[8];
    }
    upper = upper >> 2 * quad_lane() & 0x03030303u;
    lower = lower >> 2 * quad_lane() & 0x03030303u;
    return upper | lower << 2;
}

/* The next tile of the item in *t; 0 at the end. */
DEVICE u32 resident_next_tile(struct resident_walk *w, struct abi_tile *t)
{
    while (w->tile >= w->tiles_end) {
        if (w->piece >= w->pieces_end)
            return 0;
        const struct abi_piece p = w->plan->pieces[w->piece++];
        w->tile = p.first;
        w->tiles_end = p.kind == ABI_TILES ? p.first + p.count : 0;
        if (w->tile < w->tiles_end && w->looks)
            w->ahead = w->plan->tiles[w->tile];
    }
    *t = w->ahead;
    if (!w->looks)
        *t = w->plan->tiles[w->tile];
    if (++w->tile < w->tiles_end && w->looks)
        w->ahead = w->plan->tiles[w->tile];
    return 1;
}

/* The next column tile with a live fragment; 0 at the end. */
DEVICE u32 resident_next(struct resident_walk *w, const struct resident_head *head,
                         struct resident_tile *ret)
{
    struct abi_tile t;
    while (resident_next_tile(w, &t)) {
        if (t.col0 >= head->length)
            continue;
        ret->col0 = t.col0;
        ret->seen =
            resident_bits(w->plan, t, w->row_block, w->row0 + resident_row(), head->length);
        ret->any = warp_or(ret->seen);
        ret->seen |= ANY(ret->seen != 0x0f0f0f0fu) ? RESIDENT_HIDES : 0;
        if (ret->any)
            return 1;
    }
    return 0;
}

/* Moves the tile's second half to the place of the first. */
DEVICE void resident_next_half(struct resident_tile *t)
{
    t->col0 += 16;
    t->seen >>= 16;
    t->any >>= 16;
}

/* True if the lane's entry e of fragment f is seen. */
DEVICE u32 resident_sees(const struct resident_tile *t, u32 f, u32 e)
{
    return t->seen >> (8 * f + e) & 1;
}

DEVICE u32 resident_hides(const struct resident_tile *t)
{
    return t->seen & RESIDENT_HIDES;
}

/* True if any of `count` (1 or 2) fragments from f on has an entry; the same for the whole warp. */
DEVICE u32 resident_live(const struct resident_tile *t, u32 f, u32 count)
{
    return (t->any >> 8 * f & (count == 1 ? 0xffu : 0xffffu)) != 0;
}

/* Bits 0 and 1: whether the halves have an entry. */
DEVICE u32 resident_halves(const struct resident_tile *t)
{
    return resident_live(t, 0, 2) | resident_live(t, 2, 2) << 1;
}

DEVICE void resident_scores_clear(struct resident_scores *s)
{
    UNROLL
    for (u32 k = 0; k < 16; k++)
        s->at[k / 4].x[k % 4] = 0;
}

DEVICE void resident_dot(struct frag_c *s, const struct frag_a *rows, u32 step, const u32 r[4])
{
    mma_16816(s, rows, r[0], r[1]);
    if (step + 1 < RESIDENT_STEPS)
        mma_16816(s, rows + 1, r[2], r[3]);
}

/* First operands over `steps` steps of the head from `step` on. */
struct resident_row_operands {
    const struct frag_a *at;
    u32 step, steps;
};

/* s += rows . columns in the fragments of half 0 (`halves` 1), half 1 (2) or both (3): no branches, so that loads and
   products overlap. */
DEVICE void resident_dots_live(struct resident_scores *s, struct resident_row_operands rows,
                               const struct resident_head *head, u32 columns, u32 col0,
                               u32 halves)
{
    const u32 first = halves == 2 ? 2 : 0, fragments = halves == 3 ? 4 : 2;
    UNROLL
    for (u32 k = 0; k < rows.steps; k += 2) {
        u32 r[4][4];
        UNROLL
        for (u32 f = 0; f < fragments; f++)
            resident_load_keys(r[f], head, columns, col0 + 8 * (first + f),
                               2 * (rows.step + k));
        UNROLL
        for (u32 f = 0; f < fragments; f++)
            resident_dot(&s->at[first + f], rows.at + k, rows.step + k, r[f]);
    }
}

/* s += rows . columns in the halves of the first `fragments` (2 or 4) fragments that have an entry. `columns` is an operand
   in shared memory, whose rows are zeros up to a multiple of 16. */
DEVICE void resident_dots(struct resident_scores *s, struct resident_row_operands rows,
                          const struct resident_head *head, u32 columns,
                          const struct resident_tile *t, u32 fragments)
{
    if (fragments == 4 && t->any & 0xffffu && t->any >> 16) {
        resident_dots_live(s, rows, head, columns, t->col0, 3);
        return;
    }
    UNROLL
    for (u32 half = 0; half < fragments / 2; half++)
        if (t->any >> 16 * half & 0xffffu)
            resident_dots_live(s, rows, head, columns, t->col0, 1u << half);
}

/* Fragments 2 half and 2 half + 1 as the first operand of a product over their 16 columns. */
DEVICE struct frag_a resident_entries(const struct resident_scores *s, u32 half)
{
    struct frag_a a;
    UNROLL
    for (u32 k = 0; k < 4; k++) {
        const struct frag_c *c = &s->at[2 * half + k / 2];
        a.x[k] = half_pack(c->x[2 * (k % 2)], c->x[2 * (k % 2) + 1]);
    }
    return a;
}

DEVICE void resident_apply(struct frag_c sums[RESIDENT_CHUNKS], const struct frag_a *a,
                           u32 chunk, const u32 r[4])
{
    mma_16816(&sums[chunk], a, r[0], r[1]);
    mma_16816(&sums[chunk + 1], a, r[2], r[3]);
}

/* sums += first operands times `chunks` chunks, from `first` on, of 16 rows of an operand, for each warp tile. */
DEVICE void resident_apply_part(struct frag_c (*sums)[RESIDENT_CHUNKS], u32 first, u32 chunks,
                                const struct frag_a *a, u32 row_blocks,
                                const struct resident_head *head, u32 operand, u32 row)
{
    u32 r[4];
    UNROLL
    for (u32 chunk = 0; chunk < chunks; chunk += 2) {
        if (RESIDENT_CHUNKS % chunks && first + chunk >= RESIDENT_CHUNKS)
            break;
        resident_load_values(r, head, operand, row, first + chunk);
        UNROLL
        for (u32 m = 0; m < row_blocks; m++)
            resident_apply(sums[m], &a[m], chunk, r);
    }
}

/* sums += entries times rows of an operand, over the halves of a column tile that live (bits 0 and 1). */
DEVICE void resident_accumulate(struct frag_c (*sums)[RESIDENT_CHUNKS],
                                const struct resident_scores *s,
                                const struct resident_head *head, u32 operand, u32 col0,
                                u32 lives)
{
    UNROLL
    for (u32 half = 0; half < 2; half++) {
        if (!(lives >> half & 1))
            continue;
        struct frag_a a = resident_entries(s, half);
        resident_apply_part(sums, 0, RESIDENT_CHUNKS, &a, 1, head, operand, col0 + 16 * half);
    }
}

DEVICE void resident_move(struct frag_c to[RESIDENT_CHUNKS],
                          const struct frag_c from[RESIDENT_CHUNKS])
{
    UNROLL
    for (u32 k = 0; k < RESIDENT_CHUNKS; k++)
        to[k] = from[k];
}

/* Sums times `by`, which is the same for the whole warp and often 1. */
DEVICE void resident_scale(struct frag_c sums[RESIDENT_CHUNKS], float by)
{
    if (by == 1)
        return;
    UNROLL
    for (u32 k = 0; k < 4 * RESIDENT_CHUNKS; k++)
        sums[k / 4].x[k % 4] *= by;
}

DEVICE void resident_clear(struct frag_c sums[RESIDENT_CHUNKS])
{
    UNROLL
    for (u32 k = 0; k < RESIDENT_CHUNKS; k++)
        sums[k].x[0] = sums[k].x[1] = sums[k].x[2] = sums[k].x[3] = 0;
}

/* Bit 16 m + 4 f + e: the lane's entry e of fragment f of warp tile m is kept. One Philox call for each 16
   columns of each warp tile, in a loop. */
DEVICE u32 resident_kept(const struct abi_args *a, const struct resident_head *head, u32 row0,
                         const struct resident_tile *t, u32 halves, u32 row_blocks)
{
    u32 below = a->keep_below, calls = DROPOUT && below ? halves * row_blocks : 0;
    u32 kept = calls ? 0 : 0xffffffffu;
    NO_UNROLL
    for (u32 call = 0; call < calls; call++) {
        u32 half = call % halves, m = call / halves;
        u32 column = t->col0 + 16 * half + 2 * quad_lane();
        struct philox r = philox_4x32(
            dropout_counter(dropout_sample(a, opt_barrier(head->b)), opt_barrier(head->h),
                            opt_barrier(row0) + 16 * m + resident_row(), column),
            a->seed);
        u32 first = ((r.x & 0xffff) >= below) | ((r.z & 0xffff) >= below) << 1 |
                    (r.x >> 16 >= below) << 2 | (r.z >> 16 >= below) << 3;
        u32 second = ((r.y & 0xffff) >= below) | ((r.w & 0xffff) >= below) << 1 |
                     (r.y >> 16 >= below) << 2 | (r.w >> 16 >= below) << 3;
        kept |= (first | second << 4) << (16 * m + 8 * half);
    }
    return kept;
}

/* The dropout factor of kept entries; sums are multiplied by it, not entries. */
DEVICE float resident_kept_scale(const struct abi_args *a)
{
    return DROPOUT ? a->keep_scale : 1;
}

/* Dropped entries become 0. */
DEVICE void resident_drop(struct resident_scores *s, u32 kept)
{
    if (DROPOUT) {
        UNROLL
        for (u32 k = 0; k < 16; k++)
            s->at[k / 4].x[k % 4] = kept >> k & 1 ? s->at[k / 4].x[k % 4] : 0;
    }
}

#endif
