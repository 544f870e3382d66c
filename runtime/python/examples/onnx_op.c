/* SPDX-License-Identifier: Apache-2.0 */
/* maskc_run as an operator of ONNX Runtime's CPU provider, on the session's own threads: domain maskc, op Attention, its
   attribute `kernel` the path of a kernel file. Inputs q, k, v, contiguous [B, N, H, D], f32 (k, v: the kernel's key heads),
   and lengths, int32 [B], which may be left out; output as q. onnx_attention.py builds it. */
#include "runtime/maskc.h"
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first with KernelContext_ParallelFor; later runtimes serve it too. */
enum { API_VERSION = 17, INPUTS = 4 };

#define TRY(call)                               \
    for (OrtStatus *status_ = (call); status_;) \
    return status_

struct op_kernel {
    const OrtApi *api;
    struct maskc_kernel *maskc;
    struct maskc_info info;
};

struct tensor {
    void *data;
    int64_t dims[4];
};

static OrtStatus *refuse(const OrtApi *api, char *text)
{
    text[strcspn(text, "\n")] = 0; /* struct maskc_error: details */
    return api->CreateStatus(ORT_INVALID_ARGUMENT, text);
}

static void destroy(void *kernel)
{
    maskc_kernel_destroy(((struct op_kernel *)kernel)->maskc);
    free(kernel);
}

static OrtStatus *load(struct op_kernel *k, const OrtKernelInfo *node)
{
    char path[4096];
    size_t size = sizeof path;
    struct maskc_error error;
    TRY(k->api->KernelInfoGetAttribute_string(node, "kernel", path, &size));
    if (maskc_load(path, "cpu", &k->maskc, &error))
        return refuse(k->api, error.text);
    maskc_kernel_info(k->maskc, &k->info);
    const struct maskc_info *info = &k->info;
    if (!info->dtype && !info->soft && info->layers == 1 && info->kv_length == info->length)
        return NULL;
    snprintf(error.text, sizeof error.text,
             "%.3900s: a kernel of one layer, f32, no soft mask, as many keys as queries is "
             "expected",
             path);
    return refuse(k->api, error.text);
}

static OrtStatus *create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *node,
                         void **ret)
{
    struct op_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return api->CreateStatus(ORT_FAIL, "no memory");
    k->api = api;
    k->info.struct_size = sizeof k->info;
    OrtStatus *status = load(k, node);
    if (status)
        destroy(k);
    else
        *ret = k;
    return status;
}

/* Another rank leaves dims as they are, which no launch has. */
static OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, size_t rank,
                              struct tensor *ret)
{
    OrtTensorTypeAndShapeInfo *info;
    size_t dims = 0;
    TRY(api->GetTensorTypeAndShape(value, &info));
    OrtStatus *status = api->GetDimensionsCount(info, &dims);
    if (!status && dims == rank)
        status = api->GetDimensions(info, ret->dims, rank);
    api->ReleaseTensorTypeAndShapeInfo(info);
    return status ? status : api->GetTensorMutableData((OrtValue *)value, &ret->data);
}

static OrtStatus *check(const struct op_kernel *k, const struct tensor *in)
{
    const struct maskc_info *i = &k->info;
    const int64_t *q = in->dims, want[] = {q[0], q[1], i->kv_heads, i->head_dim};
    const int b = (int)q[0], n = (int)q[1];
    char text[128] = "";
    if (q[0] != b || b < 0 || q[1] > i->length || q[2] != i->heads || q[3] != i->head_dim)
        snprintf(text, sizeof text, "q: [B, N, %u, %u] with N of at most %u is expected",
                 i->heads, i->head_dim, i->length);
    else if (memcmp(in[1].dims, want, sizeof want) || memcmp(in[2].dims, want, sizeof want))
        snprintf(text, sizeof text, "k, v: [%d, %d, %u, %u] is expected", b, n, i->kv_heads,
                 i->head_dim);
    else if (in[3].data && in[3].dims[0] != b)
        snprintf(text, sizeof text, "lengths: [%d] is expected", b);
    return *text ? refuse(k->api, text) : NULL;
}

struct pool {
    const OrtApi *api;
    const OrtKernelContext *context;
    void (*task)(void *context, uint32_t k);
    void *task_context;
    OrtStatus *status;
};

static void run_task(void *pool, size_t k)
{
    ((struct pool *)pool)->task(((struct pool *)pool)->task_context, (uint32_t)k);
}

