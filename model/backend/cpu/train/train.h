/* SPDX-License-Identifier: Apache-2.0 */
/* The memory for gradients on the CPU. */
#pragma once
#include "model/backend/cpu/train/backward.h"

/* Arrays one after another; base null: only their sizes are counted. */
struct arena {
    uint8_t *base;
    uint64_t used;
};
void *arena_take(struct arena *a, uint64_t bytes); /* null where there is no base */

struct backend_training {
    struct backend_workspace panels; /* their workspaces, and attention's */
    struct buffer tape, attention, heads, places;
    struct layer_tape *layer; /* [layers] */
};

/* Rows of a panel: a function of the number of tokens alone. */
uint32_t training_panel(uint32_t tokens);

/* Lay out all arrays for a batch of these sizes. */
void train_lay_out_tape(const struct engine *g, const struct gradients_sizes *s,
                        struct arena *a, struct layer_tape *layer, struct tape *tape);
void train_lay_out_lse(const struct engine *g, const struct gradients_sizes *s, struct arena *a,
                       struct layer_tape *layer);
void train_lay_out_backward(const struct engine *g, const struct gradients_sizes *s,
                            struct arena *a, struct backward *b);
void train_lay_out_heads(const struct engine *g, const struct gradients_sizes *s,
                         struct arena *a, struct backward *b);
