/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of a task as its file has them: texts and labels, which fine-tuning trains on and scores are taken against. */
#pragma once
#include "model/data/tasks/rows.h"
#include "model/data/tasks/table.h"
#include "model/data/text_check.h"

struct task_example {
    const char *
        id; /* the row in its file from 0 (blank lines and the header apart); of SQuAD and MRQA the question's */
    uint32_t line, column; /* of the label, for messages; 0 where JSON does not tell */
    const char **
        text; /* one, two; SWAG: the first sentence and four endings; tokens: words; SQuAD, MRQA: question, context */
    uint32_t texts;
    const char **label; /* one; of tokens one for each word; SQuAD: none */
    uint32_t labels;
    uint32_t *
        class_of; /* of each label, a number of dataset.classes; null where labels are numbers */
    double value; /* of the label, where labels are numbers */
    const char *
        *answer; /* SQuAD, MRQA: answers in the context, none where there is no answer */
    uint32_t *answer_at; /* where each begins in the context, in code points */
    uint32_t answers;
    const char **gold; /* what predictions are compared with; of SQuAD the same as answer */
    uint32_t golds;
};

/* Options for reading a file. Zeroed, or null: the task's defaults. */
struct dataset_options {
    bool numbers; /* text, pair: labels are numbers, also where all are whole */
    bool classes; /* text, pair: labels are classes, also where all are numbers */
    bool
        phrases; /* SST-1: each phrase is an example, as for training, in place of each sentence */
};

struct dataset {
    const struct data_task *task;
    struct task_example *example;
    size_t count, capacity;
    bool labelled;        /* false: a test file, without labels */
    bool numbers;         /* labels are numbers */
    bool phrases;         /* SST-1: examples are phrases */
    const char **classes; /* names; of a task without fixed classes those of the file, sorted */
    uint32_t n_classes;
    char **skipped; /* ids of rows that were left out */
    size_t n_skipped, skipped_capacity;
    uint32_t first_skipped;  /* line of the first of them */
    struct text_check check; /* bytes that are not UTF-8, which tokenizers replace */
    void **owned;            /* what the pointers above point to */
    size_t n_owned, owned_capacity;
};

enum { DATASET_CLASSES = 4096 }; /* at most */

/* *ret is for dataset_finish() on success alone. */
int dataset_read(const struct data_task *task, const struct task_source *from,
                 const struct dataset_options *how, struct dataset *ret, struct error *e);
/* A path that ends in .gz or .zst is unpacked. SenTube's is a folder. */
int dataset_load(const struct data_task *task, const char *path,
                 const struct dataset_options *how, struct dataset *ret, struct error *e);
void dataset_finish(struct dataset *d);

/* The number of a class, or -1. */
int dataset_class(const struct dataset *d, const char *name);
/* The whole text as a finite number. */
bool dataset_number(const char *text, double *ret);
