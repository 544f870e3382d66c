/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends cuda and emulated: their state, weights, and the passes over a driver. */
#pragma once
#include "model/backend/backend.h"
#include "model/backend/gpu/driver.h"
#include "model/backend/training.h"
#include <pthread.h>

/* Weights that wait to be made of arrays. */
struct gpu_packs {
    pthread_mutex_t lock;
    struct train_pack *waiting;
    uint32_t count, capacity;
    struct recordings *recorded; /* by these lists; null: none yet */
};

struct backend_state {
    const struct gpu_driver *driver;
    struct gpu *gpu;
    void **kept; /* the weights */
    uint32_t n_kept, kept_capacity;
    uint64_t kept_bytes;
    enum element dtype;
    bool trains, outline; /* outline: weights are counted, and have no memory */
    struct gpu_packs packs;
    struct gpu_memory *memory;
    struct gpu_stream stream; /* of training: arrays, passes and the optimiser, in order */
    struct gpu_stream beside; /* of other libraries, once beside_open: runs during a pass */
    bool beside_open;
    struct gpu_optimizer *optimizer; /* null: before the first step */
    bool records;    /* the driver and the last pass's request allow recordings */
    char *no_graphs; /* why training is not recorded any more; null: it may be */
};

/* Training over a driver (gpu/train/). */
extern const struct training_backend gpu_training;
void gpu_packs_finish(struct backend_state *s);
void gpu_optimizer_finish(struct backend_state *s);
/* Nothing is recorded any more, as a recording failed. */
void gpu_give_up_graphs(struct backend_state *s, const struct error *why);

/* ---- memory.c ---- */

struct gpu_memory *gpu_memory_new(void);
void gpu_memory_destroy(struct gpu_memory *m);
/* As the driver's, and counted. */
void *gpu_allocate(const struct backend_state *s, uint64_t bytes, struct error *e);
void gpu_release(const struct backend_state *s, void *p); /* null is fine */
/* Bytes that are allocated, and the most that were at once. */
void gpu_memory_use(const struct backend_state *s, uint64_t *ret_used, uint64_t *ret_most);

/* ---- struct backend's functions ---- */

struct backend_state *gpu_open(const struct backend *b, const struct backend_options *o,
                               struct error *e);
void gpu_close(struct backend_state *s);
struct feed_form gpu_feed_form(const struct model_config *c, enum element dtype);
void *gpu_keep(struct backend_state *s, enum element type, const float *value, uint64_t count,
               struct error *e);
int gpu_pack(struct backend_state *s, const struct linear_shape *shape, const float *weight,
             const float *bias, struct linear *ret, struct error *e);
int gpu_encode(const struct encode_request *r, struct error *e);
int gpu_fetch(const struct engine *g, struct engine_workspace *w, struct error *e);
int gpu_head(const struct head_request *r, struct error *e);
int gpu_mean(const struct engine *g, struct engine_workspace *w, float *ret, struct error *e);
/* Weights may still be on their way to where inference reads them. */
int gpu_wait_for_training(struct backend_state *s, struct error *e);
/* Both streams of training, before something is freed; also if work on them has failed. */
void gpu_wait_for_streams(struct backend_state *s);
void gpu_workspace_finish(struct backend_workspace *m);
