/* SPDX-License-Identifier: Apache-2.0 */
/* The driver "cuda": the driver API, the row kernels through NVRTC (and maskc's cache), products by
   cuBLASLt, batches recorded as CUDA graphs. All of an engine's memory and code is in the primary
   context of its GPU; each lane has a stream. */
#include "masks/base/memory.h"
#include "model/device/backend.h"
#include "model/device/cublas.h"
#include "runtime/cache.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_OF_PROCESSOR = 16 }; /* that run at once, of ROWS_THREADS threads each */

struct driver_state {
    struct cu_context *context;
    cu_device device;
    bool retained;
    struct cu_module *module;
    struct cu_function *rows[ROWS_ENTRIES];
    uint32_t most_blocks;
    struct cublas *cublas;
};

struct recording {
    struct cu_graph_exec *graph;
};

#define CALL(name, ...) cuda_check(cuda_driver()->name(__VA_ARGS__), #name, e)

static cu_pointer address(const void *p)
{
    return (cu_pointer)(uintptr_t)p;
}

static int enter(const struct backend *b, struct error *e)
{
    return CALL(cuCtxPushCurrent_v2, b->state->context);
}

static void leave(void)
{
    struct cu_context *ignored;
    cuda_driver()->cuCtxPopCurrent_v2(&ignored);
}

/* For giving back, which is tried in any case. */
static bool try_enter(const struct backend *b)
{
    return enter(b, NULL) == 0;
}

static void try_leave(bool entered)
{
    if (entered)
        leave();
}

/* ---- opening ---- */

static int open_context(struct driver_state *s, int ordinal, struct error *e)
{
    if (cuda_must_have(ordinal, e) < 0)
        return -1;
    if (CALL(cuDeviceGet, &s->device, ordinal) < 0 ||
        CALL(cuDevicePrimaryCtxRetain, &s->context, s->device) < 0)
        return -1;
    s->retained = true;
    return 0;
}

static int compile_rows(const struct source *rows, int ordinal, struct binary *ret,
                        struct error *e)
{
    const char *name = machine_cuda_target(ordinal);
    const struct target *t = name ? target_find(name, e) : NULL;
    if (!t)
        return error_set(e, ERROR_UNAVAILABLE, "no target suits this GPU");
    struct cache *cache = cache_open(NULL);
    int r = compile_source(rows, t, cache, ret, e);
    cache_close(cache);
    return r;
}

static int load_rows(struct driver_state *s, const struct source *rows, int ordinal,
                     struct error *e)
{
    struct binary code = {0};
    int processors = cuda_attribute(CU_MULTIPROCESSOR_COUNT, s->device);
    if (compile_rows(rows, ordinal, &code, e) < 0)
        return -1;
    /* They are one unit. An image ends in a zero where it is PTX text. */
    uint8_t *image = memory_new(code.image[0].size + 1, 1);
    memcpy(image, code.image[0].bytes, code.image[0].size);
    int r = CALL(cuModuleLoadDataEx, &s->module, image, 0, NULL, NULL);
    free(image);
    binary_finish(&code);
    if (r < 0)
        s->module = NULL;
    for (int k = 0; k < ROWS_ENTRIES && r == 0; k++)
        r = CALL(cuModuleGetFunction, &s->rows[k], s->module, rows_entries[k]);
    s->most_blocks = (uint32_t)(processors > 0 ? processors : 1) * BLOCKS_OF_PROCESSOR;
    return r;
}

static int open(struct backend *b, int ordinal, const struct source *rows, struct error *e)
{
    struct driver_state *s = b->state = memory_new(1, sizeof *s);
    if (open_context(s, ordinal, e) < 0 || enter(b, e) < 0)
        return -1;
    int r = load_rows(s, rows, ordinal, e);
    if (r == 0)
        s->cublas = cublas_new(e);
    leave();
    return r == 0 && s->cublas ? 0 : -1;
}

static void close(struct backend *b)
{
    struct driver_state *s = b->state;
    if (s && s->retained) {
        bool entered = try_enter(b);
        cublas_destroy(s->cublas);
        if (s->module)
            cuda_driver()->cuModuleUnload(s->module);
        try_leave(entered);
        cuda_driver()->cuDevicePrimaryCtxRelease_v2(s->device);
    }
    free(s);
}

/* ---- memory ---- */

static void *allocate(const struct backend *b, uint64_t bytes, struct error *e)
{
    cu_pointer p = 0;
    if (enter(b, e) < 0)
        return NULL;
    if (CALL(cuMemAlloc_v2, &p, bytes ? bytes : 1) < 0) {
        error_prefix(e, "%llu bytes of GPU memory", (unsigned long long)bytes);
        p = 0;
    }
    leave();
    return (void *)(uintptr_t)p;
}

static void release(const struct backend *b, void *p)
{
    if (!p)
        return;
    bool entered = try_enter(b);
    cuda_driver()->cuMemFree_v2(address(p));
    try_leave(entered);
}

