/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV on sm_90a, over the transposed plan: rows are keys (K, V), columns are queries (Q, dO), with LSE and delta of
   each. See backward.h. */
#include "cuda/common/key_heads.h"
#include "cuda/hopper/backward.h"

DEVICE struct kernel_shape key_shape(void)
{
    struct kernel_shape k;
    k.warpgroups = KEY_WARPGROUPS;
    k.slots = k.slots_at_once = KEY_SLOTS;
    k.stages = KEY_STAGES;
    k.row_buffers = KEY_ROW_BUFFERS;
    k.operands = HOPPER_KEY_OPERANDS;
    k.stage_parts = 1;
    k.numbers = 1;
    k.rows_held = KEY_ROWS_HELD;
    k.in_turn = KEY_IN_TURN;
    k.wait_sums = KEY_WAIT_SUMS;
    k.rows_are_keys = 1;
    return k;
}

/* Sums that key heads add up (common/key_heads.h): floats, straight from registers. */
DEVICE void store_floats(const struct warpgroup *g, const struct sums *s, float by,
                         const struct abi_tensor *tensor, const struct work_item *work,
                         const struct u32x4 *block)
{
    const struct view to = view_of(tensor, work);
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        const u32 row = lane_row(g, r);
        float *at = (float *)(to.data + (block->x + row) * to.row) + 2 * quad_lane();
        if (!has_row(block, row, work->exist))
            continue;
        UNROLL
        for (u32 f = 0; f < HEAD_CHUNKS; f++)
            put_two(at + 8 * f, s->x[4 * f + 2 * r] * by, s->x[4 * f + 2 * r + 1] * by);
    }
}

DEVICE void key_store(struct backward *b, const struct warpgroup *g)
{
    const struct abi_tensor *const tensors[2] = {&g->a->a.d_k, &g->a->a.d_v};
    const float scale = g->a->a.scale;
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    warpgroup_sync(g); /* nobody reads K and V any more */
    if (CUT_ROWS && block.w & ROWS_PARTIAL) {
        float *to = partial_slot(&g->a->a, &work, block.z);
        partial_store_sum(g, &b->sum[0], to);
        partial_store_sum(g, &b->sum[1], to + PARTIAL_WIDTH);
        return;
    }
    if (GROUPED) {
        store_floats(g, &b->sum[0], scale, tensors[0], &work, &block);
        store_floats(g, &b->sum[1], 1, tensors[1], &work, &block);
        return;
    }
    sums_stage(g, &b->sum[0], scale, scale, own_rows(g, 0));
    sums_stage(g, &b->sum[1], 1, 1, own_rows(g, 1));
    store_outputs(g, tensors, 2, &work, &block);
}

DEVICE void key_item(struct backward *b, struct warpgroup *g)
{
    struct step_now now = {0, 0, 0};
    sums_clear(&b->sum[0]);
    sums_clear(&b->sum[1]);
    now.last = !item_start(g);
    if (g->alive)
        read_held(b, g);
    give_back_rows(g);
    backward_steps(b, g, &now);
    key_store(b, g);
    item_end(g);
}

ENTRY_OF(attention_dkv, KEY_THREADS, KEY_BLOCKS)(HOPPER_ARGS a)
{
    const struct kernel_shape k = key_shape();
    const smem_t base = smem_base();
    const u32 warp = uniform(THREAD / 32);
    block_start(&k, base);
    if (warp >= 4 * KEY_WARPGROUPS) {
        if (KEY_REGISTERS)
            SET_REGISTERS_DOWN(KEY_COPY_REGISTERS);
        if (warp == 4 * KEY_WARPGROUPS)
            copy_works(&a, &k, base);
        return;
    }
    if (KEY_REGISTERS)
        SET_REGISTERS_UP(KEY_REGISTERS);
    struct warpgroup g = warpgroup_start(&a, &k, base);
    struct backward b;
    b.scale = a.a.scale * LOG2_E;
    turn_start(&g);
    NO_UNROLL
    while (g.more)
        key_item(&b, &g);
    bulk_wait();
}

ENTRY_OF(attention_dkv_merge, MERGE_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < merge_count(&a, &a.transposed); at += BLOCKS) {
        const struct merge m = merge_at(&a, &a.transposed, at);
        merge_store(&m, &a.d_k, merge_sum(&m, 0) * a.scale);
        merge_store(&m, &a.d_v, merge_sum(&m, 1));
    }
}
