/* SPDX-License-Identifier: Apache-2.0 */
/* Workspace of the CPU's passes. Buffers grow with the largest batch. */
#pragma once
#include "model/backend/cpu/forward/cpu.h"
#include "model/base/buffer.h"

/* A thread's own, for one panel of rows. */
struct panel_workspace {
    float *sum;     /* [panel, H] */
    float *between; /* [panel, I / slices]: the inner product where GELU is our own; or null.
                       Training: its gradient too */
    void *inner;    /* [panel, I / slices] */
    float *glu;     /* [4 I]: a row on its way back through a gate; or null */
    float *normed;  /* [panel, H]: training, and where the graph is walked; or null */
    struct product_workspace product;
};

struct buffer {
    void *data;
    uint64_t bytes;
};

struct backend_workspace {
    struct buffer projection, context; /* [tokens, 3 * columns], [tokens, columns] */
    struct buffer lse;                 /* [heads, tokens] f32 */
    struct buffer attention;           /* its workspace */
    struct buffer wide;                /* [tokens, 2 I]: what a gate reads */
    struct buffer normed, inner;       /* [tokens, H], [tokens, I]; where the graph is walked */
    struct buffer gathered, between,
        logits;                    /* task heads: rows of hidden, and of two products */
    struct panel_workspace *panel; /* [panels] */
    struct pool panel_memory;      /* theirs */
    uint32_t panels, panel_rows;
};

void cpu_workspace_clear(struct backend_workspace *m); /* frees all but *m */
/* Resident bytes of all panels of so many rows. */
uint64_t cpu_workspace_panels_bytes(const struct engine *g, uint32_t rows);
struct backend_workspace *cpu_workspace_of(struct engine_workspace *w);
/* One panel for each thread, of so many rows each. */
void cpu_workspace_grow_panels(const struct engine *g, struct backend_workspace *m,
                               uint32_t rows);
