/* SPDX-License-Identifier: Apache-2.0 */
/* The device "cuda", through the driver API. Everything that costs or may fail happens at load:
   the module, the plan's tables in device memory, the kernels' shared memory; a launch only
   enqueues, so that it can be captured in a graph. */
#include "masks/base/memory.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FUNCTIONS = 2 * EMIT_MAX_PHASES, TABLE_ALIGNMENT = 256, LOG_BYTES = 2048 };

struct loaded_phase {
    char entry[40];
    struct cu_function *function;
    uint32_t fit; /* blocks that fit on the GPU at once */
};

struct device_code {
    const struct artifact *artifact;
    const struct artifact_target *target;
    struct cu_context *context;
    cu_device device;
    bool retained; /* the context is the primary one, held by us */
    struct cu_module *module;
    struct loaded_phase phase[MAX_FUNCTIONS];
    uint32_t n_phases, workers;
    cu_pointer tables;
    struct abi_plan plan[2]; /* forward, transposed; `work` of layer 0's first entry */
};

#define CALL(name, ...) cuda_check(cuda_driver()->name(__VA_ARGS__), #name, e)

/* ---- contexts ---- */

/* The caller's current context where it fits, else the primary one of the device. */
static int choose_context(struct device_code *c, int ordinal, struct error *e)
{
    if (ordinal >= cuda_driver()->devices)
        return error_set(e, ERROR_UNAVAILABLE, "there is no cuda:%d, this machine has %d GPU%s",
                         ordinal, cuda_driver()->devices,
                         cuda_driver()->devices == 1 ? "" : "s");
    if (CALL(cuCtxGetCurrent, &c->context) < 0)
        return -1;
    if (c->context && CALL(cuCtxGetDevice, &c->device) < 0)
        return -1;
    if (c->context && (ordinal == 0 || c->device == ordinal))
        return 0;
    if (CALL(cuDeviceGet, &c->device, ordinal) < 0 ||
        CALL(cuDevicePrimaryCtxRetain, &c->context, c->device) < 0)
        return -1;
    c->retained = true;
    return 0;
}

static int enter(const struct device_code *c, struct error *e)
{
    return CALL(cuCtxPushCurrent_v2, c->context);
}

static void leave(void)
{
    struct cu_context *ignored;
    cuda_driver()->cuCtxPopCurrent_v2(&ignored);
}

/* ---- code ---- */

/* Further lines of an error. */
static void append_log(struct error *e, const char *log)
{
    size_t used = e ? strlen(e->text) : 0;
    if (e && log[0])
        snprintf(e->text + used, sizeof e->text - used, "\n%s", log);
}

static int load_module(struct device_code *c, struct error *e)
{
    char *log = memory_new(LOG_BYTES, 1);
    /* An image ends in a zero where it is PTX text; ours in the file need not. */
    uint8_t *image = memory_new(c->target->code_size + 1, 1);
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_BYTES};
    memcpy(image, c->target->code, c->target->code_size);
    int r = CALL(cuModuleLoadDataEx, &c->module, image, 2, options, values);
    if (r < 0) {
        c->module = NULL;
        error_prefix(e, "%s does not load on this GPU", c->target->name);
        append_log(e, log);
    }
    free(image);
    free(log);
    return r;
}

/* The entry's index among c->phase, or that of the next free one. */
static uint32_t find_phase(const struct device_code *c, const char *entry)
{
    uint32_t k = 0;
    while (k < c->n_phases && strcmp(c->phase[k].entry, entry))
        k++;
    return k;
}

/* Finds a phase's kernel, gives it its shared memory, and counts the blocks of it that fit on the GPU
   at once; c->workers is the largest such count. */
static int load_phase(struct device_code *c, const struct phase *p, struct error *e)
{
    struct loaded_phase *to = &c->phase[find_phase(c, p->entry)];
    int blocks = 0, processors = cuda_attribute(CU_MULTIPROCESSOR_COUNT, c->device);
    if (to->function)
        return 0;
    memcpy(to->entry, p->entry, sizeof to->entry);
    if (CALL(cuModuleGetFunction, &to->function, c->module, p->entry) < 0 ||
        CALL(cuFuncSetAttribute, to->function, CU_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             (int)p->shared_bytes) < 0 ||
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, to->function,
             (int)p->threads, p->shared_bytes) < 0)
        return -1;
    if (blocks < 1)
        return error_set(e, ERROR_UNAVAILABLE,
                         "cuda: %s needs more registers or shared memory than the GPU has",
                         p->entry);
    to->fit = (uint32_t)blocks * (uint32_t)(processors > 0 ? processors : 1);
    c->workers = to->fit > c->workers ? to->fit : c->workers;
    c->n_phases++;
    return 0;
}

