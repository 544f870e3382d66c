/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward: one block a head, five products. Shared memory holds Q, K, V, dO and p_smem, an n x
   n matrix of halves: first P, then dS. A warp has warp tiles of 16 queries, then one or two of 16 keys.

       n <= 128 (backward_rows.h)
       pass 1, queries               S = Q K^T, P = 2^(S - LSE), dP = dO V^T;  P to p_smem,  dS = P (dP - delta), dQ = dS K
       pass 1, keys                  dV = P^T dO
       pass 2, queries               dS to p_smem
       pass 2, keys                  dK = dS^T Q

       n > 128
       resident_long_start           load Q, K, V, dO; LSE and delta = rowsum(dO o O)
       pass 1, queries               S = Q K^T, P = 2^(S - LSE), dP = dO V^T;  P to p_smem,  P (dP - delta) to registers
       pass 1, keys                  dV = P^T dO
       pass 2, queries               dS = P (dP - delta) - P correction;  dS to p_smem,  dQ = dS K
       pass 2, keys                  dK = dS^T Q

   Softmax backward needs delta_i = sum_j P_ij dP_ij. Up to n = 128 a warp has all dP of a row when it computes dS. Above
   that rowsum(dO o O) estimates delta, but O is rounded to 16 bits: pass 1 keeps P (dP - estimate) in registers
   (ds_registers.h) and adds up the correction; pass 2 subtracts P times the correction. For sparsegen dS = (dP - mean of
   dP over the support) / (1 - lambda) on the support. */
#include "cuda/common/key_heads.h"
#include "cuda/resident/backward_pass1.h"
#include "cuda/resident/backward_rows.h"

enum {
    /* Chunks of dQ at a time: half of them, where all would take half of the registers. */
    RESIDENT_QUERIES_HALVED = RESIDENT_STEPS > 8 || RESIDENT_TIGHT,
    RESIDENT_QUERY_CHUNKS =
        RESIDENT_QUERIES_HALVED ? (RESIDENT_CHUNKS / 2 + 3) / 4 * 4 : RESIDENT_CHUNKS,
};

/* ---- pass 2, queries ---- */

/* dS of a warp tile over half a column tile: the first operand of a product, and to p_smem in place of P.
   `again`: p_smem has dS already. */
DEVICE void resident_ds_operand(struct frag_a *ds, const struct resident_head *head,
                                struct resident_query_tile q, const struct resident_tile *t,
                                u32 half, u32 again)
{
    const float scale = ds_scale_power(q.a);
    const struct resident_packed_ds one =
        ds_registers_get(q.regs, q.row_block, RESIDENT_PARTS * q.at + half);
    UNROLL
    for (u32 k = 4 * half; k < 4 * half + 4; k++) {
        u32 p = TRANSFORM == ABI_SPARSEGEN && !again ? 0 : p_smem_get(head, q.row0, t, k);
        ds->x[k % 4] = p;
        if (again)
            continue;
        ds->x[k % 4] = resident_ds_unpack(
            &one, k % 4, p, ds_registers_correction(q.regs, q.row_block, k % 2), scale);
        p_smem_put(head, q.row0, t, k, ds->x[k % 4]);
    }
}

/* Chunks of dQ from `first` on; with the first ones dS goes to p_smem. */
DEVICE void resident_pass2_chunks(struct frag_c (*d_q)[RESIDENT_CHUNKS], u32 first,
                                  const struct abi_args *a, const struct resident_head *head,
                                  u32 row0, struct ds_registers *regs, u32 row_block)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, 0);
    struct resident_tile t;
    resident_clear(*d_q);
    NO_UNROLL
    for (u32 at = 0; resident_next(&w, head, &t); at++) {
        const struct resident_query_tile q = {a, regs, row0, row_block, at};
        UNROLL
        for (u32 half = 0; half < 2; half++) {
            struct frag_a ds;
            if (!resident_live(&t, 2 * half, 2))
                continue;
            resident_ds_operand(&ds, head, q, &t, half, RESIDENT_QUERIES_HALVED && first);
            resident_apply_part(d_q, first, RESIDENT_QUERY_CHUNKS, &ds, 1, head, RESIDENT_K,
                                t.col0 + 16 * half);
        }
    }
}

/* dS to p_smem, and dQ. */
DEVICE void resident_pass2_row_block(const struct abi_args *a, const struct resident_head *head,
                                     u32 row0, struct ds_registers *regs, u32 row_block)
{
    const float mantissa = ds_scale_mantissa(a) * resident_kept_scale(a), by[2] = {1, 1};
    NO_UNROLL
    for (u32 first = 0; first < RESIDENT_CHUNKS; first += RESIDENT_QUERY_CHUNKS) {
        struct frag_c d_q[RESIDENT_CHUNKS];
        resident_pass2_chunks(&d_q, first, a, head, row0, regs, row_block);
        resident_scale(d_q, mantissa);
        resident_store_part(d_q, first, RESIDENT_QUERY_CHUNKS, by, &a->d_q, head, row0);
    }
}

