/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward over a batch: the loss, and gradients added to the state's.

   Loss = sum over targets of weight * sum of its losses (enum target_loss_kind). Weights are those of the global batch
   (1 / the target's losses there, train_target_count()), so that parts of a batch add up to the whole.

   Results are a function of the parameters, the batch and the seed: never of threads, and beyond rounding
   (1e-6) never of how a batch is cut into parts. Dropout of a hidden state is a function of (seed, layer, site,
   sample, position, column), attention's of (seed, layer, sample, head, i, j).

   The word embedding of pad_token_id gets no gradient as an input, only as an output, as in transformers. */
#pragma once
#include "model/gradients/batch.h"
#include "model/gradients/state.h"

/* Parts that the forward pass keeps for the backward pass, from most memory to least. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_ATTENTION, /* projection, context and LSE are computed again */
    RECOMPUTE_LAYER,     /* all but each layer's input is */
};

/* Loss of a target of a batch. */
struct target_loss {
    double sum;            /* of losses: cross-entropies in nats, or squares */
    uint64_t count, right; /* losses; those whose largest logits are right, of squares 0 */
};
struct batch_loss {
    struct target_loss target[TARGETS_MOST];
};

/* An array X that attention adds to its scores beside the mask (an engine that was loaded biased), n being the mask's
   length. The backward pass adds to its gradient, layer after layer from the last to the first. The three are arrays of
   the backend. */
struct trained_bias {
    const float *value; /* [heads, n, n], or one for each layer */
    bool per_layer;     /* value and gradient have each layer's */
    bool diagonals;     /* the gradient is that along diagonals */
    float *
        gradient; /* [heads, n, n] or [heads, 2n - 1], or one for each layer; null: not wanted */
    float *part;  /* as large as one layer's gradient: worked in */
};

/* Follows a backward pass, so that gradients can be used before it ends. */
struct gradients_watch {
    /* Called from the last layer to the first, once the device has been given all work on the gradients of that layer, of
       later layers and of heads: the elements from train_state_final() on. Work that is submitted to the device's arrays
       now finds them complete. Returns 0, or -1 with *e set, which ends the pass. */
    int (*left_layer)(void *context, uint32_t layer, struct error *e);
    void *context;
};

struct gradients_request {
    struct engine *engine; /* loaded for training */
    struct train_state *state;
    const struct train_batch *batch;
    uint64_t seed; /* of dropout */
    double hidden_dropout, attention_dropout;
    double head_dropout; /* of what the classifier or the span head reads; 0: none */
    double weight[TARGETS_MOST];
    enum recompute recompute;
    bool loss_only; /* evaluation: no dropout, no backward pass */
    bool
        no_graphs; /* a GPU is given each launch, and none is replayed; the bits are the same */
    const struct trained_bias *bias; /* where the engine is biased; else null */
    /* Null: none. A backend may ignore it, as the CPU's does. */
    const struct gradients_watch *watch;
};

/* The seed of a layer's attention, whose draws are maskc's. */
uint64_t gradients_attention_seed(uint64_t seed, uint32_t layer);

/* Memory for the work on a batch. It grows with the largest batch and is kept. */
struct gradients_workspace;
struct gradients_workspace *gradients_workspace_new(const struct engine *g);
void gradients_workspace_destroy(struct gradients_workspace *w); /* null is fine */

/* Adds to *loss and, unless loss_only, to r->state->gradient. */
int gradients_compute(const struct gradients_request *r, struct gradients_workspace *w,
                      struct batch_loss *loss, struct error *e);

/* Names the instructions and libraries that the bits of gradients depend on. The caller frees it. */
char *gradients_identity(const struct engine *g);

/* Bytes that a workspace holds for a batch of these sizes, by part: what `maskbert memory` predicts. */
struct gradients_sizes {
    uint32_t sequences, tokens, longest;
    uint32_t words;  /* rows of the target of words */
    uint32_t labels; /* rows of the other target that has most */
    enum recompute recompute;
    uint32_t pooled; /* rows of the pooled target that has most */
    uint32_t read;   /* rows of the last layer that heads read; 0: any */
};
/* Returns the sizes of a request; `read` is 0. */
struct gradients_sizes gradients_sizes_of(const struct gradients_request *r);
struct gradients_memory {
    uint64_t activations; /* the tape and what lies between layers */
    uint64_t attention;   /* LSE and the kernels' workspace */
    uint64_t heads;       /* logits and their gradient */
    uint64_t weights;     /* packed copies, transposed twins included */
};
int gradients_memory(const struct engine *g, const struct gradients_sizes *s,
                     struct gradients_memory *ret, struct error *e);

/* Arrays of a workspace for attention, so that callers can measure the resident part. */
enum { GRADIENTS_ATTENTION_ARRAYS = 2 };
struct gradients_array {
    const void *data;
    uint64_t bytes;
};
void gradients_attention_arrays(const struct gradients_workspace *w,
                                struct gradients_array ret[GRADIENTS_ATTENTION_ARRAYS]);
