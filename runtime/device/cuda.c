/* SPDX-License-Identifier: Apache-2.0 */
/* The device "cuda", through the driver API. A launch only enqueues, so that it can be captured in a graph;
   cuda_load.c has prepared all that it needs. */
#include "runtime/device/cuda_code.h"
#include <stdio.h>

/* ---- launch ---- */

static uint32_t waves_of(const struct device_code *c, const struct phase *p)
{
    return p->waves > 1 && c->waves[over_transposed(p->over)] ? p->waves : 1;
}

/* A persistent grid: as many blocks as the GPU holds at once, or fewer where there is less work. Phases with waves have
   further blocks behind these. */
static int enqueue(const struct device_code *c, const struct phase *p, uint64_t indices,
                   const void *args, const struct device_launch *l, struct error *e)
{
    const struct loaded_phase *to = &c->phase[cuda_find_phase(c, p->entry)];
    const struct wave_grid grid = waves_grid(indices, to->fit, waves_of(c, p));
    void *arguments[] = {(void *)(uintptr_t)args};
    if (l->launches && grid.blocks)
        ++*l->launches;
    return grid.blocks ? CALL(cuLaunchKernel, to->function, grid.blocks, grid.waves, 1,
                              p->threads, 1, 1, p->shared_bytes, l->stream, arguments, NULL)
                       : 0;
}

static int launch_hopper(const struct device_code *c, const struct phase *p,
                         const struct device_launch *l, struct error *e)
{
    struct hopper_args args;
    return hopper_fill(c->maps, p, l, c->steps, &args, e) < 0
               ? -1
               : enqueue(c, p, hopper_indices(&args), &args, l, e);
}

static int launch_phase(const struct device_code *c, const struct phase *p,
                        const struct device_launch *l, struct error *e)
{
    if (p->arguments != PHASE_ARGS)
        return launch_hopper(c, p, l, e);
    const struct abi_args args = phase_args(p->over, &l->args);
    return enqueue(c, p, phase_indices(p->over, &args), &args, l, e);
}

static int launch(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    int r = cuda_enter(&c->gpu, e);
    if (r < 0)
        return r;
    for (uint32_t k = 0; k < l->n_phases && r == 0; k++)
        r = launch_phase(c, &l->phases[k], l, e);
    cuda_leave();
    return r;
}

static int ordinal_of(const struct device_code *c)
{
    return c->gpu.device;
}

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)threads;
    return c->workers;
}

int cuda_encode_map(const struct map_shape *s, struct tensor_map *ret, struct error *e)
{
    static const unsigned each[MAP_DIMENSIONS] = {1, 1, 1, 1};
    unsigned long long extents[MAP_DIMENSIONS], strides[MAP_DIMENSIONS];
    for (int k = 0; k < MAP_DIMENSIONS; k++) {
        extents[k] = s->extent[k];
        strides[k] = s->stride[k];
    }
    return CALL(cuTensorMapEncodeTiled, ret,
                s->dtype == ABI_F16 ? CU_TENSOR_MAP_FLOAT16 : CU_TENSOR_MAP_BFLOAT16,
                MAP_DIMENSIONS, s->address, extents, strides + 1, s->box, each,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_256B, CU_TENSOR_MAP_OOB_FILL_ZEROS);
}

/* ---- memory ---- */

static void *allocate(const struct device_code *c, uint64_t bytes, struct error *e)
{
    return cuda_allocate(&c->gpu, bytes, e);
}

static void release(const struct device_code *c, void *p)
{
    cuda_release(&c->gpu, p);
}

static int upload(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                  struct error *e)
{
    return cuda_send(&c->gpu, to, from, bytes, NULL, e);
}

static int download(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                    struct error *e)
{
    return cuda_fetch(&c->gpu, to, from, bytes, NULL, e);
}

static int synchronize(const struct device_code *c, struct error *e)
{
    if (cuda_enter(&c->gpu, e) < 0)
        return -1;
    int r = CALL(cuCtxSynchronize, );
    cuda_leave();
    return r;
}

/* ---- the device ---- */

static const char *unavailable(void)
{
    return cuda_driver()->problem;
}

static int capability(cu_device device)
{
    return 10 * cuda_attribute(CU_COMPUTE_CAPABILITY_MAJOR, device) +
           cuda_attribute(CU_COMPUTE_CAPABILITY_MINOR, device);
}

static void describe(struct text *out)
{
    const struct cuda_driver *d = cuda_driver();
    for (int k = 0; k < d->devices; k++) {
        struct cuda_gpu gpu;
        if (cuda_describe(k, &gpu, NULL))
            continue;
        text_add(out, "%s%d: %s, compute capability %d.%d", k ? "; " : "", k, gpu.name,
                 gpu.capability / 10, gpu.capability % 10);
    }
    text_add(out, " (driver for CUDA %d.%d)", d->version / 1000, d->version % 1000 / 10);
}

/* The GPU that a kernel would be loaded on; false without a driver. */
static bool find_gpu(int ordinal, cu_device *ret)
{
    const struct cuda_driver *d = cuda_driver();
    struct cu_context *context = NULL;
    *ret = 0;
    if (d->problem[0])
        return false;
    if (ordinal >= d->devices)
        ordinal = 0;
    if (ordinal >= 0 || d->cuCtxGetCurrent(&context) || !context || d->cuCtxGetDevice(ret))
        d->cuDeviceGet(ret, ordinal < 0 ? 0 : ordinal);
    return true;
}

/* True if a block of each kernel may have its shared memory: 163 KiB on 8.0, 99 KiB on 8.6 and 8.9. */
static bool has_shared_memory(const struct launch_record *l, cu_device device)
{
    const int most = cuda_attribute(CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    uint32_t needed = 0;
    for (uint32_t k = 0; k < l->n_forward; k++)
        needed = l->forward[k].shared_bytes > needed ? l->forward[k].shared_bytes : needed;
    for (uint32_t k = 0; k < l->n_backward; k++)
        needed = l->backward[k].shared_bytes > needed ? l->backward[k].shared_bytes : needed;
    return most <= 0 || needed <= (uint32_t)most; /* 0: the driver does not tell */
}

/* "sm_90a" runs on 9.0 alone, "sm_86" on 8.6 and later 8.x but Tegra's 8.7, PTX for 8.0 on everything since. */
static int prefers_on(const struct artifact_target *t, int have)
{
    enum { TEGRA = 87 };
    int made = 0, used = 0;
    if (sscanf(t->name, "compute_%d%n", &made, &used) == 1)
        return made <= have ? 1 + made : 0;
    if (sscanf(t->name, "sm_%d%n", &made, &used) != 1)
        return 0;
    if (t->name[used] == 'a')
        return made == have ? 5000 : 0;
    if (made != have && (made == TEGRA || have == TEGRA))
        return 0;
    return made / 10 == have / 10 && made <= have ? 2000 + made : 0;
}

static int prefers(const struct artifact_target *t, int ordinal)
{
    cu_device device;
    return find_gpu(ordinal, &device) && has_shared_memory(&t->launch, device)
               ? prefers_on(t, capability(device))
               : 0;
}

const struct device device_cuda = {
    .name = "cuda",
    .unavailable = unavailable,
    .describe = describe,
    .prefers = prefers,
    .load = cuda_load,
    .ordinal = ordinal_of,
    .unload = cuda_unload,
    .tables = cuda_tables,
    .workers = workers,
    .launch = launch,
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .download = download,
    .sync = synchronize,
};
