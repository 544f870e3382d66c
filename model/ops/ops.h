/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of an encoder, forward and backward. A backend implements them over the whole batch; model/graph walks a
   layer's blocks with them.

   T is the number of tokens, H the hidden size; arrays have a row for each token, and what products write beyond is
   unread. "Of the dtype" means the engine's; the rest is f32. On a GPU pointers are the device's. In training an operation
   leaves what its way back reads in the arrays that it is given; in inference these are null. Dropout (training alone) is
   a function of the request's seed, the site and the token. */
#pragma once
#include "masks/base/error.h"
#include "model/arch/parameter.h"
#include "model/ops/linear.h"

/* A batch on its way: each backend has its own. */
struct op_batch;

/* The phases of a pass, for who measures it. */
enum engine_phase {
    PHASE_EMBEDDINGS,
    PHASE_PROJECTION, /* query, key, value */
    PHASE_ATTENTION,
    PHASE_OUTPUT, /* of attention */
    PHASE_FEED_FORWARD,
    PHASE_NORMS,
    PHASE_COUNT
};

/* Where gradients of a linear go: to `matrices` pairs of weight and bias that follow each other in enum
   parameter_id. Heads are padded: rows of query, key and value, columns of attention's output. */
enum op_heads { OP_NO_HEADS, OP_HEADS_OUT, OP_HEADS_IN };
struct op_parameters {
    enum parameter_id weight, bias;
    uint32_t layer, matrices;
    enum op_heads heads;
    bool whole; /* the matrices are one parameter, one below another */
};

/* y = after(x W^T + b). */
struct op_linear {
    const struct linear *l, *twin; /* twin: W transposed, in training */
    struct op_parameters parameters;
    const void *x; /* [T, in] of the dtype */
    void *
        pre; /* [T, out] of the dtype: before the activation, kept; null: there is none, or inference */
    void *y; /* [T, out] of the dtype */
    enum after
        glu; /* not NONE: y [T, out / 2] = glu(first half) * second half of what the product writes to `pre` */
};

/* Its way back: from the gradient of y to that of x. */
struct op_linear_back {
    const void *dy; /* [T, out] of the dtype; after an activation f32 */
    void *d_pre; /* [T, out] of the dtype: worked in where there is an activation or a gate */
    float *dx;   /* [T, in]: written, or added to */
    bool adds;
};

/* (x - mean) * inverse, and inverse, of a LayerNorm. Null in inference. */
struct norm_tape {
    void *normalised; /* [T, H] of the dtype */
    float *inverse;   /* [T] */
};

/* y = norm(x) */
struct op_norm {
    const struct norm *norm;
    enum parameter_id gain, shift;
    uint32_t layer;
    const void *x; /* [T, H] of the dtype */
    void *y;       /* [T, H] of the dtype; may be x in inference */
    struct norm_tape kept;
};

/* The end of a block: y = norm(residual + dropout(x W^T + b)), or the same without a norm. */
struct op_close {
    const struct linear *l, *twin;
    struct op_parameters parameters;
    struct op_norm norm;     /* .norm null: none; .x and .y are not read */
    uint32_t site;           /* of the dropout */
    enum engine_phase phase; /* of the product; the rest is PHASE_NORMS */
    const void *x;           /* [T, in] of the dtype */
    const void *residual;    /* [T, H] of the dtype */
    void *y;                 /* [T, H] of the dtype; may be the residual in inference */
};

/* Each returns 0, or -1 with *e set. */
struct ops {
    /* y [T, H] = dropout(norm(word + position + type)); its tape is the pass's own. */
    int (*embed)(struct op_batch *p, void *y, struct error *e);
    int (*linear)(struct op_batch *p, const struct op_linear *o, struct error *e);
    int (*norm)(struct op_batch *p, const struct op_norm *o, struct error *e);
    int (*close)(struct op_batch *p, const struct op_close *o, struct error *e);
    /* Rotates queries and keys of x [T, 3 * columns] by their positions, in place, or back; only where the model does. */
    int (*rotate)(struct op_batch *p, uint32_t layer, void *x, bool back, struct error *e);
    /* From the layer's projection to its context, with its LSE: arrays of the pass's tape. */
    int (*attend)(struct op_batch *p, uint32_t layer, struct error *e);
    /* A phase ends here. `close` says so itself. */
    int (*lap)(struct op_batch *p, enum engine_phase phase, struct error *e);

    /* ---- backward: each adds to the gradients of its parameters; null where a backend does not train ---- */
    /* d [T, H]: in the gradient of y, out that of the residual. dx [T, in]: that of x, of the type that the twin
       writes. d_sum [T, H] of the dtype is worked in. */
    int (*close_back)(struct op_batch *p, const struct op_close *o, float *d, void *d_sum,
                      void *dx, struct error *e);
    int (*linear_back)(struct op_batch *p, const struct op_linear *o,
                       const struct op_linear_back *b, struct error *e);
    /* d [T, H]: in the gradient of y, out that of x. */
    int (*norm_back)(struct op_batch *p, const struct op_norm *o, float *d, struct error *e);
    /* to += x, both [T, H]. */
    int (*add)(struct op_batch *p, const float *x, float *to, struct error *e);
    /* From the gradient of the context to that of the projection: arrays of the pass. */
    int (*attend_back)(struct op_batch *p, uint32_t layer, struct error *e);
    /* d [T, H]: of embed's y. Overwritten. */
    int (*embed_back)(struct op_batch *p, float *d, struct error *e);
};