static int load_phases(struct device_code *c, struct error *e)
{
    const struct launch_record *l = &c->target->launch;
    for (uint32_t k = 0; k < l->n_forward; k++)
        if (load_phase(c, &l->forward[k], e) < 0)
            return -1;
    for (uint32_t k = 0; k < l->n_backward; k++)
        if (load_phase(c, &l->backward[k], e) < 0)
            return -1;
    return 0;
}

/* ---- tables ---- */

/* Puts one table at *at of the image (null: only counts) and returns where the device sees it.
   */
static const void *place(const struct device_code *c, uint8_t *image, uint64_t *at,
                         const void *table, uint64_t count, size_t size)
{
    uint64_t here = *at;
    if (image && count)
        memcpy(image + here, table, count * size);
    *at = (here + count * size + TABLE_ALIGNMENT - 1) / TABLE_ALIGNMENT * TABLE_ALIGNMENT;
    return (const void *)(uintptr_t)(c->tables + here);
}

#define PLACE(field, count) s->field = place(c, image, at, p->field, p->count, sizeof *p->field)

static void place_pass(struct device_code *c, const struct plan_pass *p, struct abi_plan *s,
                       uint8_t *image, uint64_t *at)
{
    PLACE(work, n_work);
    PLACE(heads, n_heads);
    PLACE(items, n_items);
    PLACE(pieces, n_pieces);
    PLACE(ranges, n_ranges);
    PLACE(tiles, n_tiles);
    PLACE(lines, n_lines);
    PLACE(gathers, n_gathers);
    PLACE(columns, n_columns);
    s->patterns = place(c, image, at, p->patterns, p->n_patterns * c->target->launch.strip_rows,
                        sizeof *p->patterns);
    s->max_cols = p->max_cols;
    s->uses = p->uses;
    s->n = c->artifact->mask->n;
}

static uint64_t place_all(struct device_code *c, uint8_t *image)
{
    const struct artifact_plan *p = &c->artifact->plan[c->target->plan];
    uint64_t at = 0;
    place_pass(c, &p->forward, &c->plan[0], image, &at);
    place_pass(c, &p->transposed, &c->plan[1], image, &at);
    return at;
}

static int upload_tables(struct device_code *c, struct error *e)
{
    uint64_t bytes = place_all(c, NULL);
    if (CALL(cuMemAlloc_v2, &c->tables, bytes ? bytes : 1) < 0)
        return error_prefix(e, "%llu bytes for the plan's tables", (unsigned long long)bytes);
    uint8_t *image = memory_new(bytes, 1);
    place_all(c, image);
    int r = CALL(cuMemcpyHtoD_v2, c->tables, image, bytes);
    free(image);
    return r;
}

static void tables(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret)
{
    const struct artifact_plan *p = &c->artifact->plan[c->target->plan];
    const struct plan_pass *pass = transposed ? &p->transposed : &p->forward;
    *ret = c->plan[transposed];
    ret->work += pass->layer_work[layer][0];
    ret->works = (u32)pass->layer_work[layer][1];
    ret->late = (u32)pass->layer_work[layer][2];
    ret->heads += (size_t)layer * c->artifact->mask->heads;
}

/* ---- load ---- */

static void unload(struct device_code *c)
{
    const struct cuda_driver *d = cuda_driver();
    if (!c)
        return;
    bool inside = c->context && enter(c, NULL) == 0; /* if not, it is tried nonetheless */
    if (c->tables)
        d->cuMemFree_v2(c->tables);
    if (c->module)
        d->cuModuleUnload(c->module);
    if (inside)
        leave();
    if (c->retained)
        d->cuDevicePrimaryCtxRelease_v2(c->device);
    free(c);
}

static int load_inside(struct device_code *c, struct error *e)
{
    if (enter(c, e) < 0)
        return -1;
    int r = load_module(c, e) < 0 || load_phases(c, e) < 0 || upload_tables(c, e) < 0 ? -1 : 0;
    leave();
    return r;
}

