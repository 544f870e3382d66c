/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people. */
#pragma once
#include "model/score/score.h"
#include "model/train/run/run_setup.h"

void run_say(const struct run *r, const char *line);
/* The losses on the held-out samples after a step, and the metrics of a task. */
void run_say_evaluation(const struct run *r, const struct evaluation *v,
                        const struct task_scores *s);
/* True after the first step, then after 1, 2, 4, 8 and 16 seconds and every 10 seconds from there on. `elapsed` counts from
   the first step; *last is the time of the last line, negative before the first. */
bool run_line_due(double elapsed, double *last);
/* Prints the settings at the start of the run. */
void run_say_begin(const struct run *r);
