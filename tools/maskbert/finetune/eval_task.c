/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert eval --task: a model's metrics on a task's files, and its predictions. */
#include "tools/maskbert/finetune/eval_task.h"
#include "masks/base/file.h"
#include "model/score/threshold.h"
#include "tools/common/table.h"
#include "tools/maskbert/finetune/assess.h"
#include "tools/maskbert/finetune/tune_options.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --split, and the part that is assessed beside it where there is one: MNLI's mismatched. */
struct split {
    const char *name;
    enum task_part part, beside;
};
static const struct split splits[] = {{"dev", TASK_DEV, TASK_DEV_2},
                                      {"test", TASK_TEST, TASK_TEST_2},
                                      {"train", TASK_TRAIN, TASK_PARTS}};

static const struct split *find_split(const char *name, struct error *e)
{
    for (size_t k = 0; k < sizeof splits / sizeof *splits; k++)
        if (!strcmp(name, splits[k].name))
            return &splits[k];
    error_set(e, ERROR_INPUT, "--split %.40s: dev, test or train is expected", name);
    return NULL;
}

static int make_request(const struct options *o, struct assess_request *ret, struct error *e)
{
    if (!o->data)
        return error_set(e, ERROR_INPUT, "eval: --data FOLDER is expected");
    *ret = (struct assess_request){
        .model = o->argument,
        .data = o->data,
        .regression = o->regression,
        .null_threshold = o->null_threshold,
        .texts = {.max_length = o->max_length, .overlap = o->stride},
        .engine = {.drop = o->drop, .drop_seed = o->seed, .drop_length = o->max_length}};
    if (tune_task(o, &ret->task, e) < 0)
        return -1;
    if (o->nbest && ret->task->format != TASK_ANSWERS)
        return error_set(e, ERROR_INPUT, "--nbest: for questions and answers alone");
    return session_options(o, &ret->engine, e);
}

/* ---- the best answers of questions ---- */

static json_t *answers_json(const struct dataset *d, const struct task_spans *s, size_t k)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->count[k]; i++) {
        const struct task_span *x = &s->span[k * s->top + i];
        json_array_append_new(
            all, json_pack("{s:o, s:f, s:f}", "text",
                           json_stringn(d->example[k].text[1] + x->begin, x->end - x->begin),
                           "score", (double)x->score, "probability", (double)x->probability));
    }
    return all;
}

static int write_best(const char *path, const struct assessment *a, struct error *e)
{
    json_t *all = json_object();
    for (size_t k = 0; k < a->set.count; k++)
        json_object_set_new(all, a->set.example[k].id,
                            answers_json(&a->set, &a->found.spans, k));
    char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    int r = file_write(path, text, strlen(text), e);
    free(text);
    json_decref(all);
    return r;
}

/* True if there is a threshold to choose. */
static bool has_threshold(const struct assessment *a)
{
    return a->set.labelled && a->set.task->unanswerable;
}

static struct best_threshold best_of(const struct assessment *a)
{
    struct predictions found;
    evaluated_answers(&a->set, &a->found, INFINITY, &found);
    const struct best_threshold ret = score_best_threshold(&a->set, &found, a->found.value);
    predictions_finish(&found);
    return ret;
}

/* ---- output ---- */

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *metrics_json(const struct task_scores *s)
{
    json_t *all = json_object();
    for (int k = 0; k < s->count; k++)
        json_object_set_new(all, s->score[k].name, real(s->score[k].value));
    return all;
}

static void print_json(const struct split *s, const struct assessment *j,
                       const struct assessment *beside)
{
    json_t *all = json_pack("{s:s, s:s, s:I, s:I, s:o}", "task", j->set.task->name, "split",
                            s->name, "examples", (json_int_t)j->set.count, "skipped",
                            (json_int_t)j->set.n_skipped, "metrics", metrics_json(&j->scores));
    if (beside->set.task)
        json_object_set_new(all, "mismatched",
                            json_pack("{s:I, s:o}", "examples", (json_int_t)beside->set.count,
                                      "metrics", metrics_json(&beside->scores)));
    if (has_threshold(j)) {
        const struct best_threshold b = best_of(j);
        json_object_set_new(all, "best_threshold",
                            json_pack("{s:f, s:o, s:f, s:o}", "exact_match", b.exact,
                                      "exact_match_threshold", real(b.exact_threshold), "f1",
                                      b.f1, "f1_threshold", real(b.f1_threshold)));
    }
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(all);
}

