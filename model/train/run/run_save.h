/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a run while it continues. */
#pragma once
#include "model/train/run/run_setup.h"

/* State, then model.safetensors (of fine-tuning where this is the best step so far), each whole or not at all; then older
   states go. ERROR_FALSE where a parameter is not
   finite: nothing is written. */
int run_save(struct run *r, struct error *e);
/* model.safetensors and a learned mask alone: a run that was killed between the two has those of an older state. */
int run_save_model(const struct run *r, struct error *e);
/* True if the model in RUN is that of the newest state. */
bool run_model_is_newest(const struct run *r);
/* {"event":name,"step":..,"tokens":..} */
int run_log_event(struct run *r, const char *name, struct error *e);
