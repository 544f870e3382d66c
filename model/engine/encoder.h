/* SPDX-License-Identifier: Apache-2.0 */
/* Inside an engine: its backend, the weights that lie there, and attention. */
#pragma once
#include "model/backend/backend.h"
#include "model/engine/engine.h"
#include "model/ops/attention.h"
#include "model/ops/linear.h"

/* dX = dY W: the same weights transposed, without bias. */
struct layer_twins {
    struct linear projection, output; /* [H, 3 * columns], [columns, H] */
    struct linear *inner, *outer;     /* [feed.slices]: [H, I / slices], [I / slices, H] */
};

struct layer {
    struct linear projection; /* [3 * columns, H]: query, key, value, heads padded with zeros */
    struct linear output;     /* [H, columns] */
    /* [feed.slices]: [I / slices, H], [H, I / slices]. The first outer has the bias. */
    struct linear *inner, *outer;
    struct norm output_norm, outer_norm; /* of the attention block, of the feed forward */
    struct layer_twins twin;             /* where the engine trains */
};

struct embeddings {
    const struct tensor *mapped_words; /* [vocabulary, H]: the engine's weights' own */
    void *words;              /* the same in the engine's dtype where the backend keeps it */
    float *positions, *types; /* [positions, H], [types, H]; types null: the model has none */
    struct norm norm;
};

struct encoder {
    const struct backend *backend;
    struct backend_state *state; /* which owns what is below */
    struct embeddings embeddings;
    struct feed_form feed;
    struct layer *layer; /* [layers] */
    float *
        relative; /* [heads, n, n], n of the mask: the model's bias by relative position, added to scores; null: none */
    float *rotation
        [2]; /* of local layers, of global ones: cosines [positions, head_dim / 2], then sines; or null */
    struct norm final_norm; /* where norms come first */
    struct linear *slices;  /* memory of the layers' inner and outer */
    struct attention attention;
    struct linear pooler, words_dense, words_out, next, classifier,
        span; /* PART_..; or zeroed */
    struct norm words_norm;
    struct linear pooler_twin, words_dense_twin, words_out_twin; /* where the engine trains */
};

/* Gives the backend, which is open, every weight that g's config and parts need, in the backend's form. */
int encoder_pack(struct engine *g, struct error *e);
void encoder_destroy(struct encoder *c); /* null is fine */
