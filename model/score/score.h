/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a task, from a dataset and predictions of it. */
#pragma once
#include "masks/base/text.h"
#include "model/data/tasks/dataset.h"
#include "model/data/tasks/predictions.h"

struct score {
    const char *name;
    double
        value; /* NaN: undefined. SQuAD's are percentages, as its scripts print them; all others are at most 1 */
};

enum { SCORES = 8 };

/* Returns the number of metrics written. The dataset has labels. */
int score_predictions(const struct dataset *d, const struct predictions *p,
                      struct score ret[SCORES]);

/* All of them, and which one decides between two models: the first, of SQuAD F1. */
struct task_scores {
    struct score score[SCORES];
    int count, chief;
};
struct task_scores task_scores_of(const struct dataset *d, const struct predictions *p);
/* "accuracy 0.8125, f1 0.7500" */
void task_scores_text(const struct task_scores *s, struct text *to);
