/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of a CPU, for all that its matrix unit does not take. */
#include "gen/family/cpu.h"

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return t->kind == TARGET_CPU && !cpu_has_matrix(t, r);
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t, (void)pass;
    return cpu_can(r);
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    (void)c;
    return (struct family_shape){.block_rows = t->block_rows};
}

extern const struct kernel_family family_cpu_vector;
const struct kernel_family family_cpu_vector = {
    .name = "cpu_vector",
    .takes = "f32 and f16 on CPU targets, and bf16 on those without a matrix unit",
    .applies = applies,
    .can = can,
    .item_kernels = cpu_item_kernels,
    .shape = shape,
    .launch = cpu_launch,
    .common_numbers = cpu_numbers,
    .shared = "cpu/",
    .folder = "cpu/",
    .forward_unit = "cpu/attention.c",
};
