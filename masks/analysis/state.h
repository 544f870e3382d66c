/* SPDX-License-Identifier: Apache-2.0 */
/* A mask as text in the mask language: `maskc make MASK -o FILE.mask`. */
#pragma once
#include "masks/base/text.h"
#include "masks/mask.h"

/* Appends the file's text; fails, naming .npy, where some head cannot be stated exactly. */
int mask_state(const struct mask *m, struct text *out, struct error *e);
