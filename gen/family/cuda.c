/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of CUDA templates. A block computes one item at a time, so a launch may have any number of blocks. The forward
   pass is one phase. The backward pass is dQ, then dK and dV, which read the args.delta that dQ stored. If items may be
   split, a phase that merges them follows each of these. A bias adds three phases, shared key heads one. */
#include "gen/family/cuda.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct phase cuda_phase(const char *entry, enum abi_over over, uint32_t threads,
                        uint32_t shared_bytes)
{
    struct phase p = {.over = over, .threads = threads, .shared_bytes = shared_bytes};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

/* Over the plan's items, and over those that merge split ones. */
static struct phase *add_passes(struct phase *at, const char *entry, bool transposed,
                                const struct cuda_blocks *b, uint32_t bytes)
{
    const enum abi_over all = transposed ? ABI_OVER_TRANSPOSED : ABI_OVER_FORWARD;
    const enum abi_over merge = transposed ? ABI_OVER_TRANSPOSED_MERGE : ABI_OVER_FORWARD_MERGE;
    *at = cuda_phase(entry, all, b->threads, bytes);
    at++->waves = b->waves;
    if (b->splits)
        *at++ = cuda_phase(entry, merge, b->threads, bytes);
    return at;
}

/* The gradient of a bias: its tiles, the sums of chunks, those along diagonals. */
static struct phase *add_bias(struct phase *at, const struct cuda_blocks *b)
{
    const uint32_t sums = b->threads * (uint32_t)sizeof(float);
    *at++ = cuda_phase("attention_dx", ABI_OVER_BIAS, b->threads, b->bias_bytes);
    *at++ = cuda_phase("attention_dx_sum", ABI_OVER_BIAS, b->threads, 0);
    *at++ = cuda_phase("attention_dx_lines", ABI_OVER_BIAS, b->threads, sums);
    return at;
}

void cuda_add_scratch(const struct kernel_request *r, struct launch_record *ret)
{
    if (r->transform == ABI_SPARSEGEN)
        ret->scratch_col = ret->block_rows * sizeof(float);
}

void cuda_slow_down(struct machine *m, enum machine_pass pass, double warps)
{
    const double times = pow(warps, 0.7);
    for (int k = 0; k < RATES; k++)
        if (k != RATE_STREAM && k != RATE_EXPOSED)
            m->rate[pass][k] *= times;
}

void cuda_add_key_heads(uint32_t threads, const struct kernel_request *r,
                        struct launch_record *ret)
{
    if (r->kv_heads)
        ret->backward[ret->n_backward++] =
            cuda_phase("attention_key_heads", ABI_OVER_KEY_HEADS, threads, 0);
}

void cuda_launch(const struct cuda_blocks *b, const struct kernel_request *r,
                 enum family_pass pass, struct launch_record *ret)
{
    struct phase *at = pass == FAMILY_FORWARD ? ret->forward : ret->backward;
    cuda_add_scratch(r, ret);
    if (pass == FAMILY_FORWARD) {
        at = add_passes(at, "attention_forward", false, b, b->forward_bytes);
        ret->n_forward = (uint32_t)(at - ret->forward);
        return;
    }
    at = add_passes(at, "attention_dq", false, b, b->backward_bytes);
    at = add_passes(at, "attention_dkv", true, b, b->backward_bytes);
    if (r->bias)
        at = add_bias(at, b);
    ret->n_backward = (uint32_t)(at - ret->backward);
    cuda_add_key_heads(b->threads, r, ret);
    ret->delta_row = sizeof(float) * (r->bias ? 2 : 1); /* delta, and its correction */
}

uint32_t cuda_blocks_that_fit(const struct target *t, uint32_t shared_bytes)
{
    enum { DRIVER = 1024 };
    const uint32_t fit = (t->shared_bytes + DRIVER) / (shared_bytes + DRIVER);
    return fit ? fit : 1;
}

uint32_t simt_shared_bytes(uint32_t head_dim)
{
    return SIMT_SHARED_BYTES(head_dim);
}

void cuda_numbers(const struct target *t, const struct kernel_config *c, struct text *out)
{
    const struct kernel_request *r = &c->request;
    text_add(out,
             "enum {\n    BACKWARD = %d,\n    THREADS = %" PRIu32
             ",\n    SHARED_BYTES = %" PRIu32 ",\n    BIAS = %d, /* %s */\n",
             r->backward, family_shape(t, c).threads, simt_shared_bytes(r->head_dim),
             (int)r->bias, bias_name(r->bias));
}
