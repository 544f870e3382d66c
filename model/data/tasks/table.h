/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks by name: how their files are read and which metrics they have. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum task_format {
    TASK_GLUE,    /* TSV by the names of columns, or by their places */
    TASK_PLAIN,   /* text, pair: TSV with a header, or JSONL */
    TASK_ENDINGS, /* SWAG's CSV */
    TASK_WORDS,   /* a word, a tab, its label; a blank line between sentences */
    TASK_ANSWERS, /* SQuAD's JSON, MRQA's JSONL */
    TASK_TREES,   /* SST-1: a tree a line, each phrase with a label */
    TASK_TWEETS,  /* SemEval: ids, label, text */
    TASK_SIDES,   /* SenTube: a folder with a file for each class, a text a line */
};

/* A set of bits. */
enum task_metric {
    METRIC_ACCURACY = 1,
    METRIC_F1 = 2, /* of the class "1" */
    METRIC_MATTHEWS = 4,
    METRIC_CORRELATION = 8, /* Pearson, Spearman */
    METRIC_ANSWERS = 16,    /* exact match and F1 */
};

enum { TASK_CLASSES = 5, TASK_CHOICES = 4 }; /* CHOICES: endings of an example */

/* Places of columns in files without a header, from 0. */
struct task_columns {
    uint32_t text[2], label;
};

struct data_task {
    const char *name;
    enum task_format format;
    uint32_t metrics; /* of TASK_PLAIN: those of classes; numbers have METRIC_CORRELATION */
    const char *text[2], *label; /* columns of the header */
    /* In the order of HuggingFace's labels; none: what the file has. */
    const char *classes[TASK_CLASSES];
    const char *other_names
        [TASK_CLASSES]; /* of the classes, as HuggingFace's data sets have them; null: none */
    bool numbers;       /* labels are numbers */
    const struct task_columns *headless; /* null: files have a header */
    bool skips;        /* rows with too few fields or no label are left out and counted */
    bool unanswerable; /* SQuAD 2.0: a question may have no answer */
    bool lines;        /* MRQA: a JSON object a line */
};

extern const struct data_task data_tasks[]; /* ends with a null name */

/* Null where no task has this name; *e then lists the names. */
const struct data_task *data_task_find(const char *name, struct error *e);