static void run_tasks(void *pool, uint32_t count, void (*task)(void *context, uint32_t k),
                      void *context)
{
    struct pool *p = pool;
    p->task = task;
    p->task_context = context;
    if (!p->status)
        p->status = p->api->KernelContext_ParallelFor(p->context, run_task, count, 0, p);
}

static OrtStatus *run(const struct op_kernel *k, const OrtKernelContext *context,
                      const struct tensor *in, void *out)
{
    struct pool pool = {.api = k->api, .context = context};
    struct maskc_launch l = {.struct_size = sizeof l, .parallel = run_tasks, .pool = &pool};
    l.batch = (uint32_t)in[0].dims[0];
    l.length = (uint32_t)in[0].dims[1];
    l.query.data = in[0].data;
    l.key.data = in[1].data;
    l.value.data = in[2].data;
    l.lengths = in[3].data;
    l.out.data = out;
    l.workspace_bytes = maskc_workspace_bytes(k->maskc, &l);
    const uint64_t lse = ((uint64_t)l.batch * l.length * k->info.heads * 4 + 63) / 64 * 64;
    const bool fits = l.workspace_bytes < SIZE_MAX / 4; /* lse is smaller than q */
    char *space = fits ? aligned_alloc(64, lse + (l.workspace_bytes + 63) / 64 * 64) : NULL;
    if (!space)
        return k->api->CreateStatus(ORT_FAIL, "no memory for the workspace");
    l.lse = (float *)space;
    l.workspace = space + lse;
    struct maskc_error error;
    const int bad = maskc_run(k->maskc, &l, &error);
    free(space);
    return bad ? refuse(k->api, error.text) : pool.status;
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context)
{
    const struct op_kernel *k = kernel;
    struct tensor in[INPUTS] = {{0}}, out = {0};
    for (size_t i = 0; i < INPUTS; i++) {
        const OrtValue *value = NULL;
        in[i].dims[0] = -1;
        TRY(k->api->KernelContext_GetInput(context, i, &value));
        if (value)
            TRY(read_tensor(k->api, value, i < 3 ? 4 : 1, &in[i]));
    }
    TRY(check(k, in));
    OrtValue *value = NULL;
    TRY(k->api->KernelContext_GetOutput(context, 0, in->dims, 4, &value));
    TRY(k->api->GetTensorMutableData(value, &out.data));
    return in->dims[0] && in->dims[1] ? run(k, context, in, out.data) : NULL;
}

#define ANSWER(TYPE, NAME, VALUE, ...) \
    static TYPE NAME(__VA_ARGS__)      \
    {                                  \
        return VALUE;                  \
    }
ANSWER(const char *, name, "Attention", const OrtCustomOp *op)
ANSWER(const char *, provider, NULL, const OrtCustomOp *op) /* CPU */
ANSWER(size_t, inputs, INPUTS, const OrtCustomOp *op)
ANSWER(size_t, outputs, 1, const OrtCustomOp *op)
ANSWER(OrtMemType, memory, OrtMemTypeDefault, const OrtCustomOp *op, size_t k)
ANSWER(ONNXTensorElementDataType, type,
       k < 3 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
       const OrtCustomOp *op, size_t k)
ANSWER(OrtCustomOpInputOutputCharacteristic, needed,
       k < 3 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL, const OrtCustomOp *op, size_t k)

static const OrtCustomOp attention = {.version = API_VERSION,
                                      .GetName = name,
                                      .GetExecutionProviderType = provider,
                                      .GetInputType = type,
                                      .GetInputTypeCount = inputs,
                                      .GetOutputType = type,
                                      .GetOutputTypeCount = outputs,
                                      .GetInputCharacteristic = needed,
                                      .GetOutputCharacteristic = needed,
                                      .GetInputMemoryType = memory,
                                      .CreateKernelV2 = create,
                                      .KernelComputeV2 = compute,
                                      .KernelDestroy = destroy};

/* The name that ONNX Runtime looks up. The options borrow the domain and nothing says when the last session has ended: it
   stays, 64 bytes for each registration. */
OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base)
{
    const OrtApi *api = base->GetApi(API_VERSION);
    if (!api)
        return base->GetApi(1)->CreateStatus(ORT_FAIL,
                                             "ONNX Runtime 1.17 or later is expected");
    OrtCustomOpDomain *domain = NULL;
    TRY(api->CreateCustomOpDomain("maskc", &domain));
    TRY(api->CustomOpDomain_Add(domain, &attention));
    return api->AddCustomOpDomain(options, domain);
}
