/* SPDX-License-Identifier: Apache-2.0 */
/* Under the backends cuda and emulated: memory, products of matrices and encoder ops on a device. Both
   backends run the same forward pass (gpu/) over a driver of their own: "cuda" is the driver API and cuBLASLt,
   both looked for at run time; "emulated" runs the encoder ops' CUDA text on this CPU, and plain loops for
   products.

   Thread-safety: an open driver does not change, and many threads may use it. A stream runs its work in the order of
   submission. Usually each thread has its own stream; engine_repack() may submit to one from several threads. */
#pragma once
#include "model/kernels/encoder_ops.h"
#include "model/kernels/train_ops.h"
#include "model/ops/linear.h"

/* Zeroed: not open. */
struct gpu_stream {
    void *handle;
    void *workspace;                  /* of products */
    struct emulated_stream *emulated; /* of the driver of that name; else null */
    /* Kernels, products and recordings submitted; copies and zeros are not counted. */
    uint64_t launches;
};

/* A point in a stream's work. Zeroed: not marked yet. */
struct gpu_event {
    void *handle;
};

/* For drivers. Atomic: several threads may submit to one stream. */
static inline void gpu_stream_count(struct gpu_stream *s)
{
    __atomic_fetch_add(&s->launches, 1, __ATOMIC_RELAXED);
}

struct gpu;       /* an open driver; each driver defines its own struct */
struct recording; /* recorded work of a stream, which can be replayed */

/* y = x W^T, with bias and activation if `fuse` is set and the driver can do all in one call. */
struct gpu_product {
    const struct linear *l;
    uint32_t rows;
    const void *x; /* [rows, in] */
    void *y;       /* [rows, out] */
    bool fuse;
    bool adds; /* y += x W^T; y is f32, and nothing is fused */
};

struct gpu_driver {
    bool rounds_up; /* batches are rounded up to few sizes, and recordings are kept of these */

    /* ops->trains: the kernels of training are loaded beside those of inference. Null with *e set. */
    struct gpu *(*open)(int ordinal, const struct encoder_ops_shape *ops, struct error *e);
    void (*close)(struct gpu *g);
    /* multiplies: the stream gets products, which need a workspace. */
    int (*stream_open)(const struct gpu *g, bool multiplies, struct gpu_stream *s,
                       struct error *e);
    void (*stream_close)(const struct gpu *g, struct gpu_stream *s);

    /* Bytes of the device, 256-byte aligned. `clear` sets them to 0, in the stream's order. */
    void *(*allocate)(const struct gpu *g, uint64_t bytes, struct error *e);
    void (*release)(const struct gpu *g, void *p); /* null is fine */
    int (*clear)(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
                 struct error *e);
    /* Memory of the host that `send` reads while the caller goes on, and at the full rate of the link. */
    void *(*allocate_pinned)(const struct gpu *g, uint64_t bytes, struct error *e);
    void (*release_pinned)(const struct gpu *g, void *p); /* null is fine */
    /* `send` may return before it is done: *from stays as it is until the stream is waited for. Without a
       stream it is done on return. */
    int (*send)(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e);
    /* Waits for all work submitted to the stream. */
    int (*fetch)(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                 uint64_t bytes, struct error *e);
    /* Does not wait: *to, which is pinned, is written in the stream's order. */
    int (*read)(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e);
    /* Between two places of the device, which do not overlap; in the stream's order. */
    int (*copy)(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e);
    int (*wait)(const struct gpu *g, struct gpu_stream *s, struct error *e);
    /* *ret: the stream has no work left. */
    int (*is_idle)(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e);
    /* Work submitted to *s from now on starts after all work that *before has now. Does not wait. */
    int (*follow)(const struct gpu *g, struct gpu_stream *s, const struct gpu_stream *before,
                  struct error *e);
    /* Records the current end of the stream's work in the event. */
    int (*mark)(const struct gpu *g, struct gpu_event *event, const struct gpu_stream *s,
                struct error *e);
    /* Waits for the work before the event; returns at once if the event was never marked. */
    int (*reach)(const struct gpu *g, const struct gpu_event *event, struct error *e);
    void (*event_close)(const struct gpu *g, struct gpu_event *event);
    /* Makes the GPU the calling thread's until leave(), for libraries beside the driver. Null: nothing to do. */
    int (*enter)(const struct gpu *g, struct error *e);
    void (*leave)(const struct gpu *g);

    /* *ret_fused: bias and activation were done. */
    int (*product)(const struct gpu *g, struct gpu_stream *s, const struct gpu_product *p,
                   bool *ret_fused, struct error *e);
    int (*run_op)(const struct gpu *g, struct gpu_stream *s, enum encoder_op op,
                  const struct rows_args *args, uint64_t blocks, struct error *e);
    /* Of a driver that was opened to train. */
    int (*weight_gradient)(const struct gpu *g, struct gpu_stream *s,
                           const struct weight_gradient *w, struct error *e);
    int (*run_train)(const struct gpu *g, struct gpu_stream *s, enum train_op op,
                     const struct train_args *args, struct error *e);

    /* From record on nothing runs, until record_end returns what was
       recorded (null with *e set; it is then forgotten). */
    int (*record)(const struct gpu *g, struct gpu_stream *s, struct error *e);
    struct recording *(*record_end)(const struct gpu *g, struct gpu_stream *s, struct error *e);
    int (*replay)(const struct gpu *g, struct gpu_stream *s, const struct recording *r,
                  struct error *e);
    void (*forget)(const struct gpu *g, struct recording *r);
};

extern const struct gpu_driver gpu_driver_cuda, gpu_driver_emulated;
