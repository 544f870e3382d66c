/* SPDX-License-Identifier: Apache-2.0 */
/* Layers and heads that have a distinct pattern of a mask, in the words of the mask language: lists such as
   "0-9,11". Titles in the terminal, lines of `show` and of .mask files are made from it. */
#pragma once
#include "masks/base/text.h"
#include "masks/mask.h"

struct place {
    char *layers; /* list, or null where the mask has one layer or all layers are meant */
    char *heads;  /* list */
};

/* The layers that have this pattern in the same heads share a place. Returns the number of
   places; the caller lets go of them with places_destroy. */
uint32_t mask_places(const struct mask *m, uint32_t pattern, struct place **ret);
void places_destroy(struct place *places, uint32_t n);

/* "heads 0-9", "head 3", "all heads", "layers 0-2 heads 1,3; layer 5 head 2". */
void mask_places_text(const struct mask *m, uint32_t pattern, struct text *out);

/* "0-9,11" of the set flags. Caller frees. */
char *places_list(const uint8_t *flag, uint32_t n);
