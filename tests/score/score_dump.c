/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the cases on stdin, a JSON object a line, for score_test.py: a line of JSON out for each. */
#include "masks/base/memory.h"
#include "model/score/answers.h"
#include "model/score/classification.h"
#include "model/score/correlation.h"
#include "model/score/score.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *classes(const json_t *given)
{
    const json_t *g = json_object_get(given, "gold"), *f = json_object_get(given, "found");
    size_t n = json_array_size(g);
    uint32_t *gold = memory_new(n, sizeof *gold), *found = memory_new(n, sizeof *found);
    for (size_t k = 0; k < n; k++) {
        gold[k] = (uint32_t)json_integer_value(json_array_get(g, k));
        found[k] = (uint32_t)json_integer_value(json_array_get(f, k));
    }
    uint32_t count = (uint32_t)json_integer_value(json_object_get(given, "classes"));
    json_t *all = json_pack("[o,o,o]", real(score_accuracy(gold, found, n)),
                            real(score_f1(gold, found, n, 1)),
                            real(score_matthews(gold, found, n, count)));
    free(gold);
    free(found);
    return all;
}

static json_t *numbers(const json_t *given)
{
    const json_t *a = json_object_get(given, "x"), *b = json_object_get(given, "y");
    size_t n = json_array_size(a);
    double *x = memory_new(n, sizeof *x), *y = memory_new(n, sizeof *y);
    for (size_t k = 0; k < n; k++) {
        x[k] = json_number_value(json_array_get(a, k));
        y[k] = json_number_value(json_array_get(b, k));
    }
    json_t *all =
        json_pack("[o,o]", real(score_pearson(x, y, n)), real(score_spearman(x, y, n)));
    free(x);
    free(y);
    return all;
}

static json_t *answers(const json_t *given)
{
    const json_t *list = json_object_get(given, "answers");
    const char *text = json_string_value(json_object_get(given, "text"));
    uint32_t n = (uint32_t)json_array_size(list);
    const char **gold = memory_new(n, sizeof *gold);
    for (uint32_t k = 0; k < n; k++)
        gold[k] = json_string_value(json_array_get(list, k));
    struct answer_score s = answer_score(
        text, gold, n,
        json_integer_value(json_object_get(given, "rules")) == 1 ? ANSWERS_V1 : ANSWERS_V2);
    char *normal = answer_normalize(text);
    json_t *all = json_pack("[s,o,o]", normal, real(s.exact), real(s.f1));
    free(normal);
    free(gold);
    return all;
}

static struct task_source source(const json_t *given, const char *name)
{
    const json_t *text = json_object_get(given, name);
    return (struct task_source){.path = name,
                                .bytes = (const uint8_t *)json_string_value(text),
                                .size = json_string_length(text)};
}

/* The metrics of a gold file and predictions. */
static json_t *files(const json_t *given)
{
    struct error e = {0};
    struct dataset d = {0};
    struct predictions p = {0};
    struct score score[SCORES];
    const struct data_task *t =
        data_task_find(json_string_value(json_object_get(given, "task")), &e);
    struct task_source gold = source(given, "file"), found = source(given, "predictions");
    if (!t || dataset_read(t, &gold, NULL, &d, &e) < 0 ||
        predictions_read(&d, &found, &p, &e) < 0)
        return json_string(e.text);
    json_t *all = json_object();
    int scores = score_predictions(&d, &p, score);
    for (int k = 0; k < scores; k++)
        json_object_set_new(all, score[k].name, real(score[k].value));
    predictions_finish(&p);
    dataset_finish(&d);
    return all;
}

int main(void)
{
    json_t *given;
    while ((given = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL))) {
        json_t *said = json_object_get(given, "file")   ? files(given)
                       : json_object_get(given, "gold") ? classes(given)
                       : json_object_get(given, "x")    ? numbers(given)
                                                        : answers(given);
        json_dumpf(said, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
        json_decref(said);
        json_decref(given);
    }
    return 0;
}
