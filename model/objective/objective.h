/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives of training: a row in objective.c for each objective, and a file, or for those of tasks the folder tasks/. An objective says which parts of a model
   it needs, reads data, makes batches with targets (model/gradients/batch.h), and names the numbers that people see.
   The loss is the sum over targets of weight * mean cross-entropy. Library code above (model/train/) knows only this
   interface. Thread-safety: opened data do not change; each thread has a batch of its own. */
#pragma once
#include "masks/base/text.h"
#include "model/gradients/gradients.h"

struct objective;
struct dataset; /* model/data/tasks/dataset.h */
struct data_task;

/* Data as an objective opened them: the first member of the objective's own struct. */
struct objective_data {
    const struct objective *natural; /* what the data are for where the user says nothing */
    uint32_t count;                  /* samples of an epoch */
    uint32_t length;                 /* no sample has more tokens */
    uint32_t vocabulary;             /* token ids are below */
    uint32_t labels;                 /* of the classifier; 0: there is none */
    char *const *label;              /* [labels]: their names */
    uint64_t tokens;                 /* of an epoch */
    char sum[33];                    /* tells data apart: 32 digits */
};

struct objective_source {
    const char *path;
    bool held_out; /* the part for evaluation, where the data have one */
    const struct data_task
        *task; /* of fine-tuning: how the files in the folder `path` are read; else null */
    bool regression;                   /* its labels are numbers */
    const struct tokenizer *tokenizer; /* of the model; null: it has none */
    uint32_t longest,
        overlap; /* tokens of a text or window at most, of windows in common (0: as usual) */
    const struct objective_data *like; /* labels are numbered as there; null: anew */
};

/* Settings of a run that only an objective reads. */
struct objective_options {
    double
        mlm_probability; /* share of tokens that are masked; 0.15 by default in the commands */
    bool whole_words;    /* all pieces of a word are masked, or none */
};

/* A batch: the first member of the objective's own struct. */
struct objective_batch {
    struct train_batch batch;
};

/* Samples first .. first + count - 1 in the order of an epoch, a function of (seed, epoch). Places at or beyond the
   data's count are those of the epochs that follow. */
struct batch_request {
    const struct objective_options *options;
    uint64_t seed;
    uint32_t epoch;
    uint64_t first;
    uint32_t count;
};

/* A number of log.jsonl and of JSON. */
struct metric {
    const char *name;
    double value;
};
enum { METRICS_MOST = 8 };

struct objective {
    const char *name;
    uint32_t parts;                  /* PART_ bits of the heads */
    const struct objective *simpler; /* for models without some of these heads; null: none */
    uint32_t targets;
    double weight[TARGETS_MOST]; /* of the targets' means in the loss */
    enum target_head head;       /* of the target, where the model gets a new one */
    const char *
        model_class; /* how its model class of transformers ends: the model gets a new head with
                                    objective_data.labels. Null: heads stay as they are */
    const char *problem; /* problem_type of config.json; null: none */

    /* Null with *e set. */
    struct objective_data *(*open)(const struct objective_source *s, struct error *e);
    void (*close)(struct objective_data *d); /* null is fine */
    /* The examples that were opened as held out, which predictions are scored against. Null: there are none. */
    const struct dataset *(*dataset)(const struct objective_data *d);
    /* Checks that a model can be trained with the data; `path` is for messages. Null: any model. */
    int (*check)(const struct objective_data *d, const char *path, const struct model_config *c,
                 struct error *e);
    struct objective_batch *(*batch_new)(void);
    void (*batch_destroy)(struct objective_batch *b); /* null is fine */
    /* Used again, a batch allocates no more than its largest needs. */
    void (*batch)(const struct objective_data *d, const struct batch_request *r,
                  struct objective_batch *ret);

    /* Means of the targets' losses by name, after "loss" in log.jsonl. Returns how many. What a run does not have is 0. */
    uint32_t (*step_metrics)(const double mean[TARGETS_MOST], struct metric ret[METRICS_MOST]);
    /* Metrics of an evaluation, and their text for people. */
    uint32_t (*metrics)(const struct batch_loss *l, struct metric ret[METRICS_MOST]);
    void (*text)(const struct batch_loss *l, struct text *to);
    /* "loss 5.1506 (MLM 4.4629)" */
    void (*loss_text)(double loss, const double mean[TARGETS_MOST], struct text *to);
    /* "4096 samples, .." */
    void (*describe)(const struct objective_data *d, struct text *to);
    /* True if the running means are where a model has learned nothing yet; *to then gets a line that says so. A null pointer: this is unknown. */
    bool (*plateau)(const struct objective_data *d, const double mean[TARGETS_MOST],
                    struct text *to);
    /* Adds to the options of run.json. Null: there are none. */
    void (*add_options)(const struct objective_options *o, json_t *to);
};

extern const struct objective *const objectives[]; /* ends with null */
/* By name; null: there is none. */
const struct objective *objective_find(const char *name);

/* The weighted sum of the targets' means, which ret_mean gets; 0 for a target without rows. */
double objective_loss(const struct objective *o, const struct batch_loss *l,
                      double ret_mean[TARGETS_MOST]);
