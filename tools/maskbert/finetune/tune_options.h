/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/train/run/run.h"
#include "tools/maskbert/options.h"

/* Learning rates and batches that --grid names; a list that it does not is empty. */
enum { GRID_MOST = 16 };
struct tune_grid {
    double rate[GRID_MOST];
    uint32_t batch[GRID_MOST];
    uint32_t rates, batches;
};

/* Checks the given options and sets the defaults of the rest. */
int tune_options(const struct options *o, struct run_options *ret, struct tune_grid *ret_grid,
                 struct error *e);
/* --task, --regression, --max-length, --stride, --null-threshold: what `eval` takes, too. */
int tune_task(const struct options *o, const struct data_task **ret, struct error *e);
