/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that runs a kernel's machine code on this CPU, so that whatever launches on the device "cuda"
   (maskc verify, the tests) checks what ptxas made. A fault of the machine is the launch's error.

   Environment: NVDISASM, where it is; MASKC_SASS_CACHE, a folder for its texts (default /tmp); MASKC_SASS_CAPABILITY, 80 (default), 86, 90..; MASKC_SASS_SEED, of the order of
   warps and the number of processors; MASKC_SASS_COUNTS, a file to which each launch adds a line of JSON: how often
   each instruction was issued, the bytes that bulk copies brought and, without those, cost/cost.h; MASKC_SASS_LIMIT, instructions of a block until it counts as hanging; MASKC_SASS_TRACE, a file for what block 0 of the launch issued, u32 words of
   warp << 24 | instruction; MASKC_SASS_EARLY, 1: bulk copies and products happen at issue, not as late as they may. */
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/hopper/rows.h"
#include "tests/sass/image.h"
#include "tests/sass/memory.h"
#include <stdio.h>
#include <stdlib.h>

enum { MODULES = 64, FAULTED = 719, BLOCK_INSTRUCTIONS = 400000000 };

struct cu_module {
    struct image image;
};

struct cu_function {
    struct program *program;
};

static struct {
    int contexts, pushed, failures;
    struct memory memory;
    char fault[FAULT_TEXT];
    struct cu_function function[MODULES * IMAGE_ENTRIES];
    uint32_t functions;
} gpu;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int processors(void)
{
    return 1 + number("MASKC_SASS_SEED", 1) % 3;
}

/* Blocks of a processor. */
static int resident(void)
{
    return 1 + number("MASKC_SASS_SEED", 1) % 2;
}

#define FAKE_GPU                gpu
#define FAKE_CAPABILITY(device) ((void)(device), number("MASKC_SASS_CAPABILITY", 80))
#define FAKE_PROCESSORS         processors()
#define FAKE_ERROR_TEXT(result) ((result) == FAULTED ? gpu.fault : "not there")
#define FAKE_ERROR_NAME(result) ((result) == FAULTED ? "SASS_FAULT" : "CUDA_ERROR_OTHER")
#include "tests/support/fake_cuda.h"
/* after it */
#include "tests/support/fake_cuda_models.h"

static int count_call(const char *name)
{
    (void)name;
    return 0;
}

/* ---- modules ---- */

/* The image in the machine's form, each entry free of what ptxas is known to do wrong: 0, or -1 with gpu.fault set. */
static int load_image(struct image *ret, const void *cubin)
{
    const uint64_t size =
        image_bytes(cubin); /* nothing tells the driver how long an image is */
    int r = image_load(ret, cubin, size, gpu.fault, sizeof gpu.fault);
    for (uint32_t k = 0; k < ret->entries && r == 0; k++)
        r = rows_check(&ret->entry[k], gpu.fault, sizeof gpu.fault);
    return r;
}

FAKE(cuModuleLoadDataEx, struct cu_module **module, const void *cubin, unsigned count,
     int *options, void **values)
{
    INSIDE;
    struct cu_module *m = calloc(1, sizeof *m);
    if (load_image(&m->image, cubin) < 0) {
        for (unsigned k = 0; k < count; k++)
            if (options[k] == CU_JIT_ERROR_LOG_BUFFER)
                strcpy(values[k], gpu.fault);
        image_finish(&m->image);
        free(m);
        return FAULTED;
    }
    *module = m;
    return 0;
}

FAKE(cuModuleUnload, struct cu_module *module)
{
    image_finish(&module->image);
    free(module);
    return 0;
}

FAKE(cuModuleGetFunction, struct cu_function **function, struct cu_module *module,
     const char *name)
{
    INSIDE;
    for (uint32_t k = 0; k < module->image.entries; k++) {
        if (strcmp(module->image.entry[k].entry, name))
            continue;
        *function = &gpu.function[gpu.functions++ % (MODULES * IMAGE_ENTRIES)];
        (*function)->program = &module->image.entry[k];
        return 0;
    }
    snprintf(gpu.fault, sizeof gpu.fault, "a kernel %s was asked of a module that lacks it",
             name);
    return fail(FAULTED);
}

