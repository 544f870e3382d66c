/* SPDX-License-Identifier: Apache-2.0 */
/* A learned mask over the steps. */
#pragma once
#include "model/train/snapshot/mask_history.h"

/* .png or .svg by suffix: a column for each frame (16 at most, the first and the last among them), a row for each head. */
int film_draw(const struct mask_history *h, const char *path, struct error *e);
