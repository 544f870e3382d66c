/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of one head given by a formula: which query of n sees which key. */
#pragma once
#include "masks/mask.h"

struct mask *formula_mask(uint32_t n, bool (*sees)(uint32_t n, uint32_t i, uint32_t j));

/* Formulas that several tests use. */
bool formula_dense(uint32_t n, uint32_t i, uint32_t j);
bool formula_causal(uint32_t n, uint32_t i, uint32_t j);
