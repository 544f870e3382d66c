/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the encoder's pass on the CPU. Rows are worked off in panels. Between two attentions a panel stays
   on one thread, so that what lies between the products stays in that core's cache. A batch with few rows
   for each thread is one panel, and every product is divided among the threads. */
#pragma once
#include "model/backend/cpu/workspace.h"
#include "model/encoder.h"

enum product_id {
    PRODUCT_PROJECTION,
    PRODUCT_OUTPUT,
    PRODUCT_INNER,
    PRODUCT_OUTER,
    PRODUCT_OUTER_ADDS,
    PRODUCT_COUNT
};

struct pass {
    const struct encode_request *request;
    const struct engine *g;
    const struct encoder *c;
    const struct cpu_encoder_ops *ops;
    struct engine_workspace *workspace;
    struct backend_workspace *memory;
    uint32_t tokens;
    uint32_t panel, panels; /* rows of each panel but the last; how many */
    bool divided;           /* one panel on all threads */
    uint32_t sharers; /* threads that each take slices of a divided feed forward; 1: none do */
    const struct product *whole[PRODUCT_COUNT],
        *last[PRODUCT_COUNT]; /* of a panel, of the last */
};

/* Rows first .. first + rows, on one thread or divided. */
struct part {
    const struct pass *p;
    struct panel_workspace *workspace;
    const struct product *const *product; /* [PRODUCT_COUNT] */
    uint32_t first, rows;
    double *seconds; /* [PHASE_COUNT], or null: not measured */
};

/* Row `row` of [.., columns] in the engine's dtype. */
void *pass_row(const struct pass *p, void *base, uint64_t row, uint64_t columns);

/* Embeddings, their norm, the first layer's projection. -1: a product failed. */
int panel_begin(const struct part *part);
/* What follows a layer's attention, up to the attention of the next layer. -1: a product failed. */
int panel_go_on(const struct part *part, uint32_t layer);
