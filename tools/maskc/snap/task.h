/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of tools/maskc/snap. */
#pragma once
#include "gen/snap/snap.h"
#include "tools/maskc/options.h"

struct task {
    const struct options *o;
    struct importance p;
    struct snap_request request;
    struct snap_result result; /* what was asked for */
    struct snap_mask chosen;   /* not owned: of `result` or of `equal` */
    struct snap_result equal;  /* with --measure: the fastest of each kind that keep as much */
    double measured[SNAP_KINDS]; /* of these, seconds of all layers; 0: not measured */
};

/* Compiles and times the t->o->measure masks of t->equal that are predicted to be the fastest, and chooses the one
   that is. */
int task_measure(struct task *t, struct error *e);

void task_print(const struct task *t);
void task_print_json(const struct task *t);
