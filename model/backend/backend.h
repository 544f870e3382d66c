/* SPDX-License-Identifier: Apache-2.0 */
/* Backends of a model: one table of functions each for cpu, cuda and emulated. A backend uses the
   runtime's device of the same name, which launches attention; the rest (weights, products, what lies
   between them) is its own. The engine knows no device beyond this table.

   A new step of the model is a further function here. It takes a request, as `encode` and `head` do.

   Thread-safety: an open backend does not change once the weights are there. Many threads may use it, each
   with a workspace of its own. */
#pragma once
#include "model/ops/linear.h"
#include "runtime/device/device.h"

/* model/engine/engine.h */
struct engine;
struct engine_workspace;
struct sequence;
struct training_backend; /* model/backend/training.h */

struct backend_state;     /* an open backend; each has its own */
struct backend_workspace; /* memory of a caller's forward passes; each has its own */
struct gpu_driver;

struct backend_options {
    int ordinal; /* which device of that name */
    enum element dtype;
    uint32_t hidden;
    bool outline; /* weights are counted and have no memory; nothing can be run */
    bool trains;
};

/* Form of the feed forward that the backend expects. */
struct feed_form {
    uint32_t slices; /* that the intermediate size is cut into; 1: whole */
    bool
        own_gelu; /* the first product writes f32 without GELU, which the backend adds itself */
};

/* One forward pass of the encoder. The workspace's sequences, tokens and offsets are set. */
struct encode_request {
    const struct engine *engine;
    const struct sequence *list; /* [workspace->sequences], checked */
    uint32_t longest;            /* tokens of the longest one */
    struct engine_workspace *workspace;
};

/* Layers of a head, applied to rows of the hidden states: norm(first(x)), then last. */
struct head {
    const struct linear *first; /* or null */
    const struct norm *norm;    /* or null; only after first */
    const struct linear *last;  /* null: what stands before it is the result */
    bool
        of_means; /* x: means of sequences' rows; a request's row is then the sequence's first */
};

struct head_request {
    const struct engine *engine;
    struct engine_workspace *workspace; /* of an encode before it */
    const struct head *head;
    const uint32_t *rows; /* [n]: of the hidden states */
    uint32_t n;
    float *ret; /* [n, out of the last product] */
};

struct backend {
    const struct device *device; /* of the runtime; its name is the backend's */
    const char *target; /* that attention is compiled for; null: what the device's name means */
    bool text_only;     /* the device runs a kernel's text; no binary is compiled */
    bool phases_cost;   /* to measure phases is slow: the device is waited for after each */
    bool
        keeps_words; /* keep() copies word embeddings; else they are read from the mapped file */
    const struct gpu_driver *driver; /* of backends that share gpu/; else null */

    /* Null with *e set. */
    struct backend_state *(*open)(const struct backend *b, const struct backend_options *o,
                                  struct error *e);
    void (*close)(struct backend_state *s); /* weights included */

    /* ---- weights, of one thread at a time ---- */
    struct feed_form (*feed_form)(const struct model_config *c, enum element dtype);
    /* A copy of these values as elements of a type. Null with *e set, and where there is but an outline. */
    void *(*keep)(struct backend_state *s, enum element type, const float *value,
                  uint64_t count, struct error *e);
    /* weight: [out, in]; bias: [out]. Neither is kept; null: zeros, where training->repack() follows. */
    int (*pack)(struct backend_state *s, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e);

    /* ---- forward pass and heads ---- */
    /* The last hidden states stay where the backend has them until `fetch`; heads need none. */
    int (*encode)(const struct encode_request *r, struct error *e);
    int (*fetch)(const struct engine *g, struct engine_workspace *w, struct error *e);
    int (*head)(const struct head_request *r, struct error *e);
    /* The mean of each sequence's hidden states: [sequences, H]. */
    int (*mean)(const struct engine *g, struct engine_workspace *w, float *ret,
                struct error *e);

    void (*workspace_finish)(struct backend_workspace *w); /* null is fine */

    const struct training_backend *training; /* null: the backend does not train */
};

extern const struct backend backend_cpu, backend_cuda, backend_emulated;

/* The backend of a device's name ("cuda:1"; null: the CPU's). Null with *e set: no such name, or
   ERROR_UNAVAILABLE: no device of that kind. The ordinal is not checked. */
const struct backend *backend_find(const char *device, int *ret_ordinal, struct error *e);
/* Name of the device that its kernels are loaded on: with a number, as "cuda" is the GPU of the thread's context. */
void backend_kernel_device(const struct backend *b, int ordinal, char *ret, size_t capacity);
