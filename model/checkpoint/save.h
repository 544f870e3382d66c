/* SPDX-License-Identifier: Apache-2.0 */
/* A model's folder, written so that transformers loads it. */
#pragma once
#include "model/checkpoint/weights.h"

/* model.safetensors, then config.json: a folder cut short is no model. */
int model_save(const char *folder, const struct model_config *c, const struct weights *w,
               enum element element, struct error *e);

/* -1 where the folder has a file that would make what is saved there another model: one that is read
   beside it, and that nobody is about to replace. replaced: names, ended by null; what is copied from
   `from` (or null) is replaced too. */
int model_check_target(const char *folder, const char *from, const char *const *replaced,
                       struct error *e);

/* Another number of positions: fewer are cut off; more repeat the table, as Longformer was begun. */
void model_resize_positions(struct model_config *c, struct weights *w, uint32_t positions);

/* Copies what else makes up a model (tokenizer, sentence-transformers' files, texts), all but weights
   and config.json. The tokenizer's model_max_length becomes max_length where it is not 0. */
int model_copy_rest(const char *from, const char *to, uint32_t max_length, struct error *e);

/* One file of the folder, as it is. */
int model_copy_file(const char *from, const char *to, const char *name, struct error *e);
