/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1 and libcublasLt for the test of models on the device "cuda" where there is no GPU. Device
   memory is the host's, NaN throughout until it is written; kernels are run by the test; products are
   computed from the descriptions that they were given, column by column as cublasLt.h defines them; what
   a stream is given runs as late as possible (fake_work.h), or when its graph does. */
#include "tests/model/fake_gpu.h"
#include "model/backend/cuda/cublas_symbols.h"
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unseen(const void *of);
static int left(void);
__attribute__((visibility("default"))) struct fake_gpu fake_gpu = {
    .capability = 80, .unseen = unseen, .left = left};

#define FAKE_GPU                fake_gpu
#define FAKE_CAPABILITY(device) ((void)(device), fake_gpu.capability)
static int synchronize(void);
static void end_context(void);
#define FAKE_RELEASED()     end_context()
#define FAKE_SYNCHRONIZED() synchronize()
#define FAKE_CURRENT        fake_gpu.current
enum { FAKE_PROCESSORS = 4 };
#include "tests/support/fake_cuda.h"

enum { INVALID_VALUE = 1, CAPTURE_UNSUPPORTED = 900 };

/* The call that failed was to enter the context or to wait for it, possibly in order to give back. */
static bool lost;
/* It was one of these, or to wait for a stream: work may be left where there is none otherwise. */
static bool unwaited;

/* The context's end frees what such a failure kept: an allocation, or a kernel's tables and modules. */
static void end_context(void)
{
    if (fake_gpu.contexts)
        return;
    unwaited = false;
    if (!lost)
        return;
    lost = false;
    fake_gpu.allocations -= fake_gpu.allocations == 1;
    fake_gpu.modules = fake_gpu.modules <= 3 ? 0 : fake_gpu.modules;
}

/* Every call counts, and may be the one that fails. */
static int count_call(const char *name)
{
    const bool named = !strcmp(name, fake_gpu.fails) && fake_gpu.fails_after-- == 0;
    if (named)
        fake_gpu.fails[0] = 0;
    if (++fake_gpu.calls != fake_gpu.fail_at && !named)
        return 0;
    snprintf(fake_gpu.failed, sizeof fake_gpu.failed, "%s", name);
    lost = !strcmp(name, "cuCtxPushCurrent_v2") || !strcmp(name, "cuCtxSynchronize");
    unwaited = lost || strstr(name, "Synchronize");
    return INJECTED;
}

#include "tests/model/fake_product.h"
#include "tests/model/fake_work.h"

/* ---- the driver ---- */

/* NVRTC asks for it where it finds a driver. */
FAKE(cuGetExportTable, const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return fail(NOT_FOUND);
}

enum { MOST_FUNCTIONS = 16 };

struct cu_module {
    struct cu_function function[MOST_FUNCTIONS];
    int functions;
};

FAKE(cuModuleLoadDataEx, struct cu_module **module, const void *image, unsigned count,
     int *options, void **values)
{
    INSIDE;
    (void)count, (void)options, (void)values;
    if (memcmp(image, "\177ELF", 4))
        return fail(INVALID_VALUE);
    fake_gpu.modules++;
    *module = calloc(1, sizeof **module);
    return 0;
}

FAKE(cuModuleUnload, struct cu_module *module)
{
    fake_gpu.modules--;
    free(module);
    return 0;
}

FAKE(cuModuleGetFunction, struct cu_function **function, struct cu_module *module,
     const char *name)
{
    INSIDE;
    if (module->functions == MOST_FUNCTIONS || !fake_gpu.args_bytes(name))
        return fail(NOT_FOUND);
    *function = &module->function[module->functions++];
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    return 0;
}

FAKE(cuFuncSetAttribute, struct cu_function *function, int attribute, int value)
{
    INSIDE;
    (void)function, (void)attribute, (void)value;
    return 0;
}

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct cu_function *function,
     int threads, size_t shared)
{
    INSIDE;
    (void)function, (void)threads, (void)shared;
    *blocks = 2;
    return 0;
}

FAKE(cuLaunchKernel, struct cu_function *function, unsigned grid_x, unsigned grid_y,
     unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
     struct cu_stream *stream, void **arguments, void **extra)
{
    INSIDE;
    const size_t bytes = fake_gpu.args_bytes(function->name);
    struct work w = {.kind = WORK_KERNEL,
                     .function = *function,
                     .blocks = grid_x * grid_y * grid_z,
                     .threads = block_x * block_y * block_z,
                     .shared_bytes = shared,
                     .args = malloc(bytes)};
    fake_gpu.launches += !stream || !stream->capture;
    memcpy(w.args, arguments[0], bytes);
    return extra || !w.blocks ? fail(INVALID_VALUE) : take(stream, &w);
}

