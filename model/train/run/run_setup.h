/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a run: all that it needs, made ready for the first step, new or from a state. */
#pragma once
#include "model/train/run/run.h"
#include "model/train/run/run_folder.h"
#include "model/train/run/run_log.h"
#include "model/train/snapshot/snapshot.h"
#include "model/train/step/trainer.h"

struct run {
    struct run_options options; /* resolved */
    const struct run_watch *watch;
    struct run_folder folder;
    struct objective_data *data, *held_out;
    struct engine *engine;
    struct train_state *state;
    struct learner *learner; /* null: the mask is fixed */
    const struct comm
        *nccl; /* the ranks of options.comm in a run on GPUs; null: another run's */
    struct trainer trainer;
    struct engine_workspace workspace; /* of predictions on the dev file */
    struct run_log log;
    struct snapshot_facts facts; /* where the run stands */
    json_t *json;                /* of the options */
    char older_options[33];      /* as facts.options, of states of earlier versions */
    uint64_t saved;              /* the step of the newest state; 0: none */
    double peak;                 /* FLOP/s of the machine; 0: unknown */
    bool resumed;
};

int run_setup(const struct run_options *o, const struct run_watch *w, struct run *ret,
              struct error *e);
void run_finish(struct run *r, bool failed); /* after a failed set-up, too */
