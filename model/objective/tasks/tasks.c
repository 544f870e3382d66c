/* SPDX-License-Identifier: Apache-2.0 */
#include "model/objective/tasks/tasks.h"
#include "model/objective/tasks/task_samples.h"

/* ---- batches: the loss of each ---- */

static void make(const struct objective_data *d, const struct batch_request *r,
                 struct objective_batch *ret, const struct objective *o,
                 enum target_loss_kind loss)
{
    task_batch_make(d, r, ret);
    ret->batch.target[0].head = o->head;
    ret->batch.target[0].loss = loss;
    if (loss == LOSS_SQUARE)
        ret->batch.target[0].label = NULL;
}

#define BATCH(objective, loss)                                                               \
    static void make_##objective(const struct objective_data *d,                             \
                                 const struct batch_request *r, struct objective_batch *ret) \
    {                                                                                        \
        make(d, r, ret, &objective_##objective, loss);                                       \
    }
BATCH(classify, LOSS_LABELS)
BATCH(regress, LOSS_SQUARE)
BATCH(choose, LOSS_CHOICE)
BATCH(tokens, LOSS_LABELS)
BATCH(span, LOSS_SPAN)
#undef BATCH

/* ---- numbers ---- */

static uint32_t step_metrics(const double mean[TARGETS_MOST], struct metric ret[METRICS_MOST])
{
    (void)mean, (void)ret;
    return 0; /* the loss is all */
}

/* Metrics of a task are those of the predicted texts, which model/evaluate/ makes and model/score/ scores. */
static uint32_t metrics(const struct batch_loss *l, struct metric ret[METRICS_MOST])
{
    (void)l, (void)ret;
    return 0;
}

static void add_loss(double loss, const double mean[TARGETS_MOST], struct text *to)
{
    (void)mean;
    text_add(to, "loss %.4f", loss);
}

static void add_text(const struct batch_loss *l, struct text *to)
{
    double mean[TARGETS_MOST];
    add_loss(objective_loss(&objective_classify, l, mean), mean, to);
}

/* ---- data ---- */

static void describe(const struct objective_data *d, struct text *to)
{
    const struct task_samples *s = (const struct task_samples *)d;
    text_add(to, "%u samples", d->count);
    if (d->natural == &objective_classify || d->natural == &objective_tokens)
        text_add(to, ", %u labels", d->labels);
    text_add(to, ", %.1f tokens each", (double)d->tokens / (double)d->count);
    if (s->cut)
        text_add(to, "; %u cut to %u tokens", s->cut, d->length);
    if (s->lost)
        text_add(to, "; %u answers are not where the file says and count as absent", s->lost);
    char bytes[TEXT_CHECK_BYTES];
    text_check_report(&s->check, bytes);
    if (*bytes)
        text_add(to, "; %s", bytes);
}

#define COMMON                                                                                 \
    .targets = 1, .weight = {1}, .open = task_open, .close = task_close,                       \
    .dataset = task_dataset, .batch_new = task_batch_new, .batch_destroy = task_batch_destroy, \
    .step_metrics = step_metrics, .metrics = metrics, .text = add_text, .loss_text = add_loss, \
    .describe = describe

const struct objective objective_classify = {
    COMMON,
    .name = "classify",
    .parts = PART_POOLER | PART_CLASSIFIER,
    .model_class = "ForSequenceClassification",
    .head = TARGET_POOLED,
    .batch = make_classify,
};
const struct objective objective_regress = {
    COMMON,
    .name = "regress",
    .parts = PART_POOLER | PART_CLASSIFIER,
    .model_class = "ForSequenceClassification",
    .problem = "regression",
    .head = TARGET_POOLED,
    .batch = make_regress,
};
const struct objective objective_choose = {
    COMMON,
    .name = "choose",
    .parts = PART_POOLER | PART_CLASSIFIER,
    .model_class = "ForMultipleChoice",
    .head = TARGET_POOLED,
    .batch = make_choose,
};
const struct objective objective_tokens = {
    COMMON,
    .name = "tokens",
    .parts = PART_CLASSIFIER,
    .model_class = "ForTokenClassification",
    .head = TARGET_ROWS,
    .batch = make_tokens,
};
const struct objective objective_span = {
    COMMON,
    .name = "span",
    .parts = PART_SPAN,
    .model_class = "ForQuestionAnswering",
    .head = TARGET_SPAN,
    .batch = make_span,
};
