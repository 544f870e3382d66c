/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a command side by side: mean and deviation of each metric over the runs that differ by the seed, for people,
   as RUN/summary.json and as CSV. */
#pragma once
#include "model/score/score.h"

struct tuned_run {
    char *folder;
    uint64_t seed;
    double rate;
    uint32_t batch, repeat;
    double best_epoch, elapsed;
    struct task_scores scores; /* of dev */
    size_t examples;
};

enum summary_part { SUMMARY_RUN, SUMMARY_GRID, SUMMARY_PARTS };

struct summary {
    const struct data_task *task;
    struct tuned_run *run[SUMMARY_PARTS];
    uint32_t runs[SUMMARY_PARTS], capacity[SUMMARY_PARTS];
    struct tuned_run best; /* of the grid, as a copy that owns nothing */
};

/* A new run, to be filled before the next one is added. */
struct tuned_run *summary_add(struct summary *s, enum summary_part part);
void summary_finish(struct summary *s);

/* "RUN: dev accuracy 0.8125 at epoch 2" on stderr. */
void tuned_run_say(const struct tuned_run *r);
/* A line for each metric, where there are several runs. */
void summary_say(const struct summary *s);
/* FOLDER/summary.json. */
int summary_write(const struct summary *s, const char *folder, struct error *e);
/* The same as one line on stdout, and a row for each run. */
void summary_print_json(const struct summary *s);
void summary_print_csv(const struct summary *s);
