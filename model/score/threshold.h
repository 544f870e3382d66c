/* SPDX-License-Identifier: Apache-2.0 */
/* SQuAD 2.0: from which score of "no answer" on a question should get none, found on examples with labels. */
#pragma once
#include "model/data/tasks/predictions.h"

struct best_threshold {
    double exact, exact_threshold; /* percent, and the threshold that gives it */
    double f1, f1_threshold;
};

/* found: answers, none of them withheld. none: [d->count] score of no answer less the answer's; a question gets no answer where
   it is above the threshold. The least threshold of the best ones; -inf where no answers at all are best. */
struct best_threshold score_best_threshold(const struct dataset *d,
                                           const struct predictions *found, const double *none);