static int lane_open(const struct backend *b, struct lane *l, struct error *e)
{
    struct cu_stream *stream = NULL;
    l->workspace = allocate(b, CUBLAS_WORKSPACE_BYTES, e);
    if (!l->workspace)
        return -1;
    int r = enter(b, e);
    if (r == 0) {
        r = CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        leave();
    }
    l->stream = r == 0 ? stream : NULL;
    if (r < 0) {
        release(b, l->workspace);
        l->workspace = NULL;
    }
    return r;
}

static void lane_close(const struct backend *b, struct lane *l)
{
    bool entered = try_enter(b);
    if (l->stream)
        cuda_driver()->cuStreamDestroy_v2(l->stream);
    try_leave(entered);
    release(b, l->workspace);
    *l = (struct lane){0};
}

static int clear(const struct backend *b, struct lane *l, void *p, uint64_t bytes,
                 struct error *e)
{
    if (!bytes)
        return 0;
    if (enter(b, e) < 0)
        return -1;
    int r = CALL(cuMemsetD8Async, address(p), 0, bytes, l->stream);
    leave();
    return r;
}

static int send(const struct backend *b, struct lane *l, void *to, const void *from,
                uint64_t bytes, struct error *e)
{
    if (!bytes)
        return 0;
    if (enter(b, e) < 0)
        return -1;
    int r = l->stream ? CALL(cuMemcpyHtoDAsync_v2, address(to), from, bytes, l->stream)
                      : CALL(cuMemcpyHtoD_v2, address(to), from, bytes);
    leave();
    return r;
}

static int fetch(const struct backend *b, struct lane *l, void *to, const void *from,
                 uint64_t bytes, struct error *e)
{
    if (enter(b, e) < 0)
        return -1;
    int r = bytes ? CALL(cuMemcpyDtoHAsync_v2, to, address(from), bytes, l->stream) : 0;
    if (r == 0)
        r = CALL(cuStreamSynchronize, l->stream);
    leave();
    return r;
}

static int wait(const struct backend *b, struct lane *l, struct error *e)
{
    if (enter(b, e) < 0)
        return -1;
    int r = CALL(cuStreamSynchronize, l->stream);
    leave();
    return r;
}

/* ---- work ---- */

static int product(const struct backend *b, struct lane *l, const struct linear *w,
                   uint32_t rows, const void *x, void *y, bool *fused, struct error *e)
{
    if (enter(b, e) < 0)
        return -1;
    int r = cublas_product(b->state->cublas, w, rows, x, y, l->workspace, l->stream, fused, e);
    leave();
    return r;
}

static int rows(const struct backend *b, struct lane *l, enum rows_entry entry,
                const struct rows_args *args, uint64_t blocks, struct error *e)
{
    const struct driver_state *s = b->state;
    unsigned grid = blocks < s->most_blocks ? (unsigned)blocks : s->most_blocks;
    void *arguments[] = {(void *)(uintptr_t)args};
    if (!grid)
        return 0;
    if (enter(b, e) < 0)
        return -1;
    int r = CALL(cuLaunchKernel, s->rows[entry], grid, 1, 1, ROWS_THREADS, 1, 1, 0, l->stream,
                 arguments, NULL);
    leave();
    return r;
}

/* ---- graphs ---- */

static int record(const struct backend *b, struct lane *l, struct error *e)
{
    if (enter(b, e) < 0)
        return -1;
    int r = CALL(cuStreamBeginCapture_v2, l->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    leave();
    return r;
}

static struct recording *record_end(const struct backend *b, struct lane *l, struct error *e)
{
    struct cu_graph *graph = NULL;
    struct cu_graph_exec *made = NULL;
    bool entered = try_enter(b);
    int r = CALL(cuStreamEndCapture, l->stream, &graph);
    if (r == 0)
        r = CALL(cuGraphInstantiateWithFlags, &made, graph, 0);
    if (graph)
        cuda_driver()->cuGraphDestroy(graph);
    try_leave(entered);
    if (r < 0)
        return NULL;
    struct recording *ret = memory_new(1, sizeof *ret);
    ret->graph = made;
    return ret;
}

static int replay(const struct backend *b, struct lane *l, const struct recording *r,
                  struct error *e)
{
    if (enter(b, e) < 0)
        return -1;
    int result = CALL(cuGraphLaunch, r->graph, l->stream);
    leave();
    return result;
}

static void forget(const struct backend *b, struct recording *r)
{
    bool entered = try_enter(b);
    cuda_driver()->cuGraphExecDestroy(r->graph);
    try_leave(entered);
    free(r);
}

const struct backend_driver backend_cuda = {
    .name = "cuda",
    .target = "cuda",
    .rounds_up = true,
    .open = open,
    .close = close,
    .lane_open = lane_open,
    .lane_close = lane_close,
    .allocate = allocate,
    .release = release,
    .clear = clear,
    .send = send,
    .fetch = fetch,
    .wait = wait,
    .product = product,
    .rows = rows,
    .record = record,
    .record_end = record_end,
    .replay = replay,
    .forget = forget,
};
