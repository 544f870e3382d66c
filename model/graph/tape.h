/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pass leaves each layer's arrays; on a GPU pointers are the device's. Inference has one layer that all reuse, and
   hidden states that a layer replaces. Training keeps what the backward pass reads; where that is computed again, layers
   share arrays. T: tokens of the batch. */
#pragma once
#include "model/ops/ops.h"

/* T rows each, and some that products write beyond them. */
struct layer_tape {
    void *hidden;       /* [T, H]: the layer's input */
    void *attention_in; /* [T, H]: its norm, where norms come first; else null */
    void *projection;   /* [T, 3 * columns] */
    void *context;      /* [T, columns] */
    float *lse;         /* [heads, T] */
    struct norm_tape output_norm, outer_norm;
    void *middle;  /* [T, H]: after the attention block */
    void *feed_in; /* [T, H]: its norm, where norms come first; else null */
    void *pre,
        *inner; /* [slices][rows][I / slices]: before and after the activation; null in inference. Gated: [rows][2 I], [rows][I], and
                   there in inference too */
};

struct tape {
    const struct layer_tape *layer;
    uint32_t step; /* from layer to layer: 1, or 0: all are layer[0] */
    uint64_t rows; /* of a slice of pre and inner */
    void *last;    /* [T, H]: what heads read */
    void *
        unnormed; /* [T, H]: the last layer's result, where a final norm makes `last` of it; else null */
    struct norm_tape final_norm;
    struct norm_tape embeddings_norm; /* f32 */
};
