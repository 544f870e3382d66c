/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of the runs of a command: mean and deviation of each metric over the runs that differ by the seed, as text,
   RUN/summary.json and CSV. */
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

/* Adds an empty run. The caller fills it before it adds the next one. */
struct tuned_run *summary_add(struct summary *s, enum summary_part part);
/* Frees the runs. */
void summary_finish(struct summary *s);

/* Prints a line such as "RUN: dev accuracy 0.8125 at epoch 2" to stderr. */
void tuned_run_say(const struct tuned_run *r);
/* Prints to stderr the best of a grid, and a line for each metric if there are several runs. */
void summary_say(const struct summary *s);
/* Writes FOLDER/summary.json. */
int summary_write(const struct summary *s, const char *folder, struct error *e);
/* Prints the JSON of summary.json to stdout as one line. */
void summary_print_json(const struct summary *s);
/* Prints CSV to stdout: a row for each run. */
void summary_print_csv(const struct summary *s);
