/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a run, and what the options leave to them and to the model: objective, dropout, the number of steps. */
#pragma once
#include "model/train/run/run_setup.h"

/* Opens r->data and, where the run evaluates, r->held_out. model: the folder whose config.json and tokenizer they are read
   with. */
int run_data_open(struct run *r, const char *model, struct error *e);
