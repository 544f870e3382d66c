/* SPDX-License-Identifier: Apache-2.0 */
/* A context of a GPU and the memory in it: for loaded kernels, and for a model's engine. */
#pragma once
#include "runtime/device/cuda_driver.h"
#include <stdbool.h>
#include <stdint.h>

struct cuda_context {
    struct cu_context *context;
    cu_device device;
    bool retained; /* it is the device's primary context, held by us */
};

/* A call of the driver; cuda_check's result. Needs `e` in scope. */
#define CALL(name, ...) cuda_check(cuda_driver()->name(__VA_ARGS__), #name, e)

/* The primary context of a GPU. On failure *c is fit for cuda_context_close. */
int cuda_context_open(struct cuda_context *c, int ordinal, struct error *e);
void cuda_context_close(struct cuda_context *c); /* a zeroed one is fine */

/* Every call that works in the context stands between these. */
int cuda_enter(const struct cuda_context *c, struct error *e);
void cuda_leave(void);
/* For giving back. Where the context cannot be entered it is gone with all that was in it, or the driver is: freed memory and
   unloaded code would be another context's. */
bool cuda_try_enter(const struct cuda_context *c);
void cuda_try_leave(bool entered);

/* Between these, inside a context, a stream that the caller captures forbids the thread no call that works on other streams,
   as allocations and copies are. The first returns the thread's mode, for the second; -1: it could not change it. */
int cuda_relax_capture(void);
void cuda_restore_capture(int mode);

/* 256-byte aligned, also for 0 bytes. Null with *e set. */
void *cuda_allocate(const struct cuda_context *c, uint64_t bytes, struct error *e);
void cuda_release(const struct cuda_context *c, void *p); /* null is fine */

/* A copy to the GPU, in the current context, that every stream sees on return. It has a stream of its own: one on the default
   stream is refused while a stream that waits for that one is captured. */
int cuda_send_apart(cu_pointer to, const void *from, uint64_t bytes, struct error *e);
/* Copies to and from the GPU. With a stream they stand in its order: cuda_send may return before it is
   done, cuda_fetch waits for the stream. Without one both are done on return. */
int cuda_send(const struct cuda_context *c, void *to, const void *from, uint64_t bytes,
              struct cu_stream *stream, struct error *e);
int cuda_fetch(const struct cuda_context *c, void *to, const void *from, uint64_t bytes,
               struct cu_stream *stream, struct error *e);
