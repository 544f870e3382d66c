/* SPDX-License-Identifier: Apache-2.0 */
/* dQ on sm_90a, over the forward plan: rows are queries (Q, dO, O), columns are keys (K, V). See backward.h. It leaves delta and
   LSE to base 2 of each row in args.delta, for dK and dV.

   delta_i = sum_j P_ij dP_ij. rowsum(dO o O) estimates it, but O is rounded to 16 bits: the estimate is off by about
   |dO| |O| 2^-9, which matters where P is large for few keys, since |O| is then as large as |V|. Warpgroups with such rows
   correct it (correct.h). */
#include "cuda/hopper/correct.h"

DEVICE struct kernel_shape query_shape(void)
{
    struct kernel_shape k;
    k.warpgroups = QUERY_WARPGROUPS;
    k.slots = k.slots_at_once = QUERY_SLOTS;
    k.stages = QUERY_STAGES;
    k.row_buffers = QUERY_ROW_BUFFERS;
    k.operands = HOPPER_QUERY_OPERANDS;
    k.stage_parts = 1;
    k.numbers = 0;
    k.rows_held = QUERY_ROWS_HELD;
    k.in_turn = QUERY_IN_TURN;
    k.wait_sums = QUERY_WAIT_SUMS;
    k.rows_are_keys = 0;
    return k;
}

/* O where f16 overflowed: an estimate of delta may be off, but must be finite. */
DEVICE float output_finite(float o)
{
    const float most = 65504;
    if (DTYPE != ABI_F16)
        return o;
    return o > most ? most : o < -most ? -most : o;
}

DEVICE float dot_halves(u32 x, u32 o)
{
    return half_low(x) * output_finite(half_low(o)) +
           half_high(x) * output_finite(half_high(o));
}

/* Products of a row: rowsum(dO o O), and |O|^2. */
struct row_products {
    float delta, square;
};

DEVICE float square_halves(u32 x)
{
    return half_low(x) * half_low(x) + half_high(x) * half_high(x);
}

DEVICE float square_chunk(const struct u32x4 *x)
{
    return square_halves(x->x) + square_halves(x->y) +
           (square_halves(x->z) + square_halves(x->w));
}

/* Each lane of the quad takes two chunks of each part. */
DEVICE struct row_products row_products(const struct warpgroup *g, u32 row)
{
    struct row_products sum = {0, 0};
    UNROLL
    for (u32 x = 0; x < 2 * PARTS; x++) {
        const u32 chunk = 2 * quad_lane() + x % 2;
        const u32 at = x / 2 * HOPPER_BOX_BYTES + 128 * row + 16 * (chunk ^ row % 8);
        const struct u32x4 d_o = smem_get_u32x4(own_rows(g, 1) + at);
        const struct u32x4 o = smem_get_u32x4(own_rows(g, 2) + at);
        sum.delta += (dot_halves(d_o.x, o.x) + dot_halves(d_o.y, o.y)) +
                     (dot_halves(d_o.z, o.z) + dot_halves(d_o.w, o.w));
        sum.square += square_chunk(&o);
    }
    sum.delta = quad_sum(sum.delta);
    sum.square = quad_sum(sum.square);
    return sum;
}

/* LSE, and an estimate of delta, of the lane's rows; returns the larger |O|^2. Rows of another item, and rows that take no part,
   have any numbers. */
DEVICE float query_numbers(struct backward *b, const struct warpgroup *g)
{
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    const struct u32x4 place = smem_get_u32x4(item_about(g) + ITEM_PLACES);
    const float *lse = number_place(g, g->a->a.lse, place.x, place.y, block.x);
    const u32 own = has_rows(g, &block, work.length);
    float square[2];
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        const struct row_products row = row_products(g, lane_row(g, r));
        b->delta[r] = row.delta;
        b->lse[r] = own >> r & 1 ? lse[8 * r] * LOG2_E : 0;
        square[r] = g->dead >> r & 1 ? 0 : row.square;
    }
    return larger(square[0], square[1]);
}

