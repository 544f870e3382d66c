/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA kernels of f32, which use no matrix unit, and of tf32, whose tiles are multiplied on it. */
#include "gen/family/cuda.h"

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return t->kind == TARGET_CUDA && dtype_bytes(r->dtype) == 4;
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t, (void)r, (void)pass;
    return CAN_PIECES | MERGES_LAST;
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    (void)c;
    return (struct family_shape){t->block_rows, t->threads};
}

/* By shared memory and the registers that a thread needs (tests/kernels/budgets/budget_table.h). */
static uint32_t in_flight(const struct target *t, const struct kernel_config *c,
                          enum machine_pass pass)
{
    const uint32_t d = c->request.head_dim;
    const uint32_t fit = cuda_blocks_that_fit(t, simt_shared_bytes(d));
    const uint32_t most = pass == PASS_FORWARD ? (d <= 80    ? 4
                                                  : d <= 128 ? 3
                                                             : 2)
                                               : (d <= 96 ? 3 : 2);
    return most < fit ? most : fit;
}

static void launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret)
{
    const uint32_t bytes = simt_shared_bytes(c->request.head_dim);
    const struct cuda_blocks b = {t->threads, bytes, bytes, bytes, false, 0};
    cuda_launch(&b, &c->request, pass, ret);
}

extern const struct kernel_family family_cuda_simt;
const struct kernel_family family_cuda_simt = {
    .name = "cuda_simt",
    .takes = "f32 and tf32 on CUDA targets",
    .applies = applies,
    .can = can,
    .in_flight = in_flight,
    .shape = shape,
    .launch = launch,
    .common_numbers = cuda_numbers,
    .bias_launches = 3,
    .shared = "cuda/",
    .folder = "cuda/simt/",
    .backward_unit = {"cuda/simt/keys.cu", "cuda/simt/queries.cu"},
    .forward_unit = "cuda/simt/forward.cu",
    .bias_unit = "cuda/simt/bias.cu",
};
