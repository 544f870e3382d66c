/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert score TASK PREDICTIONS GOLD */
#include "model/score/score.h"
#include "tools/maskbert/command.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void print_json(const struct dataset *d, const struct score *score, int scores)
{
    json_t *metrics = json_object();
    for (int k = 0; k < scores; k++)
        json_object_set_new(metrics, score[k].name,
                            isfinite(score[k].value) ? json_real(score[k].value) : json_null());
    json_t *all = json_pack("{s:s, s:I, s:I, s:o}", "task", d->task->name, "examples",
                            (json_int_t)d->count, "skipped", (json_int_t)d->n_skipped,
                            "metrics", metrics);
    char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(17));
    puts(text);
    free(text);
    json_decref(all);
}

static void print_text(const struct dataset *d, const struct score *score, int scores)
{
    printf("%-22s  %s\n%-22s  %zu\n", "task", d->task->name, "examples", d->count);
    if (d->n_skipped)
        printf("%-22s  %zu (broken or without a label, the first in line %u)\n", "skipped",
               d->n_skipped, d->first_skipped);
    for (int k = 0; k < scores; k++)
        if (isfinite(score[k].value))
            printf("%-22s  %.6g\n", score[k].name, score[k].value);
        else
            printf("%-22s  undefined\n", score[k].name);
}

static int score(const struct options *o, struct dataset *d, struct predictions *p,
                 struct error *e)
{
    struct score metric[SCORES];
    const struct data_task *task = data_task_find(o->arguments[0], e);
    const struct dataset_options how = {.numbers = o->regression};
    if (!task)
        return -1;
    if (o->regression && task->format != TASK_PLAIN)
        return error_set(e, ERROR_INPUT, "--regression is for the tasks text and pair, not %s",
                         task->name);
    if (dataset_load(task, o->arguments[2], &how, d, e) < 0)
        return -1;
    if (!d->labelled)
        return error_set(e, ERROR_INPUT, "%s: the gold file has no labels: a test file?",
                         o->arguments[2]);
    if (predictions_load(d, o->arguments[1], p, e) < 0)
        return -1;
    int scores = score_predictions(d, p, metric);
    if (o->json)
        print_json(d, metric, scores);
    else
        print_text(d, metric, scores);
    return 0;
}

int command_score(const struct options *o)
{
    struct error e = {0};
    struct dataset d = {0};
    struct predictions p = {0};
    int result = score(o, &d, &p, &e);
    predictions_finish(&p);
    dataset_finish(&d);
    return result < 0 ? command_fail(&e) : 0;
}
