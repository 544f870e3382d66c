/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pass leaves each layer's arrays. Inference has one layer that all reuse, and hidden states that a layer
   replaces. Training keeps what the backward pass reads; where that is computed again, layers share arrays. */
#pragma once
#include <stdint.h>

/* (x - mean) * inverse, and inverse, of a LayerNorm. Null in inference. */
struct norm_tape {
    void *normalised; /* [T, H] */
    float *inverse;   /* [T] */
};

/* T rows each, and some that products write beyond them. */
struct layer_tape {
    void *hidden;     /* [T, H]: the layer's input */
    void *projection; /* [T, 3 * columns] */
    void *context;    /* [T, columns] */
    float *lse;       /* [heads, T] */
    struct norm_tape output_norm, outer_norm;
    void *middle; /* [T, H]: after the first LayerNorm */
    void *pre,
        *inner; /* [slices][rows][I / slices]: before and after the activation; null in inference */
};

struct tape {
    const struct layer_tape *layer;
    uint32_t step;                    /* from layer to layer: 1, or 0: all are layer[0] */
    uint64_t rows;                    /* of a slice of pre and inner */
    void *last;                       /* [T, H]: after the last layer */
    struct norm_tape embeddings_norm; /* f32 */
};
