/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/shared.h"
#include "masks/base/memory.h"
#include <stdlib.h>

static int share_bucket(const struct comm *c, const struct training_device *d, float *at,
                        uint64_t count, float *copy, struct error *e)
{
    return d->does->array_read(d->state, at, count, copy, e) < 0 ||
                   c->sum_f32(c, copy, count, e) < 0 ||
                   d->does->array_write(d->state, at, count, copy, e) < 0
               ? -1
               : 0;
}

int shared_array(const struct comm *c, const struct training_device *d, float *array,
                 uint64_t count, struct error *e)
{
    if (c->size == 1)
        return 0;
    float *host = d->does->array_host(d->state, array);
    float *copy =
        host ? NULL : memory_new(count < COMM_BUCKET ? count : COMM_BUCKET, sizeof *copy);
    int r = 0;
    for (uint64_t at = 0; at < count && r == 0; at += COMM_BUCKET) {
        const uint64_t n = count - at < COMM_BUCKET ? count - at : COMM_BUCKET;
        r = host ? c->sum_f32(c, host + at, n, e) : share_bucket(c, d, array + at, n, copy, e);
    }
    free(copy);
    return r;
}

int shared_losses(const struct comm *c, struct batch_loss *l, uint64_t *tokens, struct error *e)
{
    double sum[TARGETS_MOST];
    uint64_t count[2 * TARGETS_MOST + 1];
    for (uint32_t k = 0; k < TARGETS_MOST; k++) {
        sum[k] = l->target[k].sum;
        count[2 * k] = l->target[k].count;
        count[2 * k + 1] = l->target[k].right;
    }
    count[2 * TARGETS_MOST] = *tokens;
    if (c->sum_f64(c, sum, TARGETS_MOST, e) < 0 ||
        c->sum_u64(c, count, sizeof count / sizeof *count, e) < 0)
        return -1;
    for (uint32_t k = 0; k < TARGETS_MOST; k++)
        l->target[k] = (struct target_loss){sum[k], count[2 * k], count[2 * k + 1]};
    *tokens = count[2 * TARGETS_MOST];
    return 0;
}
