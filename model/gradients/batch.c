/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/batch.h"

static const struct target_form forms[TARGET_HEADS] = {
    [TARGET_WORDS] = {.parts = PART_MLM},
    [TARGET_NEXT] = {PART_POOLER | PART_NSP, true, PARAMETER_NSP_WEIGHT, PARAMETER_NSP_BIAS},
    [TARGET_POOLED] = {PART_POOLER | PART_CLASSIFIER, true, PARAMETER_CLASSIFIER_WEIGHT,
                       PARAMETER_CLASSIFIER_BIAS},
    [TARGET_ROWS] = {PART_CLASSIFIER, false, PARAMETER_CLASSIFIER_WEIGHT,
                     PARAMETER_CLASSIFIER_BIAS},
};

const struct target_form *target_form(enum target_head head)
{
    return &forms[head];
}

uint32_t target_labels(const struct model_config *c, enum target_head head)
{
    return head == TARGET_WORDS ? c->vocabulary : head == TARGET_NEXT ? 2 : c->labels;
}

const struct train_target *train_batch_target(const struct train_batch *b,
                                              enum target_head head)
{
    for (uint32_t k = 0; k < b->targets; k++)
        if (b->target[k].head == head)
            return &b->target[k];
    return NULL;
}

uint64_t train_batch_rows(const struct train_batch *b)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < b->targets; k++)
        ret += b->target[k].count;
    return ret;
}

/* The first of a target's rows that is not below `row`. */
static uint32_t find_row(const struct train_target *t, uint32_t row)
{
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t train_target_count(const struct train_batch *b, const struct train_target *t,
                            uint32_t first, uint32_t end)
{
    return find_row(t, (uint32_t)b->offsets[end]) - find_row(t, (uint32_t)b->offsets[first]);
}

void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows)
{
    const int32_t begin = b->offsets[first];
    for (uint32_t k = 0; k <= count; k++)
        ret_offsets[k] = b->offsets[first + k] - begin;
    *ret = (struct train_batch){.sequences = count,
                                .tokens = (uint32_t)ret_offsets[count],
                                .list = b->list + first,
                                .offsets = ret_offsets,
                                .sample = b->sample + first,
                                .targets = b->targets};
    for (uint32_t k = 0; k < b->targets; k++) {
        const struct train_target *t = &b->target[k];
        const uint32_t from = find_row(t, (uint32_t)begin),
                       part = train_target_count(b, t, first, first + count);
        for (uint32_t i = 0; i < part; i++)
            ret_rows[i] = t->row[from + i] - (uint32_t)begin;
        ret->target[k] = (struct train_target){t->head, part, ret_rows, t->label + from};
        ret_rows += part;
    }
}
