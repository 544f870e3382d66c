/* SPDX-License-Identifier: Apache-2.0 */
/* A pass of the encoder as its architecture describes it: the blocks of each layer, one after another, in the operations of
   a backend (model/ops/ops.h). A backend may know a faster way through some lists of blocks; this one is for all. */
#pragma once
#include "model/engine/encoder.h"
#include "model/graph/tape.h"

/* Sites of dropout; attention's own has the layer's seed. NONE: nothing drops out. */
enum { SITE_EMBEDDINGS, SITE_NONE = INT32_MAX };
uint32_t graph_output_site(const struct arch *a, uint32_t layer); /* of the attention block */
uint32_t graph_outer_site(const struct arch *a, uint32_t layer);  /* of the feed forward */
uint32_t graph_head_site(uint32_t layers);  /* before the linear of a classifier or span head */
uint32_t graph_dense_site(uint32_t layers); /* before the dense layer of a classifier */

struct graph {
    const struct engine *g;
    const struct ops *ops;
    struct op_batch *batch;
    const struct tape *tape;
};

/* Arrays of the way back, T rows each and some that products write beyond. */
struct graph_back {
    float *stream;      /* [T, H]: in the gradient of tape->last */
    float *block;       /* [T, H]: of a block's input, where norms come first; else null */
    float *d_inner;     /* [T, I] */
    void *d_outer;      /* [T, H] of the dtype: of the feed forward's result */
    void *d_pre;        /* [T, I] of the dtype */
    void *d_output;     /* [T, H] of the dtype: of the attention block's result */
    void *d_context;    /* [T, columns] of the dtype */
    void *d_projection; /* [T, 3 * columns] of the dtype */
    bool keeps_attention, keeps_layers; /* what the tape still has of each layer but the last */
};

/* From the embeddings to tape->last. */
int graph_forward(const struct graph *p, struct error *e);
/* From the stream to the embeddings. What the tape does not keep is computed again. */
int graph_backward(const struct graph *p, const struct graph_back *b, struct error *e);
/* The parts of that, in this order: back through the final norm, if there is one; through each layer, from the last to the
   first; then the operation embed_back. */
int graph_norm_back(const struct graph *p, const struct graph_back *b, struct error *e);
int graph_layer_back(const struct graph *p, const struct graph_back *b, uint32_t layer,
                     struct error *e);

/* The tape's arrays of a layer, and where its result goes. */
const struct layer_tape *graph_layer(const struct tape *t, uint32_t layer);
void *graph_output(const struct tape *t, uint32_t layers, uint32_t layer);

/* ---- what forward and backward share: the operations of a layer ---- */

struct op_linear graph_projection(const struct graph *p, uint32_t layer);
struct op_close graph_attention_close(const struct graph *p, uint32_t layer);
struct op_linear graph_inner(const struct graph *p, uint32_t layer);
struct op_close graph_feed_close(const struct graph *p, uint32_t layer);
/* The attention block's input is a norm's: not where norms come after, nor where a layer has none. */
bool graph_attention_begins(const struct graph *p, uint32_t layer);
/* Before a block, where norms come first. */
struct op_norm graph_attention_norm(const struct graph *p, uint32_t layer);
struct op_norm graph_feed_norm(const struct graph *p, uint32_t layer);
struct op_norm graph_final_norm(const struct graph *p);

/* Parts of a layer: to its projection, to its context, to its result. */
int graph_project(const struct graph *p, uint32_t layer, struct error *e);
int graph_attend(const struct graph *p, uint32_t layer, struct error *e);
int graph_rest(const struct graph *p, uint32_t layer, struct error *e);
