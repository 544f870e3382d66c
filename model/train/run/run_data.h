/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a run, and what the options leave to them and to the model: objective, dropout, the number of steps. */
#pragma once
#include "model/train/run/run_setup.h"

/* Opens r->data and, where the run evaluates, r->held_out, and sets the options that depend on them. model: the folder of
   config.json and the tokenizer. */
int run_data_open(struct run *r, const char *model, struct error *e);
