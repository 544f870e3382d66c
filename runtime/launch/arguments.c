/* SPDX-License-Identifier: Apache-2.0 */
/* From what the caller gave to what kernels are told: defaults are filled in, the workspace is divided. */
#include "gen/key_shape.h"
#include "runtime/launch/steps.h"
#include <math.h>

static int fill_bias(const struct launch *c, struct abi_args *a)
{
    const struct maskc_launch *l = c->l;
    const bool backward = l->pass == MASKC_BACKWARD;
    const void *given[] = {l->soft, l->grad_soft, l->grad_soft_diagonals};
    for (int k = 0; k < 3; k++)
        if ((uintptr_t)given[k] % sizeof(float))
            return launch_refuse(c, "soft or its gradient is not aligned to 4 bytes");
    if (!c->k->artifact->request.bias) {
        return given[0] || given[1] || given[2]
                   ? launch_refuse(c, "a soft mask, but the kernel was compiled without one")
                   : 0;
    }
    if (!l->soft)
        return launch_refuse(c, "soft is null, but the kernel was compiled with a soft mask");
    a->bias = l->soft;
    a->d_bias = backward ? l->grad_soft : NULL;
    a->d_diagonal = backward ? l->grad_soft_diagonals : NULL;
    a->bias_chunks = a->d_bias || a->d_diagonal ? c->shape.bias_chunks : 0;
    return 0;
}

static void fill_lse(const struct launch *c, struct abi_args *a)
{
    a->lse = c->l->lse;
    a->lse_head = c->l->offsets ? (i64)c->l->tokens : (i64)c->shape.queries;
    a->lse_batch = c->l->offsets ? 0 : a->lse_head * a->heads;
}

/* The kernels' dK and dV are those of each query head, [B, N, H, D] in floats; what the caller gave is their sums'. */
static void fill_key_sums(const struct launch *c, struct abi_args *a, u8 *at)
{
    const struct artifact *f = c->k->artifact;
    const i64 head = f->request.head_dim, row = head * f->mask->heads;
    const struct abi_tensor each = {at, c->l->offsets ? 0 : row * c->shape.keys, row, head};
    a->sum_k = a->d_k;
    a->sum_v = a->d_v;
    a->d_k = a->d_v = each;
    a->d_v.data = at + key_sum_elements(c->k, c->l, &c->shape) * sizeof(float);
}

static void fill_workspace(const struct launch *c, struct abi_args *a)
{
    u8 *at = c->l->workspace;
    a->delta_rows = c->shape.delta_rows;
    a->pack_stride = c->shape.pack_stride;
    a->partial_at = c->shape.partial_at;
    a->partial_slots = c->shape.partial_slots;
    a->scratch_stride = c->shape.scratch_stride;
    if (!c->shape.total)
        return;
    a->delta = c->shape.state ? (float *)(void *)at : NULL;
    at += c->shape.state;
    a->bias_part = c->shape.bias ? (float *)(void *)at : a->d_bias;
    at += c->shape.bias;
    if (c->shape.key_sums)
        fill_key_sums(c, a, at);
    at += c->shape.key_sums;
    a->pack = c->shape.pack ? at : NULL;
    at += c->shape.pack;
    a->scratch = c->shape.scratch ? at : NULL;
}

static void fill_dropout(const struct launch *c, struct abi_args *a)
{
    a->keep_below = (u32)lrintf(c->l->dropout * 65536);
    a->keep_scale = 65536.0f / (float)(65536 - a->keep_below);
    a->seed = c->l->seed;
    a->samples = c->l->samples;
}

int launch_fill(const struct launch *c, struct abi_args *a)
{
    const struct artifact *f = c->k->artifact;
    *a = (struct abi_args){
        .length = c->l->lengths,
        .offsets = c->l->offsets,
        .batch = c->shape.batch,
        .heads = f->mask->heads,
        .n = c->shape.n,
        .scale = launch_scale(c),
        .lambda = f->request.lambda,
        .group = f->mask->heads / request_kv_heads(&f->request, f->mask),
        .queries = c->shape.queries,
        .keys = c->shape.keys,
        .key_length = c->l->key_lengths,
    };
    if (launch_fill_tensors(c, a) < 0 || fill_bias(c, a) < 0)
        return -1;
    fill_lse(c, a);
    fill_workspace(c, a);
    fill_dropout(c, a);
    c->k->device->tables(c->k->code, false, c->l->layer, &a->forward);
    if (f->request.backward)
        c->k->device->tables(c->k->code, true, c->l->layer, &a->transposed);
    return 0;
}
