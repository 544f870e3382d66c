/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "cuda": the driver API, encoder ops through NVRTC (and maskc's cache), products by cuBLASLt,
   batches recorded as CUDA graphs. All of an engine's memory and code is in the primary context of its GPU;
   each workspace has a stream. */
#include "masks/base/memory.h"
#include "model/backend/cuda/cuda_gpu.h"
#include <stdlib.h>

enum { BLOCKS_OF_PROCESSOR = 16 }; /* that run at once, of ROWS_THREADS threads each */

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
    if (cuda_must_have_graphs(e) < 0 || cuda_enter(&g->context, e) < 0)
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
    gpu_stream_count(s);
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
    .stream_open = cuda_gpu_stream_open,
    .stream_close = cuda_gpu_stream_close,
    .allocate = cuda_gpu_allocate,
    .release = cuda_gpu_release,
    .allocate_pinned = cuda_gpu_allocate_pinned,
    .release_pinned = cuda_gpu_release_pinned,
    .clear = cuda_gpu_clear,
    .send = cuda_gpu_send,
    .fetch = cuda_gpu_fetch,
    .read = cuda_gpu_read,
    .copy = cuda_gpu_copy,
    .wait = cuda_gpu_wait,
    .is_idle = cuda_gpu_is_idle,
    .follow = cuda_gpu_follow,
    .mark = cuda_gpu_mark,
    .reach = cuda_gpu_reach,
    .event_close = cuda_gpu_event_close,
    .enter = cuda_gpu_enter,
    .leave = cuda_gpu_leave,
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
