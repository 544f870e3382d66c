/* SPDX-License-Identifier: Apache-2.0 */
/* How the CPU templates are launched: a pack phase over the heads, then the items of a plan. Sizes are those of
   templates/cpu/sizes.h. */
#include "gen/emit/cpu.h"
#include "gen/lowering/lowering.h"
#include "templates/cpu/sizes.h"
#include <stdio.h>

uint32_t cpu_chunk_cols(const struct target *t, const struct features *f)
{
    return target_matrix(t, f) ? 256 : 512;
}

static uint64_t row_width(const struct target *t, const struct features *f)
{
    return CPU_WIDTH(t->vector_bytes, f->head_dim);
}

uint32_t cpu_gathers_kept(const struct features *f)
{
    return f->gathers_kept ? f->gathers_kept : GATHERS_KEPT;
}

static uint64_t row_block_bytes(const struct target *t, const struct features *f)
{
    return CPU_ROW_BLOCK_BYTES(target_matrix(t, f), cpu_gathers_kept(f), row_width(t, f),
                               CPU_DEPTH(f->head_dim));
}

static uint64_t block_bytes(const struct target *t, const struct features *f)
{
    return CPU_BLOCK_BYTES(target_matrix(t, f), (uint64_t)cpu_chunk_cols(t, f), f->backward,
                           f->bias);
}

static uint64_t pack_row(const struct target *t, const struct features *f)
{
    return CPU_PACK_ROW_BYTES(target_matrix(t, f), f->backward, f->head_dim, row_width(t, f),
                              CPU_DEPTH(f->head_dim));
}

static uint64_t partial_row(const struct target *t, const struct features *f)
{
    return residue_applies(t, f) ? CPU_PARTIAL_ROW_BYTES(f->backward, row_width(t, f)) : 0;
}

static struct phase phase_of(const char *entry, enum abi_over over)
{
    struct phase p = {.over = over};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

void cpu_launch(const struct target *t, const struct features *f, struct launch_record *ret)
{
    *ret = (struct launch_record){.block_rows = t->block_rows, .pack_row = pack_row(t, f)};
    ret->partial_row = partial_row(t, f);
    ret->forward[ret->n_forward++] = phase_of("attention_pack", ABI_OVER_HEADS);
    ret->forward[ret->n_forward++] = phase_of("attention_forward", ABI_OVER_FORWARD);
    if (f->backward) {
        ret->backward[ret->n_backward++] = phase_of("attention_pack_backward", ABI_OVER_HEADS);
        ret->backward[ret->n_backward++] =
            phase_of("attention_dq", f->bias ? ABI_OVER_WORK : ABI_OVER_FORWARD);
        ret->backward[ret->n_backward++] =
            phase_of("attention_pack_transposed", ABI_OVER_HEADS);
        ret->backward[ret->n_backward++] = phase_of("attention_dkv", ABI_OVER_TRANSPOSED);
        if (f->bias)
            ret->backward[ret->n_backward++] = phase_of("attention_diagonals", ABI_OVER_HEADS);
        ret->delta_row = sizeof(float);
    }
    /* Softmax needs one block. Where a row needs all its columns: those of its columns, one begun,
       and one to find that no more come. */
    ret->scratch_fixed = row_block_bytes(t, f) + block_bytes(t, f);
    if (f->transform == ABI_SPARSEGEN) {
        ret->scratch_fixed += block_bytes(t, f);
        ret->scratch_col =
            (block_bytes(t, f) + cpu_chunk_cols(t, f) - 1) / cpu_chunk_cols(t, f);
    }
}
