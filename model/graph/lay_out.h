/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arrays of a tape lie in training. */
#pragma once
#include "model/base/arena.h"
#include "model/graph/graph.h"

struct graph_sizes {
    uint64_t rows; /* of each array */
    bool keeps_attention,
        keeps_layers; /* struct graph_back; what is not kept all layers share */
};
/* layer [layers] and *tape get their arrays, but for LSE. */
void graph_lay_out(const struct engine *g, const struct graph_sizes *s, struct arena *a,
                   struct layer_tape *layer, struct tape *tape);
