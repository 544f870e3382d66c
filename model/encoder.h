/* SPDX-License-Identifier: Apache-2.0 */
/* Inside an engine: what is packed, and what a call works in. */
#pragma once
#include "model/attention.h"
#include "model/cpu/pool.h"
#include "model/cpu/rows.h"
#include "model/device/backend.h"
#include "model/engine.h"
#include "model/linear.h"

/* The feed forward is cut into slices of the intermediate size: each goes up and down again before the
   next, and adds to the sum, so that what lies between stays small; and threads that share a small batch
   take a slice each. */
enum { FEED_SLICES = 4 };

struct layer {
    struct linear projection; /* [3 * columns, H]: query, key, value, heads padded with zeros */
    struct linear output;     /* [H, columns] */
    struct linear inner[FEED_SLICES], outer[FEED_SLICES]; /* [I / slices, H], [H, I / slices];
                                                             the first outer has the bias */
    struct norm output_norm, outer_norm;
};

struct encoder {
    struct backend *backend; /* null: the CPU; else all that is numbers below lies there */
    struct matmul *matmul;   /* the CPU's */
    const struct row_functions *rows;
    const struct tensor *words; /* the engine's weights' own */
    void *device_words;         /* [vocabulary, H] in the engine's dtype, on a device */
    float *positions, *types;   /* [positions, H], [types, H] */
    struct norm embeddings_norm;
    struct layer *layer; /* [layers] */
    uint32_t slices;     /* of each feed forward; 1 on a device */
    bool own_gelu;       /* inner products are f32 without GELU: rows.h has it */
    struct attention attention;
    struct linear pooler, words_dense, words_out, next, classifier,
        span; /* PART_..; or zeroed */
    struct norm words_norm;
};

/* A thread's own: x of one panel of rows. */
struct panel_room {
    float *sum;     /* [panel, H] */
    float *between; /* [panel, I / slices]: inner products before own_gelu; or null */
    void *inner;    /* [panel, I / slices] */
    struct product_room product;
};

struct arena {
    void *projection, *context; /* [tokens, 3 * columns], [tokens, columns] */
    float *lse;                 /* [heads, tokens] */
    void *workspace;
    void *gathered, *between,
        *logits; /* of the heads: rows of hidden, and of what two products say */
    uint64_t projection_bytes, context_bytes, lse_bytes, workspace_bytes, hidden_bytes,
        offsets_bytes, gathered_bytes, between_bytes, logits_bytes;
    struct panel_room *panel; /* [panels] */
    struct pool panel_memory; /* theirs */
    uint32_t panels, panel_rows;
    const struct backend *backend; /* of the room's memory on a device, or null */
    struct device_arena *device;
};

/* Packs everything that g's config, weights and parts ask for. */
int encoder_new(struct engine *g, struct error *e);
void encoder_destroy(struct encoder *c, const struct model_config *config); /* null is fine */

/* Makes *data at least so large; contents are lost when it grows. 64-byte aligned; what is large lies on
   large pages, as products walk through rows a page or more apart. */
void arena_grow(void **data, uint64_t *bytes, uint64_t wanted);
/* One panel room for each thread, for so many rows each. */
void arena_grow_panels(const struct engine *g, struct arena *a, uint32_t rows);
struct arena *arena_of(struct engine_room *room);
