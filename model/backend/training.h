/* SPDX-License-Identifier: Apache-2.0 */
/* Training as a backend does it: the table of a backend that trains, beside struct backend.

   Parameters, gradients, moments and the biases of learned masks are arrays of the backend: f32, in the device's memory.
   The host holds their addresses and may add to them, as in `array + first`, but never reads or writes them: that is
   array_read() and array_write(). array_host() says where a device's arrays are the host's memory as well. */
#pragma once
#include "masks/base/error.h"
#include "model/ops/linear.h"

struct backend; /* model/backend/backend.h */
struct backend_state;
struct
    backend_training; /* memory of a caller's forward and backward passes; each backend has its own */
struct engine;
/* model/gradients/ */
struct train_state;
struct gradients_request;
struct batch_loss;
struct gradients_sizes;
struct gradients_memory;
struct gradients_array;

/* Numbers of one step of the optimiser, for each element of a piece:
   g' = gradient_scale * g, m = beta1 * m + rest1 * g', v = beta2 * v + rest2 * g'^2,
   u = first_scale * m / (sqrt(second_scale * v) + eps) + decay * value,
   value -= rate * rate_scale * trust * u, rate_scale being the piece's. decay is 0 in a piece that does not decay. trust
   is 1 or, if by_norms and where decay is not 0, |value| / |u| of the piece, and 1 where either is 0. */
struct update {
    bool by_norms;
    float rate, gradient_scale, beta1, rest1, beta2, rest2, first_scale, second_scale, eps,
        decay;
};

/* Work that a device was given since it was opened, and memory that it holds. */
struct training_use {
    /* Kernels, matrix products and graphs; copies and zeros are not counted, nor what a graph launches. */
    uint64_t launches;
    uint64_t bytes, most_bytes; /* allocated now, and at most so far */
    const char *
        no_graphs; /* why launches are not replayed as graphs any more; null: nothing has failed */
};

/* Functions that return an int return 0, or -1 with *e set: a GPU can fail at any of them. */
enum { NORM_BLOCK = 1 << 15 };
struct training_backend {
    /* Whether it trains such a model; null: any. -1 with *e set, in one line. */
    int (*check)(const struct model_config *c, const struct backend *b, struct error *e);

    /* ---- arrays ---- */
    /* count elements, zeroed, aligned to 64 bytes. Null with *e set. Of any thread at any time. */
    float *(*array_new)(struct backend_state *s, uint64_t count, struct error *e);
    void (*array_destroy)(struct backend_state *s, float *array); /* null is fine */
    uint64_t (*array_bytes)(uint64_t count); /* memory that array_new() takes for so many */
    /* The address at which the host may read and write a whole array itself; null: it may not. So the CPU copies
       nothing. */
    float *(*array_host)(struct backend_state *s, float *array);
    /* Between an array and the host, count elements from `to` or `from` on. value: f32 of any alignment. */
    int (*array_write)(struct backend_state *s, float *to, uint64_t count, const void *value,
                       struct error *e);
    int (*array_read)(struct backend_state *s, const float *from, uint64_t count, float *ret,
                      struct error *e);
    /* Writes zeros. threads: at most so many of the host's. */
    int (*array_clear)(struct backend_state *s, float *to, uint64_t count, uint32_t threads,
                       struct error *e);
    /* to += from, from = 0. */
    int (*array_drain)(struct backend_state *s, float *to, float *from, uint64_t count,
                       uint32_t threads, struct error *e);
    int (*array_is_finite)(struct backend_state *s, const float *from, uint64_t count,
                           bool *ret, struct error *e);

    /* ---- for libraries that work in the device's memory, as NCCL does; null: none can ---- */
    /* Makes the device the calling thread's until leave(). *ret_stream: a second stream, of such libraries. Its next work
       starts after all work on arrays that was submitted before, and runs beside work that is submitted later. Null: the
       caller submits none, and the second stream waits for nothing more. */
    int (*enter)(struct backend_state *s, void **ret_stream, struct error *e);
    void (*leave)(struct backend_state *s);
    /* *ret: the second stream has no work left, so that arrays may use its results. Does not wait. */
    int (*is_idle)(struct backend_state *s, bool *ret, struct error *e);
    /* array_drain() on the second stream. */
    int (*drain_beside)(struct backend_state *s, float *to, float *from, uint64_t count,
                        struct error *e);

    /* ---- optimiser, over the pieces of a state ---- */
    /* Sums of squares and norms of pieces are taken in a fixed order: the same bits for any number of threads. */
    int (*gradient_norm)(const struct train_state *s, uint32_t threads, double *ret,
                         struct error *e);
    /* Sums of squares of the gradient by blocks: NORM_BLOCK elements of a piece each, the last of a piece what remains, in
       the order of the buffer. gradient_norm() is the root of their sum in this order. Null: the backend cannot. */
    int (*gradient_squares)(const struct train_state *s, uint32_t threads, double *ret,
                            struct error *e);
    int (*update)(const struct train_state *s, const struct update *u, uint32_t threads,
                  struct error *e);

    /* ---- weights: new values for what `keep` or `pack` of struct backend made, in place ---- */
    /* Different weights may be written at once. value: an array's. */
    int (*refill)(struct backend_state *s, void *kept, enum element type, const float *value,
                  uint64_t count, struct error *e);
    /* bias: where *weight is; null: zeros, for a linear that never has one. */
    int (*repack)(struct backend_state *s, const struct linear *l,
                  const struct weight_view *weight, const float *bias, struct error *e);
    /* After these, which may read arrays only here. failed: what waits is dropped. Null: nothing waits. */
    int (*repack_end)(struct backend_state *s, bool failed, struct error *e);

    /* ---- forward and backward ---- */
    bool first_rows; /* asks attention for the first rows alone where heads read no others */
    struct backend_training *(*workspace_new)(const struct engine *g);
    void (*workspace_destroy)(struct backend_training *m);
    /* Implements gradients_compute(), which has checked the request. */
    int (*compute)(const struct gradients_request *r, struct backend_training *m,
                   struct batch_loss *loss, struct error *e);
    /* Identity of everything besides the request that affects the bits of results: instructions, libraries. The caller
       frees it. */
    char *(*identity)(const struct engine *g);
    int (*memory)(const struct engine *g, const struct gradients_sizes *s,
                  struct gradients_memory *ret, struct error *e);
    void (*attention)(const struct backend_training *m, struct gradients_array *ret);
    /* Null: it works in the host's memory, by the host's threads. */
    void (*use)(const struct backend_state *s, struct training_use *ret);
};

/* An open backend that trains: the owner of arrays. */
struct training_device {
    const struct training_backend *does;
    struct backend_state *state;
};