/* ---- memory ---- */

/* A capture forbids it: something of the driver's own may have to happen. */
static int captures_now;

static int synchronize(void)
{
    return captures_now ? CAPTURE_UNSUPPORTED : run_all();
}

enum {
    POISONED = 1 << 20
}; /* bytes filled with NaN: more than any array of the tests' models, less than the workspace of cuBLASLt */

FAKE(cuMemAlloc_v2, cu_pointer *pointer, size_t bytes)
{
    INSIDE;
    if (captures_now || !bytes)
        return fail(captures_now ? CAPTURE_UNSUPPORTED : INVALID_VALUE);
    bytes = (bytes + 255) / 256 * 256;
    void *p = aligned_alloc(256, bytes);
    if (!p)
        return fail(OUT_OF_MEMORY);
    memset(p, 0xff, bytes < POISONED ? bytes : POISONED);
    fake_gpu.allocations++;
    fake_gpu.allocated++;
    *pointer = (cu_pointer)(size_t)p;
    return 0;
}

/* Waits for the device, as most drivers do though none promises it. */
FAKE(cuMemFree_v2, cu_pointer pointer)
{
    if (pointer)
        release((void *)(size_t)pointer, malloc_usable_size((void *)(size_t)pointer));
    run_all();
    fake_gpu.allocations -= pointer != 0;
    free((void *)(size_t)pointer);
    return 0;
}

FAKE(cuMemHostAlloc, void **pointer, size_t bytes, unsigned flags)
{
    INSIDE;
    if (flags || !bytes)
        return fail(INVALID_VALUE);
    struct pinned *p = malloc(sizeof *p);
    *p = (struct pinned){malloc(bytes), bytes, all_pinned};
    all_pinned = p;
    fake_gpu.pinned++;
    fake_gpu.allocated++;
    *pointer = p->begin;
    return 0;
}

FAKE(cuMemFreeHost, void *pointer)
{
    struct pinned **at = &all_pinned;
    while (*at && (*at)->begin != pointer)
        at = &(*at)->next;
    if (!*at)
        return fail(INVALID_VALUE);
    struct pinned *p = *at;
    release(p->begin, p->bytes);
    run_all();
    *at = p->next;
    fake_gpu.pinned--;
    free(p->begin);
    free(p);
    return 0;
}

FAKE(cuMemcpyHtoD_v2, cu_pointer to, const void *from, size_t bytes)
{
    INSIDE;
    memcpy((void *)(size_t)to, from, bytes);
    return fail(captures_now ? CAPTURE_UNSUPPORTED : 0);
}

FAKE(cuMemcpyDtoH_v2, void *to, cu_pointer from, size_t bytes)
{
    INSIDE;
    memcpy(to, (const void *)(size_t)from, bytes);
    return fail(captures_now ? CAPTURE_UNSUPPORTED : 0);
}

FAKE(cuMemcpyHtoDAsync_v2, cu_pointer to, const void *from, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    const struct work w = {
        .kind = WORK_COPY, .to = (void *)(size_t)to, .from = from, .bytes = bytes};
    return stream->capture ? fail(CAPTURE_UNSUPPORTED) : copy(stream, &w);
}

/* Returns when it is done if the memory is not pinned. */
FAKE(cuMemcpyDtoHAsync_v2, void *to, cu_pointer from, size_t bytes, struct cu_stream *stream)
{
    INSIDE;
    if (stream->capture)
        return fail(CAPTURE_UNSUPPORTED);
    const struct work w = {
        .kind = WORK_COPY, .to = to, .from = (const void *)(size_t)from, .bytes = bytes};
    if (is_pinned(to))
        return take(stream, &w);
    const int r = run_until(stream, ++stream->given);
    memcpy(to, w.from, bytes);
    return fail(r);
}

FAKE(cuMemcpyDtoDAsync_v2, cu_pointer to, cu_pointer from, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    const struct work w = {.kind = WORK_COPY,
                           .to = (void *)(size_t)to,
                           .from = (const void *)(size_t)from,
                           .bytes = bytes};
    return take(stream, &w);
}

FAKE(cuMemsetD8Async, cu_pointer to, unsigned char value, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    const struct work w = {
        .kind = WORK_SET, .to = (void *)(size_t)to, .value = value, .bytes = bytes};
    return stream->capture ? fail(CAPTURE_UNSUPPORTED) : take(stream, &w);
}

#include "tests/model/fake_cublas.h"
#include "tests/model/fake_streams.h"
