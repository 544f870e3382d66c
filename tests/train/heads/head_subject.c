/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/heads/head_subject.h"
#include "masks/base/memory.h"
#include "model/backend/cpu/ops/train_ops.h"
#include "model/mask/model_mask.h"
#include "tests/support/test.h"
#include <string.h>

static const char MASK[] = "longformer(5,2)";

/* clang-format off */
const struct head_case head_cases[] = {
    {"labels of sequences",     "BertForSequenceClassification",       NULL, LABELS, TARGET_POOLED, LOSS_LABELS},
    {"regression",              "BertForSequenceClassification",       NULL, 1,      TARGET_POOLED, LOSS_SQUARE},
    {"choice",                  "BertForMultipleChoice",               NULL, 1,      TARGET_POOLED, LOSS_CHOICE},
    {"labels of tokens",        "BertForTokenClassification",          NULL, LABELS, TARGET_ROWS,   LOSS_LABELS},
    {"span",                    "BertForQuestionAnswering",            NULL, 2,      TARGET_SPAN,   LOSS_SPAN},
    {"DistilBERT's sequences",  "DistilBertForSequenceClassification", "distilbert", LABELS, TARGET_POOLED, LOSS_LABELS},
    {"DistilBERT's span",       "DistilBertForQuestionAnswering",      "distilbert", 2,      TARGET_SPAN,   LOSS_SPAN},
    {"RoBERTa's sequences",     "RobertaForSequenceClassification",    "roberta", LABELS, TARGET_POOLED, LOSS_LABELS},
    {"RoBERTa's choice",        "RobertaForMultipleChoice",            "roberta", 1,      TARGET_POOLED, LOSS_CHOICE},
    {"ModernBERT's sequences",  "ModernBertForSequenceClassification", "modernbert", LABELS, TARGET_POOLED, LOSS_LABELS},
    {"ModernBERT's tokens",     "ModernBertForTokenClassification",    "modernbert", LABELS, TARGET_ROWS,   LOSS_LABELS},
    {"ModernBERT's span",       "ModernBertForQuestionAnswering",      "modernbert", 2,      TARGET_SPAN,   LOSS_SPAN},
    {NULL},
};
/* clang-format on */

const struct head_case *head_case(const char *name)
{
    const struct head_case *c = head_cases;
    while (strcmp(c->name, name))
        c++;
    return c;
}

/* Pooled targets have the first row of each sequence, others all rows. */
static uint32_t make_rows(struct head_subject *s, const struct head_case *c)
{
    const struct train_batch *b = &s->base.batch;
    const bool pooled = target_form(c->head)->pooled;
    for (uint32_t k = 0; k < b->tokens; k++)
        s->row[k] = pooled && k < b->sequences ? (uint32_t)b->offsets[k] : k;
    return pooled ? b->sequences : b->tokens;
}

static void make_spans(struct head_subject *s)
{
    const struct train_batch *b = &s->base.batch;
    memset(s->label, 0, sizeof s->label);
    for (uint32_t k = 0; k < b->sequences; k++) {
        const uint32_t first = (uint32_t)b->offsets[k], count = b->list[k].count,
                       start = random_draw(count), end = start + random_draw(count - start);
        s->label[first + start] |= 1;
        s->label[first + end] |= 2;
    }
}

static void make_choices(struct head_subject *s)
{
    memset(s->label, 0, sizeof s->label);
    for (uint32_t k = 0; k < SEQUENCES; k += GROUP)
        s->label[k + random_draw(GROUP)] = 1;
}

static void make_target(struct head_subject *s, const struct head_case *c)
{
    struct train_batch *b = &s->base.batch;
    const uint32_t rows = make_rows(s, c);
    for (uint32_t k = 0; k < rows; k++) {
        s->label[k] = random_draw(c->labels);
        s->value[k] = (float)random_draw(2001) / 1000 - 1;
    }
    if (c->loss == LOSS_SPAN)
        make_spans(s);
    if (c->loss == LOSS_CHOICE)
        make_choices(s);
    b->group = c->loss == LOSS_CHOICE ? GROUP : 0;
    b->targets = 1;
    b->target[0] = (struct train_target){.head = c->head,
                                         .loss = c->loss,
                                         .count = rows,
                                         .row = s->row,
                                         .label = c->loss == LOSS_SQUARE ? NULL : s->label,
                                         .value = c->loss == LOSS_SQUARE ? s->value : NULL};
}

void head_begin(struct head_subject *s, const struct head_case *c, enum element dtype,
                uint32_t threads)
{
    struct error e = {0};
    const struct bert_case model = {
        .layers = 1, .hidden = 48, .heads = 3, .act = "gelu", .type = c->type};
    random_restart();
    random_head(&model, c->class, c->labels);
    subject_begin(&s->base, &(struct subject_options){MASK, "softmax", dtype, threads,
                                                      .parts = target_form(c->head)->parts});
    s->mask = model_mask(MASK, &s->base.engine->config, &e);
    if (!s->mask)
        fail_msg("%s", e.text);
    make_target(s, c);
}

void head_end(struct head_subject *s)
{
    mask_destroy(s->mask);
    subject_end(&s->base);
}

void head_lend(struct head_subject *to, const struct head_subject *from)
{
    to->base.batch = from->base.batch;
}

struct gradients_request head_request(const struct head_subject *s, double head_dropout)
{
    const struct train_batch *b = &s->base.batch;
    struct gradients_request r = subject_request(&s->base);
    for (uint32_t k = 0; k < b->targets; k++)
        r.weight[k] = 1.0 / train_target_count(b, &b->target[k], 0, b->sequences);
    r.head_dropout = head_dropout;
    return r;
}

struct plain_bert head_plain(const struct head_subject *s)
{
    const struct engine *g = s->base.engine;
    return (struct plain_bert){&g->config, &g->weights, s->mask,
                               false,      0,           &s->base.state->device};
}

static struct row_place place_of(const struct train_batch *b, uint32_t row)
{
    uint32_t s = 0;
    while ((uint32_t)b->offsets[s + 1] <= row)
        s++;
    return (struct row_place){b->sample[s], row - (uint32_t)b->offsets[s]};
}

/* A row's factors at a site. */
static void draw_kept(const struct gradients_request *r, uint32_t row, uint32_t site,
                      float *ret)
{
    const uint32_t h = r->engine->config.hidden,
                   below = (uint32_t)(r->head_dropout * 65536 + 0.5);
    const struct row_dropout d = {r->seed, site, below, 65536.0F / (float)(65536 - below)};
    const struct row_place place = place_of(r->batch, row);
    for (uint32_t i = 0; i < h; i++)
        ret[i] = 1;
    cpu_train_ops()->drop_f32(&d, &place, 1, h, ret, ret);
}

float *head_kept(const struct gradients_request *r)
{
    const struct train_target *t = &r->batch->target[0];
    const uint32_t h = r->engine->config.hidden, site = 2 * r->engine->config.layers + 1;
    float *ret = memory_new((size_t)t->count * 2 * h, sizeof *ret);
    for (uint32_t k = 0; k < t->count; k++)
        for (uint32_t dense = 0; dense < 2; dense++)
            draw_kept(r, t->row[k], site + dense, ret + ((size_t)k * 2 + dense) * h);
    return ret;
}
