/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a run of pre-training, resolved, and as JSON: the text of RUN/run.json, and what --resume compares. */
#pragma once
#include "model/comm/comm.h"
#include "model/objective/objective.h"
#include "model/train/learn/learn_options.h"
#include "model/train/optimizer.h"
#include "model/train/schedule.h"

struct run_options {
    const char *model, *data, *run; /* DIR, DATA, RUN */
    const char *mask, *transform, *drop;
    struct learn_options learn;
    uint32_t repeat;    /* of several runs, whose random entries differ: from 1; 0: one run */
    uint32_t positions; /* 0: the model's */

    /* One of the four, the others 0. */
    uint64_t steps, tokens;
    double minutes, epochs;

    uint32_t batch,
        accumulate; /* accumulate 0: PARTS_GROUPS for a launcher's processes, else 1; resolved */
    struct optimizer optimizer;
    double rate, warmup;
    enum schedule_decay decay;
    double hidden_dropout, attention_dropout; /* below 0: the model's own */
    double head_dropout;                      /* before a new head; resolved */
    const struct objective *objective;        /* null: what the data are for */
    struct objective_options data_options;

    /* For fine-tuning: `data` is the task's folder. Each epoch ends with an evaluation on its dev file, and RUN holds the
       model that was best there. */
    const struct data_task *task; /* null: pre-training */
    bool regression;
    uint32_t max_length, overlap; /* of texts; 0: as usual */
    double null_threshold;        /* evaluate_dataset() */
    double layer_decay;           /* of the rate, from a layer to the one below; 0: none */
    enum element dtype;
    enum recompute recompute;
    uint64_t seed;
    bool overfit; /* the first batch, over and over */

    /* Options that do not change the result. eval_every decides which model of a task is kept. */
    uint32_t threads;
    uint64_t save_every, eval_every; /* steps; 0: at the end alone, never */
    uint32_t keep;                   /* states */
    bool goes_on, not_bitwise;       /* goes_on: --resume */
    const char *save_gradients;
    const struct comm *comm;       /* null: one rank */
    bool no_graphs;                /* a GPU is given each launch */
    bool zero;                     /* ranks share the moments: model/train/step/shards.h */
    bool nccl_alone;               /* of one rank: its sums go through NCCL nevertheless */
    bool launched;                 /* by a launcher of ranks, even of one */
    const char *device;            /* null: the CPU */
    const struct backend *backend; /* engine_options.backend */
};

/* True if the run's task has texts that are read by windows, not cut: questions. */
bool run_reads_windows(const struct run_options *o);

/* Names are those of the command's options, with '_' for '-'. `data_sum` tells DATA folders apart, `dev_sum` dev files; null
   for pre-training. */
json_t *run_options_json(const struct run_options *o, const char *data_sum,
                         const char *dev_sum);

/* How far a run is that goes on. */
enum run_stage {
    RUN_HAS_NO_STATE, /* it begins again: with the same --alpha */
    RUN_HAS_STATE,
    RUN_HAS_SETTLED /* on a mask: the share of --snap and --threshold stays the same from there on */
};

/* -1 with the first option that is not the stored one's. Options that do not change the result are not compared. */
int run_options_compare(const json_t *stored, const json_t *now, enum run_stage stage,
                        struct error *e);
/* Sets the share of --snap or --threshold in *stored to that of this command. True if it was another one. */
bool run_options_take_share(json_t *stored, const json_t *now);

/* -1 with the first option that ranks do not have in common; only folders, threads and a resumed run's model may differ. */
int run_options_same(const json_t *first, const json_t *own, struct error *e);

/* Hash of the options that states have in common, as 32 digits. Earlier versions had the share in it. */
void run_options_hash(const json_t *options, bool with_share, char ret[33]);
