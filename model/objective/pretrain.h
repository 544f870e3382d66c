/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-training over a DATA folder that `maskbert prep` wrote: masked words, with or without next sentences. */
#pragma once
#include "model/data/samples.h"
#include "model/objective/objective.h"

extern const struct objective objective_mlm_nsp, objective_mlm;

/* Samples of data that one of these opened. */
const struct samples *pretrain_samples(const struct objective_data *d);
