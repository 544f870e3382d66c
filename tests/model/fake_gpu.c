/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1 and libcublasLt for the test of models on the device "cuda" where there is no GPU. Device
   memory is the host's, NaN throughout until it is written; kernels are run by the test; products are
   computed from the descriptions that they were given, column by column as cublasLt.h defines them; what
   a stream is given while it is captured runs when the graph does. */
#include "tests/model/fake_gpu.h"
#include "model/device/cublas_symbols.h"
#include "runtime/device/cuda_symbols.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) struct fake_gpu fake_gpu = {.capability = 80};

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    INJECTED = 999
};

/* Every call counts, and may be the one that fails. */
static int count_call(const char *name)
{
    if (++fake_gpu.calls != fake_gpu.fail_at)
        return 0;
    snprintf(fake_gpu.failed, sizeof fake_gpu.failed, "%s", name);
    return INJECTED;
}

#define FAKE(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)
#define COUNTED               \
    if (count_call(__func__)) \
    return INJECTED
#define INSIDE            \
    COUNTED;              \
    if (!fake_gpu.pushed) \
    return INVALID_CONTEXT

/* ---- work, now or later ---- */

struct cu_function {
    char name[40];
};

struct lt_layout {
    int type;
    uint64_t rows, columns;
    int64_t leading;
};

struct lt_desc {
    int compute, scale;
    int32_t transpose_a;
    uint32_t epilogue;
    void *bias;
};

struct product {
    struct lt_desc desc;
    struct lt_layout a, b, d;
    const void *a_data, *b_data;
    void *d_data;
};

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
};

static int run_product(const struct product *p);

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

FAKE(cuInit, unsigned flags)
{
    return (int)flags;
}