/* The two planes that dK and dV read. Parts of a global row store equal numbers, which the launch that merges corrects. */
DEVICE void query_numbers_store(const struct backward *b, const struct warpgroup *g)
{
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    const smem_t about = item_about(g) + ITEM_PLACES;
    const struct u32x4 place = smem_get_u32x4(about), scaled = smem_get_u32x4(about + 16);
    float *delta = number_place(g, g->a->a.delta, place.z, place.w, block.x);
    float *lse = number_place(g, g->a->a.delta, scaled.x, scaled.y, block.x);
    const u32 own = has_rows(g, &block, work.length);
    UNROLL
    for (u32 r = 0; r < 2; r++)
        if (own >> r & 1 && quad_lane() == 0) {
            delta[8 * r] = b->delta[r];
            lse[8 * r] = b->lse[r];
        }
}

/* ---- is |O| of some row as large as |V|? From 16 columns of the first step, four for each warp. ---- */

enum { SMALL = 16 /* few keys may dominate a row if SMALL |O|^2 exceeds the mean |V|^2 */ };

/* The part of |V|^2 of one column that the lane has, an eighth; 0 where the column does not count. */
DEVICE float column_square(const struct warpgroup *g)
{
    const u32 of = 4 * warp_index(g) + lane() / 8, column = of * 2 * g->k->slots;
    const u32 live = smem_get_u32(g->base + step_about_at(g->k, g->stage.at) + STEP_LIVE +
                                  4 * (column / SLOT_COLUMNS));
    float sum = 0;
    UNROLL
    for (u32 part = 0; part < PARTS; part++) {
        const struct u32x4 x =
            smem_get_u32x4(column_operand(g, g->stage.at, 1) + part * column_part(g->k) +
                           128 * column + 16 * (lane() % 8 ^ column % 8));
        sum += square_chunk(&x);
    }
    return live >> column % SLOT_COLUMNS & 1 ? sum : 0;
}

/* Number of the 16 columns that count. */
DEVICE u32 columns_counted(const struct warpgroup *g)
{
    u32 sampled = 0, count = 0;
    UNROLL
    for (u32 c = 0; c < SLOT_COLUMNS; c += 2 * g->k->slots)
        sampled |= 1u << c;
    UNROLL
    for (u32 s = 0; s < g->k->slots; s++)
        count += bit_count(sampled & smem_get_u32(g->base + step_about_at(g->k, g->stage.at) +
                                                  STEP_LIVE + 4 * s));
    return count;
}

/* True for all warps if delta must be corrected. square: the larger |O|^2 of the lane's rows. Waits
   for the first step's stage and does not release it. */
DEVICE u32 needs_correction(const struct warpgroup *g, float square)
{
    const smem_t all = item_about(g) + ITEM_VALUES + 32 * g->index;
    mbarrier_wait(barrier_of(g, stage_full(g->k, g->stage.at, 0)), g->stage.phase);
    float values = column_square(g);
    UNROLL
    for (u32 with = 1; with < 32; with *= 2)
        values += SHUFFLE_XOR(values, with);
    UNROLL
    for (u32 with = 4; with < 32; with *= 2)
        square = larger(square, SHUFFLE_XOR(square, with));
    if (lane() == 0) {
        smem_put_f32(all + 4 * warp_index(g), values);
        smem_put_f32(all + 16 + 4 * warp_index(g), square);
    }
    warpgroup_sync(g);
    const struct u32x4 v = smem_get_u32x4(all), o = smem_get_u32x4(all + 16);
    const float sum = (float_of(v.x) + float_of(v.y)) + (float_of(v.z) + float_of(v.w));
    const float most =
        larger(larger(float_of(o.x), float_of(o.y)), larger(float_of(o.z), float_of(o.w)));
    const u32 columns = columns_counted(g);
    return uniform(SMALL * most * (float)columns > sum || columns == 0);
}

