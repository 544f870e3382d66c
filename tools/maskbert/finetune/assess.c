/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/finetune/assess.h"
#include "tools/maskbert/session.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t parts_for(const struct model_config *c, const struct dataset *d)
{
    return d->task->format == TASK_ANSWERS ? PART_SPAN : task_classify_parts(task_kind(c));
}

/* Reports texts, questions and words that the model did not see in full. */
static void print_cuts(const struct evaluated *v, const char *path, uint32_t tokens)
{
    session_tell_cut(path, v->cut, v->texts, "texts", tokens);
    session_tell_cut(path, v->spans.cut, v->spans.texts, "questions", v->spans.cut_to);
    if (v->hidden)
        fprintf(stderr,
                "maskbert: %s: %llu words were not seen by the model and count as the first "
                "label\n",
                path, (unsigned long long)v->hidden);
}

static int predict(const struct assess_request *q, const char *path, struct assessment *j,
                   uint32_t parts, struct error *e)
{
    struct engine_options options = q->engine;
    struct engine_workspace workspace = {0};
    options.parts = parts;
    struct engine *g = engine_load(q->model, &options, e);
    if (options.progress)
        options.progress(NULL);
    if (!g)
        return -1;
    const struct task_runner runner = {g, &q->texts, &workspace};
    int r = q->texts.max_length > g->longest
                ? error_set(e, ERROR_INPUT, "--max-length %u: the model has %u positions",
                            q->texts.max_length, g->longest)
                : evaluate_dataset(&runner, &j->set, q->null_threshold, &j->found, e);
    if (r == 0 && !q->quiet)
        print_cuts(&j->found, path, task_longest(g, q->texts.max_length));
    engine_workspace_finish(&workspace);
    engine_destroy(g);
    return r;
}

static void print_check(const struct text_check *c, const char *path)
{
    char what[TEXT_CHECK_BYTES];
    text_check_report(c, what);
    if (*what)
        fprintf(stderr, "maskbert: %s: %s\n", path, what);
}

/* Labels are numbers where the model's answers are, and else classes. */
static int assess_file(const struct assess_request *q, const char *path, struct assessment *j,
                       struct error *e)
{
    struct model_config c = {0};
    if (config_read(q->model, &c, e) < 0)
        return -1;
    const bool numbers = q->task->format == TASK_PLAIN && task_gives_number(&c);
    const struct dataset_options how = {.numbers = numbers, .classes = !numbers};
    int r = q->regression && !numbers
                ? error_set(e, ERROR_INPUT, "--regression: %s does not answer with a number",
                            q->model)
                : dataset_load(q->task, path, &how, &j->set, e);
    if (r == 0 && !q->quiet)
        print_check(&j->set.check, path);
    if (r == 0)
        r = evaluate_check(&c, &j->set, q->model, e);
    if (r == 0)
        r = predict(q, path, j, parts_for(&c, &j->set), e);
    if (r < 0 && e->kind == ERROR_FALSE) /* it names a line */
        error_prefix(e, "%s", path);
    if (r == 0 && j->set.labelled)
        j->scores = task_scores_of(&j->set, &j->found.found);
    config_finish(&c);
    return r;
}

int assess(const struct assess_request *q, struct assessment *ret, struct error *e)
{
    struct assessment j = {0};
    struct error none = {0};
    char *path = task_file(q->task, q->data, q->part, q->optional, &none);
    *ret = j;
    if (!path && none.kind) {
        *e = none;
        return -1;
    }
    if (!path)
        return 0;
    int r = assess_file(q, path, &j, e);
    free(path);
    if (r < 0)
        assessment_finish(&j);
    else
        *ret = j;
    return r;
}

void assessment_finish(struct assessment *j)
{
    evaluated_finish(&j->found);
    dataset_finish(&j->set);
    *j = (struct assessment){0};
}
