/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward, where a warp holds all scores of its queries in registers (n <= 128):

       for each warp tile of 16 queries:
           resident_rows_product     S = Q K^T, then dP = dO V^T, of all column tiles
           resident_rows_p           P = 2^(S - LSE)
           resident_rows_put_p       P to p_smem
           resident_rows_delta       delta = rowsum(P o dP), exact (sparsegen: the mean of dP over the support)
           resident_rows_ds          dS = P (dP - delta), which waits in registers
           resident_rows_dq          dQ = dS K

   delta comes from P and dP themselves, so that O is not read. See backward.cu. */
#ifndef MASKC_CUDA_RESIDENT_BACKWARD_ROWS_H
#define MASKC_CUDA_RESIDENT_BACKWARD_ROWS_H
#include "cuda/resident/direct.h"
#include "cuda/resident/ds_registers.h"

enum {
    RESIDENT_WHOLE_ROWS = RESIDENT_TILES <= 4,
    RESIDENT_ROW_TILES = RESIDENT_WHOLE_ROWS ? RESIDENT_TILES : 1,
    RESIDENT_ROW_STEPS =
        RESIDENT_STEPS <= 4 ? RESIDENT_STEPS : 2, /* of a row's operand at a time */
    RESIDENT_ROW_HALVES = 2 * RESIDENT_ROW_TILES,
    /* Chunks of dQ at a time. */
    RESIDENT_DQ_CHUNKS =
        RESIDENT_STEPS > 8 ? (RESIDENT_CHUNKS / 2 + 3) / 4 * 4 : RESIDENT_CHUNKS,
};

/* dS of a warp tile: the first operands of products over 16 columns each; and which of them have an entry. */
struct resident_rows_ds {
    struct frag_a at[RESIDENT_ROW_HALVES];
    u32 lives;
};

DEVICE struct resident_head resident_backward_head(const struct abi_args *a, u32 at)
{
    return resident_head_at(a, at, RESIDENT_BACKWARD_HEADS, RESIDENT_BACKWARD_WARPS,
                            RESIDENT_HEAD);
}

/* s = rows of one operand times columns of another, at all column tiles. */
DEVICE void resident_rows_product(struct resident_scores s[RESIDENT_ROW_TILES],
                                  const struct resident_head *head, u32 rows, u32 row0,
                                  enum resident_operand columns,
                                  const struct resident_tile t[RESIDENT_ROW_TILES])
{
    UNROLL
    for (u32 u = 0; u < RESIDENT_ROW_TILES; u++)
        resident_scores_clear(&s[u]);
    NO_UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS; step += RESIDENT_ROW_STEPS) {
        struct frag_a own[RESIDENT_ROW_STEPS];
        UNROLL
        for (u32 k = 0; k < RESIDENT_ROW_STEPS; k++)
            if (step + k < RESIDENT_STEPS)
                resident_load_rows(&own[k], head, rows, row0, 2 * (step + k));
        const struct resident_row_operands operands = {own, step, RESIDENT_ROW_STEPS};
        UNROLL
        for (u32 u = 0; u < RESIDENT_ROW_TILES; u++)
            resident_dots(&s[u], operands, head, columns, &t[u], 4);
    }
}

/* Scores to P; 0 where an entry is hidden. */
DEVICE void resident_rows_p(struct resident_scores s[RESIDENT_ROW_TILES],
                            const struct resident_tile t[RESIDENT_ROW_TILES],
                            const struct abi_args *a, const float lse[2])
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    const float p_scale = sparsegen_scale(a);
    UNROLL
    for (u32 u = 0; u < RESIDENT_ROW_TILES; u++) {
        if (!t[u].any)
            continue;
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            float *x = &s[u].at[k / 4].x[k % 4];
            *x = TRANSFORM == ABI_SPARSEGEN ? sparsegen_p(*x * scale, lse[k / 2 % 2], p_scale)
                                            : exp2_of(*x * scale - lse[k / 2 % 2]);
        }
        if (!resident_hides(&t[u]))
            continue;
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            float *x = &s[u].at[k / 4].x[k % 4];
            *x = resident_sees(&t[u], k / 4, k % 4) ? *x : 0;
        }
    }
}

/* P of a column tile to p_smem, without dropped entries. */
DEVICE void resident_rows_put_p(const struct resident_head *head, u32 row0,
                                const struct resident_tile *t, const struct resident_scores *p,
                                u32 kept)
{
    struct resident_scores left = *p;
    resident_drop(&left, kept);
    UNROLL
    for (u32 half = 0; half < 2; half++) {
        if (!resident_live(t, 2 * half, 2))
            continue;
        const struct frag_a entries = resident_entries(&left, half);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            p_smem_put(head, row0, t, 4 * half + k, entries.x[k]);
    }
}

/* delta of the lane's two rows: the mean of dP, weighted with P (sparsegen: over the support). The weights are divided
   by their sum, which differs from 1 by rounding: dP of a row may have a large common part. */
