/* SPDX-License-Identifier: Apache-2.0 */
/* One batch on its way through the encoder on the CPU, for inference and for training. Rows are worked off in panels. Between two
   attentions a panel stays on one thread, so that what lies between the products stays in that core's cache. A batch
   of inference with few rows for each thread is one panel, and every product is divided among the threads. */
#pragma once
#include "model/backend/cpu/forward/workspace.h"
#include "model/backend/cpu/ops/train_ops.h"
#include "model/engine/encoder.h"
#include "model/graph/graph.h"

enum product_id {
    PRODUCT_PROJECTION,
    PRODUCT_OUTPUT,
    PRODUCT_INNER,
    PRODUCT_OUTER,
    PRODUCT_OUTER_ADDS,
    PRODUCT_INFERENCE, /* how many inference needs; training goes on: */
    PRODUCT_PROJECTION_BACK = PRODUCT_INFERENCE,
    PRODUCT_OUTPUT_BACK,
    PRODUCT_INNER_BACK,
    PRODUCT_OUTER_BACK,
    PRODUCT_COUNT
};

/* Extra input of the forward pass in training: it fills a tape and applies dropout. */
struct training {
    const struct cpu_train_ops *ops;
    const struct row_place *place; /* [tokens] */
    const uint32_t *sample;        /* [sequences] */
    uint64_t seed;
    double hidden_dropout, attention_dropout, head_dropout;
    double output_dropout;           /* of attention's result: one of these */
    const struct trained_bias *bias; /* or null */
    struct backward *backward;       /* null: no backward pass */
};

/* Rows of a batch that go through the last layer after its attention; other rows are not read. */
struct batch_tail;

struct cpu_batch {
    const struct engine *g;
    const struct encoder *c;
    const struct cpu_encoder_ops *ops;
    const struct cpu_train_ops *train_ops; /* in inference too: gated layers activate in f32 */
    const struct training *training;       /* null: inference */
    const struct batch_tail *tail; /* in training, or null; the tail's own batch has it too */
    const struct tape *tape;
    const struct sequence *list; /* [sequences] */
    const int32_t *offsets;
    uint32_t sequences, tokens, longest;
    const struct engine_watch *watch; /* or null */
    double *seconds;                  /* [PHASE_COUNT], or null: not measured */
    struct backend_workspace *memory;
    uint32_t panel, panels; /* rows of each panel but the last; how many */
    bool divided;           /* one panel on all threads */
    uint32_t sharers; /* threads that each take slices of a divided feed forward; 1: none do */
    const struct product *whole[PRODUCT_COUNT],
        *last[PRODUCT_COUNT]; /* of a panel, of the last */
};

struct batch_tail {
    struct cpu_batch batch; /* the rows as a batch; its tape has one layer, the last one */
    const uint32_t *row;    /* [batch.tokens]: their places in the whole batch, ascending */
    bool first;             /* they are the first row of each sequence */
};

/* Rows first .. first + rows, on one thread or divided. */
struct part {
    const struct cpu_batch *p;
    struct panel_workspace *workspace;
    const struct product *const *product; /* [PRODUCT_COUNT] */
    uint32_t panel, first, rows;
    double *seconds; /* [PHASE_COUNT], or null: not measured */
};

/* Row `row` of [.., columns] in the engine's dtype. */
void *cpu_batch_row(const struct cpu_batch *p, void *base, uint64_t row, uint64_t columns);
const struct layer_tape *cpu_batch_layer(const struct cpu_batch *p, uint32_t layer);
void *cpu_batch_output(const struct cpu_batch *p,
                       uint32_t layer); /* a layer's, which is the next one's input */
/* Row `row` of slice k of a tape's pre or inner. */
void *cpu_batch_slice_row(const struct cpu_batch *p, void *base, uint32_t k, uint64_t row);

/* to[k] = row tail->row[k] of `from` [.., columns], in the engine's dtype. */
void cpu_batch_gather(const struct batch_tail *t, uint64_t columns, const void *from, void *to);

/* Products of panels; the workspaces of panels are there. */
int cpu_batch_make_products(struct cpu_batch *p, struct error *e);
/* Bytes that the products of a training panel of so many rows need for f32 copies of bf16 operands. */
uint64_t cpu_batch_widened_bytes(const struct encoder *c, uint32_t rows);

/* Something that every panel goes through. -1: a product failed. */
typedef int panel_step(const struct part *part, uint32_t layer);
int cpu_batch_run_panels(const struct cpu_batch *p, panel_step *step, uint32_t layer);
/* Elements of a layer's bias, or of its gradient, and where they begin. */
uint64_t cpu_batch_bias_size(const struct cpu_batch *p, bool gradient);
uint64_t cpu_batch_bias_at(const struct cpu_batch *p, uint32_t layer, bool gradient);
struct attention_call cpu_batch_attention_call(const struct cpu_batch *p, uint32_t layer);
int cpu_batch_attend(const struct cpu_batch *p, uint32_t layer, struct error *e);
/* From token ids to the last hidden states. */
int cpu_batch_forward(const struct cpu_batch *p, struct error *e);
int cpu_batch_failed(struct error *e); /* "a matrix product failed" */

panel_step panel_begin;   /* embeddings, their norm */
panel_step panel_project; /* query, key, value of a layer */
panel_step panel_layer;   /* what follows a layer's attention */

struct row_dropout training_dropout(const struct training *t, uint32_t site);
struct row_dropout training_head_dropout(const struct training *t, uint32_t site);
