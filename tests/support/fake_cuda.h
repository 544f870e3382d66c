/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of every mock libcuda.so.1: errors, devices, contexts. Before it is included
   FAKE_GPU names the struct that counts (contexts, pushed, calls, fail_at, failures), FAKE_CAPABILITY(device) is
   90 for 9.0, FAKE_PROCESSORS are how many a device has, and count_call(name) counts a call and says
   whether it is the one that fails. The struct's `failures` counts calls that failed.
   Written against cuda.h's prototypes. */
#pragma once
#include "runtime/device/cuda_symbols.h"
#include <stdio.h>

#ifndef FAKE_CURRENT /* 1 + the device of the calling thread's context; 0: no context */
#define FAKE_CURRENT 0
#endif
#ifndef FAKE_VERSION /* of CUDA */
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_ENTERED /* called with each context that is pushed */
#define FAKE_ENTERED(context) (void)(context)
#endif
#ifndef FAKE_STARTED /* called with the driver's start */
#define FAKE_STARTED() (void)0
#endif
#ifndef FAKE_RELEASED /* called after a primary context's release */
#define FAKE_RELEASED() (void)0
#endif
#ifndef FAKE_SYNCHRONIZED /* called when the whole context was waited for; its result is the call's */
#define FAKE_SYNCHRONIZED() 0
#endif
#define FAKE_CONTEXT(device) ((struct cu_context *)(size_t)(16 + (device)))

enum { OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500, INJECTED = 999 };

/* Counts a failure and returns it. */
static int fail(int result)
{
    FAKE_GPU.failures += result != 0;
    return result;
}

#ifndef FAKE_ERROR_NAME
#define FAKE_ERROR_NAME(result) \
    ((result) == INJECTED ? "CUDA_ERROR_INJECTED" : "CUDA_ERROR_OTHER")
#define FAKE_ERROR_TEXT(result) \
    ((result) == INJECTED ? "asked for by the test" : "another error")
#endif

static int count_call(const char *name);

#define FAKE(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)
#define COUNTED               \
    if (count_call(__func__)) \
    return fail(INJECTED)
#define INSIDE            \
    COUNTED;              \
    if (!FAKE_GPU.pushed) \
    return fail(INVALID_CONTEXT)

FAKE(cuInit, unsigned flags)
{
    FAKE_STARTED();
    return (int)flags;
}

FAKE(cuDriverGetVersion, int *version)
{
    *version = FAKE_VERSION;
    return 0;
}

FAKE(cuGetErrorName, int result, const char **name)
{
    *name = FAKE_ERROR_NAME(result);
    return 0;
}

FAKE(cuGetErrorString, int result, const char **text)
{
    *text = FAKE_ERROR_TEXT(result);
    return 0;
}

FAKE(cuDeviceGetCount, int *count)
{
    *count = 2;
    return 0;
}

FAKE(cuDeviceGet, cu_device *device, int ordinal)
{
    COUNTED;
    *device = ordinal;
    return 0;
}

FAKE(cuDeviceGetName, char *name, int length, cu_device device)
{
    snprintf(name, (size_t)length, "Fake %d", device);
    return 0;
}

/* Bytes of shared memory that a block may ask for, by CUDA's table of compute capabilities. */
static int fake_shared(int capability)
{
    const int kib = capability < 80                        ? 64
                    : capability == 80 || capability == 87 ? 163
                    : capability < 90 || capability >= 120 ? 99
                                                           : 227;
    return kib * 1024;
}

FAKE(cuDeviceGetAttribute, int *value, int attribute, cu_device device)
{
    const int capability = FAKE_CAPABILITY(device);
    *value = attribute == CU_MULTIPROCESSOR_COUNT                ? FAKE_PROCESSORS
             : attribute == CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? fake_shared(capability)
             : attribute == CU_COMPUTE_CAPABILITY_MAJOR          ? capability / 10
                                                                 : capability % 10;
    return 0;
}

FAKE(cuDevicePrimaryCtxRetain, struct cu_context **context, cu_device device)
{
    COUNTED;
    FAKE_GPU.contexts++;
    *context = FAKE_CONTEXT(device);
    return 0;
}

FAKE(cuDevicePrimaryCtxRelease_v2, cu_device device)
{
    (void)device;
    FAKE_GPU.contexts--;
    FAKE_RELEASED();
    return 0;
}

FAKE(cuCtxGetCurrent, struct cu_context **context)
{
    COUNTED;
    *context = FAKE_CURRENT ? FAKE_CONTEXT(FAKE_CURRENT - 1) : NULL;
    return 0;
}

FAKE(cuCtxGetDevice, cu_device *device)
{
    COUNTED;
    *device = FAKE_CURRENT - 1;
    return fail(FAKE_CURRENT ? 0 : INVALID_CONTEXT);
}

FAKE(cuCtxPushCurrent_v2, struct cu_context *context)
{
    COUNTED;
    FAKE_GPU.pushed += context != NULL;
    FAKE_ENTERED(context);
    return fail(context ? 0 : INVALID_CONTEXT);
}

FAKE(cuCtxPopCurrent_v2, struct cu_context **context)
{
    *context = NULL;
    FAKE_GPU.pushed--;
    return 0;
}

static _Thread_local int capture_mode; /* of the calling thread */

FAKE(cuThreadExchangeStreamCaptureMode, int *mode)
{
    const int before = capture_mode;
    if (!FAKE_GPU.pushed || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return fail(INVALID_CONTEXT);
    capture_mode = *mode;
    *mode = before;
    return 0;
}

FAKE(cuCtxSynchronize, void)
{
    INSIDE;
    return fail(FAKE_SYNCHRONIZED());
}
