/* SPDX-License-Identifier: Apache-2.0 */
/* The attention mask that lies beside config.json, and its key there:
   "maskc": {"mask": FILE, "hash": .., "transform": ".."}. */
#pragma once
#include "masks/mask.h"
#include "model/checkpoint/config.h"

/* The mask that `name` means (as maskc's MASK argument), at the model's positions, for its heads and
   layers or for one of them that serves all. Null with *e set. */
struct mask *model_mask(const char *name, const struct model_config *c, struct error *e);

/* Writes mask.mask where the mask can be stated exactly, else mask.npy, and sets c->json's "maskc". */
int model_mask_save(const char *folder, const struct mask *m, const char *transform,
                    struct model_config *c, struct error *e);