DEVICE void resident_rows_delta(float delta[2],
                                const struct resident_scores p[RESIDENT_ROW_TILES],
                                const struct resident_scores dp[RESIDENT_ROW_TILES],
                                const struct resident_tile t[RESIDENT_ROW_TILES])
{
    float sum[2] = {0, 0}, weights[2] = {0, 0};
    UNROLL
    for (u32 u = 0; u < RESIDENT_ROW_TILES; u++) {
        if (!t[u].any)
            continue;
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            const float x = p[u].at[k / 4].x[k % 4], y = dp[u].at[k / 4].x[k % 4];
            const float weight = TRANSFORM != ABI_SPARSEGEN ? x : x > 0 ? 1 : 0;
            sum[k / 2 % 2] += weight * y;
            weights[k / 2 % 2] += weight;
        }
    }
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float all = quad_sum(weights[k]), part = quad_sum(sum[k]);
        delta[k] = all > 0 ? part * reciprocal_of(all) : 0;
    }
}

/* dS of all column tiles, in halves. */
DEVICE void resident_rows_ds(struct resident_rows_ds *ds, const struct abi_args *a,
                             const struct resident_scores p[RESIDENT_ROW_TILES],
                             struct resident_scores dp[RESIDENT_ROW_TILES],
                             const float delta[2])
{
    const float power = ds_scale_power(a);
    UNROLL
    for (u32 k = 0; k < 16 * RESIDENT_ROW_TILES; k++) {
        float *y = &dp[k / 16].at[k / 4 % 4].x[k % 4];
        *y = score_gradient(p[k / 16].at[k / 4 % 4].x[k % 4], *y, delta[k / 2 % 2]) * power;
    }
    UNROLL
    for (u32 k = 0; k < RESIDENT_ROW_HALVES; k++)
        ds->at[k] = resident_entries(&dp[k / 2], k % 2);
}

/* LSE to base 2 (or tau) of the lane's two rows. */
DEVICE void resident_rows_lse(float lse[2], const struct abi_args *a,
                              const struct resident_head *head, u32 row0)
{
    const float base = TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E;
    const u32 row = row0 + resident_row();
    lse[0] = row < head->length ? resident_lse(a, head)[row] * base : 0;
    lse[1] = row + 8 < head->length ? resident_lse(a, head)[row + 8] * base : 0;
}

/* P of a warp tile to p_smem; dS from P and dP. */
DEVICE void resident_rows_gradients(struct resident_rows_ds *ds, const struct abi_args *a,
                                    const struct resident_head *head, u32 row0,
                                    const struct resident_tile t[RESIDENT_ROW_TILES],
                                    const struct resident_scores p[RESIDENT_ROW_TILES],
                                    struct resident_scores dp[RESIDENT_ROW_TILES])
{
    float delta[2];
    UNROLL
    for (u32 u = 0; u < RESIDENT_ROW_TILES; u++) {
        if (!t[u].any)
            continue;
        const u32 kept = resident_kept(a, head, row0, &t[u], 2, 1);
        resident_drop(&dp[u], kept);
        resident_rows_put_p(head, row0, &t[u], &p[u], kept);
    }
    resident_rows_delta(delta, p, dp, t);
    resident_rows_ds(ds, a, p, dp, delta);
}

/* Warp tile m of the warp's queries: dS, and P to p_smem. dO may still be on its way until the first S is computed. */
DEVICE void resident_rows_queries(struct resident_rows_ds *ds, const struct abi_args *a,
                                  const struct resident_head *head, u32 q, u32 m, u32 codes)
{
    const u32 row0 = 16 * (RESIDENT_ROW_BLOCKS * head->warp + m);
    const u32 there =
        row0 < head->length; /* the same for the whole warp: else nothing was loaded */
    struct resident_tile t[RESIDENT_ROW_TILES];
    struct resident_scores p[RESIDENT_ROW_TILES], dp[RESIDENT_ROW_TILES];
    u32 code[RESIDENT_TILES_AT_ONCE];
    resident_codes_from_lanes(code, codes);
    ds->lives = resident_direct(t, code, &a->forward, head, row0);
    if (lane() == 0)
        shared_put_u32(p_smem_map(head, row0 / 16), ds->lives);
    if (there) {
        float lse[2];
        resident_rows_lse(lse, a, head, row0);
        resident_rows_product(p, head, q, row0, RESIDENT_K, t);
        resident_rows_p(p, t, a, lse);
    }
    if (!m) {
        COPY_ASYNC_WAIT(0);
        SYNC(); /* dO has arrived */
    }
    if (there) {
        resident_rows_product(dp, head, RESIDENT_D_O - q, row0, RESIDENT_V, t);
        resident_rows_gradients(ds, a, head, row0, t, p, dp);
    }
}

