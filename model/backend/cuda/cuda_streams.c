/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of the backend "cuda". */
#include "model/backend/cuda/cuda_gpu.h"

void *cuda_gpu_allocate(const struct gpu *g, uint64_t bytes, struct error *e)
{
    return cuda_allocate(&g->context, bytes, e);
}

void cuda_gpu_release(const struct gpu *g, void *p)
{
    cuda_release(&g->context, p);
}

void *cuda_gpu_allocate_pinned(const struct gpu *g, uint64_t bytes, struct error *e)
{
    void *ret = NULL;
    if (cuda_enter(&g->context, e) < 0)
        return NULL;
    CALL(cuMemHostAlloc, &ret, bytes ? bytes : 1, 0);
    cuda_leave();
    return ret;
}

void cuda_gpu_release_pinned(const struct gpu *g, void *p)
{
    if (!p)
        return;
    bool entered = cuda_try_enter(&g->context);
    cuda_driver()->cuMemFreeHost(p);
    cuda_try_leave(entered);
}

static int open_stream(const struct gpu *g, struct cu_stream **ret, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamCreate, ret, CU_STREAM_NON_BLOCKING);
    cuda_leave();
    return r;
}

int cuda_gpu_stream_open(const struct gpu *g, bool multiplies, struct gpu_stream *s,
                         struct error *e)
{
    struct cu_stream *stream = NULL;
    void *workspace = multiplies ? cuda_gpu_allocate(g, CUBLAS_WORKSPACE_BYTES, e) : NULL;
    if (multiplies && !workspace)
        return -1;
    if (open_stream(g, &stream, e) < 0) {
        cuda_gpu_release(g, workspace);
        return -1;
    }
    *s = (struct gpu_stream){stream, workspace};
    return 0;
}

void cuda_gpu_stream_close(const struct gpu *g, struct gpu_stream *s)
{
    bool entered = cuda_try_enter(&g->context);
    if (s->handle)
        cuda_driver()->cuStreamDestroy_v2(s->handle);
    cuda_try_leave(entered);
    cuda_gpu_release(g, s->workspace);
    *s = (struct gpu_stream){0};
}

int cuda_gpu_clear(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
                   struct error *e)
{
    if (!bytes)
        return 0;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuMemsetD8Async, (cu_pointer)(uintptr_t)p, 0, bytes, s->handle);
    cuda_leave();
    return r;
}

int cuda_gpu_send(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e)
{
    return cuda_send(&g->context, to, from, bytes, s->handle, e);
}

int cuda_gpu_fetch(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                   uint64_t bytes, struct error *e)
{
    return cuda_fetch(&g->context, to, from, bytes, s->handle, e);
}

int cuda_gpu_read(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e)
{
    if (!bytes)
        return 0;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuMemcpyDtoHAsync_v2, to, (cu_pointer)(uintptr_t)from, bytes, s->handle);
    cuda_leave();
    return r;
}

int cuda_gpu_copy(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                  uint64_t bytes, struct error *e)
{
    if (!bytes)
        return 0;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuMemcpyDtoDAsync_v2, (cu_pointer)(uintptr_t)to, (cu_pointer)(uintptr_t)from,
                 bytes, s->handle);
    cuda_leave();
    return r;
}

int cuda_gpu_wait(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamSynchronize, s->handle);
    cuda_leave();
    return r;
}

int cuda_gpu_enter(const struct gpu *g, struct error *e)
{
    return cuda_enter(&g->context, e);
}

void cuda_gpu_leave(const struct gpu *g)
{
    (void)g;
    cuda_leave();
}

int cuda_gpu_is_idle(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    const int state = cuda_driver()->cuStreamQuery(s->handle);
    cuda_leave();
    *ret = state == 0;
    return state == CU_NOT_READY ? 0 : cuda_check(state, "cuStreamQuery", e);
}

/* ---- events ---- */

int cuda_gpu_mark(const struct gpu *g, struct gpu_event *event, const struct gpu_stream *s,
                  struct error *e)
{
    struct cu_event *made = event->handle;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = made ? 0 : CALL(cuEventCreate, &made, CU_EVENT_DISABLE_TIMING);
    event->handle = made;
    if (r == 0)
        r = CALL(cuEventRecord, made, s->handle);
    cuda_leave();
    return r;
}

int cuda_gpu_reach(const struct gpu *g, const struct gpu_event *event, struct error *e)
{
    if (!event->handle)
        return 0;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuEventSynchronize, event->handle);
    cuda_leave();
    return r;
}

void cuda_gpu_event_close(const struct gpu *g, struct gpu_event *event)
{
    if (!event->handle)
        return;
    bool entered = cuda_try_enter(&g->context);
    cuda_driver()->cuEventDestroy_v2(event->handle);
    cuda_try_leave(entered);
    event->handle = NULL;
}

static int wait_for_event(const struct gpu *g, struct gpu_stream *s,
                          const struct gpu_event *event, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamWaitEvent, s->handle, event->handle, 0);
    cuda_leave();
    return r;
}

/* The driver keeps the closed event until the stream has passed it. */
int cuda_gpu_follow(const struct gpu *g, struct gpu_stream *s, const struct gpu_stream *before,
                    struct error *e)
{
    struct gpu_event event = {0};
    int r = cuda_gpu_mark(g, &event, before, e);
    if (r == 0)
        r = wait_for_event(g, s, &event, e);
    cuda_gpu_event_close(g, &event);
    return r;
}
