/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of a CPU, tiles (AMX) or dot products of bf16: bf16 with softmax. */
#include "gen/cost/price.h"
#include "gen/family/cpu.h"
#include "templates/cpu/sizes.h"

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return t->kind == TARGET_CPU && t->matrix_machine && r->dtype == ABI_BF16 &&
           r->transform == ABI_SOFTMAX;
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t, (void)pass;
    return cpu_can(r) | CAN_KEEP_GATHERS | SKIPS_HALVES;
}

/* As TAKEN of templates/cpu/diagonal/lines.h has it: tiles take 16 rows of whole registers, vectors four. */
static uint32_t diagonal_rows(const struct target *t, const struct kernel_request *r)
{
    enum { TILE_ROWS = CPU_DIAGONAL_TILE_ROWS, WHOLE = 32 };
    return !t->dots && r->head_dim % WHOLE == 0 ? TILE_ROWS : LINE_GRAIN;
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    return (struct family_shape){.block_rows = t->block_rows,
                                 .diagonal_rows = diagonal_rows(t, &c->request)};
}

extern const struct kernel_family family_cpu_matrix;
const struct kernel_family family_cpu_matrix = {
    .name = "cpu_matrix",
    .matrix = true,
    .applies = applies,
    .can = can,
    .shape = shape,
    .launch = cpu_launch,
    .numbers = cpu_numbers,
    .shared = "cpu/",
    .folder = "cpu/",
    .forward_unit = "cpu/attention.c",
};
