/* SPDX-License-Identifier: Apache-2.0 */
/* The panels of a picture: one for each head; where layers differ, one for each head of each
   distinct layer. Heads with the same mask name the same pattern. */
#pragma once
#include "masks/mask.h"

struct panel {
    uint32_t pattern;
    char *title; /* "head 3", "layers 0-2 head 3" */
};

/* The first `most` panels, layer by layer in order of first use. *all is how many there are in
   all. Returns how many stand in *ret, which the caller lets go of with panels_destroy. */
uint32_t mask_panels(const struct mask *m, uint32_t most, struct panel **ret, uint64_t *all);
void panels_destroy(struct panel *panels, uint32_t n);
