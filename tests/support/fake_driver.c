/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 for the test of the device "cuda" where there is no GPU: device memory is the
   host's, and it keeps count of contexts, modules and memory, so that what is not given back
   shows. A launch copies its arguments. A module whose image begins with "entries:" has those that follow
   there, any other has all. Written against cuda.h's prototypes. */
#include "tests/support/fake_driver.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) struct fake fake_driver = {.capability = 86};

/* For programs that cannot look for the symbol. */
__attribute__((constructor)) static void read_capability(void)
{
    const char *given = getenv("MASKC_TEST_CAPABILITY");
    if (given)
        fake_driver.capability = atoi(given);
}

#define FAKE_GPU fake_driver
#define FAKE_CAPABILITY(device) \
    (device && fake_driver.second ? fake_driver.second : fake_driver.capability)
#define FAKE_SHARED  fake_shared(FAKE_CAPABILITY(fake_driver.entered))
#define FAKE_CURRENT fake_driver.current
#define FAKE_ENTERED(context) \
    (fake_driver.entered = (int)((size_t)(context) - (size_t)FAKE_CONTEXT(0)))
#define FAKE_STARTED()      fake_driver.started++
#define FAKE_SYNCHRONIZED() synchronize()
static int synchronize(void);
enum { FAKE_PROCESSORS = 132, FAKE_MODULES = 16, FAKE_HANDLE = 32 };
#include "tests/support/fake_cuda.h"
enum {
    BUSY = 700,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_IMPLICIT = 906
}; /* 700: an illegal address, of what still runs */
/* after it */
#include "tests/support/fake_cuda_models.h"

/* Every call counts, and may be the one that fails. */
static int count_call(const char *name)
{
    fake_driver.waits += strstr(name, "Mem") || strstr(name, "Synchronize");
    return ++fake_driver.calls == fake_driver.fail_at ? INJECTED : 0;
}

static int synchronize(void)
{
    if (fake_driver.captures)
        return CAPTURE_UNSUPPORTED;
    fake_driver.running = 0;
    return 0;
}

/* "Potentially unsafe" calls, as cuda.h has it at cuThreadExchangeStreamCaptureMode. */
#define UNSAFE                                                                  \
    if (fake_driver.captures && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) \
    return fail(CAPTURE_UNSUPPORTED)

/* Images of the loaded modules, by handle; more than are loaded at a time. */
static char images[FAKE_MODULES][sizeof fake_driver.image];
static unsigned loads;

FAKE(cuModuleLoadDataEx, struct cu_module **module, const void *image, unsigned count,
     int *options, void **values)
{
    INSIDE;
    UNSAFE;
    for (unsigned k = 0; k < count; k++)
        if (options[k] == CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[k], "a line of the log");
    snprintf(fake_driver.image, sizeof fake_driver.image, "%s", (const char *)image);
    memcpy(images[loads % FAKE_MODULES], fake_driver.image, sizeof fake_driver.image);
    fake_driver.modules++;
    *module = (struct cu_module *)(size_t)(FAKE_HANDLE + loads++ % FAKE_MODULES);
    return 0;
}

FAKE(cuModuleUnload, struct cu_module *module)
{
    if (!fake_driver.pushed)
        return fail(INVALID_CONTEXT);
    UNSAFE;
    fake_driver.modules -= module != NULL;
    return fail(fake_driver.running ? BUSY : 0);
}

static bool has_entry(const struct cu_module *module, const char *name)
{
    const char *image = images[(size_t)module - FAKE_HANDLE];
    return !strncmp(name, "attention_", 10) &&
           (strncmp(image, "entries:", 8) || strstr(image, name));
}

/* Functions are the names that were asked for, each kept once. */
static char *function_of(const char *name)
{
    static char names[FAKE_LAUNCHES][sizeof fake_driver.launched->entry];
    unsigned k = 0;
    while (k < FAKE_LAUNCHES - 1 && names[k][0] && strcmp(names[k], name))
        k++;
    snprintf(names[k], sizeof names[k], "%s", name);
    return names[k];
}

FAKE(cuModuleGetFunction, struct cu_function **function, struct cu_module *module,
     const char *name)
{
    INSIDE;
    *function = (struct cu_function *)function_of(name);
    return fail(module && has_entry(module, name) ? 0 : NOT_FOUND);
}

FAKE(cuFuncSetAttribute, struct cu_function *function, int attribute, int value)
{
    INSIDE;
    return fail(function && attribute == CU_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
                        value <= FAKE_SHARED
                    ? 0
                    : NOT_FOUND);
}

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct cu_function *function,
     int threads, size_t shared)
{
    INSIDE;
    *blocks = 3;
    return fail(function && threads % 32 == 0 && threads <= 1024 &&
                        shared <= (size_t)FAKE_SHARED
                    ? 0
                    : NOT_FOUND);
}

static bool takes_hopper(const char *entry)
{
    return fake_driver.hopper &&
           (!strcmp(entry, "attention_forward") || !strcmp(entry, "attention_dq") ||
            !strcmp(entry, "attention_dkv"));
}

