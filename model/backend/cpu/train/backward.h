/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the backward pass on the CPU. Gradients flow from panel to panel as f32 [T, H], the stream. What a matrix
   product takes is of the engine's dtype, and is kept for the weights' gradients. Sums over rows are a panel's own, and
   then added in the order of panels: the same bits for any number of threads. */
#pragma once
#include "model/backend/cpu/forward/cpu_batch.h"
#include "model/base/arena.h"
#include "model/gradients/gradients.h"

/* Rows of a panel: a function of the number of tokens alone. */
uint32_t training_panel(uint32_t tokens);

/* Rows of the heads' panels, and how many masked rows are worked on together. */
enum { HEAD_PANEL = 64, HEAD_CHUNK = 1024 };

/* Sums over a panel's rows. */
struct panel_sums {
    float *outer_gain, *outer_shift, *outer_bias;    /* [H] */
    float *output_gain, *output_shift, *output_bias; /* [H] */
    float *inner_bias;                               /* [I] */
    float *projection_bias;                          /* [3 * columns] */
};

/* Masked rows, a chunk at a time. */
struct words_arrays {
    void *gathered; /* [chunk, H]: rows of the last hidden states */
    float *pre;     /* [chunk, H]: before the activation */
    struct norm_tape norm;
    void *normed, *d_dense; /* [chunk, H] */
    void *d_logits;         /* [chunk, V] */
    float *logits;          /* [threads][HEAD_PANEL, V]; null in f32: d_logits holds them */
    float *gain, *shift, *dense_bias; /* [panels of a chunk][H] */
    float *bias;                      /* [panels of a chunk][V] */
    double *loss;                     /* [chunk] */
    uint8_t *right;                   /* [chunk] */
};

/* Rows of a target with few labels. */
struct label_arrays {
    float *x, *dx;         /* [rows, H]; x: what the linear to the labels reads */
    double *logits;        /* [rows, labels], then their gradient */
    struct norm_tape norm; /* of heads that share their first half; else null */
    /* Pooled rows; null if there are none. */
    void *gathered, *d_pre; /* [rows, H] */
    float *pre;             /* [rows, H]: before the pooler's activation */
};

/* The rows that the batch's one target reads, R of them, where the last layer computes these after its attention and no
   others. Other arrays of the layer are those of the whole batch, of which R rows are used. */
struct tail_arrays {
    void *hidden, *context;  /* [R, H], [R, columns] */
    void *d_context;         /* [R, columns] */
    float *stream;           /* [R, H] */
    struct row_place *place; /* [R] */
};

struct backward {
    const struct gradients_request *request;
    float *stream;      /* [T, H] */
    void *d_outer;      /* [T, H]: of the feed forward's result */
    void *d_pre;        /* [slices][rows][I / slices] */
    void *d_output;     /* [T, H]: of the attention output's result */
    void *d_context;    /* [T, columns] */
    void *d_projection; /* [T, 3 * columns] */
    float *block;       /* [T, H]: of a block's input; where the graph is walked, else null */
    float *d_inner;     /* [T, I]: the same */
    float *
        relative; /* [2][heads, 2 n - 1]: gradients of scores' biases by offset: all layers', one's; or null */
    float *sums;           /* [panels][..] */
    float *embedding_sums; /* [panels][2 H] */
    struct words_arrays words;
    struct label_arrays labels;
    struct tail_arrays tail;
};

/* The rows that the last layer computes after its attention, as a batch, and the structs that this batch points to. */
struct tail {
    struct batch_tail is;
    struct layer_tape layer;
    struct tape tape;
    struct training training;
    struct backward backward;
};
/* Rows of the batch that the last layer computes after its attention: those of a single pooled target; 0: all. */
uint32_t tail_rows(const struct train_batch *b);
void tail_lay_out(const struct engine *g, uint32_t rows, struct arena *a,
                  struct tail_arrays *t);
/* p->tail becomes ret. Workspaces of p's panels are there. */
int tail_begin(struct cpu_batch *p, struct tail *ret, struct error *e);
/* From the rows' gradients to those of the whole batch: of the context and the stream. */
void tail_spread(const struct cpu_batch *p);

/* The stream through all layers and the embeddings. */
int backward_layers(const struct cpu_batch *p, struct error *e);
int backward_attention(const struct cpu_batch *p, uint32_t layer, struct error *e);
int backward_weights(const struct cpu_batch *p, uint32_t layer, struct error *e);
int backward_embeddings(const struct cpu_batch *p, struct error *e);
/* From the gradients by offset to the table's. */
void backward_relative(const struct cpu_batch *p);

/* The heads: their loss and, where there is a backward pass, their gradients; the stream gets what goes on. */
uint64_t train_words_widened_bytes(const struct encoder *c, uint32_t masked); /* of a thread */
/* target: which of the batch's. */
int train_words(const struct cpu_batch *p, const struct backward *b, uint32_t target,
                struct batch_loss *loss, struct error *e);
int train_labels(const struct cpu_batch *p, const struct backward *b, uint32_t target,
                 struct batch_loss *loss, struct error *e);

/* The batch that a layer computes after its attention: p, or its tail. */
const struct cpu_batch *backward_rest(const struct cpu_batch *p, uint32_t layer);
/* Floats of one panel's sums; where they lie in them (base null: nowhere). */
uint64_t panel_sums_size(const struct engine *g);
struct panel_sums panel_sums_of(const struct cpu_batch *p, uint32_t panel);

/* ---- what all of these share ---- */

/* The gradient of a parameter; null: the model has none. */
float *backward_gradient(const struct cpu_batch *p, enum parameter_id id, uint32_t layer);
/* target (null: nothing) += the sums of all panels, in order; sums of panel k begin at sums + k * step. */
void backward_add_panels(const struct cpu_batch *p, const float *sums, uint64_t step,
                         uint32_t panels, uint64_t count, float *target);
/* dx = through LayerNorm; dx and dy may be one array. */
struct norm_back {
    const struct norm *norm;
    const struct norm_tape *tape;
    float *gain, *shift; /* sums */
};
void backward_norm(const struct cpu_batch *p, const struct norm_back *n, uint64_t first,
                   uint32_t rows, float *d);
/* y = x [H] of the part through the dropout of a site, in the engine's dtype. */
void backward_drop(const struct part *part, uint32_t site, const float *x, void *y);
/* y = x in the engine's dtype. */
void backward_round(const struct cpu_batch *p, uint64_t count, const float *x, void *y);
/* sum[k] += column k of x. */
void backward_columns(const struct cpu_batch *p, uint32_t rows, uint32_t size, const void *x,
                      float *sum);
