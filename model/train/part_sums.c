/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/part_sums.h"

uint32_t parts_of_batch(uint32_t accumulate, uint32_t ranks)
{
    const uint32_t least = accumulate ? accumulate : 1;
    return (least + ranks - 1) / ranks * ranks;
}

uint32_t parts_groups(uint32_t accumulate, uint32_t ranks)
{
    const uint32_t all = parts_of_batch(accumulate, ranks);
    uint32_t groups = PARTS_GROUPS;
    while (all % groups)
        groups /= 2;
    return groups % ranks ? 1 : groups / ranks;
}

uint32_t parts_extra(uint32_t accumulate, uint32_t ranks)
{
    uint32_t ret = 0;
    for (uint32_t groups = parts_groups(accumulate, ranks); groups > 1; groups /= 2)
        ret++;
    return ret;
}

void part_sums_begin(struct part_sums *p, const struct train_state *s, uint32_t threads,
                     float *bias, uint64_t bias_count)
{
    *p = (struct part_sums){.device = s->device,
                            .threads = threads,
                            .count = s->count,
                            .bias_count = bias ? bias_count : 0,
                            .gradient = {s->gradient},
                            .bias = {bias}};
}

void part_sums_finish(struct part_sums *p)
{
    for (uint32_t k = 1; k < PARTS_LEVELS; k++) {
        if (p->gradient[k])
            p->device.does->array_destroy(p->device.state, p->gradient[k]);
        if (p->bias[k])
            p->device.does->array_destroy(p->device.state, p->bias[k]);
    }
    *p = (struct part_sums){0};
}

static int reserve(const struct part_sums *p, float **array, uint64_t count, struct error *e)
{
    if (!*array && count)
        *array = p->device.does->array_new(p->device.state, count, e);
    return *array || !count ? 0 : -1;
}

int part_sums_reserve(struct part_sums *p, uint32_t level, struct error *e)
{
    return reserve(p, &p->gradient[level], p->count, e) < 0
               ? -1
               : reserve(p, &p->bias[level], p->bias_count, e);
}

static int add_gradient(const struct part_sums *p, uint32_t level, struct span of,
                        struct error *e)
{
    const struct training_device *d = &p->device;
    return d->does->array_drain(d->state, p->gradient[level] + of.first,
                                p->gradient[level + 1] + of.first, of.count, p->threads, e);
}

static int add_bias(const struct part_sums *p, uint32_t level, struct error *e)
{
    const struct training_device *d = &p->device;
    return p->bias_count ? d->does->array_drain(d->state, p->bias[level], p->bias[level + 1],
                                                p->bias_count, p->threads, e)
                         : 0;
}

int part_sums_add(const struct part_sums *p, uint32_t level, bool with_bias, struct error *e)
{
    const struct span all = {0, p->count};
    if (add_gradient(p, level, all, e) < 0)
        return -1;
    return with_bias ? add_bias(p, level, e) : 0;
}

int part_sums_add_span(const struct part_sums *p, uint32_t levels, struct span of,
                       struct error *e)
{
    int r = 0;
    while (levels-- > 0 && r == 0)
        r = add_gradient(p, levels, of, e);
    return r;
}

int part_sums_add_bias(const struct part_sums *p, uint32_t levels, struct error *e)
{
    int r = 0;
    while (levels-- > 0 && r == 0)
        r = add_bias(p, levels, e);
    return r;
}

void batch_loss_add(struct batch_loss *to, const struct batch_loss *from)
{
    for (uint32_t k = 0; k < TARGETS_MOST; k++) {
        to->target[k].sum += from->target[k].sum;
        to->target[k].count += from->target[k].count;
        to->target[k].right += from->target[k].right;
    }
}
