/* SPDX-License-Identifier: Apache-2.0 */
/* A task's name, perhaps " numbers" or " phrases", a newline, its gold file, a line "====" and predictions. What is let
   through is scored (metrics are within their range or undefined), written and read again. */
#include "model/score/score.h"
#include "tests/fuzz/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void hold(bool promise)
{
    if (!promise)
        abort();
}

/* MRQA's answers are cut out of the context. */
static void check_answers(const struct task_example *x)
{
    for (uint32_t k = 0; k < x->answers; k++) {
        const char *at = x->text[1];
        for (uint32_t point = 0; point < x->answer_at[k]; point++)
            while ((*++at & 0xc0) == 0x80) {
            }
        hold(*x->answer[k] && !strncmp(at, x->answer[k], strlen(x->answer[k])));
    }
}

static void check_examples(const struct dataset *d)
{
    hold(d->count > 0);
    for (size_t k = 0; k < d->count; k++) {
        const struct task_example *x = &d->example[k];
        hold(x->id && x->texts);
        if (d->task->lines)
            check_answers(x);
        for (uint32_t j = 0; j < x->texts; j++)
            hold(x->text[j] != NULL);
        for (uint32_t j = 0; d->labelled && j < x->labels; j++)
            hold(d->numbers ? isfinite(x->value) : x->class_of[j] < d->n_classes);
    }
}

static void check_scores(const struct dataset *d, const struct predictions *p)
{
    struct score score[SCORES];
    int scores = score_predictions(d, p, score);
    double most = d->task->format == TASK_ANSWERS ? 100 : 1;
    hold(scores > 0 && scores <= SCORES);
    for (int k = 0; k < scores; k++)
        hold(isnan(score[k].value) || fabs(score[k].value) <= most * (1 + 1e-12));
}

static bool same_part(const struct dataset *d, const char *a, const char *b)
{
    double x, y;
    if (!d->numbers)
        return !strcmp(a, b);
    return dataset_number(a, &x) && dataset_number(b, &y) && x == y;
}

static void check_same(const struct dataset *d, const struct predictions *a,
                       const struct predictions *b)
{
    for (size_t k = 0; k < d->count; k++) {
        hold(a->of[k].parts == b->of[k].parts);
        for (uint32_t j = 0; j < a->of[k].parts; j++)
            hold(same_part(d, a->of[k].part[j], b->of[k].part[j]));
    }
}

/* Checks that written predictions read back equal. */
static void check_written(const struct dataset *d, const struct predictions *p,
                          const char *path)
{
    struct error e = {0};
    struct text bytes = {0};
    struct predictions again = {0};
    if (predictions_format(path, d, p, NULL, &bytes, &e) < 0) {
        check_refusal(&e);
    } else {
        struct task_source from = {
            .path = path, .bytes = (const uint8_t *)text_get(&bytes), .size = bytes.length};
        hold(predictions_read(d, &from, &again, &e) == 0);
        check_same(d, p, &again);
    }
    predictions_finish(&again);
    text_finish(&bytes);
}

static void check_predictions(const struct dataset *d, const struct task_source *from)
{
    struct error e = {0};
    struct predictions p = {0};
    if (predictions_read(d, from, &p, &e) < 0) {
        check_refusal(&e);
    } else {
        check_written(d, &p, "p.jsonl");
        check_written(d, &p, "p.tsv");
        if (d->labelled)
            check_scores(d, &p);
    }
    predictions_finish(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {0};
    struct dataset d = {0};
    char name[32] = {0};
    const uint8_t *line = memchr(data, '\n', size < sizeof name ? size : sizeof name);
    const struct data_task *task;
    if (!line)
        return 0;
    memcpy(name, data, (size_t)(line - data));
    char *option = strchr(name, ' ');
    const struct dataset_options how = {.numbers = option && !strcmp(option, " numbers"),
                                        .phrases = option && !strcmp(option, " phrases")};
    if (option)
        *option = 0;
    if (!(task = data_task_find(name, &e)))
        return 0;
    const uint8_t *gold = line + 1, *end = data + size;
    const uint8_t *cut = memmem(gold, (size_t)(end - gold), "====\n", 5);
    const uint8_t *found = cut ? cut + 5 : end;
    struct task_source from = {.path = "GOLD",
                               .bytes = gold,
                               .size = (size_t)((cut ? cut : end) - gold),
                               .label = "positive"};
    if (dataset_read(task, &from, &how, &d, &e) < 0) {
        check_refusal(&e);
    } else {
        check_examples(&d);
        check_predictions(&d, &(struct task_source){.path = "FOUND",
                                                    .bytes = found,
                                                    .size = (size_t)(end - found)});
    }
    dataset_finish(&d);
    return 0;
}
