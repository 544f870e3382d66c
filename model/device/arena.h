/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the passes on a device: a room's memory there. */
#pragma once
#include "model/device/pass.h"

enum device_buffer {
    BUFFER_INPUT,  /* u32 number, position, type [tokens] each; i32 offsets [sequences + 1] */
    BUFFER_HIDDEN, /* [tokens, H] */
    BUFFER_PROJECTION, /* [tokens, 3 * columns] */
    BUFFER_CONTEXT,    /* [tokens, columns] */
    BUFFER_SUM,        /* [tokens, H] f32 */
    BUFFER_INNER,      /* [tokens, I] */
    BUFFER_LSE,        /* [heads, tokens] f32 */
    BUFFER_ATTENTION,  /* attention's workspace */
    BUFFER_INDEX,      /* from here on no recording's. u32: rows that a head reads */
    BUFFER_GATHERED,
    BUFFER_BETWEEN,
    BUFFER_LOGITS, /* as in struct arena */
    BUFFER_COUNT
};

/* Batches of one size are run alike: what a recording is made for. */
struct batch_size {
    uint32_t tokens, sequences, longest;
};

enum { MOST_RECORDINGS = 32 };

struct recorded {
    struct batch_size size;
    struct recording *recording; /* null: of a size seen once */
};

struct device_arena {
    struct lane lane;
    bool open;
    void *buffer[BUFFER_COUNT];
    uint64_t bytes[BUFFER_COUNT];
    uint32_t
        tokens; /* of the last batch, rounded up: where its offsets begin in BUFFER_INPUT */
    uint32_t *staging; /* the host's side of BUFFER_INPUT */
    uint64_t staging_bytes;
    struct recorded recorded[MOST_RECORDINGS];
    uint32_t n_recorded, next; /* next: the one that is replaced when all are taken */
};

/* The room's, its lane open. Null with *e set. */
struct device_arena *device_arena_of(const struct backend *b, struct engine_room *room,
                                     struct error *e);
/* One of the row kernels over args->rows rows. */
int device_rows(const struct backend *b, struct device_arena *a, enum rows_entry entry,
                const struct rows_args *args, struct error *e);
/* y = after(x W^T + b), in one go where the driver can. */
int device_product(const struct backend *b, struct device_arena *a, const struct linear *l,
                   uint32_t rows, const void *x, void *y, struct error *e);

/* Makes a buffer at least so large. When it grows its contents are lost, and recordings are forgotten if
   they may use it. */
int device_grow(const struct backend *b, struct device_arena *a, enum device_buffer which,
                uint64_t bytes, struct error *e);
