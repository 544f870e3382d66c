/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "cuda": the driver API, encoder ops through NVRTC (and maskc's cache), products by cuBLASLt,
   batches recorded as CUDA graphs. All of an engine's memory and code is in the primary context of its GPU;
   each workspace has a stream. */
#include "masks/base/memory.h"
#include "model/backend/cuda/cublas.h"
#include "model/backend/gpu/gpu.h"
#include "runtime/device/cuda_context.h"
#include <stdlib.h>

enum { BLOCKS_OF_PROCESSOR = 16 }; /* that run at once, of ROWS_THREADS threads each */

struct gpu {
    struct cuda_context context;
    struct cu_module *module, *training; /* training: or null */
    struct cu_function *op[ENCODER_OPS], *train_op[TRAIN_OPS];
    uint32_t most_blocks;
    struct cublas *cublas;
};

struct recording {
    struct cu_graph_exec *graph;
};

/* ---- opening ---- */

static struct cu_module *load_module(const struct encoder_ops_shape *shape, bool trains,
                                     int ordinal, struct error *e)
{
    const struct encoder_ops_shape of = {shape->dtype, shape->hidden, trains};
    struct cu_module *ret = NULL;
    uint8_t *image = encoder_ops_image(&of, ordinal, e);
    if (!image)
        return NULL;
    int r = CALL(cuModuleLoadDataEx, &ret, image, 0, NULL, NULL);
    free(image);
    return r < 0 ? NULL : ret;
}

static int load_training(struct gpu *g, const struct encoder_ops_shape *shape, int ordinal,
                         struct error *e)
{
    int r = 0;
    g->training = load_module(shape, true, ordinal, e);
    for (int k = 0; k < TRAIN_OPS && g->training && r == 0; k++)
        r = CALL(cuModuleGetFunction, &g->train_op[k], g->training,
                 train_op_entry((enum train_op)k));
    return g->training ? r : -1;
}

static int load_ops(struct gpu *g, const struct encoder_ops_shape *shape, int ordinal,
                    struct error *e)
{
    int processors = cuda_attribute(CU_MULTIPROCESSOR_COUNT, g->context.device), r = 0;
    g->most_blocks = (uint32_t)(processors > 0 ? processors : 1) * BLOCKS_OF_PROCESSOR;
    g->module = load_module(shape, false, ordinal, e);
    for (int k = 0; k < ENCODER_OPS && g->module && r == 0; k++)
        r = CALL(cuModuleGetFunction, &g->op[k], g->module, encoder_op_entries[k]);
    if (!g->module || r < 0)
        return -1;
    return shape->trains ? load_training(g, shape, ordinal, e) : 0;
}

static void close(struct gpu *g)
{
    bool entered = cuda_try_enter(&g->context);
    cublas_destroy(g->cublas);
    if (g->module)
        cuda_driver()->cuModuleUnload(g->module);
    if (g->training)
        cuda_driver()->cuModuleUnload(g->training);
    cuda_try_leave(entered);
    cuda_context_close(&g->context);
    free(g);
}

static int open_all(struct gpu *g, int ordinal, const struct encoder_ops_shape *shape,
                    struct error *e)
{
    if (cuda_context_open(&g->context, ordinal, e) < 0 || cuda_enter(&g->context, e) < 0)
        return -1;
    int r = load_ops(g, shape, ordinal, e);
    if (r == 0)
        g->cublas = cublas_new(e);
    cuda_leave();
    return r == 0 && g->cublas ? 0 : -1;
}

static struct gpu *open(int ordinal, const struct encoder_ops_shape *shape, struct error *e)
{
    struct gpu *g = memory_new(1, sizeof *g);
    if (open_all(g, ordinal, shape, e) == 0)
        return g;
    close(g);
    return NULL;
}

/* ---- memory ---- */

static void *allocate(const struct gpu *g, uint64_t bytes, struct error *e)
{
    return cuda_allocate(&g->context, bytes, e);
}

static void release(const struct gpu *g, void *p)
{
    cuda_release(&g->context, p);
}

static int open_stream(const struct gpu *g, struct cu_stream **ret, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamCreate, ret, CU_STREAM_NON_BLOCKING);
    cuda_leave();
    return r;
}

static int stream_open(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    struct cu_stream *stream = NULL;
    void *workspace = allocate(g, CUBLAS_WORKSPACE_BYTES, e);
    if (!workspace)
        return -1;
    if (open_stream(g, &stream, e) < 0) {
        release(g, workspace);
        return -1;
    }
    *s = (struct gpu_stream){stream, workspace};
    return 0;
}

static void stream_close(const struct gpu *g, struct gpu_stream *s)
{
    bool entered = cuda_try_enter(&g->context);
    if (s->handle)
        cuda_driver()->cuStreamDestroy_v2(s->handle);
    cuda_try_leave(entered);
    release(g, s->workspace);
    *s = (struct gpu_stream){0};
}

