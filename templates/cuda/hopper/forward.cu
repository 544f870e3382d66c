/* SPDX-License-Identifier: Apache-2.0 */
/* Forward attention on sm_90a. One warp copies (copy.h); each warpgroup has 64 rows of queries:

       for each item:
           for each step of 32 x slots columns:
               multiply_scores       S = Q K^T of this step, and
               multiply_columns      O = O + P V of the last one, run while softmax works on registers
               words_apply           S = -inf where the row does not see the key
               online_softmax        m' = max(m, S), alpha = 2^(m - m'), P = 2^(S - m'), l = alpha l + sum P
               rescale               O = alpha O
           forward_store             O / l, LSE = m + log l */
#include "cuda/hopper/dropout.h"

DEVICE struct kernel_shape forward_shape(void)
{
    struct kernel_shape k;
    k.warpgroups = FORWARD_WARPGROUPS;
    k.slots = k.slots_at_once = FORWARD_SLOTS;
    k.stages = FORWARD_STAGES;
    k.row_buffers = FORWARD_ROW_BUFFERS;
    k.operands = HOPPER_FORWARD_OPERANDS;
    k.stage_parts = 2;
    k.numbers = 0;
    k.rows_held = FORWARD_ROWS_HELD;
    k.in_turn = FORWARD_IN_TURN;
    k.wait_sums = 0;
    k.rows_are_keys = 0;
    return k;
}

/* State of the lane's two rows. */
struct softmax {
    float row_max[2]; /* of the scores before scaling */
    float sum[2];     /* of P; the lane's part */
};

struct forward {
    struct softmax softmax;
    struct sums o;
    struct halves p;       /* of the last step */
    struct held_rows rows; /* Q, where it is held */
    struct ring last;      /* the stage of the last step */
    float scale;           /* positive, to base 2 */
};

/* The largest of the lane's scores of a row, and `most`. */
DEVICE float scores_max(const struct scores *s, u32 entries, u32 which, float most)
{
    float even = most, odd = s->x[4 + 2 * which];
    UNROLL
    for (u32 x = 0; x < entries; x += 8) {
        even = larger(larger(even, s->x[x + 2 * which]), s->x[x + 2 * which + 1]);
        odd = larger(larger(odd, s->x[x + 4 + 2 * which]), s->x[x + 4 + 2 * which + 1]);
    }
    return larger(even, odd);
}

/* Scores to P. O is to be multiplied by alpha. */
DEVICE void online_softmax(struct forward *f, struct warpgroup *g, struct scores *s,
                           float alpha[2])
{
    const u32 entries = 16 * g->k->slots;
    float shift[2], sum[2][2] = {{0, 0}, {0, 0}};
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        const float before = f->softmax.row_max[r];
        const float now = quad_max(scores_max(s, entries, r, before));
        shift[r] = now == NEGATIVE_INFINITY ? 0 : now * f->scale;
        alpha[r] = exp2_of(before * f->scale - shift[r]);
        f->softmax.row_max[r] = now;
    }
    UNROLL
    for (u32 x = 0; x < entries; x++) {
        s->x[x] = exp2_of(s->x[x] * f->scale - shift[x / 2 % 2]);
        sum[x / 2 % 2][x % 2] += s->x[x];
    }
    UNROLL
    for (u32 r = 0; r < 2; r++)
        f->softmax.sum[r] = f->softmax.sum[r] * alpha[r] + (sum[r][0] + sum[r][1]);
}

DEVICE void rescale(struct sums *o, const float alpha[2])
{
    if (!ANY(alpha[0] != 1 || alpha[1] != 1))
        return;
    UNROLL
    for (u32 x = 0; x < SUMS; x++)
        o->x[x] *= alpha[x / 2 % 2];
}

DEVICE smem_t operand_at(const struct warpgroup *g, u32 stage, u32 operand)
{
    return g->base + columns_at(g->k, stage, operand);
}

/* Issues S = Q K^T of the stage at hand. */
DEVICE void issue_scores(struct forward *f, struct warpgroup *g, struct scores *s)
{
    multiply_scores(s, g->k, own_rows(g, 0), g->k->rows_held ? &f->rows : 0,
                    operand_at(g, g->stage.at, 0));
    wgmma_commit();
}

/* Issues O = O + P V of the step at f->last. */
DEVICE void issue_values(struct forward *f, struct warpgroup *g)
{
    if (DROPOUT) /* await_columns() would spill */
        mbarrier_wait(barrier_of(g, stage_full(g->k, f->last.at, 1)), f->last.phase);
    multiply_columns(&f->o, g->k, &f->p, operand_at(g, f->last.at, 1));
    wgmma_commit();
}

