/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a task's files in a folder, as its authors distribute them: GLUE's CoLA/train.tsv, SQuAD's train-v1.1.json. */
#pragma once
#include "model/data/tasks/table.h"

enum task_part {
    TASK_TRAIN,
    TASK_DEV,
    TASK_DEV_2, /* MNLI's mismatched */
    TASK_TEST,
    TASK_TEST_2, /* MNLI's mismatched */
    TASK_PARTS,
};

/* The path of a part's file: in `folder` or one level below, in a folder with the task's name. Names that
   end in .gz or .zst count where the plain file is missing. SenTube's part is a folder with a file for each class.
   Caller frees. Null with *e set where there is none, unless it is optional, or where there are two. */
char *task_file(const struct data_task *t, const char *folder, enum task_part part,
                bool optional, struct error *e);
