/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of a model for the examples of a dataset, and their files: JSONL {"id","prediction"}, a GLUE submission
   (index, a tab, prediction), for SQuAD and MRQA also {id: text}. */
#pragma once
#include "masks/base/text.h"
#include "model/data/tasks/dataset.h"

struct prediction {
    const char *const *part; /* one text; of tokens one for each word */
    uint32_t parts;
    uint32_t line; /* in the file, 1 without one; 0: there is no prediction */
};

struct predictions {
    struct prediction *of; /* [dataset.count], in the order of its examples */
    size_t count;
    struct dataset texts; /* owns them */
};

/* Exactly one for each example; those for skipped rows are passed over. Numbers are finite, classes among the task's
   fixed ones. *ret is for predictions_finish() on success alone. */
int predictions_read(const struct dataset *d, const struct task_source *from,
                     struct predictions *ret, struct error *e);
int predictions_load(const struct dataset *d, const char *path, struct predictions *ret,
                     struct error *e);
void predictions_finish(struct predictions *p);

/* An empty set for d, to be filled: a text of example k, for tokens one for each word. Texts are copied. */
void predictions_begin(struct predictions *p, const struct dataset *d);
void predictions_set(struct predictions *p, size_t k, const char *const *part, uint32_t parts);

/* Probabilities in the order of the model's labels (id2label of its config.json; of choices, in the order of the file), for
   tokens word after word; one number: a score; count 0: none. */
struct prediction_scores {
    const double *value;
    uint32_t count;
};

/* All predictions, whole or not at all. SQuAD's are {id: text}. Others are rows of a GLUE submission where the path ends
   with .tsv, and else JSONL {"id","prediction"} with "probabilities" or a "score". `of`: [d->count], or null. */
int predictions_save(const char *path, const struct dataset *d, const struct predictions *p,
                     const struct prediction_scores *of, struct error *e);
/* The bytes of that file, added to *to. */
int predictions_format(const char *path, const struct dataset *d, const struct predictions *p,
                       const struct prediction_scores *of, struct text *to, struct error *e);
