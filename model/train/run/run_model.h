/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a run begins with, out of any folder that holds one: heads that are missing are initialised, positions
   extended, the mask stored beside it. */
#pragma once
#include "model/train/pretrain/run_options.h"

/* Writes config.json, model.safetensors in f32, tokenizer and mask into an empty folder. `parts`: the heads that it
   gets (PART_ bits). */
int run_model_write(const struct run_options *o, const char *folder, uint32_t parts,
                    struct error *e);