static int load(const struct artifact *a, const struct artifact_target *t, int ordinal,
                struct device_code **ret, struct error *e)
{
    if (cuda_driver()->problem[0])
        return error_set(e, ERROR_UNAVAILABLE, "%s", cuda_driver()->problem);
    struct device_code *c = memory_new(1, sizeof *c);
    c->artifact = a;
    c->target = t;
    if (choose_context(c, ordinal, e) < 0 || load_inside(c, e) < 0) {
        unload(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* ---- launch ---- */

/* As many blocks as the GPU holds, which go on until all is done; fewer where there is less to do. */
static int launch_phase(const struct device_code *c, const struct phase *p,
                        const struct device_launch *l, struct error *e)
{
    const struct loaded_phase *to = &c->phase[find_phase(c, p->entry)];
    const struct abi_args args = phase_args(p->over, &l->args);
    uint64_t count = phase_indices(p->over, &args);
    uint32_t blocks = count < to->fit ? (uint32_t)count : to->fit;
    void *arguments[] = {(void *)(uintptr_t)&args};
    return blocks ? CALL(cuLaunchKernel, to->function, blocks, 1, 1, p->threads, 1, 1,
                         p->shared_bytes, l->stream, arguments, NULL)
                  : 0;
}

static int launch(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    int r = enter(c, e);
    if (r < 0)
        return r;
    for (uint32_t k = 0; k < l->n_phases && r == 0; k++)
        r = launch_phase(c, &l->phases[k], l, e);
    leave();
    return r;
}

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)threads;
    return c->workers;
}

/* ---- memory ---- */

static void *allocate(const struct device_code *c, uint64_t bytes, struct error *e)
{
    cu_pointer p = 0;
    if (enter(c, e) < 0)
        return NULL;
    if (CALL(cuMemAlloc_v2, &p, bytes ? bytes : 1) < 0) {
        error_prefix(e, "%llu bytes of GPU memory", (unsigned long long)bytes);
        p = 0;
    }
    leave();
    return (void *)(uintptr_t)p;
}

static void release(const struct device_code *c, void *p)
{
    if (!p || enter(c, NULL) < 0)
        return;
    cuda_driver()->cuMemFree_v2((cu_pointer)(uintptr_t)p);
    leave();
}

static int upload(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                  struct error *e)
{
    if (!bytes)
        return 0;
    if (enter(c, e) < 0)
        return -1;
    int r = CALL(cuMemcpyHtoD_v2, (cu_pointer)(uintptr_t)to, from, bytes);
    leave();
    return r;
}

static int download(const struct device_code *c, void *to, const void *from, uint64_t bytes,
                    struct error *e)
{
    if (!bytes)
        return 0;
    if (enter(c, e) < 0)
        return -1;
    int r = CALL(cuMemcpyDtoH_v2, to, (cu_pointer)(uintptr_t)from, bytes);
    leave();
    return r;
}

static int synchronize(const struct device_code *c, struct error *e)
{
    if (enter(c, e) < 0)
        return -1;
    int r = CALL(cuCtxSynchronize, );
    leave();
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
        char name[128] = "";
        cu_device device = 0;
        if (d->cuDeviceGet(&device, k) || d->cuDeviceGetName(name, sizeof name, device))
            continue;
        int sm = capability(device);
        text_add(out, "%s%d: %s, compute capability %d.%d", k ? "; " : "", k, name, sm / 10,
                 sm % 10);
    }
    text_add(out, " (driver for CUDA %d.%d)", d->version / 1000, d->version % 1000 / 10);
}

/* The GPU that a kernel without an ordinal would go to. */
static int current_capability(void)
{
    const struct cuda_driver *d = cuda_driver();
    struct cu_context *context = NULL;
    cu_device device = 0;
    if (d->problem[0])
        return 0;
    if (d->cuCtxGetCurrent(&context) || !context || d->cuCtxGetDevice(&device))
        d->cuDeviceGet(&device, 0);
    return capability(device);
}

/* "sm_90a" runs on 9.0 alone, "sm_86" on 8.6 and later 8.x, PTX for 8.0 on everything since. */
static int prefers(const struct artifact_target *t)
{
    int have = current_capability(), made = 0, used = 0;
    if (sscanf(t->name, "compute_%d%n", &made, &used) == 1)
        return made <= have ? 1 + made : 0;
    if (sscanf(t->name, "sm_%d%n", &made, &used) != 1)
        return 0;
    if (t->name[used] == 'a')
        return made == have ? 5000 : 0;
    return made / 10 == have / 10 && made <= have ? 2000 + made : 0;
}

const struct device device_cuda = {
    .name = "cuda",
    .unavailable = unavailable,
    .describe = describe,
    .prefers = prefers,
    .load = load,
    .unload = unload,
    .tables = tables,
    .workers = workers,
    .launch = launch,
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .download = download,
    .sync = synchronize,
};