/* NVRTC asks for it where it finds a driver. */
FAKE(cuGetExportTable, const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

FAKE(cuDriverGetVersion, int *version)
{
    *version = 13000;
    return 0;
}

FAKE(cuGetErrorName, int result, const char **name)
{
    *name = result == INJECTED ? "CUDA_ERROR_INJECTED" : "CUDA_ERROR_OTHER";
    return 0;
}

FAKE(cuGetErrorString, int result, const char **text)
{
    *text = result == INJECTED ? "asked for by the test" : "another error";
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

FAKE(cuDeviceGetAttribute, int *value, int attribute, cu_device device)
{
    (void)device;
    *value = attribute == CU_MULTIPROCESSOR_COUNT       ? 4
             : attribute == CU_COMPUTE_CAPABILITY_MAJOR ? fake_gpu.capability / 10
                                                        : fake_gpu.capability % 10;
    return 0;
}

FAKE(cuDevicePrimaryCtxRetain, struct cu_context **context, cu_device device)
{
    COUNTED;
    fake_gpu.contexts++;
    *context = (struct cu_context *)(size_t)(16 + device);
    return 0;
}

FAKE(cuDevicePrimaryCtxRelease_v2, cu_device device)
{
    (void)device;
    fake_gpu.contexts--;
    return 0;
}

FAKE(cuCtxGetCurrent, struct cu_context **context)
{
    COUNTED;
    *context = NULL;
    return 0;
}

FAKE(cuCtxGetDevice, cu_device *device)
{
    COUNTED;
    *device = 0;
    return 0;
}

FAKE(cuCtxPushCurrent_v2, struct cu_context *context)
{
    COUNTED;
    fake_gpu.pushed += context != NULL;
    return context ? 0 : INVALID_CONTEXT;
}

FAKE(cuCtxPopCurrent_v2, struct cu_context **context)
{
    *context = NULL;
    fake_gpu.pushed--;
    return 0;
}

FAKE(cuCtxSynchronize, void)
{
    INSIDE;
    return 0;
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
        return INVALID_VALUE;
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
        return NOT_FOUND;
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
    return extra || !w.blocks ? INVALID_VALUE : take(stream, &w);
}

/* ---- memory ---- */

/* A capture forbids it: something of the driver's own may have to happen. */
static int captures_now;

FAKE(cuMemAlloc_v2, cu_pointer *pointer, size_t bytes)
{
    INSIDE;
    if (captures_now || !bytes)
        return captures_now ? CAPTURE_UNSUPPORTED : INVALID_VALUE;
    bytes = (bytes + 255) / 256 * 256;
    void *p = aligned_alloc(256, bytes);
    if (!p)
        return OUT_OF_MEMORY;
    memset(p, 0xff, bytes);
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
    return captures_now ? CAPTURE_UNSUPPORTED : 0;
}

FAKE(cuMemcpyDtoH_v2, void *to, cu_pointer from, size_t bytes)
{
    INSIDE;
    memcpy(to, (const void *)(size_t)from, bytes);
    return captures_now ? CAPTURE_UNSUPPORTED : 0;
}

FAKE(cuMemcpyHtoDAsync_v2, cu_pointer to, const void *from, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    memcpy((void *)(size_t)to, from, bytes);
    return stream->capture ? CAPTURE_UNSUPPORTED : 0;
}

FAKE(cuMemcpyDtoHAsync_v2, void *to, cu_pointer from, size_t bytes, struct cu_stream *stream)
{
    INSIDE;
    memcpy(to, (const void *)(size_t)from, bytes);
    return stream->capture ? CAPTURE_UNSUPPORTED : 0;
}

FAKE(cuMemsetD8Async, cu_pointer to, unsigned char value, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    memset((void *)(size_t)to, value, bytes);
    return stream->capture ? CAPTURE_UNSUPPORTED : 0;
}

/* ---- streams and graphs ---- */

FAKE(cuStreamCreate, struct cu_stream **stream, unsigned flags)
{
    INSIDE;
    if (flags != CU_STREAM_NON_BLOCKING)
        return INVALID_VALUE;
    fake_gpu.streams++;
    *stream = calloc(1, sizeof **stream);
    return 0;
}

FAKE(cuStreamDestroy_v2, struct cu_stream *stream)
{
    fake_gpu.streams--;
    free(stream);
    return 0;
}

FAKE(cuStreamSynchronize, struct cu_stream *stream)
{
    INSIDE;
    return stream && stream->capture ? CAPTURE_UNSUPPORTED : 0;
}

FAKE(cuStreamBeginCapture_v2, struct cu_stream *stream, int mode)
{
    INSIDE;
    if (stream->capture || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return INVALID_VALUE;
    fake_gpu.captures++;
    captures_now++;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->last = &stream->capture->first;
    return 0;
}

/* Ends the capture, come what may. */
FAKE(cuStreamEndCapture, struct cu_stream *stream, struct cu_graph **graph)
{
    struct cu_graph *made = stream->capture;
    stream->capture = NULL;
    captures_now -= made != NULL;
    *graph = NULL;
    int r = count_call(__func__);
    if (r || !made || !fake_gpu.pushed) {
        free_works(made ? made->first : NULL);
        free(made);
        return r ? r : INVALID_VALUE;
    }
    fake_gpu.graphs++;
    *graph = made;
    return 0;
}

FAKE(cuGraphDestroy, struct cu_graph *graph)
{
    fake_gpu.graphs--;
    free_works(graph->first);
    free(graph);
    return 0;
}

/* Takes the graph's works over. */
FAKE(cuGraphInstantiateWithFlags, struct cu_graph_exec **exec, struct cu_graph *graph,
     unsigned long long flags)
{
    INSIDE;
    if (flags)
        return INVALID_VALUE;
    fake_gpu.graphs++;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph.first = graph->first;
    graph->first = NULL;
    return 0;
}

FAKE(cuGraphExecDestroy, struct cu_graph_exec *exec)
{
    fake_gpu.graphs--;
    free_works(exec->graph.first);
    free(exec);
    return 0;
}

FAKE(cuGraphLaunch, struct cu_graph_exec *exec, struct cu_stream *stream)
{
    INSIDE;
    fake_gpu.replays++;
    int r = stream->capture ? CAPTURE_UNSUPPORTED : 0;
    for (const struct work *w = exec->graph.first; w && !r; w = w->next)
        r = run(w);
    return r;
}

/* ---- cuBLASLt ---- */

enum { NOT_SUPPORTED = 15, WORKSPACE = 32 << 20 };

static double read_at(const void *data, int type, uint64_t at)
{
    uint32_t bits;
    float x;
    if (type == LT_F32)
        return (double)((const float *)data)[at];
    bits = (uint32_t)((const uint16_t *)data)[at] << 16;
    memcpy(&x, &bits, 4);
    return (double)x;
}

static void write_at(void *data, int type, uint64_t at, double value)
{
    uint32_t bits;
    float x = (float)value;
    memcpy(&bits, &x, 4);
    if (type == LT_F32)
        ((float *)data)[at] = x;
    else
        ((uint16_t *)data)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double finish(const struct lt_desc *desc, int type, uint64_t row, double x)
{
    if (desc->epilogue & LT_EPILOGUE_BIAS)
        x += read_at(desc->bias, type, row);
    switch (desc->epilogue & ~(uint32_t)LT_EPILOGUE_BIAS) {
    case LT_EPILOGUE_RELU_BIAS - LT_EPILOGUE_BIAS:
        return fmax(x, 0);
    case LT_EPILOGUE_GELU_BIAS - LT_EPILOGUE_BIAS:
        return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

/* D = finish(op(A) B), all by columns: element (row, column) lies at row + column * leading. */
static int run_product(const struct product *p)
{
    const bool transposed = p->desc.transpose_a == LT_TRANSPOSE;
    const uint64_t inner = p->b.rows;
    for (uint64_t column = 0; column < p->d.columns; column++)
        for (uint64_t row = 0; row < p->d.rows; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < inner; k++) {
                uint64_t a = transposed ? k + row * (uint64_t)p->a.leading
                                        : row + k * (uint64_t)p->a.leading;
                sum += read_at(p->a_data, p->a.type, a) *
                       read_at(p->b_data, p->b.type, k + column * (uint64_t)p->b.leading);
            }
            write_at(p->d_data, p->d.type, row + column * (uint64_t)p->d.leading,
                     finish(&p->desc, p->d.type, row, sum));
        }
    return 0;
}

/* What belongs together: sizes, types, leading dimensions. */
static bool fits(const struct lt_desc *desc, const struct lt_layout *a,
                 const struct lt_layout *b, const struct lt_layout *c,
                 const struct lt_layout *d)
{
    const bool transposed = desc->transpose_a == LT_TRANSPOSE;
    const uint64_t rows = transposed ? a->columns : a->rows,
                   inner = transposed ? a->rows : a->columns;
    return rows == d->rows && inner == b->rows && b->columns == d->columns &&
           !memcmp(c, d, sizeof *c) && a->type == b->type && a->leading >= (int64_t)a->rows &&
           b->leading >= (int64_t)b->rows && d->leading >= (int64_t)d->rows &&
           desc->compute == LT_COMPUTE_32F && desc->scale == LT_F32;
}

/* An algorithm is one for a shape. */
static uint64_t shape_of(const struct lt_desc *desc, const struct lt_layout *a,
                         const struct lt_layout *d)
{
    return ((a->rows * 31 + d->rows) * 31 + d->columns) * 31 + desc->epilogue;
}

FAKE(cublasLtCreate, struct lt_handle **handle)
{
    INSIDE;
    fake_gpu.handles++;
    *handle = (struct lt_handle *)(size_t)64;
    return 0;
}

FAKE(cublasLtDestroy, struct lt_handle *handle)
{
    fake_gpu.handles -= handle != NULL;
    return 0;
}

FAKE(cublasLtMatmulDescCreate, struct lt_desc **desc, int compute, int scale)
{
    COUNTED;
    fake_gpu.descriptions++;
    *desc = calloc(1, sizeof **desc);
    **desc = (struct lt_desc){compute, scale, 0, LT_EPILOGUE_DEFAULT, NULL};
    return 0;
}

FAKE(cublasLtMatmulDescDestroy, struct lt_desc *desc)
{
    fake_gpu.descriptions--;
    free(desc);
    return 0;
}

FAKE(cublasLtMatmulDescSetAttribute, struct lt_desc *desc, int attribute, const void *value,
     size_t bytes)
{
    COUNTED;
    const struct {
        int attribute;
        size_t bytes;
        void *to;
    } known[] = {
        {LT_DESC_TRANSA, 4, &desc->transpose_a},
        {LT_DESC_EPILOGUE, 4, &desc->epilogue},
        {LT_DESC_BIAS_POINTER, 8, &desc->bias},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].attribute == attribute && known[k].bytes == bytes) {
            memcpy(known[k].to, value, bytes);
            return 0;
        }
    return INVALID_VALUE;
}

FAKE(cublasLtMatrixLayoutCreate, struct lt_layout **layout, int type, uint64_t rows,
     uint64_t columns, int64_t leading)
{
    COUNTED;
    fake_gpu.descriptions++;
    *layout = calloc(1, sizeof **layout);
    (*layout)->type = type;
    (*layout)->rows = rows;
    (*layout)->columns = columns;
    (*layout)->leading = leading;
    return type == LT_F32 || type == LT_BF16 ? 0 : INVALID_VALUE;
}

FAKE(cublasLtMatrixLayoutDestroy, struct lt_layout *layout)
{
    fake_gpu.descriptions--;
    free(layout);
    return 0;
}

FAKE(cublasLtMatmulPreferenceCreate, struct lt_preference **preference)
{
    COUNTED;
    fake_gpu.descriptions++;
    *preference = calloc(1, sizeof(uint64_t));
    return 0;
}

FAKE(cublasLtMatmulPreferenceDestroy, struct lt_preference *preference)
{
    fake_gpu.descriptions--;
    free(preference);
    return 0;
}

FAKE(cublasLtMatmulPreferenceSetAttribute, struct lt_preference *preference, int attribute,
     const void *value, size_t bytes)
{
    COUNTED;
    if (attribute != LT_PREFERENCE_MAX_WORKSPACE_BYTES || bytes != sizeof(uint64_t))
        return INVALID_VALUE;
    memcpy(preference, value, bytes);
    return 0;
}

FAKE(cublasLtMatmulAlgoGetHeuristic, struct lt_handle *handle, struct lt_desc *desc,
     struct lt_layout *a, struct lt_layout *b, struct lt_layout *c, struct lt_layout *d,
     struct lt_preference *preference, int asked, struct lt_result *results, int *found)
{
    COUNTED;
    uint64_t most;
    memcpy(&most, preference, sizeof most);
    *found = 0;
    if (!handle || asked < 1 || most != WORKSPACE || !fits(desc, a, b, c, d))
        return INVALID_VALUE;
    if (fake_gpu.refuses_fusing && desc->epilogue != LT_EPILOGUE_DEFAULT)
        return NOT_SUPPORTED;
    results[0] = (struct lt_result){.workspace_bytes = WORKSPACE / 2};
    results[0].algorithm.data[0] = shape_of(desc, a, d);
    *found = 1;
    return 0;
}

FAKE(cublasLtMatmul, struct lt_handle *handle, struct lt_desc *desc, const void *alpha,
     const void *a, struct lt_layout *a_layout, const void *b, struct lt_layout *b_layout,
     const void *beta, const void *c, struct lt_layout *c_layout, void *d,
     struct lt_layout *d_layout, const struct lt_algorithm *algorithm, void *workspace,
     size_t workspace_bytes, void *stream)
{
    INSIDE;
    const float one = 1, zero = 0;
    if (!handle || memcmp(alpha, &one, 4) || memcmp(beta, &zero, 4) || c != d || !workspace ||
        workspace_bytes != WORKSPACE || !fits(desc, a_layout, b_layout, c_layout, d_layout) ||
        algorithm->data[0] != shape_of(desc, a_layout, d_layout) ||
        (desc->epilogue != LT_EPILOGUE_DEFAULT && !desc->bias))
        return INVALID_VALUE;
    fake_gpu.products++;
    fake_gpu.fused += desc->epilogue != LT_EPILOGUE_DEFAULT;
    fake_gpu.gelus += desc->epilogue == LT_EPILOGUE_GELU_BIAS;
    struct work w = {.product = {*desc, *a_layout, *b_layout, *d_layout, a, b, d}};
    return take(stream, &w);
}
