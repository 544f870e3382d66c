/* SPDX-License-Identifier: Apache-2.0 */
/* Where the weights of an encoder come from: one walk over the model lists what has to be packed and what has to be
   kept. Loading and repacking go through the same lists. */
#pragma once
#include "model/engine/encoder.h"

/* Which side of a matrix has heads that are padded with zeros. */
enum padded_side { PADDED_NONE, PADDED_ROWS, PADDED_COLUMNS };

/* A linear's weights: matrices of [rows, columns], one below another, each out of a tensor of its own. */
struct linear_source {
    struct linear *linear;
    struct linear_shape shape;
    struct linear *twin; /* the same transposed, for the backward pass; null: none */
    enum element twin_y;
    const struct tensor *weight[3], *bias[3];
    uint32_t matrices;
    uint64_t first, row; /* element where a matrix begins in its tensor, and from row to row */
    uint64_t first_bias; /* the same in the bias */
    bool no_bias;        /* zeros */
    uint32_t rows, columns; /* before padding */
    enum padded_side padded;
    uint32_t head_dim, padded_dim;
};

/* The way in which an array of the backend is filled. */
enum kept_kind {
    KEPT_COPY,     /* copy of the tensor */
    KEPT_RELATIVE, /* bias of scores by distance, [heads, n, n], computed from the tensor */
    KEPT_ZEROS,    /* n zeros, no tensor */
    KEPT_ROTATION, /* rotation, no tensor: [n / dim positions][dim / 2] cosines, then as many sines */
};
struct kept_source {
    void *to; /* the pointer that becomes it */
    const struct tensor *tensor;
    enum element type;
    enum kept_kind kind;
    uint64_t n;
    uint32_t dim;
    double theta;
};

struct encoder_sources {
    struct linear_source *linear;
    struct kept_source *kept;
    uint32_t linears, linear_capacity, kepts, kept_capacity;
};

/* Lists the sources that g's config, weights and parts need. c->feed and c->layer are set. */
void encoder_sources_list(struct engine *g, struct encoder_sources *ret);
void encoder_sources_finish(struct encoder_sources *s);

/* Reads a linear layer to the host in the layout of the products: weight [shape.out, shape.in], bias [shape.out]. d:
   device of the tensors; null if they are on the host. */
struct training_device;
int linear_source_read(const struct linear_source *s, const struct training_device *d,
                       float *weight, float *bias, struct error *e);
/* A view of the layer in device memory without a copy; false if it is padded or its tensors are not adjacent. */
bool linear_source_view(const struct linear_source *s, struct weight_view *weight,
                        const float **bias);
