/* SPDX-License-Identifier: Apache-2.0 */
/* The scale of scores, for kernels that cannot compute with every scale. Kernels of 16-bit tensors
   multiply masked scores, -inf, by the scale, and those of CPUs divide a bias by it. A smaller
   magnitude is raised to the least one, with which products of finite scores still round to 0. */
#include "gen/target.h"
#include "runtime/launch/steps.h"
#include <math.h>

/* Least magnitudes of the scale. On CPUs a bias of 2^27 divided by it is still finite. CUDA kernels
   do not divide, so the smallest float will do; a gradient times it rounds to 0 in 16 bits. */
#define CPU_LEAST  0x1p-100f
#define CUDA_LEAST 0x1p-149f

static bool is_zero(const struct launch *c)
{
    return c->l->scale == 0 && c->l->flags & MASKC_SCALE_GIVEN;
}

static bool is_for_cpu(const struct launch *c)
{
    struct error e;
    const struct target *t = target_find(c->k->target->name, &e);
    return t && t->kind == TARGET_CPU;
}

float launch_scale(const struct launch *c)
{
    const struct kernel_request *r = &c->k->artifact->request;
    const float scale =
        c->l->scale != 0 || is_zero(c) ? c->l->scale : 1 / sqrtf((float)r->head_dim);
    if (fabsf(scale) >= CPU_LEAST || dtype_bytes(r->dtype) == sizeof(float))
        return scale;
    const float least = is_for_cpu(c) ? CPU_LEAST : CUDA_LEAST;
    return fabsf(scale) >= least ? scale : copysignf(least, scale);
}

/* Zeros in the rows of a gradient: of all sequences, or of the packed batch. */
static void clear(const struct launch *c, const struct abi_args *a, const struct abi_tensor *t,
                  uint32_t rows)
{
    if (c->l->offsets) {
        launch_clear_rows(c, a, t, 0, (int64_t)c->l->tokens);
        return;
    }
    for (uint32_t b = 0; b < c->shape.batch; b++)
        launch_clear_rows(c, a, t, b, rows);
}

void launch_clear_unscaled(const struct launch *c, const struct abi_args *a)
{
    if (c->l->pass != MASKC_BACKWARD || !is_zero(c) || !c->k->device->host_memory)
        return;
    clear(c, a, &a->d_q, c->shape.queries);
    clear(c, a, a->sum_k.data ? &a->sum_k : &a->d_k, c->shape.keys);
}
