/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of a CPU, tiles (AMX) or dot products of bf16: bf16. */
#include "gen/family/cpu.h"

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return cpu_has_matrix(t, r);
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t, (void)pass;
    return cpu_can(r) | CAN_KEEP_GATHERS | SKIPS_HALVES;
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    (void)c;
    return (struct family_shape){.block_rows = t->block_rows};
}

extern const struct kernel_family family_cpu_matrix;
const struct kernel_family family_cpu_matrix = {
    .name = "cpu_matrix",
    .takes = "bf16 on targets with a matrix unit",
    .matrix = true,
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
