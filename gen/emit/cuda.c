/* SPDX-License-Identifier: Apache-2.0 */
/* How the CUDA templates are launched. One block works on one item, so a pass is as many blocks
   as the device likes; the forward pass is one phase, the backward pass two: dQ, then dK and
   dV, which read what dQ leaves in args.state. */
#include "gen/emit/cuda.h"
#include <stdio.h>

uint32_t cuda_shared_bytes(uint32_t head_dim)
{
    return (3 * 32 * (head_dim + 4) + 32) * (uint32_t)sizeof(float);
}

static struct phase phase_of(const char *entry, enum abi_over over, const struct target *t,
                             const struct features *f)
{
    struct phase p = {
        .over = over, .threads = t->threads, .shared_bytes = cuda_shared_bytes(f->head_dim)};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

void cuda_launch(const struct target *t, const struct features *f, struct launch_record *ret)
{
    *ret = (struct launch_record){.strip_rows = t->strip_rows};
    ret->forward[ret->n_forward++] = phase_of("attention_forward", ABI_OVER_FORWARD, t, f);
    if (f->backward) {
        ret->backward[ret->n_backward++] = phase_of("attention_dq", ABI_OVER_FORWARD, t, f);
        ret->backward[ret->n_backward++] = phase_of("attention_dkv", ABI_OVER_TRANSPOSED, t, f);
        ret->state_row = sizeof(float);
    }
    if (f->transform == ABI_SPARSEGEN) {
        ret->scratch_fixed = CUDA_SCRATCH_FIXED_BYTES;
        ret->scratch_col = CUDA_SCRATCH_COL_BYTES;
    }
}
