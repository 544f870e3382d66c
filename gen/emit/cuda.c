/* SPDX-License-Identifier: Apache-2.0 */
/* How the CUDA templates are launched. Short sequences: one phase for each pass, a block takes whole
   heads. Else one block works on one item, so a pass is as many blocks as the device likes; the
   forward pass is one phase, the backward pass two: dQ, then dK and dV, which read what dQ leaves in
   args.state. Where the plan has partial items each has a second phase, for the late works. */
#include "gen/emit/cuda.h"
#include "gen/family/cuda_resident.h"
#include "gen/family/cuda_tiled.h"
#include <inttypes.h>
#include <stdio.h>

uint32_t cuda_shared_bytes(uint32_t head_dim)
{
    return (3 * 32 * (head_dim + 4) + 32) * (uint32_t)sizeof(float);
}

static struct phase phase_of(const char *entry, enum abi_over over, uint32_t threads,
                             uint32_t shared_bytes)
{
    struct phase p = {.over = over, .threads = threads, .shared_bytes = shared_bytes};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

/* ---- whole heads ---- */

static uint32_t resident_threads(const struct resident_shape *s)
{
    return 32 * s->warps * s->heads;
}

static struct phase resident_phase(const char *entry, const struct resident_shape *s)
{
    return phase_of(entry, ABI_OVER_HEADS, resident_threads(s), s->shared_bytes);
}

static void add_shape(const char *pass, const struct resident_shape *s, struct text *out)
{
    text_add(out, "    RESIDENT_%s_ROW_BLOCKS = %" PRIu32 ",\n", pass, s->row_blocks);
    text_add(out,
             "    RESIDENT_%s_WARPS = %" PRIu32 ",\n    RESIDENT_%s_HEADS = %" PRIu32
             ",\n    RESIDENT_%s_THREADS = %" PRIu32 ",\n    RESIDENT_%s_BLOCKS = %" PRIu32
             ",\n    RESIDENT_%s_SHARED = %" PRIu32 ",\n",
             pass, s->warps, pass, s->heads, pass, resident_threads(s), pass, s->blocks, pass,
             s->shared_bytes);
}

void cuda_add_resident(const struct target *t, const struct kernel_config *c, struct text *out)
{
    struct resident_shape forward, backward;
    if (!resident_forward(t, &c->request, &forward))
        return;
    text_add(out, "enum {\n    RESIDENT_ROWS = %" PRIu32 ",\n", forward.rows);
    add_shape("FORWARD", &forward, out);
    if (resident_backward(t, &c->request, &backward))
        add_shape("BACKWARD", &backward, out);
    text_add(out, "};\n");
}

void cuda_add_tiled(const struct target *t, const struct kernel_config *c, struct text *out)
{
    const struct tiled_blocks b = tiled_blocks(t, c);
    if (target_matrix(t, &c->request))
        text_add(out,
                 "enum {\n    FORWARD_SHARED = %" PRIu32 ",\n    BACKWARD_SHARED = %" PRIu32
                 ",\n    BIAS_SHARED = %" PRIu32 ",\n    FORWARD_BLOCKS = %" PRIu32
                 ",\n    QUERY_BLOCKS = %" PRIu32 ",\n    KEY_BLOCKS = %" PRIu32
                 ",\n    BIAS_BLOCKS = %" PRIu32
                 ",\n    SHARED_ROWS = %d,\n    ROW_PASS = %d,\n    CUT_ROWS = %d,\n};\n",
                 tiled_forward_bytes(t, c), tiled_backward_bytes(t, c), tiled_bias_bytes(t, c),
                 b.forward, b.query, b.key, b.bias, c->shared_rows, tiled_has_row_pass(c),
                 c->cut_rows);
}

/* ---- files ---- */

uint32_t cuda_entry_files(const struct target *t, const struct kernel_config *c,
                          const char *ret[SOURCE_MAX_UNITS])
{
    const bool matrix = target_matrix(t, &c->request);
    uint32_t count = 0;
    if (resident_backward(t, &c->request, NULL)) {
        ret[count++] = "cuda/resident/backward.cu";
    } else if (c->request.backward) {
        ret[count++] = matrix ? "cuda/tiled/keys.cu" : "cuda/simt/keys.cu";
        ret[count++] = matrix ? "cuda/tiled/queries.cu" : "cuda/simt/queries.cu";
    }
    ret[count++] = resident_forward(t, &c->request, NULL) ? "cuda/resident/forward.cu"
                   : matrix                               ? "cuda/tiled/forward.cu"
                                                          : "cuda/simt/forward.cu";
    if (c->request.bias && c->request.backward)
        ret[count++] = matrix ? "cuda/tiled/bias.cu" : "cuda/simt/bias.cu";
    return count;
}

/* ---- launch ---- */

/* After the gradient of the queries, which leaves the state. */
static void add_bias(const struct target *t, const struct kernel_config *c,
                     struct launch_record *ret)
{
    const uint32_t shared = target_matrix(t, &c->request)
                                ? tiled_bias_bytes(t, c)
                                : cuda_shared_bytes(c->request.head_dim);
    const uint32_t sums = target_threads(t, c) * (uint32_t)sizeof(float);
    ret->backward[ret->n_backward++] =
        phase_of("attention_dx", ABI_OVER_BIAS, target_threads(t, c), shared);
    ret->backward[ret->n_backward++] =
        phase_of("attention_dx_sum", ABI_OVER_BIAS, target_threads(t, c), 0);
    ret->backward[ret->n_backward++] =
        phase_of("attention_dx_lines", ABI_OVER_BIAS, target_threads(t, c), sums);
}

/* Over the plan, and over its late works. */
static void add_tiled_phases(const char *entry, bool transposed, const struct target *t,
                             const struct kernel_config *c, uint32_t shared, struct phase *list,
                             uint32_t *count)
{
    list[(*count)++] = phase_of(entry, transposed ? ABI_OVER_TRANSPOSED : ABI_OVER_FORWARD,
                                target_threads(t, c), shared);
    if (tiled_leaves_sums(t, c))
        list[(*count)++] =
            phase_of(entry, transposed ? ABI_OVER_TRANSPOSED_MERGE : ABI_OVER_FORWARD_MERGE,
                     target_threads(t, c), shared);
}

void cuda_launch(const struct target *t, const struct kernel_config *c,
                 struct launch_record *ret)
{
    const bool matrix = target_matrix(t, &c->request);
    const uint32_t simple = cuda_shared_bytes(c->request.head_dim);
    const uint32_t forward = matrix ? tiled_forward_bytes(t, c) : simple;
    const uint32_t backward = matrix ? tiled_backward_bytes(t, c) : simple;
    struct resident_shape s;
    *ret = (struct launch_record){.block_rows = target_block_rows(t, c)};
    if (resident_forward(t, &c->request, &s))
        ret->forward[ret->n_forward++] = resident_phase("attention_short_forward", &s);
    else
        add_tiled_phases("attention_forward", false, t, c, forward, ret->forward,
                         &ret->n_forward);
    if (resident_backward(t, &c->request, &s)) {
        ret->backward[ret->n_backward++] = resident_phase("attention_short_backward", &s);
    } else if (c->request.backward) {
        add_tiled_phases("attention_dq", false, t, c, backward, ret->backward,
                         &ret->n_backward);
        add_tiled_phases("attention_dkv", true, t, c, backward, ret->backward,
                         &ret->n_backward);
        ret->delta_row = sizeof(float) * (c->request.bias ? 2 : 1); /* and what it lacks */
        if (c->request.bias)
            add_bias(t, c, ret);
    }
    ret->partial_row = tiled_partial_row(t, c);
    if (c->request.transform == ABI_SPARSEGEN) /* scores, a column of the row block each */
        ret->scratch_col = ret->block_rows * sizeof(float);
}
