/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of the encoder: maskc's kernel for the model's mask. It is launched on packed batches, in place
   on the fused projection of query, key and value. Pointers of a call are the device's. */
#pragma once
#include "masks/mask.h"
#include "model/base/element.h"
#include "model/checkpoint/config.h"
#include "model/kernels/encoder_attention.h"

struct attention {
    struct maskc_kernel *kernel;
    struct mask *mask; /* [layers or 1][heads or 1] */
    uint32_t heads, head_dim;
    uint32_t padded_dim; /* that the kernel takes: zeros beyond head_dim */
    uint32_t kernel_layers;
    bool first_rows; /* the kernel has one more layer: the last one's mask, of row 0 alone */
    bool trains, biased;
    enum element dtype;
    float scale; /* 1 / sqrt(head_dim) */
    struct encoder_transform transform;
};

struct attention_options {
    const char *folder; /* where the model's own mask lies */
    const char *mask;   /* null: the model's own, else dense */
    const struct mask
        *given; /* in its place: [layers or 1][heads or 1], of any length; not kept */
    const char *transform; /* null: the model's own, else softmax */
    const char *drop;      /* what is taken out of the mask, as mask_drop has it; or null */
    uint64_t drop_seed;
    uint32_t drop_length; /* of the texts that random entries are drawn for; 0: the mask's */
    enum element dtype;
    const char *device;   /* as maskc_load takes it */
    const char *target;   /* that the kernel is compiled for */
    bool text_only;       /* the device needs no binary */
    bool trains, dropout; /* with a backward pass; with dropout of probabilities */
    bool biased;          /* each launch adds an array to its scores */
    bool first_rows;      /* the last layer may be asked for first rows alone */
    void (*progress)(const char *step); /* null: nobody */
    const uint8_t *
        kernel; /* a kernel file compiled for these options, of kernel_size bytes; null: none */
    uint64_t kernel_size;
};

/* Sets the request for the kernel of such attention, except for its mask. */
int attention_kernel(const struct model_config *c, const struct attention_options *o,
                     struct encoder_attention *ret, struct error *e);

/* Columns of one of query, key, value in the projection: heads * padded_dim. */
uint32_t attention_columns(const struct model_config *c);
/* The head dimension after padding; 0: the kernels take no such head. */
uint32_t attention_padded_dim(uint32_t head_dim);

int attention_new(const struct model_config *c, const struct attention_options *o,
                  struct attention *ret, struct error *e);
void attention_finish(struct attention *a); /* a zeroed one is fine */

struct attention_call {
    uint32_t layer, sequences, longest, threads;
    uint64_t tokens;
    const int32_t *offsets; /* [sequences + 1] */
    void *projection;       /* [tokens, 3 * columns]: query, key, value */
    void *context;          /* [tokens, columns]: written */
    float *lse;             /* [heads, tokens]: written */
    void *workspace;
    uint64_t workspace_bytes;
    void *stream;                     /* cuda: or null */
    uint64_t *launches;               /* null, or incremented for each GPU kernel launched */
    struct emulated_stream *emulated; /* of the device "emulated"; or null */
    /* training: */
    float dropout;          /* probability */
    uint64_t seed;          /* of the layer's dropout */
    const uint32_t *sample; /* [sequences]: what their dropout is a function of */
    bool first_rows;       /* last layer: rows after 0 are as without keys, if the kernel can */
    void *grad_context;    /* [tokens, columns]: read by the backward pass */
    void *grad_projection; /* [tokens, 3 * columns]: written by it */
    /* Where attention is biased, n being the mask's length: X, added to the scores, and its gradient summed over the
       sequences, or that along diagonals (offset j - i = o at o + n - 1), written by the backward pass; null: not wanted. */
    const float *bias;                      /* [heads, n, n] */
    float *grad_bias, *grad_bias_diagonals; /* [heads, n, n], [heads, 2n - 1] */
};
/* Bytes; if it trains, enough for both passes. */
uint64_t attention_workspace(const struct attention *a, const struct attention_call *c);
int attention_run(const struct attention *a, const struct attention_call *c, struct error *e);
/* After a forward pass, whose context and LSE it reads. */
int attention_run_back(const struct attention *a, const struct attention_call *c,
                       struct error *e);

/* The pattern of a head. */
const struct pattern *attention_pattern(const struct attention *a, uint32_t layer,
                                        uint32_t head);