/* The fewest digits that read back as the value, because the threshold is the score of a question. Where no answers at all are
   best, a number below every score. */
static void write_threshold(double value, char ret[32])
{
    if (isinf(value)) {
        snprintf(ret, 32, "-1e30");
        return;
    }
    for (int digits = 4; digits <= 17; digits++) {
        snprintf(ret, 32, "%.*g", digits, value);
        if (strtod(ret, NULL) == value)
            return;
    }
}

static void print_text(const char *name, const struct assessment *j)
{
    struct text scores = {0}, line = {0};
    task_scores_text(&j->scores, &scores);
    text_add(&line, "%s, %s: %s; %zu examples", j->set.task->name, name,
             j->set.labelled ? text_get(&scores) : "no labels", j->set.count);
    if (j->set.n_skipped)
        text_add(&line, ", %zu skipped", j->set.n_skipped);
    text_add(&line, "\n");
    if (has_threshold(j)) {
        const struct best_threshold b = best_of(j);
        char exact[32], f1[32];
        write_threshold(b.exact_threshold, exact);
        write_threshold(b.f1_threshold, f1);
        text_add(&line, "best here: exact_match %.4f at --null-threshold=%s, f1 %.4f at %s\n",
                 b.exact, exact, b.f1, f1);
    }
    lines_print(&line, TABLE_WIDTH, 2);
    text_finish(&scores);
}

static void print(const struct options *o, const struct split *s, const struct assessment *j,
                  const struct assessment *beside)
{
    if (o->json) {
        print_json(s, j, beside);
        return;
    }
    print_text(s->name, j);
    if (beside->set.task)
        print_text("mismatched", beside);
}

/* ---- predictions ---- */

/* Name of the mismatched file's predictions: "-mm" before the ending, in place of "-m" where that is there.
   MNLI-m.tsv and MNLI.tsv: MNLI-mm.tsv. */
static void add_name_beside(const char *path, struct text *to)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.'), *end = dot && dot > name ? dot : name + strlen(name);
    const bool has_m = end - name > 2 && !memcmp(end - 2, "-m", 2);
    text_append(to, path, (size_t)(end - path));
    text_add(to, "%s%s", has_m ? "m" : "-mm", end);
}

static int save_one(const char *path, const struct assessment *j, struct error *e)
{
    return predictions_save(path, &j->set, &j->found.found, j->found.of, e);
}

/* True for a pipe or a device, and for /dev/stdout where that is a file: a second file has no place beside it. */
static bool is_stream(const char *path)
{
    struct stat s;
    if (stat(path, &s) < 0)
        return false;
    return !S_ISREG(s.st_mode) ||
           (!strncmp(path, "/dev/", 5) && lstat(path, &s) == 0 && S_ISLNK(s.st_mode));
}

static int save_beside(const char *path, const struct assessment *beside, struct error *e)
{
    struct text name = {0};
    add_name_beside(path, &name);
    int r = save_one(text_get(&name), beside, e);
    text_finish(&name);
    return r;
}

static int save_predictions(const char *path, const struct assessment *j,
                            const struct assessment *beside, struct error *e)
{
    const bool alone = is_stream(path);
    if (save_one(path, j, e) < 0)
        return -1;
    if (!beside->set.task)
        return 0;
    if (!alone)
        return save_beside(path, beside, e);
    fprintf(stderr,
            "maskbert: %s: not a regular file; the predictions of the mismatched file are left "
            "out\n",
            path);
    return 0;
}

/* ---- all ---- */

static int assess_all(const struct options *o, struct assessment *j, struct assessment *beside,
                      struct error *e)
{
    struct assess_request q;
    const struct split *s = find_split(o->part ? o->part : "dev", e);
    if (!s || make_request(o, &q, e) < 0)
        return -1;
    q.part = s->part;
    if (assess(&q, j, e) < 0)
        return -1;
    q.part = s->beside;
    q.optional = true;
    if (s->beside != TASK_PARTS && assess(&q, beside, e) < 0)
        return -1;
    if (o->predictions && save_predictions(o->predictions, j, beside, e) < 0)
        return -1;
    if (o->nbest && write_best(o->nbest, j, e) < 0)
        return -1;
    print(o, s, j, beside);
    return 0;
}

int eval_task(const struct options *o, struct error *e)
{
    struct assessment j = {0}, beside = {0};
    int r = assess_all(o, &j, &beside, e);
    assessment_finish(&j);
    assessment_finish(&beside);
    return r;
}
