/* SPDX-License-Identifier: Apache-2.0 */
/* A model's answers to the examples of a dataset, as predictions that can be scored (model/score/score.h) and saved
   (predictions_save()). They are those of `maskbert classify` and `answer`. */
#pragma once
#include "model/data/tasks/predictions.h"
#include "model/score/score.h"
#include "model/tasks/tasks.h"

struct evaluated {
    struct predictions found;
    struct prediction_scores *
        of; /* [examples]: probabilities of the model's labels; of an answer how far [CLS] is above it */
    double *value;           /* what they point to */
    struct task_spans spans; /* of questions: the best answers of each */
    uint32_t texts, cut;     /* texts that the model got, and those of them that were cut */
    uint64_t
        hidden; /* words that no token stands for, as the text was too long: they count as the first label */
};

/* -1 where the model's head is not for the task, or has other labels. `name` is for messages. */
int evaluate_check(const struct model_config *c, const struct dataset *d, const char *name,
                   struct error *e);
/* null_threshold: of a task with questions that have no answer: one is given where its score is at least that of [CLS] less
   the threshold. *ret is for evaluated_finish() on success alone. */
int evaluate_dataset(const struct task_runner *t, const struct dataset *d,
                     double null_threshold, struct evaluated *ret, struct error *e);
/* Answers to questions with another threshold: INFINITY withholds no answer. Release *ret with predictions_finish(). */
void evaluated_answers(const struct dataset *d, const struct evaluated *v,
                       double null_threshold, struct predictions *ret);
void evaluated_finish(struct evaluated *v);
