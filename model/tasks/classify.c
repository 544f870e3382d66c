/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of texts, or of their tokens. */
#include "masks/base/memory.h"
#include "model/engine/heads.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum task_kind task_kind(const struct model_config *c)
{
    if (strstr(c->architecture, "TokenClassification"))
        return TASK_TOKENS;
    if (strstr(c->architecture, "MultipleChoice"))
        return TASK_CHOICE;
    if (strstr(c->architecture, "NextSentence") || strstr(c->architecture, "PreTraining"))
        return TASK_NEXT;
    if (!strcmp(c->problem, "regression"))
        return TASK_REGRESSION;
    const bool many = !strcmp(c->problem, "multi_label_classification");
    return many || c->labels == 1 ? TASK_MULTI : TASK_SINGLE; /* as in transformers' pipeline */
}

bool task_gives_number(const struct model_config *c)
{
    const enum task_kind kind = task_kind(c);
    return c->labels == 1 && (kind == TASK_REGRESSION || (kind == TASK_MULTI && !*c->problem));
}

uint32_t task_classify_parts(enum task_kind kind)
{
    if (kind == TASK_NEXT)
        return PART_POOLER | PART_NSP;
    return PART_CLASSIFIER | (kind == TASK_TOKENS ? 0 : PART_POOLER);
}

const char *task_label(const struct model_config *c, uint32_t label, char buffer[24])
{
    if (task_kind(c) == TASK_NEXT)
        return label ? "not_next" : "next";
    return config_label(c, label, buffer);
}

static void make_softmax(float *x, uint32_t n)
{
    float most = x[0], sum = 0;
    for (uint32_t k = 1; k < n; k++)
        most = x[k] > most ? x[k] : most;
    for (uint32_t k = 0; k < n; k++)
        sum += x[k] = expf(x[k] - most);
    for (uint32_t k = 0; k < n; k++)
        x[k] /= sum;
}

static void make_probabilities(const struct task_labels *l, float *x)
{
    if (l->kind == TASK_SINGLE || l->kind == TASK_TOKENS || l->kind == TASK_NEXT)
        make_softmax(x, l->labels);
    for (uint32_t k = 0; k < l->labels && l->kind == TASK_MULTI; k++)
        x[k] = 1 / (1 + expf(-x[k]));
}

struct classify {
    const struct task_runner *t;
    struct task_labels *ret;
};

/* value: [rows, labels], as the head gives it. */
static int keep_text(const struct classify *c, uint32_t text, uint64_t from, float *value,
                     struct error *e)
{
    struct task_labels *l = c->ret;
    const uint64_t count = l->first[text + 1] - l->first[text];
    float *x = value + from * l->labels;
    if (task_check_output(c->t->options, text, x, count * l->labels, e) < 0)
        return -1;
    for (uint64_t k = 0; k < count; k++)
        make_probabilities(l, x + k * l->labels);
    memcpy(l->value + l->first[text] * l->labels, x, count * l->labels * sizeof *x);
    return 0;
}

static int classify(void *context, const uint32_t *text, uint32_t n,
                    struct engine_workspace *workspace, struct error *e)
{
    const struct classify *c = context;
    const struct engine *g = c->t->engine;
    const struct task_labels *l = c->ret;
    bool tokens = l->kind == TASK_TOKENS;
    size_t rows = tokens ? workspace->tokens : n;
    float *value = memory_new(rows * l->labels, sizeof *value);
    int r = tokens                 ? head_tokens(g, workspace, value, e)
            : l->kind == TASK_NEXT ? head_next(g, workspace, value, e)
                                   : head_sequences(g, workspace, value, e);
    for (uint32_t s = 0; s < n && r == 0; s++)
        r = keep_text(c, text[s], tokens ? (uint64_t)workspace->offsets[s] : s, value, e);
    free(value);
    return r;
}

int task_classify(const struct task_runner *t, const struct task_batches *b,
                  struct task_labels *ret, struct error *e)
{
    const struct engine *g = t->engine;
    struct task_labels l = {.kind = task_kind(&g->config)};
    struct classify c = {t, &l};
    struct task_visitor visitor = {classify, &c};
    l.labels = l.kind == TASK_NEXT ? 2 : g->config.labels;
    l.first = memory_new((size_t)b->texts + 1, sizeof *l.first);
    for (uint32_t k = 0; k < b->texts; k++)
        l.first[k + 1] = l.first[k] + (l.kind == TASK_TOKENS ? b->sequence[k].count : 1);
    l.value = memory_new(l.first[b->texts] * l.labels, sizeof *l.value);
    if (task_run(t, b, &visitor, e) < 0) {
        task_labels_finish(&l);
        return -1;
    }
    *ret = l;
    return 0;
}

void task_labels_finish(struct task_labels *l)
{
    free(l->first);
    free(l->value);
    *l = (struct task_labels){0};
}

struct logits {
    const struct task_runner *t;
    float *ret;
};

static int take_logits(void *context, const uint32_t *text, uint32_t n,
                       struct engine_workspace *workspace, struct error *e)
{
    const struct logits *l = context;
    float *value = memory_new(n, sizeof *value);
    int r = head_sequences(l->t->engine, workspace, value, e);
    for (uint32_t k = 0; k < n && r == 0; k++) {
        r = task_check_output(l->t->options, text[k], &value[k], 1, e);
        l->ret[text[k]] = value[k];
    }
    free(value);
    return r;
}

int task_logits(const struct task_runner *t, const struct task_batches *b, float *ret,
                struct error *e)
{
    struct logits l = {t, ret};
    const struct task_visitor visitor = {take_logits, &l};
    if (t->engine->config.labels != 1)
        return error_set(e, ERROR_INPUT, "the model has %u labels, one is expected",
                         t->engine->config.labels);
    return task_run(t, b, &visitor, e);
}
