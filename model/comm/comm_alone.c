/* SPDX-License-Identifier: Apache-2.0 */
/* One rank: a sum is what it was. */
#include "model/comm/comm.h"

static int sum_f32(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    (void)c, (void)x, (void)count, (void)e;
    return 0;
}

static int sum_f64(const struct comm *c, double *x, uint64_t count, struct error *e)
{
    (void)c, (void)x, (void)count, (void)e;
    return 0;
}

static int sum_u64(const struct comm *c, uint64_t *x, uint64_t count, struct error *e)
{
    (void)c, (void)x, (void)count, (void)e;
    return 0;
}

const struct comm comm_alone = {
    .name = "alone", .size = 1, .sum_f32 = sum_f32, .sum_f64 = sum_f64, .sum_u64 = sum_u64};