/* A part of a global row leaves both sums and its drift: only all parts together can be corrected. */
DEVICE u32 is_part(const struct warpgroup *g)
{
    return CUT_ROWS ? uniform(smem_get_u32(item_about(g) + 16 * g->index + 12) & ROWS_PARTIAL)
                    : 0;
}

/* All steps, with what corrects delta where that is needed. */
DEVICE void query_steps(struct backward *b, struct warpgroup *g, struct step_now *now,
                        float square)
{
    const u32 part = is_part(g);
    if (now->last || !g->alive || !(part || needs_correction(g, square))) {
        backward_steps(b, g, now);
        return;
    }
    corrected_steps(b, g, now);
    if (!part)
        correct(b);
}

DEVICE void query_store(struct backward *b, const struct warpgroup *g)
{
    const struct abi_tensor *const tensors[1] = {&g->a->a.d_q};
    const float scale = g->a->a.scale;
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    warpgroup_sync(g); /* nobody reads Q any more */
    if (CUT_ROWS && block.w & ROWS_PARTIAL) {
        float *to = partial_slot(&g->a->a, &work, block.z);
        partial_store_sum(g, &b->sum[0], to);
        partial_store_sum(g, &b->sum[1], to + PARTIAL_WIDTH);
        if (g->thread == 0)
            to[PARTIAL_NUMBERS] = b->drift[0];
        return;
    }
    sums_stage(g, &b->sum[0], scale, scale, own_rows(g, 0));
    store_outputs(g, tensors, 1, &work, &block);
}

DEVICE void query_item(struct backward *b, struct warpgroup *g)
{
    struct step_now now = {0, 0, 0};
    sums_clear(&b->sum[0]);
    sums_clear(&b->sum[1]);
    b->drift[0] = b->drift[1] = 0;
    now.last = !item_start(g);
    float square = 0;
    if (g->alive) {
        square = query_numbers(b, g);
        read_held(b, g);
    }
    give_back_rows(g);
    query_steps(b, g, &now, square);
    query_numbers_store(b, g);
    query_store(b, g);
    item_end(g);
}

ENTRY_OF(attention_dq, QUERY_THREADS, QUERY_BLOCKS)(HOPPER_ARGS a)
{
    const struct kernel_shape k = query_shape();
    const smem_t base = smem_base();
    const u32 warp = uniform(THREAD / 32);
    block_start(&k, base);
    if (warp >= 4 * QUERY_WARPGROUPS) {
        if (QUERY_REGISTERS)
            SET_REGISTERS_DOWN(QUERY_COPY_REGISTERS);
        if (warp == 4 * QUERY_WARPGROUPS)
            copy_works(&a, &k, base);
        return;
    }
    if (QUERY_REGISTERS)
        SET_REGISTERS_UP(QUERY_REGISTERS);
    struct warpgroup g = warpgroup_start(&a, &k, base);
    struct backward b;
    b.scale = a.a.scale * LOG2_E;
    turn_start(&g);
    NO_UNROLL
    while (g.more)
        query_item(&b, &g);
    bulk_wait();
}

/* dQ and delta of a global row from its parts. */
DEVICE void query_merge(const struct merge *m)
{
    float drift = 0;
    NO_UNROLL
    for (u32 s = 0; s < m->item->partial_slots; s++)
        drift += merge_slot(m, s)[PARTIAL_NUMBERS];
    merge_store(m, &m->a->d_q, (merge_sum(m, 0) - drift * merge_sum(m, 1)) * m->a->scale);
    if (THREAD == 0 && m->item->row0 < m->work.length)
        delta_of(m->a, &m->work)[m->item->row0] += drift;
}

ENTRY_OF(attention_dq_merge, MERGE_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < merge_count(&a, &a.forward); at += BLOCKS) {
        const struct merge m = merge_at(&a, &a.forward, at);
        query_merge(&m);
    }
}