/* ---- a head ---- */

/* Starts the copies of all operands; those of dO and O first, with RESIDENT_O_COPIED, as a group of their own. */
DEVICE void resident_fetch_all(const struct abi_args *a, const struct resident_head *head)
{
    const struct abi_tensor *const all[] = {&a->q, &a->k, &a->v, &a->d_o};
    const struct abi_tensor *const first[] = {&a->d_o, &a->o};
    if (RESIDENT_O_COPIED) {
        resident_fetch(RESIDENT_D_O, 2, first, head, RESIDENT_BACKWARD_WARPS);
        copy_async_commit();
    }
    resident_fetch(RESIDENT_Q, RESIDENT_O_COPIED ? 3 : 4, all, head, RESIDENT_BACKWARD_WARPS);
    copy_async_commit();
}

/* Loads all operands, and the stats of the queries while these arrive. The last barrier also separates reads of O
   from writes of P. */
DEVICE void resident_long_start(const struct abi_args *a, const struct resident_head *head,
                                u32 row0, struct resident_row_stats stats[RESIDENT_ROW_BLOCKS])
{
    const u32 row_blocks = RESIDENT_AHEAD ? RESIDENT_ROW_BLOCKS : 0;
    struct frag_a o[RESIDENT_ROW_BLOCKS][RESIDENT_STEPS];
    resident_fetch_all(a, head);
    UNROLL
    for (u32 m = 0; m < row_blocks; m++)
        resident_read_rows(&stats[m], o[m], a, head, row0 + 16 * m);
    if (RESIDENT_O_COPIED) {
        COPY_ASYNC_WAIT(1);
        SYNC(); /* dO and O have arrived */
        UNROLL
        for (u32 m = 0; m < row_blocks; m++)
            resident_load_delta(&stats[m], o[m], a, head, row0 + 16 * m);
    }
    COPY_ASYNC_WAIT(0);
    SYNC(); /* all has arrived */
    UNROLL
    for (u32 m = 0; m < row_blocks && !RESIDENT_O_COPIED; m++)
        resident_load_delta(&stats[m], o[m], a, head, row0 + 16 * m);
}

/* Pass 1 or 2 over all queries of the warp. */
DEVICE void resident_queries(const struct abi_args *a, const struct resident_head *head,
                             u32 row0, u32 pass, struct resident_row_stats *stats,
                             struct ds_registers *regs)
{
    NO_UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++) {
        if (pass)
            resident_pass2_row_block(a, head, row0 + 16 * m, regs, m);
        else if (!RESIDENT_AHEAD)
            resident_backward_pass1_alone(a, head, row0 + 16 * m, regs, m);
        else
            resident_backward_pass1(a, head, row0, stats, regs, 0);
    }
}

/* One long head of each warp group. Both passes share their code: unrolled it compiles slowly. */
DEVICE void resident_long_backward(const struct abi_args *a, const struct resident_head *head)
{
    struct resident_row_stats stats[RESIDENT_ROW_BLOCKS];
    struct ds_registers regs[RESIDENT_ROW_BLOCKS];
    const u32 row0 = 16 * RESIDENT_ROW_BLOCKS * head->warp;
    SYNC(); /* the head before is no longer read */
    resident_long_start(a, head, row0, stats);
    NO_UNROLL
    for (u32 pass = 0; pass < 2; pass++) {
        resident_queries(a, head, row0, pass, stats, regs);
        SYNC(); /* p_smem is whole */
        resident_keys(head, row0, pass ? RESIDENT_Q : RESIDENT_D_O, pass ? &a->d_k : &a->d_v,
                      (pass ? ds_scale_mantissa(a) : 1) * resident_kept_scale(a));
        if (!pass)
            SYNC(); /* P is no longer read */
    }
}

ENTRY_OF(attention_resident_backward, RESIDENT_BACKWARD_THREADS, RESIDENT_BACKWARD_BLOCKS)
(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = RESIDENT_BACKWARD_HEADS;
    if (RESIDENT_WHOLE_ROWS)
        resident_backward_all_rows(&a);
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total && !RESIDENT_WHOLE_ROWS; at += BLOCKS * step) {
        const struct resident_head head = resident_backward_head(&a, at);
        resident_long_backward(&a, &head);
    }
}
