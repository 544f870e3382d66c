/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of samples in the order of an epoch. */
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "model/objective/tasks/task_samples.h"
#include <stdlib.h>

struct task_batch {
    struct objective_batch base;
    uint32_t *row, *label;
    float *value;
    size_t sequences, labels; /* there is space for */
};

struct objective_batch *task_batch_new(void)
{
    return memory_new(1, sizeof(struct task_batch));
}

void task_batch_destroy(struct objective_batch *base)
{
    struct task_batch *b = (struct task_batch *)base;
    if (!b)
        return;
    free(b->base.batch.list);
    free(b->base.batch.offsets);
    free(b->base.batch.sample);
    free(b->row);
    free(b->label);
    free(b->value);
    free(b);
}

static void reserve_sequences(struct task_batch *b, size_t count)
{
    struct train_batch *t = &b->base.batch;
    if (count <= b->sequences)
        return;
    b->sequences = count;
    t->list = memory_resize(t->list, count, sizeof *t->list);
    t->offsets = memory_resize(t->offsets, count + 1, sizeof *t->offsets);
    t->sample = memory_resize(t->sample, count, sizeof *t->sample);
}

static void reserve_labels(struct task_batch *b, size_t count)
{
    if (count <= b->labels)
        return;
    b->labels = 2 * count;
    b->row = memory_resize(b->row, b->labels, sizeof *b->row);
    b->label = memory_resize(b->label, b->labels, sizeof *b->label);
    b->value = memory_resize(b->value, b->labels, sizeof *b->value);
}

static void add_labels(struct task_batch *b, const struct task_samples *d,
                       const struct task_sequence *from)
{
    struct train_target *target = &b->base.batch.target[0];
    reserve_labels(b, (size_t)target->count + from->labels);
    for (uint32_t k = 0; k < from->labels; k++) {
        const struct task_label *l = &d->label[from->label + k];
        b->row[target->count] = b->base.batch.tokens + l->row;
        b->label[target->count] = l->label;
        b->value[target->count++] = l->value;
    }
}

static void add_sequence(struct task_batch *b, const struct task_samples *d, uint32_t k)
{
    struct train_batch *t = &b->base.batch;
    const struct task_sequence *from = &d->sequence[k];
    const uint32_t at = t->sequences++;
    t->sample[at] = k;
    t->list[at] = (struct sequence){d->token_id + from->first, from->tokens, from->first_part};
    t->offsets[at] = (int32_t)t->tokens;
    add_labels(b, d, from);
    t->tokens += from->tokens;
    t->offsets[at + 1] = (int32_t)t->tokens;
}

/* Sample `place` of the run's order. */
static uint32_t sample_of(const struct objective_data *d, const struct batch_request *r,
                          uint64_t place)
{
    return order_at(r->seed, r->epoch + (uint32_t)(place / d->count), d->count,
                    (uint32_t)(place % d->count));
}

void task_batch_make(const struct objective_data *base, const struct batch_request *r,
                     struct objective_batch *ret)
{
    const struct task_samples *d = (const struct task_samples *)base;
    struct task_batch *b = (struct task_batch *)ret;
    struct train_batch *t = &ret->batch;
    reserve_sequences(b, (size_t)r->count * d->group);
    reserve_labels(b, 1);
    t->sequences = t->tokens = 0;
    t->group = d->group;
    t->targets = 1;
    t->target[0] = (struct train_target){0};
    t->offsets[0] = 0;
    for (uint32_t k = 0; k < r->count; k++)
        for (uint32_t g = 0; g < d->group; g++)
            add_sequence(b, d, sample_of(base, r, r->first + k) * d->group + g);
    t->target[0].row = b->row;
    t->target[0].label = b->label;
    t->target[0].value = b->value;
}