/* Works around ptxas 13.0, which reuses the registers of a first operand that stays through a loop
   (tests/sass). The branch is never taken, but since it would load them again, the machine code is
   right. */
DEVICE void keep_rows(struct forward *f, struct warpgroup *g, u32 mode)
{
    if (g->k->rows_held && mode == (u32)MODE_NEVER)
        read_rows(&f->rows, g, opt_barrier(own_rows(g, 0)));
}

/* S to P, the sums, and the packed operand of the next product. */
DEVICE void step_softmax(struct forward *f, struct warpgroup *g, struct scores *s, u32 mode,
                         const struct words *words, float alpha[2])
{
    if (mode != MODE_WHOLE)
        words_apply(words, g->k, s, NEGATIVE_INFINITY);
    online_softmax(f, g, s, alpha);
}

/* P as operand; the step's stage becomes the last one. */
DEVICE void step_keep(struct forward *f, struct warpgroup *g, struct scores *s,
                      const struct kept *kept)
{
    kept_apply(kept, g, s);
    scores_pack(&f->p, s, g->k);
    f->last = g->stage;
    step_done(g);
}

/* Waits for V of the step at hand, with P in s. The loop inside keeps softmax before a wait for P V of the last step: within one
   block of instructions ptxas moves that wait up, and softmax would begin when P V has ended. */
DEVICE void await_columns(const struct warpgroup *g, struct scores *s)
{
    if (DROPOUT)
        return;
    hold_scores(s, g->k);
    mbarrier_wait(barrier_of(g, stage_full(g->k, g->stage.at, 1)), g->stage.phase);
}

/* First step of a run (of one or more); no P V product is pending. `again`: the item had steps before, else O is 0. */
DEVICE void forward_first(struct forward *f, struct warpgroup *g, struct step_now *now,
                          u32 again)
{
    struct scores s;
    struct words words;
    struct kept kept;
    float alpha[2];
    if (now->mode != MODE_WHOLE)
        words_read(&words, g, now->mode);
    kept_read(&kept, g);
    hold_scores(&s, g->k);
    wgmma_fence();
    issue_scores(f, g, &s);
    WGMMA_WAIT(0);
    hold_scores(&s, g->k);
    keep_rows(f, g, now->mode);
    stage_give_back(g, g->stage.at, 0);
    step_softmax(f, g, &s, now->mode, &words, alpha);
    await_columns(g, &s);
    if (again)
        rescale(&f->o, alpha);
    step_keep(f, g, &s, &kept);
    give_back_rows(g);
}

DEVICE void forward_step(struct forward *f, struct warpgroup *g, struct step_now *now)
{
    struct scores s;
    struct words words;
    struct kept kept;
    float alpha[2];
    if (now->mode != MODE_WHOLE)
        words_read(&words, g, now->mode);
    kept_read(&kept, g);
    turn_wait(g);
    hold_scores(&s, g->k);
    hold_sums(&f->o);
    hold_halves(&f->p, g->k);
    wgmma_fence();
    issue_scores(f, g, &s);
    issue_values(f, g);
    turn_pass(g);
    WGMMA_WAIT(1);
    hold_scores(&s, g->k);
    stage_give_back(g, g->stage.at, 0);
    step_softmax(f, g, &s, now->mode, &words, alpha);
    await_columns(g, &s);
    WGMMA_WAIT(0);
    hold_sums(&f->o);
    hold_halves(&f->p, g->k);
    keep_rows(f, g, now->mode);
    stage_give_back(g, f->last.at, 1);
    rescale(&f->o, alpha);
    step_keep(f, g, &s, &kept);
}

/* P V of the last of several steps. */
DEVICE void forward_finish(struct forward *f, struct warpgroup *g)
{
    hold_sums(&f->o);
    hold_halves(&f->p, g->k);
    wgmma_fence();
    issue_values(f, g);
    WGMMA_WAIT(0);
    hold_sums(&f->o);
    stage_give_back(g, f->last.at, 1);
}

/* The sums as they are, the scaled maximum and the sum of P, for forward_merge. */
DEVICE void forward_store_partial(struct forward *f, const struct warpgroup *g,
                                  const struct work_item *work, u32 slot)
{
    float *to = partial_slot(&g->a->a, work, slot);
    const float sum = quad_sum(f->softmax.sum[0]);
    partial_store_sum(g, &f->o, to);
    if (g->thread == 0)
        put_two(to + PARTIAL_NUMBERS, f->softmax.row_max[0] * f->scale, sum);
}

