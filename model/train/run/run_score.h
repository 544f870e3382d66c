/* SPDX-License-Identifier: Apache-2.0 */
/* Score of a run's model on the task's dev file: its predictions, by the inference path, and their metrics. */
#pragma once
#include "model/score/score.h"
#include "model/train/run/run_setup.h"

/* All metrics are undefined where the model's output is not finite. Rank 0 predicts, and all ranks get its scores: predictions may
   differ between kinds of CPUs, and all must go on alike. */
int run_score(struct run *r, struct task_scores *ret, struct error *e);
/* True: it is the best so far, and is noted in the run's facts. `loss`: on the dev file. */
bool run_score_is_best(struct run *r, const struct task_scores *s, double loss);
/* Rank 0's numbers to all; each rank keeps the names that it has. */
int run_score_share(const struct comm *c, struct task_scores *s, struct error *e);
/* {"eval":"dev",..} */
int run_log_evaluation(struct run *r, const struct evaluation *v, const struct task_scores *s,
                       struct error *e);
