/* SPDX-License-Identifier: Apache-2.0 */
/* A whole attention mask: one pattern per (layer, head), identical ones stored once. */
#pragma once
#include "masks/base/error.h"
#include "masks/pattern.h"

enum { MASK_MAX_HEADS = 4096, MASK_MAX_LAYERS = 4096, MASK_MAX_PLACES = 1 << 18 };

struct mask {
    uint32_t n, heads, layers; /* each at least 1 */
    uint32_t n_patterns;
    struct pattern **pattern; /* [n_patterns], owned, all different, in order of first use */
    uint32_t *at; /* [layers * heads]: pattern of head h in layer l is at[l*heads + h] */
    char *source; /* how the user named it, for titles and messages; owned */
    uint32_t queries,
        keys; /* of a kernel file whose numbers differ (masks/rectangle.h); else 0 */
};

/* Takes ownership of the given patterns (an array of layers * heads pointers, itself not kept;
   the same pointer may stand more than once) and merges equal ones. */
struct mask *mask_new(uint32_t layers, uint32_t heads, struct pattern **given,
                      const char *source);
void mask_destroy(struct mask *m); /* null is fine */

/* Refuses --heads above MASK_MAX_HEADS, or above MASK_MAX_PLACES in all layers. 0: not given. */
int mask_check_heads(uint32_t layers, uint32_t heads, struct error *e);

const struct pattern *mask_pattern(const struct mask *m, uint32_t layer, uint32_t head);

/* The same mask with heads repeated (m must have one head), cropped, one layer of it, or one head of each layer. They
   return a new mask, or null with *e set. */
struct mask *mask_repeat_heads(const struct mask *m, uint32_t heads, struct error *e);
struct mask *mask_crop(const struct mask *m, uint32_t n, struct error *e);
struct mask *mask_layer(const struct mask *m, uint32_t layer, struct error *e);
struct mask *mask_head(const struct mask *m, uint32_t head, struct error *e);
struct mask *mask_transpose(const struct mask *m, struct error *e);
/* The same mask with each pattern replaced by what `change` makes of it; null where that is null once. */
struct mask *mask_map(const struct mask *m,
                      struct pattern *(*change)(const struct pattern *p, void *context,
                                                struct error *e),
                      void *context, struct error *e);
double mask_bytes(const struct mask *m); /* of its patterns */
bool mask_equal(const struct mask *a, const struct mask *b);
/* Depends only on the size and the patterns: equal masks have equal hashes, however they were written. */
uint64_t mask_hash(const struct mask *m);
