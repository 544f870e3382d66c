/* SPDX-License-Identifier: Apache-2.0 */
/* What a model predicted for the examples of a dataset, from a file: JSONL {"id","prediction"}, a GLUE submission (index, a tab,
   prediction), or for SQuAD {id: text}. */
#pragma once
#include "model/data/tasks/dataset.h"

struct prediction {
    const char *const *part; /* one text; of tokens one for each word */
    uint32_t parts;
    uint32_t line; /* 0: none */
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
