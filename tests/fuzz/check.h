/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of everything a reader accepts, shared by the fuzz targets. A violation aborts. */
#pragma once
#include "masks/base/error.h"
#include "masks/mask.h"
#include <stddef.h>

/* Runs sorted, disjoint, inside, counted; turning twice gives the mask back. Destroys m. */
void check_mask(struct mask *m);

/* A refusal is bad input and says something in one first line. */
void check_refusal(const struct error *e);

/* libFuzzer's entry; replay.c calls it too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
