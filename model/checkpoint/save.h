/* SPDX-License-Identifier: Apache-2.0 */
/* A model's folder, written so that transformers loads it. */
#pragma once
#include "model/checkpoint/weights.h"

/* Writes model.safetensors, then config.json: a folder that was cut short is no model. */
int model_save(const char *folder, const struct model_config *c, const struct weights *w,
               enum element element, struct error *e);

/* -1 where the folder has a file that would change the model saved there: one that is read beside it and that
   will not be replaced. replaced: names, ended by null; files copied from `from` (or null) count, too. */
int model_check_target(const char *folder, const char *from, const char *const *replaced,
                       struct error *e);

/* Changes the number of positions. Fewer: the table is cut. More: the table repeats, as Longformer's was
   begun. */
void model_resize_positions(struct model_config *c, struct weights *w, uint32_t positions);

/* Copies the rest of a model: tokenizer, sentence-transformers' files, texts; not weights and config.json.
   Where max_length is not 0 it becomes the tokenizer's model_max_length, and sentence-transformers' max_seq_length where the
   model has one. */
int model_copy_rest(const char *from, const char *to, uint32_t max_length, struct error *e);

/* One file of the folder, as it is. */
int model_copy_file(const char *from, const char *to, const char *name, struct error *e);
