/* SPDX-License-Identifier: Apache-2.0 */
/* How the CPU templates are launched: a pack phase over the heads, then the items of a plan. Sizes are those of
   templates/cpu/sizes.h. */
#include "gen/emit/cpu.h"
#include "gen/lowering/lowering.h"
#include "templates/cpu/sizes.h"
#include <stdio.h>

uint32_t cpu_chunk_cols(const struct target *t, const struct kernel_config *c)
{
    return target_matrix(t, &c->request) ? 256 : 512;
}

static uint64_t row_width(const struct target *t, const struct kernel_config *c)
{
    return CPU_WIDTH(t->vector_bytes, c->request.head_dim);
}

uint32_t cpu_gathers_kept(const struct kernel_config *c)
{
    return c->gathers_kept ? c->gathers_kept : GATHERS_KEPT;
}

static uint64_t row_block_bytes(const struct target *t, const struct kernel_config *c)
{
    return CPU_ROW_BLOCK_BYTES(target_matrix(t, &c->request), cpu_gathers_kept(c),
                               row_width(t, c), CPU_DEPTH(c->request.head_dim));
}

static uint64_t block_bytes(const struct target *t, const struct kernel_config *c)
{
    return CPU_BLOCK_BYTES(target_matrix(t, &c->request), (uint64_t)cpu_chunk_cols(t, c),
                           c->request.backward, c->request.bias);
}

static uint64_t pack_row(const struct target *t, const struct kernel_config *c)
{
    return CPU_PACK_ROW_BYTES(target_matrix(t, &c->request), c->request.backward,
                              c->request.head_dim, row_width(t, c),
                              CPU_DEPTH(c->request.head_dim));
}

static uint64_t partial_row(const struct target *t, const struct kernel_config *c)
{
    return residue_applies(t, &c->request)
               ? CPU_PARTIAL_ROW_BYTES(c->request.backward, row_width(t, c))
               : 0;
}

static struct phase phase_of(const char *entry, enum abi_over over)
{
    struct phase p = {.over = over};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

void cpu_launch(const struct target *t, const struct kernel_config *c,
                struct launch_record *ret)
{
    *ret = (struct launch_record){.block_rows = t->block_rows, .pack_row = pack_row(t, c)};
    ret->partial_row = partial_row(t, c);
    ret->forward[ret->n_forward++] = phase_of("attention_pack", ABI_OVER_HEADS);
    ret->forward[ret->n_forward++] = phase_of("attention_forward", ABI_OVER_FORWARD);
    if (c->request.backward) {
        ret->backward[ret->n_backward++] = phase_of("attention_pack_backward", ABI_OVER_HEADS);
        ret->backward[ret->n_backward++] =
            phase_of("attention_dq", c->request.bias ? ABI_OVER_WORK : ABI_OVER_FORWARD);
        ret->backward[ret->n_backward++] =
            phase_of("attention_pack_transposed", ABI_OVER_HEADS);
        ret->backward[ret->n_backward++] = phase_of("attention_dkv", ABI_OVER_TRANSPOSED);
        if (c->request.bias)
            ret->backward[ret->n_backward++] = phase_of("attention_diagonals", ABI_OVER_HEADS);
        ret->delta_row = sizeof(float);
    }
    /* Softmax needs one block. Where a row needs all its columns: those of its columns, one begun,
       and one to find that no more come. */
    ret->scratch_fixed = row_block_bytes(t, c) + block_bytes(t, c);
    if (c->request.transform == ABI_SPARSEGEN) {
        ret->scratch_fixed += block_bytes(t, c);
        ret->scratch_col =
            (block_bytes(t, c) + cpu_chunk_cols(t, c) - 1) / cpu_chunk_cols(t, c);
    }
}