/* dQ = dS K of a warp tile. */
DEVICE void resident_rows_dq(const struct resident_rows_ds *ds, const struct abi_args *a,
                             const struct resident_head *head, u32 row0)
{
    const float mantissa = ds_scale_mantissa(a) * resident_kept_scale(a), by[2] = {1, 1};
    const struct resident_row_places keys = resident_places_in(head, RESIDENT_K);
    NO_UNROLL
    for (u32 first = 0; first < RESIDENT_CHUNKS; first += RESIDENT_DQ_CHUNKS) {
        struct frag_c d_q[1][RESIDENT_CHUNKS];
        resident_clear(d_q[0]);
        UNROLL
        for (u32 k = 0; k < RESIDENT_ROW_HALVES; k++)
            if (!(ds->lives >> k & 1))
                continue;
            else if (RESIDENT_DQ_CHUNKS == RESIDENT_CHUNKS)
                resident_apply_at(d_q, &ds->at[k], 1, head, &keys, 16 * k);
            else
                resident_apply_part(d_q, first, RESIDENT_DQ_CHUNKS, &ds->at[k], 1, head,
                                    RESIDENT_K, 16 * k);
        resident_scale(d_q[0], mantissa);
        resident_store_part(d_q[0], first, RESIDENT_DQ_CHUNKS, by, &a->d_q, head, row0);
    }
}

/* dS of a warp tile to p_smem, in the place of P. */
DEVICE void resident_rows_put_ds(const struct resident_rows_ds *ds,
                                 const struct resident_head *head, u32 row0)
{
    UNROLL
    for (u32 k = 0; k < RESIDENT_ROW_HALVES; k++) {
        const struct resident_tile t = {32 * (k / 2), 0, 0};
        if (!(ds->lives >> k & 1))
            continue;
        UNROLL
        for (u32 x = 0; x < 4; x++)
            p_smem_put(head, row0, &t, 4 * (k % 2) + x, ds->at[k].x[x]);
    }
}

/* Starts the copy of one operand to its place, or to that of another one. */
DEVICE void resident_fetch_one(u32 to, const struct abi_tensor *t,
                               const struct resident_head *head)
{
    const struct abi_tensor *const one[] = {t};
    resident_fetch(to, 1, one, head, RESIDENT_BACKWARD_WARPS);
    copy_async_commit();
}

DEVICE void resident_fetch_keys_and_values(const struct abi_args *a,
                                           const struct resident_head *head)
{
    const struct abi_tensor *const two[] = {&a->k, &a->v};
    resident_fetch(RESIDENT_K, 2, two, head, RESIDENT_BACKWARD_WARPS);
    copy_async_commit();
}

/* Computes one head of each warp group, whose Q, K and V are being copied. As soon as their memory
   is no longer read, copies the next head's K and V to the same places, and its Q to where dO was.
   `q`: the operand whose memory holds Q, RESIDENT_Q or RESIDENT_D_O; the other one's holds dO. */
DEVICE void resident_backward_rows(const struct abi_args *a, struct resident_head *head, u32 q,
                                   u32 at)
{
    enum { LAST = RESIDENT_ROW_BLOCKS - 1 };
    struct resident_rows_ds ds[RESIDENT_ROW_BLOCKS];
    const u32 row0 = 16 * RESIDENT_ROW_BLOCKS * head->warp;
    const float kept_scale = resident_kept_scale(a);
    u32 code[RESIDENT_TILES_AT_ONCE];
    SYNC(); /* the head before is no longer read */
    resident_fetch_one(RESIDENT_D_O - q, &a->d_o, head);
    resident_codes(code, &a->forward, head, row0); /* the warp's tiles share an item */
    const u32 codes = resident_codes_in_lanes(code);
    COPY_ASYNC_WAIT(1);
    SYNC(); /* Q, K and V have arrived */
    NO_UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS;
         m++) { /* a copy, not an index, keeps dS in registers */
        ds[0] = ds[LAST];
        resident_rows_queries(&ds[LAST], a, head, q, m, codes);
        resident_rows_dq(&ds[LAST], a, head, row0 + 16 * m);
    }
    SYNC(); /* P is whole; K and V are no longer read */
    struct resident_head next = resident_backward_head(a, at);
    next.places = head->places; /* the same values, in the same registers */
    resident_fetch_keys_and_values(a, &next);
    resident_keys(head, row0, RESIDENT_D_O - q, &a->d_v, kept_scale);
    SYNC(); /* P and dO are no longer read */
    resident_fetch_one(RESIDENT_D_O - q, &a->q, &next);
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++)
        resident_rows_put_ds(&ds[m], head, row0 + 16 * m);
    SYNC(); /* dS is whole */
    resident_keys(head, row0, q, &a->d_k, ds_scale_mantissa(a) * kept_scale);
    *head = next;
}

/* All heads of the block. */
DEVICE void resident_backward_all_rows(const struct abi_args *a)
{
    const u32 total = a->slice_batch * a->heads, step = BLOCKS * RESIDENT_BACKWARD_HEADS;
    u32 q = RESIDENT_Q;
    struct resident_head head = resident_backward_head(a, BLOCK * RESIDENT_BACKWARD_HEADS);
    resident_fetch_one(q, &a->q, &head);
    resident_fetch_keys_and_values(a, &head);
    NO_UNROLL
    for (u32 at = BLOCK * RESIDENT_BACKWARD_HEADS; at < total; at += step) {
        resident_backward_rows(a, &head, q, at + step);
        q = RESIDENT_D_O - q;
    }
}

#endif
