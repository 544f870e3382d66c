/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the backend "cuda": an open GPU, and the functions of its driver (model/backend/gpu/driver.h) for memory and
   streams. */
#pragma once
#include "model/backend/cuda/cublas.h"
#include "model/backend/gpu/gpu.h"
#include "runtime/device/cuda_context.h"

struct gpu {
    struct cuda_context context;
    struct cu_module *module, *training; /* training: or null */
    struct cu_function *op[ENCODER_OPS], *train_op[TRAIN_OPS];
    uint32_t most_blocks;
    struct cublas *cublas;
};

int cuda_gpu_stream_open(const struct gpu *g, bool multiplies, struct gpu_stream *s,
                         struct error *e);
void cuda_gpu_stream_close(const struct gpu *g, struct gpu_stream *s);
void *cuda_gpu_allocate(const struct gpu *g, uint64_t bytes, struct error *e);
void cuda_gpu_release(const struct gpu *g, void *p);
int cuda_gpu_clear(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
                   struct error *e);
int cuda_gpu_send(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e);
int cuda_gpu_fetch(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                   uint64_t bytes, struct error *e);
int cuda_gpu_read(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e);
int cuda_gpu_copy(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e);
int cuda_gpu_wait(const struct gpu *g, struct gpu_stream *s, struct error *e);
int cuda_gpu_is_idle(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e);
int cuda_gpu_follow(const struct gpu *g, struct gpu_stream *s, const struct gpu_stream *before,
                    struct error *e);
void *cuda_gpu_allocate_pinned(const struct gpu *g, uint64_t bytes, struct error *e);
void cuda_gpu_release_pinned(const struct gpu *g, void *p);
int cuda_gpu_mark(const struct gpu *g, struct gpu_event *event, const struct gpu_stream *s,
                  struct error *e);
int cuda_gpu_reach(const struct gpu *g, const struct gpu_event *event, struct error *e);
void cuda_gpu_event_close(const struct gpu *g, struct gpu_event *event);
int cuda_gpu_enter(const struct gpu *g, struct error *e);
void cuda_gpu_leave(const struct gpu *g);
