/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward of long heads (n > 128), pass 1 over the queries:

       for each half of a column tile that the warp's queries see:
           resident_s_dp             S = Q K^T, dP = dO V^T
           resident_long_p           P = 2^(S - LSE)
           resident_compute_ds       dS = P (dP - delta), row sums of dS
           resident_pass1_put        dS to registers, in 16 bits; P to shared memory
       resident_finish_pass1         delta's correction: the row sums of dS (sparsegen: their mean over the support)

   See backward.cu. */
#ifndef MASKC_CUDA_RESIDENT_BACKWARD_PASS1_H
#define MASKC_CUDA_RESIDENT_BACKWARD_PASS1_H
#include "cuda/resident/backward_products.h"

/* Sums of the lane's two queries of a warp tile: row sums of dS, entries in sparsegen's support (the second row's in
   the upper half word), and which 16 x 16 parts of P are in shared memory. */
struct resident_sums {
    float ds[2];
    u32 count, map;
};

/* S to P, of one warp tile. */
DEVICE void resident_long_p(struct resident_scores *p, const struct abi_args *a,
                            const struct resident_tile *t,
                            const struct resident_row_stats *stats)
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    const float p_scale = sparsegen_scale(a);
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], lse = stats->lse[k / 2 % 2];
        *x = TRANSFORM == ABI_SPARSEGEN ? sparsegen_p(*x * scale, lse, p_scale)
                                        : exp2_of(*x * scale - lse);
    }
    if (!resident_hides(t))
        return;
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4];
        *x = resident_sees(t, k / 4, k % 4) ? *x : 0;
    }
}

/* P and dP to P, negative where the entry is dropped, and dS = P (dP - delta); of sparsegen dS = dP - delta on the
   support. */
DEVICE void resident_compute_ds(struct resident_scores *p, struct resident_scores *dp,
                                const struct resident_row_stats *stats, u32 kept,
                                struct resident_sums *sums)
{
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        u32 row = k / 2 % 2, keep = kept >> k & 1;
        float probability = *x, delta = stats->delta[row];
        *y = score_gradient(probability, DROPOUT && !keep ? 0 : *y, delta);
        *x = DROPOUT && !keep ? -probability : probability;
        sums->ds[row] += *y;
        sums->count += TRANSFORM == ABI_SPARSEGEN && probability > 0 ? 1u << 16 * row : 0;
    }
}

/* Stores dS to registers and P to shared memory, for a warp tile at half a column tile. */
DEVICE void resident_pass1_put(const struct resident_head *head, struct resident_query_tile q,
                               const struct resident_tile *t, const struct resident_scores *p,
                               const struct resident_scores *ds)
{
    struct resident_packed_ds one;
    resident_ds_pack(&one, ds, p);
    ds_registers_put(q.regs, q.row_block, q.at, &one);
    UNROLL
    for (u32 k = 0; k < RESIDENT_PAIRS; k++) {
        const float *x = &p->at[k / 2].x[2 * (k % 2)];
        p_smem_put(head, q.row0, t, k, half_pack(x[0], x[1]));
    }
}

/* A warp tile at half a column tile that has an entry. */
DEVICE void resident_pass1_tile(const struct resident_head *head, struct resident_query_tile q,
                                const struct resident_tile *t,
                                const struct resident_row_stats *stats,
                                struct resident_sums *sums)
{
    struct resident_scores p, dp;
    resident_s_dp(&p, &dp, head, q.row0, t);
    const u32 kept = resident_kept(q.a, head, q.row0, t, 1, 1);
    resident_long_p(&p, q.a, t, stats);
    resident_compute_ds(&p, &dp, stats, kept, sums);
    resident_pass1_put(head, q, t, &p, &dp);
    sums->map |= 1u << t->col0 / 16;
}

/* A row's correction of delta: the sum of dS, of sparsegen its mean over the support. */
DEVICE float resident_row_correction(float sum, float count)
{
    sum = quad_sum(sum);
    if (TRANSFORM != ABI_SPARSEGEN)
        return sum;
    count = quad_sum(count);
    return count > 0 ? sum / count : 0;
}

DEVICE void resident_finish_pass1(const struct resident_sums *sums,
                                  const struct resident_head *head, u32 row0,
                                  struct ds_registers *regs, u32 row_block)
{
    const float delta_correction[2] = {
        resident_row_correction(sums->ds[0], (float)(sums->count & 0xffff)),
        resident_row_correction(sums->ds[1], (float)(sums->count >> 16))};
    ds_registers_put_correction(regs, row_block, delta_correction);
    if (lane() == 0)
        shared_put_u32(p_smem_map(head, row0 / 16), sums->map);
}

/* A warp tile with the stats as they are. */
DEVICE void resident_pass1_row_block(const struct abi_args *a, const struct resident_head *head,
                                     u32 row0, const struct resident_row_stats *stats,
                                     struct ds_registers *regs, u32 row_block)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, 0);
    struct resident_tile t;
    struct resident_sums sums = {{0, 0}, 0, 0};
    NO_UNROLL
    for (u32 at = 0; resident_next(&w, head, &t); at++) {
        NO_UNROLL
        for (u32 part = 0; part < RESIDENT_PARTS; part++) {
            if (part)
                resident_next_half(&t);
            if (t.any & 0xffffu) {
                const struct resident_query_tile q = {a, regs, row0, row_block,
                                                      RESIDENT_PARTS * at + part};
                resident_pass1_tile(head, q, &t, stats, &sums);
            }
        }
    }
    resident_finish_pass1(&sums, head, row0, regs, row_block);
}

/* True if the estimate of delta of some row of the warp tile is not finite: O overflowed f16. Such an estimate becomes 0. */
DEVICE u32 resident_delta_overflows(struct resident_row_stats *stats)
{
    u32 overflows = 0;
    UNROLL
    for (u32 k = 0; DTYPE == ABI_F16 && k < 2; k++) {
        float *delta = &stats->delta[k];
        u32 infinite = (bits_of(*delta) & 0x7f800000u) == 0x7f800000u;
        overflows |= infinite;
        *delta = infinite ? 0 : *delta;
    }
    return DTYPE == ABI_F16 && ANY(overflows);
}

/* Pass 1. Where an estimate of delta overflowed it runs twice, the first time only to find delta. */
DEVICE void resident_backward_pass1(const struct abi_args *a, const struct resident_head *head,
                                    u32 row0, struct resident_row_stats *stats,
                                    struct ds_registers *regs, u32 row_block)
{
    NO_UNROLL
    for (u32 more = resident_delta_overflows(stats);; more = 0) {
        resident_pass1_row_block(a, head, row0, stats, regs, row_block);
        if (!more)
            break;
        UNROLL
        for (u32 k = 0; k < 2; k++)
            stats->delta[k] += ds_registers_correction(regs, row_block, k);
    }
}

/* Pass 1 of one warp tile, whose O is read only now: registers do not hold the stats of all. */
DEVICE void resident_backward_pass1_alone(const struct abi_args *a,
                                          const struct resident_head *head, u32 row0,
                                          struct ds_registers *regs, u32 row_block)
{
    struct resident_row_stats stats;
    struct frag_a o[RESIDENT_STEPS];
    resident_read_rows(&stats, o, a, head, row0);
    resident_load_delta(&stats, o, a, head, row0);
    resident_backward_pass1(a, head, row0, &stats, regs, row_block);
}

#endif
