/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the encoder's pass on a CPU. Rows are worked off in panels: between two attentions a panel stays
   on one thread, so that what lies between the products stays in that core's cache. A batch with few rows
   for each thread is one panel, and every product is divided among the threads ("team"). */
#pragma once
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
    const struct engine *g;
    const struct encoder *c;
    const struct sequence *list;
    struct engine_room *room;
    struct arena *arena;
    uint32_t tokens, longest;
    uint32_t panel, panels; /* rows of each panel but the last; how many */
    bool team;
    uint32_t sharers; /* threads of a team that each take slices of the feed forward; 1: none */
    const struct product *whole[PRODUCT_COUNT],
        *last[PRODUCT_COUNT]; /* of a panel, of the last */
};

/* Rows first .. first + rows on one thread, or on all in a team. */
struct part {
    const struct pass *p;
    struct panel_room *room;
    const struct product *const *product; /* [PRODUCT_COUNT] */
    uint32_t first, rows;
    double *seconds; /* [PHASE_COUNT], or null: not measured */
};

/* Row `row` of [.., columns] in the engine's dtype. */
void *pass_rows(const struct pass *p, void *base, uint64_t row, uint64_t columns);

/* Embeddings, their norm, the first layer's projection; then what follows the attention of a layer, up to
   the attention of the next. -1: a product failed. */
int panel_begin(const struct part *part);
int panel_go_on(const struct part *part, uint32_t layer);
