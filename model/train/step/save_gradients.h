/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a step for other programs to check: gradients under HuggingFace's names, the batch, the loss. */
#pragma once
#include "model/train/step/trainer.h"

/* After trainer_step(). Written whole or not at all. */
int gradients_save(const char *path, const struct trainer *t, const struct step_result *r,
                   struct error *e);
