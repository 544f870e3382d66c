/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/evaluate.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "masks/base/text.h"
#include "model/evaluate/labels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evaluating {
    const struct task_runner *runner;
    const struct dataset *d;
    double null_threshold;
    const char **name; /* [labels of the model]: the task's name of each; null: it has none */
    struct evaluated *to;
};

static const struct model_config *config_of(const struct evaluating *v)
{
    return &v->runner->engine->config;
}

static const char *label_of(const struct evaluating *v, uint32_t k, char buffer[24])
{
    return v->name[k] ? v->name[k] : config_label(config_of(v), k, buffer);
}

/* ---- predictions from what the head says ---- */

static uint32_t best_of(const float *x, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < count; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

static void set_one(const struct evaluating *v, size_t k, const char *text)
{
    predictions_set(&v->to->found, k, &text, 1);
}

static void set_scores(const struct evaluating *v, size_t k, const float *x, uint32_t count)
{
    double *to = v->to->value + k * count;
    for (uint32_t i = 0; i < count; i++)
        to[i] = (double)x[i];
    v->to->of[k] = (struct prediction_scores){to, count};
}

static void take_class(const struct evaluating *v, size_t k, const struct task_labels *l)
{
    const float *x = l->value + l->first[k] * l->labels;
    char buffer[24];
    set_one(v, k, label_of(v, best_of(x, l->labels), buffer));
    set_scores(v, k, x, l->labels);
}

static void take_number(const struct evaluating *v, size_t k, const struct task_labels *l)
{
    char digits[32];
    number_print(digits, sizeof digits, "%.9g", (double)l->value[k]);
    set_one(v, k, digits);
}

/* Example k has the values of TASK_CHOICES texts. */
static void take_choice(const struct evaluating *v, size_t k, const struct task_labels *l)
{
    const float *x = l->value + k * TASK_CHOICES;
    const uint32_t best = best_of(x, TASK_CHOICES);
    float share[TASK_CHOICES], sum = 0;
    for (uint32_t i = 0; i < TASK_CHOICES; i++)
        sum += share[i] = expf(x[i] - x[best]);
    for (uint32_t i = 0; i < TASK_CHOICES; i++)
        share[i] /= sum;
    set_one(v, k, v->d->classes[best]);
    set_scores(v, k, share, TASK_CHOICES);
}

/* ---- texts of a dataset ---- */

static struct text_part part_of(const char *text)
{
    return (struct text_part){text, text ? (uint32_t)strlen(text) : 0};
}

/* Texts of all examples, `each` for one: what they point to stays the dataset's. */
static struct task_text *texts_of(const struct dataset *d, uint32_t each)
{
    struct task_text *text = memory_new(d->count * each, sizeof *text);
    for (size_t k = 0; k < d->count; k++) {
        const struct task_example *x = &d->example[k];
        for (uint32_t i = 0; i < each; i++)
            text[k * each + i] = (struct task_text){.a = part_of(x->text[0]),
                                                    .b = part_of(each > 1       ? x->text[1 + i]
                                                                 : x->texts > 1 ? x->text[1]
                                                                                : NULL)};
    }
    return text;
}

static void allocate_scores(const struct evaluating *v, uint32_t labels)
{
    v->to->of = memory_new(v->d->count, sizeof *v->to->of);
    v->to->value = memory_new(v->d->count * labels, sizeof *v->to->value);
}

static void note_cuts(const struct evaluating *v, const struct task_batches *b)
{
    v->to->texts = b->texts;
    v->to->cut = b->cut;
}

/* Logits in place of what classify prints, which for one label can be a sigmoid. */
static int find_numbers(const struct task_runner *t, const struct task_batches *b,
                        struct task_labels *ret, struct error *e)
{
    *ret = (struct task_labels){.kind = TASK_REGRESSION, .labels = 1};
    ret->value = memory_new(b->texts, sizeof *ret->value);
    return task_logits(t, b, ret->value, e);
}

typedef void take_fn(const struct evaluating *v, size_t k, const struct task_labels *l);

static int classify_texts(const struct evaluating *v, uint32_t each, take_fn *take,
                          struct error *e)
{
    const struct task_runner *t = v->runner;
    struct task_batches b = {0};
    struct task_labels l = {0};
    struct task_text *text = texts_of(v->d, each);
    int r = task_prepare(t->engine, text, (uint32_t)v->d->count * each, t->options, &b, e);
    if (r == 0)
        r = v->d->numbers ? find_numbers(t, &b, &l, e) : task_classify(t, &b, &l, e);
    if (r == 0)
        allocate_scores(v, each > 1 ? each : l.labels);
    note_cuts(v, &b);
    for (size_t k = 0; k < v->d->count && r == 0; k++)
        take(v, k, &l);
    task_labels_finish(&l);
    task_finish(&b);
    free(text);
    return r;
}

/* ---- words ---- */

/* A word's label is that of its first token. */
static void take_words(const struct evaluating *v, size_t k, const struct task_batches *b,
                       const struct task_labels *l)
{
    const struct task_example *x = &v->d->example[k];
    const struct sequence *s = &b->sequence[k];
    const struct token_span *span = b->span + (s->token_ids - b->token_ids);
    const char **part = memory_new(x->texts, sizeof *part);
    char(*buffer)[24] = memory_new(x->texts, sizeof *buffer);
    for (uint32_t w = 0, at = 0, i = 0; w < x->texts; w++) {
        const uint32_t end = at + (uint32_t)strlen(x->text[w]);
        while (i < s->count && (span[i].end <= at || span[i].end == span[i].begin))
            i++;
        const bool seen = i < s->count && span[i].begin < end;
        const float *row = l->value + (l->first[k] + (seen ? i : 0)) * l->labels;
        part[w] = label_of(v, seen ? best_of(row, l->labels) : 0, buffer[w]);
        v->to->hidden += !seen;
        i += seen;
        at = end + 1;
    }
    predictions_set(&v->to->found, k, part, x->texts);
    free(part);
    free(buffer);
}

static char *join_words(const struct task_example *x)
{
    struct text line = {0};
    for (uint32_t w = 0; w < x->texts; w++)
        text_add(&line, w ? " %s" : "%s", x->text[w]);
    char *ret = memory_text(text_get(&line));
    text_finish(&line);
    return ret;
}

static int classify_words(const struct evaluating *v, struct error *e)
{
    const struct task_runner *t = v->runner;
    const size_t count = v->d->count;
    struct task_batches b = {0};
    struct task_labels l = {0};
    struct task_text *text = memory_new(count, sizeof *text);
    for (size_t k = 0; k < count; k++)
        text[k].a = part_of(join_words(&v->d->example[k]));
    int r = task_prepare(t->engine, text, (uint32_t)count, t->options, &b, e);
    if (r == 0)
        r = task_classify(t, &b, &l, e);
    note_cuts(v, &b);
    for (size_t k = 0; k < count; k++) {
        if (r == 0)
            take_words(v, k, &b, &l);
        free((char *)(uintptr_t)text[k].a.bytes);
    }
    task_labels_finish(&l);
    task_finish(&b);
    free(text);
    return r;
}

/* ---- answers ---- */

static void set_answer(struct predictions *to, size_t k, const char *text,
                       const struct task_span *best)
{
    const size_t size = best ? best->end - best->begin : 0;
    char *answer = memory_new(size + 1, 1);
    if (size)
        memcpy(answer, text + best->begin, size);
    const char *part = answer;
    predictions_set(to, k, &part, 1);
    free(answer);
}

void evaluated_answers(const struct dataset *d, const struct evaluated *v,
                       double null_threshold, struct predictions *ret)
{
    const struct task_spans *s = &v->spans;
    predictions_begin(ret, d);
    for (size_t k = 0; k < d->count; k++) {
        const bool none =
            task_is_withheld(s, (uint32_t)k, d->task->unanswerable ? null_threshold : INFINITY);
        set_answer(ret, k, d->example[k].text[1], none ? NULL : &s->span[k * s->top]);
    }
}

static int answer_questions(const struct evaluating *v, struct error *e)
{
    enum { TOP = 5 }; /* as many as `answer --json` prints */
    struct evaluated *to = v->to;
    struct task_text *text = texts_of(v->d, 1);
    int r = task_answer(v->runner, text, (uint32_t)v->d->count, TOP, &to->spans, e);
    free(text);
    if (r < 0)
        return -1;
    allocate_scores(v, 1);
    for (size_t k = 0; k < v->d->count; k++) {
        to->value[k] = task_no_answer_lead(&to->spans, (uint32_t)k);
        to->of[k] = (struct prediction_scores){&to->value[k], 1};
    }
    predictions_finish(&to->found);
    evaluated_answers(v->d, to, v->null_threshold, &to->found);
    return 0;
}

/* ---- all ---- */

/* The line of each text; of JSON without lines the number of its example. */
static struct task_names names_of(const struct dataset *d, uint32_t *number, uint32_t each)
{
    const bool lines = d->count && d->example[0].line;
    for (size_t k = 0; k < d->count * each; k++)
        number[k] = lines ? d->example[k / each].line : (uint32_t)(k / each) + 1;
    return (struct task_names){lines ? "line" : "example", number};
}

static int run(const struct evaluating *v, struct error *e)
{
    switch (v->d->task->format) {
    case TASK_ANSWERS:
        return answer_questions(v, e);
    case TASK_WORDS:
        return classify_words(v, e);
    case TASK_ENDINGS:
        return classify_texts(v, TASK_CHOICES, take_choice, e);
    default:
        return classify_texts(v, 1, v->d->numbers ? take_number : take_class, e);
    }
}

/* Caller frees. */
static const char **names_of_labels(const struct model_config *c, const struct dataset *d)
{
    const char **ret = memory_new((size_t)c->labels + 1, sizeof *ret);
    uint32_t missing, *label = memory_new(d->n_classes, sizeof *label);
    if (labels_of_classes(c, d->task, d->classes, d->n_classes, label, &missing))
        for (uint32_t k = 0; k < d->n_classes; k++)
            ret[label[k]] = d->classes[k];
    free(label);
    return ret;
}

int evaluate_dataset(const struct task_runner *t, const struct dataset *d,
                     double null_threshold, struct evaluated *ret, struct error *e)
{
    struct evaluated all = {0};
    const uint32_t each = d->task->format == TASK_ENDINGS ? TASK_CHOICES : 1;
    uint32_t *number = memory_new(d->count * each, sizeof *number);
    const char **name = names_of_labels(&t->engine->config, d);
    struct task_options options = *t->options;
    options.names = names_of(d, number, each);
    const struct task_runner runner = {t->engine, &options, t->workspace};
    const struct evaluating v = {&runner, d, null_threshold, name, &all};
    predictions_begin(&all.found, d);
    int r = run(&v, e);
    free(name);
    free(number);
    if (r < 0)
        evaluated_finish(&all);
    else
        *ret = all;
    return r;
}

void evaluated_finish(struct evaluated *v)
{
    predictions_finish(&v->found);
    task_spans_finish(&v->spans);
    free(v->of);
    free(v->value);
    *v = (struct evaluated){0};
}