static int clear(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
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

static int send(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e)
{
    return cuda_send(&g->context, to, from, bytes, s->handle, e);
}

static int fetch(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                 uint64_t bytes, struct error *e)
{
    return cuda_fetch(&g->context, to, from, bytes, s->handle, e);
}

static int wait(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamSynchronize, s->handle);
    cuda_leave();
    return r;
}

static int enter(const struct gpu *g, struct error *e)
{
    return cuda_enter(&g->context, e);
}

static void leave(const struct gpu *g)
{
    (void)g;
    cuda_leave();
}

static int is_idle(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    const int state = cuda_driver()->cuStreamQuery(s->handle);
    cuda_leave();
    *ret = state == 0;
    return state == CU_NOT_READY ? 0 : cuda_check(state, "cuStreamQuery", e);
}

/* ---- work ---- */

static int product(const struct gpu *g, struct gpu_stream *s, const struct gpu_product *p,
                   bool *ret_fused, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = cublas_product(g->cublas, s, p, ret_fused, e);
    cuda_leave();
    gpu_stream_count(s);
    return r;
}

static int weight_gradient(const struct gpu *g, struct gpu_stream *s,
                           const struct weight_gradient *w, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = cublas_weight_gradient(g->cublas, s, w, e);
    cuda_leave();
    gpu_stream_count(s);
    return r;
}

/* A kernel of ROWS_THREADS threads, over as many blocks as run at once. */
struct launch {
    struct cu_function *function;
    const void *args;
    uint64_t blocks;
    unsigned shared;
};

_Static_assert((int)TRAIN_THREADS == (int)ROWS_THREADS, "one size of blocks");

static int launch(const struct gpu *g, struct gpu_stream *s, const struct launch *l,
                  struct error *e)
{
    unsigned grid = l->blocks < g->most_blocks ? (unsigned)l->blocks : g->most_blocks;
    void *arguments[] = {(void *)(uintptr_t)l->args};
    if (!grid)
        return 0;
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuLaunchKernel, l->function, grid, 1, 1, ROWS_THREADS, 1, 1, l->shared,
                 s->handle, arguments, NULL);
    cuda_leave();
    gpu_stream_count(s);
    return r;
}

static int run_op(const struct gpu *g, struct gpu_stream *s, enum encoder_op op,
                  const struct rows_args *args, uint64_t blocks, struct error *e)
{
    return launch(g, s, &(struct launch){g->op[op], args, blocks, 0}, e);
}

static int run_train(const struct gpu *g, struct gpu_stream *s, enum train_op op,
                     const struct train_args *args, struct error *e)
{
    const uint64_t blocks = train_op_blocks(op, args);
    return launch(g, s, &(struct launch){g->train_op[op], args, blocks, TRAIN_SHARED}, e);
}

/* ---- graphs ---- */

static int record(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int r = CALL(cuStreamBeginCapture_v2, s->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    cuda_leave();
    return r;
}

static struct recording *record_end(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    struct cu_graph *graph = NULL;
    struct cu_graph_exec *made = NULL;
    bool entered = cuda_try_enter(&g->context);
    int r = CALL(cuStreamEndCapture, s->handle, &graph);
    if (r == 0)
        r = CALL(cuGraphInstantiateWithFlags, &made, graph, 0);
    if (graph)
        cuda_driver()->cuGraphDestroy(graph);
    cuda_try_leave(entered);
    if (r < 0)
        return NULL;
    struct recording *ret = memory_new(1, sizeof *ret);
    ret->graph = made;
    return ret;
}

static int replay(const struct gpu *g, struct gpu_stream *s, const struct recording *r,
                  struct error *e)
{
    if (cuda_enter(&g->context, e) < 0)
        return -1;
    int result = CALL(cuGraphLaunch, r->graph, s->handle);
    cuda_leave();
    return result;
}

static void forget(const struct gpu *g, struct recording *r)
{
    bool entered = cuda_try_enter(&g->context);
    cuda_driver()->cuGraphExecDestroy(r->graph);
    cuda_try_leave(entered);
    free(r);
}

const struct gpu_driver gpu_driver_cuda = {
    .rounds_up = true,
    .open = open,
    .close = close,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .allocate = allocate,
    .release = release,
    .clear = clear,
    .send = send,
    .fetch = fetch,
    .wait = wait,
    .is_idle = is_idle,
    .enter = enter,
    .leave = leave,
    .product = product,
    .run_op = run_op,
    .weight_gradient = weight_gradient,
    .run_train = run_train,
    .record = record,
    .record_end = record_end,
    .replay = replay,
    .forget = forget,
};

const struct backend backend_cuda = {
    .device = &device_cuda,
    .phases_cost = true,
    .keeps_words = true,
    .driver = &gpu_driver_cuda,
    .open = gpu_open,
    .close = gpu_close,
    .feed_form = gpu_feed_form,
    .keep = gpu_keep,
    .pack = gpu_pack,
    .encode = gpu_encode,
    .fetch = gpu_fetch,
    .head = gpu_head,
    .mean = gpu_mean,
    .workspace_finish = gpu_workspace_finish,
    .training = &gpu_training,
};
