/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions that we use, by the names that its library exports, and the few types
   and constants of cuda.h behind them: the build needs no CUDA toolkit. Results are CUresult, 0
   is success. */
#pragma once
#include <stddef.h>

typedef int cu_device;
typedef unsigned long long cu_pointer;
struct cu_context;
struct cu_module;
struct cu_function;
struct cu_stream;
struct cu_event;
struct cu_graph;
struct cu_graph_exec;

enum {
    CU_MULTIPROCESSOR_COUNT = 16,
    CU_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_COMPUTE_CAPABILITY_MINOR = 76,
    CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, /* a function's attribute */
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_NOT_FOUND = 500, /* a result */
    CU_NOT_READY = 600, /* a result */
    CU_TENSOR_MAP_FLOAT16 = 6,
    CU_TENSOR_MAP_BFLOAT16 = 9,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_256B = 3,
    CU_TENSOR_MAP_OOB_FILL_ZEROS = 0,
};

/* clang-format off */
#define CUDA_SYMBOLS(S)                                                                        \
    S(cuInit, (unsigned flags))                                                                \
    S(cuDriverGetVersion, (int *version))                                                      \
    S(cuGetErrorName, (int result, const char **name))                                         \
    S(cuGetErrorString, (int result, const char **text))                                       \
    S(cuDeviceGetCount, (int *count))                                                          \
    S(cuDeviceGet, (cu_device *device, int ordinal))                                           \
    S(cuDeviceGetName, (char *name, int length, cu_device device))                             \
    S(cuDeviceGetAttribute, (int *value, int attribute, cu_device device))                     \
    S(cuDevicePrimaryCtxRetain, (struct cu_context **context, cu_device device))               \
    S(cuDevicePrimaryCtxRelease_v2, (cu_device device))                                        \
    S(cuCtxGetCurrent, (struct cu_context **context))                                          \
    S(cuCtxGetDevice, (cu_device *device))                                                     \
    S(cuCtxPushCurrent_v2, (struct cu_context *context))                                       \
    S(cuCtxPopCurrent_v2, (struct cu_context **context))                                       \
    S(cuCtxSynchronize, (void))                                                                \
    S(cuModuleLoadDataEx, (struct cu_module **module, const void *image, unsigned count,       \
                           int *options, void **values))                                       \
    S(cuModuleUnload, (struct cu_module *module))                                              \
    S(cuModuleGetFunction, (struct cu_function **function, struct cu_module *module,           \
                            const char *name))                                                 \
    S(cuFuncSetAttribute, (struct cu_function *function, int attribute, int value))            \
    S(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, struct cu_function *function, \
                                                    int threads, size_t shared_bytes))         \
    S(cuLaunchKernel, (struct cu_function *function, unsigned grid_x, unsigned grid_y,         \
                       unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,  \
                       unsigned shared_bytes, struct cu_stream *stream, void **arguments,      \
                       void **extra))                                                          \
    S(cuMemAlloc_v2, (cu_pointer *pointer, size_t bytes))                                      \
    S(cuMemFree_v2, (cu_pointer pointer))                                                      \
    S(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags))                          \
    S(cuMemFreeHost, (void *pointer))                                                          \
    S(cuMemcpyHtoD_v2, (cu_pointer to, const void *from, size_t bytes))                        \
    S(cuMemcpyDtoH_v2, (void *to, cu_pointer from, size_t bytes))                              \
    S(cuMemcpyHtoDAsync_v2, (cu_pointer to, const void *from, size_t bytes,                    \
                             struct cu_stream *stream))                                        \
    S(cuMemcpyDtoHAsync_v2, (void *to, cu_pointer from, size_t bytes,                          \
                             struct cu_stream *stream))                                        \
    S(cuMemcpyDtoDAsync_v2, (cu_pointer to, cu_pointer from, size_t bytes,                     \
                             struct cu_stream *stream))                                        \
    S(cuMemsetD8Async, (cu_pointer to, unsigned char value, size_t bytes,                      \
                        struct cu_stream *stream))                                             \
    S(cuThreadExchangeStreamCaptureMode, (int *mode))                                          \
    S(cuStreamCreate, (struct cu_stream **stream, unsigned flags))                             \
    S(cuStreamDestroy_v2, (struct cu_stream *stream))                                          \
    S(cuStreamSynchronize, (struct cu_stream *stream))                                         \
    S(cuStreamQuery, (struct cu_stream *stream))                                               \
    S(cuStreamWaitEvent, (struct cu_stream *stream, struct cu_event *event, unsigned flags))   \
    S(cuEventCreate, (struct cu_event **event, unsigned flags))                                \
    S(cuEventRecord, (struct cu_event *event, struct cu_stream *stream))                       \
    S(cuEventSynchronize, (struct cu_event *event))                                            \
    S(cuEventDestroy_v2, (struct cu_event *event))
/* Graphs; null in a driver that has none. */
#define CUDA_GRAPH_SYMBOLS(S)                                                                  \
    S(cuStreamBeginCapture_v2, (struct cu_stream *stream, int mode))                           \
    S(cuStreamEndCapture, (struct cu_stream *stream, struct cu_graph **graph))                 \
    S(cuGraphInstantiateWithFlags, (struct cu_graph_exec **exec, struct cu_graph *graph,       \
                                    unsigned long long flags))                                 \
    S(cuGraphLaunch, (struct cu_graph_exec *exec, struct cu_stream *stream))                   \
    S(cuGraphExecDestroy, (struct cu_graph_exec *exec))                                        \
    S(cuGraphDestroy, (struct cu_graph *graph))
/* From CUDA 12 on; null in an older driver. */
#define CUDA_TENSOR_MAP_SYMBOLS(S)                                                             \
    S(cuTensorMapEncodeTiled, (void *map, int type, unsigned dimensions, void *address,        \
                               const unsigned long long *extents,                              \
                               const unsigned long long *strides, const unsigned *box,         \
                               const unsigned *element_strides, int interleave, int swizzle,   \
                               int promotion, int fill))
/* clang-format on */
