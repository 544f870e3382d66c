/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of a CPU, for all that its matrix unit does not take. */
#include "gen/family/cpu.h"

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)r, (void)pass;
    return t->kind == TARGET_CPU;
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
    .applies = applies,
    .can = can,
    .item_kernels = cpu_item_kernels,
    .shape = shape,
    .launch = cpu_launch,
    .numbers = cpu_numbers,
    .shared = "cpu/",
    .folder = "cpu/",
    .forward_unit = "cpu/attention.c",
};
