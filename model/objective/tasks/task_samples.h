/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of a task as samples: token ids, and the rows that have a label. A sample is one sequence, or one for each choice.
   Internal to model/objective/tasks. */
#pragma once
#include "model/data/tasks/dataset.h"
#include "model/objective/objective.h"

struct task_label {
    uint32_t row; /* of its sequence */
    uint32_t label;
    float value; /* where labels are numbers */
};

struct task_sequence {
    uint64_t first; /* of its token ids */
    uint32_t tokens, first_part;
    uint64_t label; /* the first of its labels */
    uint32_t labels;
};

struct task_samples {
    struct objective_data base; /* tokens: of all sequences */
    struct dataset set;         /* empty where no predictions are asked for */
    char **name;                /* [base.labels] */
    struct task_sequence *sequence;
    uint32_t *token_id;
    struct task_label *label;
    uint32_t group; /* sequences of a sample */
    size_t sequences, sequences_capacity, tokens_capacity, labels, labels_capacity;
    uint32_t cut;            /* sequences that lost tokens to the greatest length */
    uint32_t lost;           /* questions whose answer is not where the file says */
    struct text_check check; /* bytes of the file that are not UTF-8 */
};

/* Input of a reader of one format. */
struct task_reader {
    struct task_samples *to;
    const struct objective_source *from;
    struct tokens tokens;   /* memory that is kept */
    const uint32_t *number; /* [set.n_classes]: the training data's number of each class */
    const struct dataset *set;
};

/* Adds count tokens as a sequence. */
void task_samples_add(struct task_samples *s, const uint32_t *token_id, uint32_t count,
                      uint32_t first_part);
/* Adds a label to the last sequence; rows ascend. */
void task_samples_label(struct task_samples *s, struct task_label label);

/* Each adds the samples of an example. */
void encode_text(struct task_reader *r, const struct task_example *x);
void encode_choices(struct task_reader *r, const struct task_example *x);
void encode_words(struct task_reader *r, const struct task_example *x);
void encode_question(struct task_reader *r, const struct task_example *x);

/* ---- for the table of objectives ---- */

struct objective_data *task_open(const struct objective_source *s, struct error *e);
void task_close(struct objective_data *d);
const struct dataset *task_dataset(const struct objective_data *d);
struct objective_batch *task_batch_new(void);
void task_batch_destroy(struct objective_batch *b);
/* Leaves head and loss of the batch's one target to the caller. */
void task_batch_make(const struct objective_data *d, const struct batch_request *r,
                     struct objective_batch *ret);
