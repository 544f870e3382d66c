/* SPDX-License-Identifier: Apache-2.0 */
/* The attention mask that lies beside config.json, and its key there:
   "maskc": {"mask": FILE, "hash": .., "transform": ".."}. */
#pragma once
#include "masks/mask.h"
#include "model/checkpoint/config.h"

/* The mask that `name` means (as maskc's MASK argument) at the model's positions. It has the model's heads
   and layers, or one of them that serves all. Null with *e set. */
struct mask *model_mask(const char *name, const struct model_config *c, struct error *e);

/* The mask that the architecture has by itself: windows of local layers, else dense. */
struct mask *model_mask_own(const struct model_config *c, struct error *e);

/* The mask that c->mask names, beside config.json in the folder. An array may be shorter than the model's
   positions. *ret_changed: its hash differs from the one in config.json. */
struct mask *model_mask_stored(const char *folder, const struct model_config *c,
                               bool *ret_changed, struct error *e);

/* Tokens of a text that the model in the folder accepts: its positions, or those of a stored array that is shorter. */
int model_mask_limit(const char *folder, const struct model_config *c, uint32_t *ret,
                     struct error *e);

/* Writes mask.mask where the mask can be stated exactly and is as long as the positions, else mask.npy, and sets c->json's
   "maskc". */
int model_mask_save(const char *folder, const struct mask *m, const char *transform,
                    struct model_config *c, struct error *e);
