/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers of all formats. Internal to model/data/tasks. */
#pragma once
#include "model/data/tasks/dataset.h"

const char *dataset_keep(struct dataset *d, const char *text);
const char *dataset_keep_number(struct dataset *d, uint64_t number);
void *dataset_array(struct dataset *d, size_t count, size_t size);
/* A new example with space for so many texts and labels, its id the number of those before it, skipped ones too. */
struct task_example *dataset_add(struct dataset *d, uint32_t texts, uint32_t labels);
/* Before an example is added. The first one says whether the data are labelled; false for one that differs from it. */
bool dataset_labels_agree(struct dataset *d, bool labelled);
void dataset_skip(struct dataset *d, uint32_t line);
/* Refuses a label in field k that is not UTF-8: config.json could not hold it. */
int dataset_check_label(const struct rows *r, size_t k, struct error *e);

/* Each fills *d but for classes and values. */
int read_glue(struct dataset *d, const struct task_source *from, struct error *e);
int read_plain(struct dataset *d, const struct task_source *from, struct error *e);
int read_endings(struct dataset *d, const struct task_source *from, struct error *e);
int read_words(struct dataset *d, const struct task_source *from, struct error *e);
int read_trees(struct dataset *d, const struct task_source *from, struct error *e);
int read_tweets(struct dataset *d, const struct task_source *from, struct error *e);
int read_sides(struct dataset *d, const struct task_source *from, struct error *e);
int read_mrqa(struct dataset *d, const struct task_source *from, struct error *e);
int read_answers(struct dataset *d, const struct task_source *from, struct error *e);