static void take_hopper(const void *args)
{
    struct hopper_args *to = &fake_driver.hopper_args[(fake_driver.launches - 1) % FAKE_HOPPER];
    memcpy(to, args, sizeof *to);
    fake_driver.args = to->a;
}

FAKE(cuLaunchKernel, struct cu_function *function, unsigned grid_x, unsigned grid_y,
     unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
     struct cu_stream *stream, void **arguments, void **extra)
{
    INSIDE;
    if (fake_driver.launches < FAKE_LAUNCHES) {
        struct fake_launch *l = &fake_driver.launched[fake_driver.launches];
        *l = (struct fake_launch){.threads = block_x * block_y * block_z, .shared = shared};
        strcpy(l->entry, (const char *)function);
    }
    fake_driver.launches++;
    fake_driver.running++;
    fake_driver.grid = grid_x * grid_y * grid_z;
    fake_driver.threads = block_x * block_y * block_z;
    fake_driver.shared = shared;
    fake_driver.stream = stream;
    if (takes_hopper((const char *)function))
        take_hopper(arguments[0]);
    else
        memcpy(&fake_driver.args, arguments[0], sizeof fake_driver.args);
    return fail(function && !extra && !fake_driver.copying ? 0 : NOT_FOUND);
}

FAKE(cuMemAlloc_v2, cu_pointer *pointer, size_t bytes)
{
    INSIDE;
    UNSAFE;
    void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    fake_driver.allocations += p != NULL;
    *pointer = (cu_pointer)(size_t)p;
    return fail(p ? 0 : OUT_OF_MEMORY);
}

FAKE(cuMemFree_v2, cu_pointer pointer)
{
    if (!fake_driver.pushed)
        return fail(INVALID_CONTEXT);
    UNSAFE;
    fake_driver.waits++;
    fake_driver.allocations -= pointer != 0;
    free((void *)(size_t)pointer);
    return fail(fake_driver.running ? BUSY : 0);
}

FAKE(cuMemcpyHtoD_v2, cu_pointer to, const void *from, size_t bytes)
{
    INSIDE;
    UNSAFE;
    memcpy((void *)(size_t)to, from, bytes);
    fake_driver.copying |= 1;
    return fail(fake_driver.captures ? CAPTURE_IMPLICIT : 0); /* that of a blocking stream */
}

FAKE(cuStreamCreate, struct cu_stream **stream, unsigned flags)
{
    INSIDE;
    *stream = calloc(1, FAKE_HANDLE);
    fake_driver.allocations++;
    return fail(flags == CU_STREAM_NON_BLOCKING ? 0 : CAPTURE_IMPLICIT);
}

FAKE(cuStreamDestroy_v2, struct cu_stream *stream)
{
    fake_driver.allocations--;
    free(stream);
    return 0;
}

FAKE(cuMemcpyHtoDAsync_v2, cu_pointer to, const void *from, size_t bytes,
     struct cu_stream *stream)
{
    INSIDE;
    fake_driver.copying |= stream ? 2 : 1;
    memcpy((void *)(size_t)to, from, bytes);
    return 0;
}

FAKE(cuStreamSynchronize, struct cu_stream *stream)
{
    INSIDE;
    UNSAFE;
    fake_driver.copying &= stream ? 1 : 2;
    return 0;
}

FAKE(cuMemcpyDtoH_v2, void *to, cu_pointer from, size_t bytes)
{
    INSIDE;
    memcpy(to, (const void *)(size_t)from, bytes);
    return 0;
}

#if FAKE_VERSION >= 12000 /* a driver before CUDA 12 has no tensor maps */
static bool can_encode(unsigned dimensions, const void *address,
                       const unsigned long long *extents, const unsigned long long *strides,
                       const unsigned *box, const unsigned *element_strides)
{
    for (unsigned k = 0; k < dimensions; k++)
        if (extents[k] < 1 || extents[k] > 1ull << 32 || box[k] < 1 || box[k] > 256 ||
            element_strides[k] != 1 || (k && (strides[k - 1] % 16 || strides[k - 1] >> 40)))
            return false;
    return dimensions == 4 && (size_t)address % 16 == 0 && box[0] * 2 <= 128;
}

FAKE(cuTensorMapEncodeTiled, void *map, int type, unsigned dimensions, void *address,
     const unsigned long long *extents, const unsigned long long *strides, const unsigned *box,
     const unsigned *element_strides, int interleave, int swizzle, int promotion, int beyond)
{
    struct fake_map m = {
        .address = (size_t)address, .type = type, .swizzle = swizzle, .promotion = promotion};
    COUNTED;
    if (!can_encode(dimensions, address, extents, strides, box, element_strides) ||
        (size_t)map % 64 || interleave || beyond)
        return fail(1);
    memcpy(m.extent, extents, sizeof m.extent);
    memcpy(m.stride, strides, sizeof m.stride);
    memcpy(m.box, box, sizeof m.box);
    memcpy(map, &m, sizeof m);
    fake_driver.maps++;
    return 0;
}
#endif
