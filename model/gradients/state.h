/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a run: parameters, their gradients and two moments, one flat buffer each, in f32. A table of pieces
   says which parameter stands where, and how the optimiser treats it. Buffers are arrays of the backend
   (model/backend/training.h). The engine's tensors point into `value`. */
#pragma once
#include "model/backend/training.h"
#include "model/engine/engine.h"
#include <stdbool.h>

/* One parameter (model/arch/parameter.h). Query, key and value of a layer are pieces of their own (LAMB needs
   their norms apart) that follow each other: their weights, then their biases, so that the fused projection's
   gradient can be written in one go where no piece is padded. Pieces begin at multiples of PIECE_ALIGN; what lies
   between them is 0 and stays 0. */
enum { PIECE_ALIGN = 16 };
struct piece {
    const struct parameter *parameter; /* lives with the engine's weights */
    uint64_t first, count;             /* elements of the flat buffers */
    bool decays;                       /* weight decay: neither biases nor LayerNorm */
    float
        rate_scale; /* multiplies the learning rate; 1 unless train_state_layer_decay() says otherwise */
};

/* Elements of a flat buffer. */
struct span {
    uint64_t first, count;
};

struct train_state {
    struct piece *piece; /* [pieces], by `first` */
    uint32_t pieces;
    uint64_t count;                      /* elements of a buffer, a multiple of PIECE_ALIGN */
    float *value, *gradient;             /* [count]: the device's */
    float *first_moment, *second_moment; /* [moments.count]: of these elements */
    struct span moments;                 /* all, unless ranks share the moments */
    struct training_device device;
};

/* Device of the arrays of an engine that trains. It lives as long as the engine. */
struct training_device train_device(const struct engine *g);

/* Copies the engine's parameters and lets its tensors point here, so that engine_repack() reads them. The engine
   must have been loaded for training and outlive *ret. */
int train_state_new(struct engine *g, struct train_state **ret, struct error *e);
void train_state_destroy(struct train_state *s); /* before the engine; null is fine */

/* The four arrays of a state whose pieces, count and device are there. -1: *s has those that were made. */
int train_state_allocate(struct train_state *s, struct error *e);
void train_state_finish(struct train_state *s); /* gives these back, where there are any */
/* Gives the moments back and makes zeroed ones of some elements only. */
int train_state_shard(struct train_state *s, struct span moments, struct error *e);
/* Writes zeros over the gradient. */
int train_state_clear(const struct train_state *s, uint32_t threads, struct error *e);

/* Work and memory of the state's device so far; zeros where the backend does not count. */
struct training_use train_state_use(const struct train_state *s);
/* Elements of each buffer that train_state_new() would make; for an outline, too. */
uint64_t train_state_count(const struct engine *g);

/* Blocks of at most `size` elements of one piece each. */
uint64_t train_state_blocks(const struct engine *g, uint64_t size);

/* Learning rates that shrink from the heads to the embeddings: scales the rate of layer l of L (from 0) by
   decay^(L - l), of the embeddings by decay^(L + 1). Parameters after the layers keep 1: a final norm, the pooler, the
   heads. decay: above 0, at most 1, which is the default and changes no bit. */
void train_state_layer_decay(struct train_state *s, double decay);

/* Layers that have parameters. */
uint32_t train_state_layers(const struct train_state *s);
/* The first element whose gradient, with all after it, is complete once the backward pass has left `layer`: those of the
   embeddings and of earlier layers lie before it. */
uint64_t train_state_final(const struct train_state *s, uint32_t layer);

/* Null: the model has no such parameter. `layer` is 0 for what is in no layer. */
const struct piece *train_state_piece(const struct train_state *s, enum parameter_id id,
                                      uint32_t layer);
