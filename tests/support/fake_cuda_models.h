/* SPDX-License-Identifier: Apache-2.0 */
/* Driver functions that only models call, for a mock libcuda.so.1. Include it after fake_cuda.h. */
#pragma once

#define UNUSED(name)                                       \
    __attribute__((visibility("default"))) int name(void); \
    int name(void)                                         \
    {                                                      \
        return fail(NOT_FOUND);                            \
    }

UNUSED(cuMemHostAlloc)
UNUSED(cuMemFreeHost)
UNUSED(cuMemcpyDtoHAsync_v2)
UNUSED(cuMemcpyDtoDAsync_v2)
UNUSED(cuMemsetD8Async)
UNUSED(cuStreamQuery)
UNUSED(cuStreamWaitEvent)
UNUSED(cuEventCreate)
UNUSED(cuEventRecord)
UNUSED(cuEventSynchronize)
UNUSED(cuEventDestroy_v2)
UNUSED(cuStreamBeginCapture_v2)
UNUSED(cuStreamEndCapture)
UNUSED(cuGraphInstantiateWithFlags)
UNUSED(cuGraphLaunch)
UNUSED(cuGraphExecDestroy)
UNUSED(cuGraphDestroy)
