/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a task, from a dataset and predictions of it. */
#pragma once
#include "model/data/tasks/dataset.h"
#include "model/data/tasks/predictions.h"

struct score {
    const char *name;
    double
        value; /* NaN: undefined. SQuAD's are percentages, as its scripts print them; all others are at most 1 */
};

enum { SCORES = 8 };

/* How many metrics were written. The dataset has labels. */
int score_predictions(const struct dataset *d, const struct predictions *p,
                      struct score ret[SCORES]);
