/* SPDX-License-Identifier: Apache-2.0 */
/* An objective for tests: words and next sentences of random tokens, for models of random_model(). Parts of a batch have
   different numbers of words. A batch has at most 64 sequences. */
#pragma once
#include "model/train/step/trainer.h"

extern const struct objective random_objective;
extern const struct objective_data random_data;
extern uint32_t random_group; /* sequences of a sample: 1 or 2 */
extern bool random_spoilt;    /* the last token of each batch is one that no model knows */
