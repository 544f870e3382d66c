/* SPDX-License-Identifier: Apache-2.0 */
/* Rows before the start of each sequence: no kernel sees them. */
#include "runtime/launch/steps.h"
#include <math.h>
#include <string.h>

void launch_clear_rows(const struct launch *c, const struct abi_args *a,
                       const struct abi_tensor *t, uint32_t b, int64_t rows)
{
    const int64_t bytes = args_element_bytes(a, t, dtype_bytes(c->k->artifact->request.dtype));
    const int64_t heads = t == &a->sum_k || t == &a->sum_v ? a->heads / a->group : a->heads;
    const size_t row_bytes = (size_t)bytes * c->k->artifact->request.head_dim;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < heads; h++)
            memset((uint8_t *)t->data + bytes * (b * t->batch + i * t->row + h * t->head), 0,
                   row_bytes);
}

static void clear_lse(const struct abi_args *a, uint32_t b, int64_t rows)
{
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < rows; i++)
            a->lse[b * a->lse_batch + h * a->lse_head + i] = -INFINITY;
}

void launch_clear_before(const struct launch *c, const struct abi_args *a)
{
    const bool backward = c->l->pass == MASKC_BACKWARD;
    const struct abi_tensor *written[] = {backward ? &a->d_q : &a->o, &a->d_k, &a->d_v,
                                          &a->sum_k, &a->sum_v};
    const int count = !backward ? 1 : a->sum_k.data ? 5 : 3;
    for (uint32_t b = 0; c->l->starts && b < c->shape.batch; b++) {
        for (int k = 0; k < count; k++)
            launch_clear_rows(c, a, written[k], b, c->l->starts[b]);
        if (!backward)
            clear_lse(a, b, c->l->starts[b]);
    }
}
