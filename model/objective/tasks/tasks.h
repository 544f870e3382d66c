/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives of fine-tuning, one for each kind of head. Their data are the files of a task (model/data/tasks/), and any of them
   opens any task: objective_data.natural is the one that the task has. */
#pragma once
#include "model/objective/objective.h"

extern const struct objective
    objective_classify; /* a class of a text or pair, from the pooled first token */
extern const struct objective objective_regress; /* a number of a text or pair */
extern const struct objective objective_choose;  /* which of four endings follows */
extern const struct objective objective_tokens;  /* a class of each word */
extern const struct objective
    objective_span; /* where in a text the answer to a question stands */
