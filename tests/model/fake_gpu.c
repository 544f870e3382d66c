/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1 and libcublasLt for the test of models on the device "cuda" where there is no GPU. Device
   memory is the host's, NaN throughout until it is written; kernels are run by the test; products are
   computed from the descriptions that they were given, column by column as cublasLt.h defines them; what
   a stream is given while it is captured runs when the graph does. */
#include "tests/model/fake_gpu.h"
#include "model/backend/cuda/cublas_symbols.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unseen(const void *of);
__attribute__((visibility("default"))) struct fake_gpu fake_gpu = {.capability = 80,
                                                                   .unseen = unseen};

#define FAKE_GPU                fake_gpu
#define FAKE_CAPABILITY(device) ((void)(device), fake_gpu.capability)
enum { FAKE_PROCESSORS = 4 };
#include "tests/support/fake_cuda.h"

enum { INVALID_VALUE = 1, CAPTURE_UNSUPPORTED = 900 };

/* Every call counts, and may be the one that fails. */
static int count_call(const char *name)
{
    if (++fake_gpu.calls != fake_gpu.fail_at)
        return 0;
    snprintf(fake_gpu.failed, sizeof fake_gpu.failed, "%s", name);
    return INJECTED;
}

/* ---- work, now or later ---- */

struct cu_function {
    char name[40];
};

#include "tests/model/fake_product.h"

/* A kernel with its arguments, or a product. */
struct work {
    struct cu_function function;
    unsigned blocks, threads, shared_bytes;
    void *args;
    struct product product;
    struct work *next;
};

struct cu_graph {
    struct work *first, **last;
};

struct cu_graph_exec {
    struct cu_graph graph;
};

struct cu_stream {
    struct cu_graph *capture;
    int given;                      /* work so far */
    const struct cu_stream *before; /* whose work it waits for, up to: */
    int up_to;
};

static int unseen(const void *of)
{
    const struct cu_stream *s = of;
    return s->before ? s->before->given - s->up_to : -1;
}

static int run(const struct work *w)
{
    return w->args
               ? fake_gpu.run(w->function.name, w->blocks, w->threads, w->shared_bytes, w->args)
               : run_product(&w->product);
}

static void free_works(struct work *w)
{
    while (w) {
        struct work *next = w->next;
        free(w->args);
        free(w);
        w = next;
    }
}

/* Takes what w points to. */
static int take(struct cu_stream *stream, const struct work *w)
{
    fake_gpu.outside += !stream;
    if (stream)
        stream->given++;
    if (!stream || !stream->capture) {
        int r = run(w);
        free(w->args);
        return r;
    }
    struct work *copy = malloc(sizeof *copy);
    *copy = *w;
    copy->next = NULL;
    *stream->capture->last = copy;
    stream->capture->last = &copy->next;
    return 0;
}

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
    struct work w = {.function = *function,
                     .blocks = grid_x * grid_y * grid_z,
                     .threads = block_x * block_y * block_z,
                     .shared_bytes = shared,
                     .args = malloc(bytes)};
    fake_gpu.launches++;
    memcpy(w.args, arguments[0], bytes);
    return extra || !w.blocks ? fail(INVALID_VALUE) : take(stream, &w);
}

/* ---- memory ---- */

/* A capture forbids it: something of the driver's own may have to happen. */
static int captures_now;

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
    *pointer = (cu_pointer)(size_t)p;
    return 0;
}

FAKE(cuMemFree_v2, cu_pointer pointer)
{
    fake_gpu.allocations -= pointer != 0;
    free((void *)(size_t)pointer);
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
    stream->given++;
    memcpy((void *)(size_t)to, from, bytes);
    return fail(stream->capture ? CAPTURE_UNSUPPORTED : 0);
}

FAKE(cuMemcpyDtoHAsync_v2, void *to, cu_pointer from, size_t bytes, struct cu_stream *stream)
{
    INSIDE;
    stream->given++;
    memcpy(to, (const void *)(size_t)from, bytes);
    return fail(stream->capture ? CAPTURE_UNSUPPORTED : 0);
}

FAKE(cuMemsetD8Async, cu_pointer to, unsigned char value, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    stream->given++;
    memset((void *)(size_t)to, value, bytes);
    return fail(stream->capture ? CAPTURE_UNSUPPORTED : 0);
}

#include "tests/model/fake_cublas.h"
#include "tests/model/fake_streams.h"
