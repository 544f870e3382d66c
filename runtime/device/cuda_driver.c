/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and starting the NVIDIA driver: libcuda.so.1 comes with the driver, never with a
   toolkit, so the system's loader is the only place to look. */
#include "runtime/device/cuda_driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static const char *error_name(const struct cuda_driver *d, int result)
{
    const char *name = NULL;
    return d->cuGetErrorName(result, &name) || !name ? "an unknown error" : name;
}

static const char *missing_symbol(void *library, struct cuda_driver *d)
{
    const char *missing = NULL;
#define S(name, args)                           \
    *(void **)&d->name = dlsym(library, #name); \
    if (!d->name)                               \
        missing = #name;
    CUDA_SYMBOLS(S)
#undef S
#define S(name, args) *(void **)&d->name = dlsym(library, #name);
    CUDA_GRAPH_SYMBOLS(S)
    CUDA_TENSOR_MAP_SYMBOLS(S)
#undef S
    return missing;
}

static void *open_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

int cuda_driver_major(void)
{
    int (*get)(int *) = NULL, version = 0;
    void *library = open_driver();
    if (library)
        *(void **)&get = dlsym(library, "cuDriverGetVersion");
    return get && !get(&version) ? version / 1000 : 0;
}

static void start(struct cuda_driver *d)
{
    void *library = open_driver();
    if (!library) {
        snprintf(d->problem, sizeof d->problem,
                 "no NVIDIA driver (libcuda.so.1): install the driver of the GPU, or use "
                 "the device cpu or emulated");
        return;
    }
    const char *missing = missing_symbol(library, d);
    int r;
    if (missing)
        snprintf(d->problem, sizeof d->problem,
                 "the NVIDIA driver is too old (libcuda.so.1 has no %s): install a newer one",
                 missing);
    else if ((r = d->cuInit(0)) || (r = d->cuDriverGetVersion(&d->version)) ||
             (r = d->cuDeviceGetCount(&d->devices)))
        snprintf(d->problem, sizeof d->problem, "the NVIDIA driver cannot start: %s",
                 error_name(d, r));
    else if (d->devices < 1)
        snprintf(d->problem, sizeof d->problem, "the NVIDIA driver finds no GPU");
}

const struct cuda_driver *cuda_driver(void)
{
    static struct cuda_driver driver;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool started;
    pthread_mutex_lock(&lock);
    if (!started)
        start(&driver);
    started = true;
    pthread_mutex_unlock(&lock);
    return &driver;
}

bool cuda_has_tensor_maps(void)
{
    return cuda_driver()->cuTensorMapEncodeTiled != NULL;
}

int cuda_must_have_graphs(struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    const char *missing = NULL;
#define S(name, args) \
    if (!d->name)     \
        missing = #name;
    CUDA_GRAPH_SYMBOLS(S)
#undef S
    return missing ? error_set(e, ERROR_UNAVAILABLE, "the NVIDIA driver has no %s", missing)
                   : 0;
}

int cuda_check(int result, const char *call, struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    const char *text = NULL;
    if (!result)
        return 0;
    if (d->cuGetErrorString(result, &text) || !text)
        text = "no description";
    return error_set(e, ERROR_UNAVAILABLE, "cuda: %s failed: %s (%s)", call,
                     error_name(d, result), text);
}

int cuda_must_have(int ordinal, struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    if (d->problem[0])
        return error_set(e, ERROR_UNAVAILABLE, "%s", d->problem);
    if (ordinal < d->devices)
        return 0;
    return error_set(e, ERROR_UNAVAILABLE, "there is no cuda:%d, this machine has %d GPU%s",
                     ordinal, d->devices, d->devices == 1 ? "" : "s");
}

int cuda_attribute(int attribute, cu_device device)
{
    int value = 0;
    return cuda_driver()->cuDeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

int cuda_describe(int ordinal, struct cuda_gpu *ret, struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    cu_device device = 0;
    if (cuda_must_have(ordinal, e) ||
        cuda_check(d->cuDeviceGet(&device, ordinal), "cuDeviceGet", e) ||
        cuda_check(d->cuDeviceGetName(ret->name, sizeof ret->name, device), "cuDeviceGetName",
                   e))
        return -1;
    ret->capability = 10 * cuda_attribute(CU_COMPUTE_CAPABILITY_MAJOR, device) +
                      cuda_attribute(CU_COMPUTE_CAPABILITY_MINOR, device);
    ret->processors = cuda_attribute(CU_MULTIPROCESSOR_COUNT, device);
    return 0;
}
