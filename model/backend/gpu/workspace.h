/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the passes on a driver: a workspace's memory on the device, its stream and its recordings. */
#pragma once
#include "model/backend/gpu/recordings.h"
#include "model/engine/encoder.h"

enum gpu_buffer {
    BUFFER_INPUT,  /* u32 token id, position, type [tokens] each; i32 offsets [sequences + 1] */
    BUFFER_HIDDEN, /* [tokens, H] */
    BUFFER_PROJECTION, /* [tokens, 3 * columns] */
    BUFFER_CONTEXT,    /* [tokens, columns] */
    BUFFER_SUM,        /* [tokens, H] f32 */
    BUFFER_INNER,      /* [tokens, I] */
    BUFFER_LSE,        /* [heads, tokens] f32 */
    BUFFER_NORMED,     /* [tokens, H]: a block's input, where norms come first */
    BUFFER_WIDE,       /* [tokens, 2 I]: what a gated feed forward's first product writes */
    BUFFER_ATTENTION,  /* attention's workspace */
    BUFFER_INDEX,      /* u32: rows that a head reads. No recording uses this or what follows */
    BUFFER_GATHERED,   /* these rows */
    BUFFER_BETWEEN,    /* what the first product writes */
    BUFFER_LOGITS,     /* what the last product writes */
    BUFFER_COUNT
};

/* Key of a recording: batches of one size run alike. */
struct batch_size {
    uint32_t tokens, sequences, longest;
};

struct backend_workspace {
    const struct backend_state *state;
    struct gpu_stream stream;
    bool open; /* the stream */
    void *buffer[BUFFER_COUNT];
    uint64_t bytes[BUFFER_COUNT];
    uint32_t tokens;   /* of the last batch, rounded up: its offsets follow 3 * tokens words */
    uint32_t *staging; /* the host's side of BUFFER_INPUT */
    uint64_t staging_bytes;
    struct recordings recordings; /* by struct batch_size */
};

/* The workspace's, its stream open. Null with *e set. */
struct backend_workspace *gpu_workspace_of(const struct engine *g, struct engine_workspace *w,
                                           struct error *e);
/* Makes a buffer at least so large. When it grows its contents are lost, and recordings that may use it
   are forgotten. */
int gpu_grow(struct backend_workspace *m, enum gpu_buffer which, uint64_t bytes,
             struct error *e);
int gpu_buffer_fetch(struct backend_workspace *m, enum gpu_buffer which, uint64_t bytes,
                     void *ret, struct error *e);

/* An encoder op over args->rows rows. */
int gpu_run_op(struct backend_workspace *m, enum encoder_op op, const struct rows_args *args,
               struct error *e);
/* y = after(x W^T + b), in one go where the driver can. */
int gpu_run_product(struct backend_workspace *m, const struct linear *l, uint32_t rows,
                    const void *x, void *y, struct error *e);
