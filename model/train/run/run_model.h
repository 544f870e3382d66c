/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a run begins with, out of any folder that holds one: heads that are missing are initialised, positions
   extended, the mask stored beside it. */
#pragma once
#include "model/train/step/run_options.h"

/* Writes config.json, model.safetensors in f32, tokenizer and mask into an empty folder. The model gets the heads of the
   objective, of fine-tuning a new one with the labels of d; `say` (or null) receives the list of initialised parts. */
int run_model_write(const struct run_options *o, const char *folder,
                    const struct objective_data *d, void (*say)(const char *line),
                    struct error *e);

/* Tokens of a text that the run's model accepts: its positions, or those of a stored mask in the folder, the model's or RUN, that
   is shorter and goes on. */
int run_model_limit(const struct run_options *o, const char *folder,
                    const struct model_config *c, uint32_t *ret, struct error *e);

/* Dropout before the head of the model class that the run gets, which may have another one than the model's class now. */
int run_model_head_dropout(const struct run_options *o, const struct model_config *c,
                           double *ret, struct error *e);

/* True if the model has a head for the objective with a label for each class of d: it goes on with its weights, and ret[k] is
   the label of class k. */
bool run_model_labels(const struct model_config *c, const struct run_options *o,
                      const struct objective *objective, const struct objective_data *d,
                      uint32_t *ret);