FAKE(cuFuncSetAttribute, struct cu_function *function, int attribute, int value)
{
    INSIDE;
    return fail(function && attribute == CU_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0
                    ? 0
                    : NOT_FOUND);
}

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct cu_function *function,
     int threads, size_t shared)
{
    INSIDE;
    (void)shared;
    *blocks = resident();
    return fail(function && threads % 32 == 0 && threads <= 1024 ? 0 : NOT_FOUND);
}

/* ---- launches ---- */

static void trace_to_file(void *to, uint32_t warp, uint32_t pc)
{
    const uint32_t word = warp << 24 | pc;
    fwrite(&word, sizeof word, 1, to);
}

struct launch {
    struct program *program;
    uint32_t blocks, waves, threads,
        shared;       /* extents of the grid; threads and bytes of a block */
    uint64_t *counts; /* as in struct block */
    uint64_t *copied; /* bytes, of all blocks */
    uint8_t *needed;
    struct cost *cost; /* or null */
};

static int run_block(const struct launch *l, uint32_t index)
{
    struct program *p = l->program;
    const char *trace = getenv("MASKC_SASS_TRACE");
    FILE *to = trace && index == 0 ? fopen(trace, "wb") : NULL;
    struct block b = {.program = p,
                      .memory = &gpu.memory,
                      .warps = l->threads / 32,
                      .index = index % l->blocks,
                      .grid = l->blocks,
                      .wave = index / l->blocks,
                      .shared_bytes = p->shared_base + p->shared_static + l->shared,
                      .counts = l->counts,
                      .needed = l->needed,
                      .cost = l->cost,
                      .trace = to ? trace_to_file : NULL,
                      .trace_to = to,
                      .early = number("MASKC_SASS_EARLY", 0) != 0,
                      .left = (uint64_t)number("MASKC_SASS_LIMIT", BLOCK_INSTRUCTIONS),
                      .random =
                          (uint64_t)number("MASKC_SASS_SEED", 1) * 0x9e3779b97f4a7c15u + index,
                      .fault = gpu.fault};
    const int r = block_run(&b);
    *l->copied += b.copied;
    if (to)
        fclose(to);
    return r;
}

static void report_list(FILE *to, const char *name, const uint64_t *list, uint32_t count)
{
    fprintf(to, ",\"%s\":[", name);
    for (uint32_t k = 0; k < count; k++)
        fprintf(to, "%s%llu", k ? "," : "", (unsigned long long)list[k]);
    fprintf(to, "]");
}

static void report_cost(FILE *to, const struct cost *c, uint32_t count)
{
    fprintf(to,
            ",\"fetched\":%llu,\"stored\":%llu,\"alone\":%llu,\"waited\":%llu,\"trips\":%llu",
            (unsigned long long)c->fetched, (unsigned long long)c->stored,
            (unsigned long long)c->alone, (unsigned long long)c->waited,
            (unsigned long long)c->trips);
    report_list(to, "sectors", c->sectors, count);
    report_list(to, "wavefronts", c->wavefronts, count);
    report_list(to, "works", c->work, c->works);
}

/* A line of JSON for the launch. */
static void report(const struct launch *l)
{
    const struct program *p = l->program;
    const char *path = getenv("MASKC_SASS_COUNTS");
    FILE *to = path ? fopen(path, "a") : NULL;
    uint64_t all = 0;
    if (!to)
        return;
    for (uint32_t k = 0; k < p->count; k++)
        all += l->counts[k];
    fprintf(to,
            "{\"entry\":\"%s\",\"target\":\"sm_%d\",\"threads\":%u,\"shared\":%u,\"blocks\":%u,"
            "\"waves\":%u,\"issued\":%llu,\"copied\":%llu,\"counts\":[",
            p->entry, number("MASKC_SASS_CAPABILITY", 80), l->threads, l->shared, l->blocks,
            l->waves, (unsigned long long)all, (unsigned long long)*l->copied);
    for (uint32_t k = 0; k < p->count; k++)
        fprintf(to, "%s%llu", k ? "," : "", (unsigned long long)l->counts[k]);
    fprintf(to, "],\"needed\":[");
    for (uint32_t k = 0; k < p->count; k++)
        fprintf(to, "%s%d", k ? "," : "", l->needed[k]);
    fprintf(to, "]");
    if (l->cost)
        report_cost(to, l->cost, p->count);
    fprintf(to, "}\n");
    fclose(to);
}

