/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of masks in the convention of all figures: dark active, white inactive, large masks sampled
   down by area. */
#pragma once
#include "masks/base/text.h"
#include "masks/mask.h"

/* One panel for each head, where layers differ for each head of each distinct layer. .png or .svg
   by suffix. A sheet has at most 1024 panels; a line below them says where heads are left out. */
int mask_draw(const struct mask *m, const char *path, struct error *e);

/* A small picture for a terminal, at most `columns` wide, in half-block characters; heads with the
   same mask share a panel, titled with their list. */
void mask_draw_text(const struct mask *m, uint32_t columns, struct text *out);
