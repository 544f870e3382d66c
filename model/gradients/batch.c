/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/batch.h"

static const struct target_form forms[TARGET_HEADS] = {
    [TARGET_WORDS] = {.parts = PART_MLM},
    [TARGET_NEXT] = {PART_POOLER | PART_NSP, true, false, PARAMETER_NSP_WEIGHT,
                     PARAMETER_NSP_BIAS},
    [TARGET_POOLED] = {PART_POOLER | PART_CLASSIFIER, true, true, PARAMETER_CLASSIFIER_WEIGHT,
                       PARAMETER_CLASSIFIER_BIAS},
    [TARGET_ROWS] = {PART_CLASSIFIER, false, true, PARAMETER_CLASSIFIER_WEIGHT,
                     PARAMETER_CLASSIFIER_BIAS},
    [TARGET_SPAN] = {PART_SPAN, false, true, PARAMETER_SPAN_WEIGHT, PARAMETER_SPAN_BIAS},
};

const struct target_form *target_form(enum target_head head)
{
    return &forms[head];
}

uint32_t target_labels(const struct model_config *c, enum target_head head)
{
    switch (head) {
    case TARGET_WORDS:
        return c->vocabulary;
    case TARGET_NEXT:
    case TARGET_SPAN:
        return 2;
    default:
        return c->labels;
    }
}

double target_dropout(const struct model_config *c, enum target_head head)
{
    const double own = head == TARGET_POOLED ? c->classifier_dropout
                       : head == TARGET_ROWS ? c->token_dropout
                       : head == TARGET_SPAN ? c->span_dropout
                                             : 0;
    return own < 0 ? c->hidden_dropout : own;
}

uint32_t train_batch_group(const struct train_batch *b)
{
    return b->group ? b->group : 1;
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
    const uint32_t from = find_row(t, (uint32_t)b->offsets[first]),
                   to = find_row(t, (uint32_t)b->offsets[end]);
    uint32_t ret = 0;
    if (t->loss == LOSS_LABELS || t->loss == LOSS_SQUARE)
        return to - from;
    for (uint32_t k = from; k < to; k++) /* a group has one right row, a span one start */
        ret += t->label[k] & 1;
    return ret;
}

uint32_t train_target_places(const struct train_batch *b, const struct train_target *t)
{
    return t->loss == LOSS_SPAN     ? b->sequences
           : t->loss == LOSS_CHOICE ? b->sequences / train_batch_group(b)
                                    : t->count;
}

struct target_rows train_target_rows(const struct train_batch *b, const struct train_target *t,
                                     uint32_t place)
{
    const uint32_t sequences = t->loss == LOSS_CHOICE ? train_batch_group(b) : 1;
    if (t->loss == LOSS_LABELS || t->loss == LOSS_SQUARE)
        return (struct target_rows){place, place + 1};
    return (struct target_rows){
        find_row(t, (uint32_t)b->offsets[place * sequences]),
        find_row(t, (uint32_t)b->offsets[(place + 1) * sequences]),
    };
}

/* Returns the sample, first .. last, whose first token is nearest to number `tokens` of the batch. If two are equally near, the
   earlier one. */
static uint32_t nearest_sample(const struct train_batch *b, uint32_t first, uint32_t last,
                               int64_t tokens)
{
    const uint32_t group = train_batch_group(b);
    uint32_t at = first;
    while (at < last && b->offsets[(at + 1) * group] <= tokens)
        at++;
    return at < last && b->offsets[(at + 1) * group] - tokens < tokens - b->offsets[at * group]
               ? at + 1
               : at;
}

uint32_t train_batch_cut(const struct train_batch *b, uint32_t first, uint32_t end, uint32_t k,
                         uint32_t parts)
{
    const uint32_t group = train_batch_group(b), samples = end - first;
    const int64_t begin = b->offsets[first * group], all = b->offsets[end * group] - begin;
    if (samples <= parts)
        return first + (uint32_t)((uint64_t)samples * k / parts);
    uint32_t cut = first;
    for (uint32_t i = 1; i <= k; i++)
        cut = nearest_sample(b, cut + 1, end - (parts - i), begin + all * i / parts);
    return cut;
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
                                .targets = b->targets,
                                .group = b->group};
    for (uint32_t k = 0; k < b->targets; k++) {
        const struct train_target *t = &b->target[k];
        const uint32_t from = find_row(t, (uint32_t)begin),
                       part = find_row(t, (uint32_t)b->offsets[first + count]) - from;
        for (uint32_t i = 0; i < part; i++)
            ret_rows[i] = t->row[from + i] - (uint32_t)begin;
        ret->target[k] = (struct train_target){.head = t->head,
                                               .loss = t->loss,
                                               .count = part,
                                               .row = ret_rows,
                                               .label = t->label ? t->label + from : NULL,
                                               .value = t->value ? t->value + from : NULL};
        ret_rows += part;
    }
}
