/* SPDX-License-Identifier: Apache-2.0 */
/* A model assessed on a file of a task: what `maskbert eval --task` does, and `finetune` at the end of a run. */
#pragma once
#include "model/data/tasks/files.h"
#include "model/evaluate/evaluate.h"

struct assess_request {
    const char *model; /* DIR */
    const struct data_task *task;
    const char *data; /* the task's folder */
    enum task_part part;
    bool optional;   /* the file may be absent */
    bool quiet;      /* says nothing of the texts */
    bool regression; /* refuse a model that does not answer with numbers */
    double null_threshold;
    struct task_options texts;
    struct engine_options engine; /* its parts are set here */
};

struct assessment {
    struct dataset set; /* no task: there was no such file */
    struct evaluated found;
    struct task_scores scores; /* none where the file has no labels */
};

/* *ret is for assessment_finish() on success alone. */
int assess(const struct assess_request *q, struct assessment *ret, struct error *e);
void assessment_finish(struct assessment *j);
