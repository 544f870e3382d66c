/* SPDX-License-Identifier: Apache-2.0 */
/* Does a model answer a task? */
#include "masks/base/memory.h"
#include "model/evaluate/evaluate.h"
#include "model/evaluate/labels.h"
#include <stdlib.h>
#include <string.h>

static enum task_kind kind_of(const struct dataset *d)
{
    return d->task->format == TASK_ENDINGS ? TASK_CHOICE
           : d->task->format == TASK_WORDS ? TASK_TOKENS
           : d->numbers                    ? TASK_REGRESSION
                                           : TASK_SINGLE;
}

static bool has_head(const struct model_config *c, const struct dataset *d)
{
    const uint32_t parts = config_parts(c);
    if (d->task->format == TASK_ANSWERS)
        return parts & PART_SPAN;
    if (!(parts & PART_CLASSIFIER))
        return false;
    return d->numbers ? task_gives_number(c) : task_kind(c) == kind_of(d);
}

static int refuse_head(const struct model_config *c, const struct dataset *d, const char *name,
                       struct error *e)
{
    if (kind_of(d) == TASK_SINGLE && config_parts(c) & PART_CLASSIFIER &&
        !strcmp(c->problem, "multi_label_classification"))
        return error_set(e, ERROR_INPUT,
                         "%s: problem_type of config.json is multi_label_classification; "
                         "single_label_classification is expected for the task %s",
                         name, d->task->name);
    return error_set(e, ERROR_INPUT,
                     "%s: %s has no head for the task %s; maskbert finetune trains one", name,
                     *c->architecture ? c->architecture : "its class", d->task->name);
}

int evaluate_check(const struct model_config *c, const struct dataset *d, const char *name,
                   struct error *e)
{
    if (!has_head(c, d))
        return refuse_head(c, d, name, e);
    const enum task_kind kind = kind_of(d);
    if (d->task->format == TASK_ANSWERS || kind == TASK_CHOICE || kind == TASK_REGRESSION ||
        !d->labelled)
        return 0;
    uint32_t missing = 0, *label = memory_new(d->n_classes, sizeof *label);
    const bool all = labels_of_classes(c, d->task, d->classes, d->n_classes, label, &missing);
    free(label);
    return all ? 0
               : error_set(e, ERROR_INPUT, "%s: the model has no label \"%.60s\" of the task",
                           name, d->classes[missing]);
}
