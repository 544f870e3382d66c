/* SPDX-License-Identifier: Apache-2.0 */
/* Training from a model and data to a RUN folder: a model that transformers loads at any time, with
   run.json, log.jsonl and state/ beside it. */
#pragma once
#include "model/score/score.h"
#include "model/train/step/run_options.h"
#include "model/train/step/trainer.h"

struct run_progress {
    uint64_t step, steps; /* 0 steps: the time decides */
    const struct objective *objective;
    double loss, mean[TARGETS_MOST]; /* running means, of the targets' losses too */
    double rate;                     /* learning rate */
    double tokens_per_s, mfu;        /* of the last steps; mfu NaN where no peak is known */
    double share, left;              /* of the run that is done; seconds that are left */
    bool due;                        /* for a line that stays: see run_line_due() */
    struct score dev;                /* of fine-tuning, the last one; null name: none yet */
};

struct run_watch {
    bool (*stop)(void); /* true: save and end. Asked before each step */
    void (*progress)(const struct run_progress *p);
    void (*tell)(const char *step); /* long work that begins; null: it is over */
    void (*say)(const char *line);  /* what a person should know */
};

/* Result of a run. */
struct run_result {
    bool interrupted; /* and saved */
    uint64_t step, tokens;
    const struct objective *objective;
    double loss, mean[TARGETS_MOST]; /* running means; NaN: there was nothing left to do */
    double elapsed;
    bool
        evaluated; /* in this process: on the held-out samples, after the last step or before it */
    struct evaluation held_out;
    /* For fine-tuning: */
    struct task_scores dev; /* of the best step, where it was in this process */
    double best;            /* the metric that decides, at the best step */
    uint64_t best_step;
    double epoch_steps; /* of an epoch */
    /* On a GPU; else 0: */
    uint64_t launches;     /* of the last step: kernels and matrix products */
    uint64_t device_bytes; /* that it allocated there at most */
};

/* ERROR_FALSE: a loss or a parameter was not finite, and the last state that was saved stays. ERROR_UNAVAILABLE: what had
   to be written could not be; the state before it stays. */
int run_train(const struct run_options *o, const struct run_watch *w, struct run_result *ret,
              struct error *e);