/* O / l and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void forward_store(struct forward *f, struct warpgroup *g)
{
    const struct abi_tensor *const tensors[1] = {&g->a->a.o};
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    const u32 own = has_rows(g, &block, work.exist);
    const struct u32x4 place = smem_get_u32x4(item_about(g) + ITEM_PLACES);
    float *lse = number_place(g, g->a->a.lse, place.x, place.y, block.x), inverse[2];
    if (CUT_ROWS && block.w & ROWS_PARTIAL) {
        forward_store_partial(f, g, &work, block.z);
        warpgroup_sync(g);
        return;
    }
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        const float sum = quad_sum(f->softmax.sum[r]);
        inverse[r] = saw_nothing(sum) ? 0 : 1 / sum;
        if (quad_lane() == 0 && own >> r & 1)
            lse[8 * r] = saw_nothing(sum)
                             ? NEGATIVE_INFINITY
                             : (f->softmax.row_max[r] * f->scale + log2_of(sum)) * LN_2;
    }
    warpgroup_sync(g); /* nobody reads Q any more */
    sums_stage(g, &f->o, inverse[0], inverse[1], own_rows(g, 0));
    store_outputs(g, tensors, 1, &work, &block);
}

/* O and LSE of a global row from its parts. */
DEVICE void forward_merge(const struct merge *m)
{
    float row_max = NEGATIVE_INFINITY, sum = 0, o = 0;
    NO_UNROLL
    for (u32 s = 0; s < m->item->partial_slots; s++)
        row_max = larger(row_max, merge_slot(m, s)[PARTIAL_NUMBERS]);
    NO_UNROLL
    for (u32 s = 0; s < m->item->partial_slots; s++) {
        const float *from = merge_slot(m, s);
        const float most = from[PARTIAL_NUMBERS];
        const float alpha = most == NEGATIVE_INFINITY ? 0 : exp2_of(most - row_max);
        sum += alpha * from[PARTIAL_NUMBERS + 1];
        o += alpha * merge_position(m, s, 0);
    }
    merge_store(m, &m->a->o, saw_nothing(sum) ? 0 : o / sum);
    if (THREAD == 0 && m->item->row0 < m->work.exist)
        ((float *)lse_of(m->a, &m->work))[m->item->row0] =
            saw_nothing(sum) ? NEGATIVE_INFINITY : (row_max + log2_of(sum)) * LN_2;
}

DEVICE void forward_item(struct forward *f, struct warpgroup *g)
{
    struct step_now now = {0, 0, 0};
    u32 again = 0;
    sums_clear(&f->o);
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        f->softmax.row_max[r] = NEGATIVE_INFINITY;
        f->softmax.sum[r] = 0;
    }
    now.last = !item_start(g);
    if (g->a->a.scale < 0 && g->alive)
        negate_rows(g, own_rows(g, 0));
    if (g->k->rows_held && g->alive)
        read_rows(&f->rows, g, own_rows(g, 0));
    NO_UNROLL
    while (step_find(g, &now)) {
        forward_first(f, g, &now, again);
        again = 1;
        NO_UNROLL
        while (step_next(g, &now))
            forward_step(f, g, &now);
        forward_finish(f, g);
    }
    give_back_rows(g);
    forward_store(f, g);
    item_end(g);
}

DEVICE void forward_items(const struct hopper_args *a, const struct kernel_shape *k,
                          smem_t base)
{
    struct forward f;
    struct warpgroup g;
    g = warpgroup_start(a, k, base);
    f.scale = (a->a.scale < 0 ? -a->a.scale : a->a.scale) * LOG2_E;
    turn_start(&g);
    NO_UNROLL
    while (g.more)
        forward_item(&f, &g);
    bulk_wait();
}

ENTRY_OF(attention_forward, FORWARD_THREADS, FORWARD_BLOCKS)(HOPPER_ARGS a)
{
    const struct kernel_shape k = forward_shape();
    const smem_t base = smem_base();
    const u32 warp = uniform(THREAD / 32);
    block_start(&k, base);
    if (warp >= 4 * FORWARD_WARPGROUPS) {
        if (FORWARD_REGISTERS)
            SET_REGISTERS_DOWN(FORWARD_COPY_REGISTERS);
        if (warp == 4 * FORWARD_WARPGROUPS)
            copy_works(&a, &k, base);
    } else {
        if (FORWARD_REGISTERS)
            SET_REGISTERS_UP(FORWARD_REGISTERS);
        forward_items(&a, &k, base);
    }
}

ENTRY_OF(attention_forward_merge, MERGE_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < merge_count(&a, &a.forward); at += BLOCKS) {
        const struct merge m = merge_at(&a, &a.forward, at);
        forward_merge(&m);
    }
}