FAKE(cuLaunchKernel, struct cu_function *function, unsigned grid_x, unsigned grid_y,
     unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
     struct cu_stream *stream, void **arguments, void **extra)
{
    INSIDE;
    (void)stream;
    struct program *p = function->program;
    uint64_t copied = 0;
    const bool timed = getenv("MASKC_SASS_COUNTS") && !p->apart;
    struct cost cost = {.sectors = calloc(p->count, sizeof *cost.sectors),
                        .wavefronts = calloc(p->count, sizeof *cost.wavefronts),
                        .single = grid_x > (unsigned)(resident() * processors())};
    const struct launch l = {.program = p,
                             .blocks = grid_x,
                             .waves = grid_y,
                             .threads = block_x,
                             .shared = shared,
                             .counts = calloc(p->count, sizeof *l.counts),
                             .copied = &copied,
                             .needed = calloc(p->count, 1),
                             .cost = timed ? &cost : NULL};
    int r = extra || grid_z * block_y * block_z != 1 ? FAULTED : 0;
    program_arguments(p, block_x, (const uint32_t[]){grid_x, grid_y, grid_z}, arguments);
    memory_untouch(&gpu.memory);
    for (uint32_t k = 0; k < grid_x * grid_y && r == 0; k++)
        r = run_block(&l, k) < 0 ? FAULTED : 0;
    report(&l);
    cost_finish(&cost);
    free(l.counts);
    free(l.needed);
    return r;
}

FAKE(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *address,
     const uint64_t *size, const uint64_t *stride, const uint32_t *box, const uint32_t *step,
     int interleave, int swizzle, int promotion, int fill)
{
    (void)promotion;
    return fail(map_encode(map, &(struct map_request){.type = type,
                                                      .interleave = interleave,
                                                      .swizzle = swizzle,
                                                      .fill = fill,
                                                      .rank = rank,
                                                      .address = address,
                                                      .size = size,
                                                      .stride = stride,
                                                      .box = box,
                                                      .step = step}));
}

/* ---- memory ---- */

FAKE(cuMemAlloc_v2, cu_pointer *pointer, size_t bytes)
{
    INSIDE;
    void *p = memory_allocate(&gpu.memory, bytes);
    *pointer = (cu_pointer)(size_t)p;
    return fail(p ? 0 : OUT_OF_MEMORY);
}

FAKE(cuMemFree_v2, cu_pointer pointer)
{
    return fail(!pointer || memory_free(&gpu.memory, (void *)(size_t)pointer) ? 0 : NOT_FOUND);
}

FAKE(cuMemcpyHtoD_v2, cu_pointer to, const void *from, size_t bytes)
{
    INSIDE;
    if (!memory_find(&gpu.memory, to, bytes))
        return fail(NOT_FOUND);
    memcpy((void *)(size_t)to, from, bytes);
    memory_wrote(&gpu.memory, to, bytes);
    return 0;
}

FAKE(cuMemcpyHtoDAsync_v2, cu_pointer to, const void *from, size_t bytes,
     struct cu_stream *stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

FAKE(cuStreamCreate, struct cu_stream **stream, unsigned flags)
{
    (void)flags;
    *stream = NULL;
    return fail(0);
}

FAKE(cuStreamDestroy_v2, struct cu_stream *stream)
{
    (void)stream;
    return fail(0);
}

FAKE(cuStreamSynchronize, struct cu_stream *stream)
{
    (void)stream;
    return fail(0);
}

FAKE(cuMemcpyDtoH_v2, void *to, cu_pointer from, size_t bytes)
{
    INSIDE;
    if (!memory_find(&gpu.memory, from, bytes))
        return fail(NOT_FOUND);
    memcpy(to, (const void *)(size_t)from, bytes);
    return 0;
}

/* NVRTC asks for it where it finds a driver, and takes no for an answer, but not that it is missing. */
FAKE(cuGetExportTable, const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}
