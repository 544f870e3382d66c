/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda_context.h"

int cuda_context_open(struct cuda_context *c, int ordinal, struct error *e)
{
    if (cuda_must_have(ordinal, e) < 0)
        return -1;
    if (CALL(cuDeviceGet, &c->device, ordinal) < 0 ||
        CALL(cuDevicePrimaryCtxRetain, &c->context, c->device) < 0)
        return -1;
    c->retained = true;
    return 0;
}

void cuda_context_close(struct cuda_context *c)
{
    if (c->retained)
        cuda_driver()->cuDevicePrimaryCtxRelease_v2(c->device);
    *c = (struct cuda_context){0};
}

int cuda_enter(const struct cuda_context *c, struct error *e)
{
    return CALL(cuCtxPushCurrent_v2, c->context);
}

void cuda_leave(void)
{
    struct cu_context *ignored;
    cuda_driver()->cuCtxPopCurrent_v2(&ignored);
}

bool cuda_try_enter(const struct cuda_context *c)
{
    return c->context && cuda_enter(c, NULL) == 0;
}

void cuda_try_leave(bool entered)
{
    if (entered)
        cuda_leave();
}

int cuda_relax_capture(void)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return cuda_driver()->cuThreadExchangeStreamCaptureMode(&mode) ? -1 : mode;
}

void cuda_restore_capture(int mode)
{
    if (mode >= 0)
        cuda_driver()->cuThreadExchangeStreamCaptureMode(&mode);
}

/* ---- memory ---- */

static cu_pointer address(const void *p)
{
    return (cu_pointer)(uintptr_t)p;
}

void *cuda_allocate(const struct cuda_context *c, uint64_t bytes, struct error *e)
{
    cu_pointer p = 0;
    if (cuda_enter(c, e) < 0)
        return NULL;
    if (CALL(cuMemAlloc_v2, &p, bytes ? bytes : 1) < 0) {
        error_prefix(e, "%llu bytes of GPU memory", (unsigned long long)bytes);
        p = 0;
    }
    cuda_leave();
    return (void *)(uintptr_t)p;
}

void cuda_release(const struct cuda_context *c, void *p)
{
    if (!p || !cuda_try_enter(c))
        return;
    cuda_driver()->cuMemFree_v2(address(p));
    cuda_leave();
}

/* The driver may return while the last bytes of a copy from pageable memory are on their way, and streams
   that do not wait for the default one would read what was there before. */
static int send_now(cu_pointer to, const void *from, uint64_t bytes, struct error *e)
{
    int r = CALL(cuMemcpyHtoD_v2, to, from, bytes);
    return r < 0 ? r : CALL(cuStreamSynchronize, NULL);
}

int cuda_send_apart(cu_pointer to, const void *from, uint64_t bytes, struct error *e)
{
    struct cu_stream *own = NULL;
    if (CALL(cuStreamCreate, &own, CU_STREAM_NON_BLOCKING) < 0)
        return -1;
    int r = CALL(cuMemcpyHtoDAsync_v2, to, from, bytes, own);
    if (!r)
        r = CALL(cuStreamSynchronize, own);
    cuda_driver()->cuStreamDestroy_v2(own);
    return r;
}

int cuda_send(const struct cuda_context *c, void *to, const void *from, uint64_t bytes,
              struct cu_stream *stream, struct error *e)
{
    if (!bytes)
        return 0;
    if (cuda_enter(c, e) < 0)
        return -1;
    int r = stream ? CALL(cuMemcpyHtoDAsync_v2, address(to), from, bytes, stream)
                   : send_now(address(to), from, bytes, e);
    cuda_leave();
    return r;
}

static int fetch_in_order(void *to, const void *from, uint64_t bytes, struct cu_stream *stream,
                          struct error *e)
{
    if (bytes && CALL(cuMemcpyDtoHAsync_v2, to, address(from), bytes, stream) < 0)
        return -1;
    return CALL(cuStreamSynchronize, stream);
}

int cuda_fetch(const struct cuda_context *c, void *to, const void *from, uint64_t bytes,
               struct cu_stream *stream, struct error *e)
{
    if (!bytes && !stream)
        return 0;
    if (cuda_enter(c, e) < 0)
        return -1;
    int r = stream ? fetch_in_order(to, from, bytes, stream, e)
                   : CALL(cuMemcpyDtoH_v2, to, address(from), bytes);
    cuda_leave();
    return r;
}
