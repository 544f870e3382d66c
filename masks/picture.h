/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of masks as in the papers' figures: white active, dark inactive, one panel for each
   head (heads with the same mask share one, titled with their list), large masks sampled down by
   area. */
#pragma once
#include "masks/base/text.h"
#include "masks/mask.h"

/* .png or .svg by suffix. */
int mask_draw(const struct mask *m, const char *path, struct error *e);

/* A small picture for a terminal, at most `columns` wide, in half-block characters. */
void mask_draw_text(const struct mask *m, uint32_t columns, struct text *out);
