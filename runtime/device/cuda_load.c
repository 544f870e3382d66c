/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a kernel onto its GPU: its modules, the plan's tables in device memory, the kernels' shared memory. Everything
   that is slow or may fail happens here. */
#include "masks/base/memory.h"
#include "runtime/device/cuda_code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ALIGNMENT = 256, LOG_BYTES = 2048 };

/* ---- contexts ---- */

/* The caller's current context if it belongs to that device, else the device's primary context. */
static int choose_context(struct cuda_context *c, int ordinal, struct error *e)
{
    if (cuda_must_have(ordinal, e) < 0)
        return -1;
    if (CALL(cuCtxGetCurrent, &c->context) < 0)
        return -1;
    if (c->context && CALL(cuCtxGetDevice, &c->device) < 0)
        return -1;
    if (c->context && (ordinal == DEVICE_CURRENT || c->device == ordinal))
        return 0;
    return cuda_context_open(c, ordinal == DEVICE_CURRENT ? 0 : ordinal, e);
}

/* ---- code ---- */

/* Further lines of an error. */
static void append_log(struct error *e, const char *log)
{
    size_t used = e ? strlen(e->text) : 0;
    if (e && log[0])
        snprintf(e->text + used, sizeof e->text - used, "\n%s", log);
}

static int load_image(struct device_code *c, const struct code_image *i, struct error *e)
{
    char *log = memory_new(LOG_BYTES, 1);
    /* PTX text must end in a zero byte, which an image in a kernel file may lack. */
    uint8_t *image = memory_new(i->size + 1, 1);
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_BYTES};
    memcpy(image, i->bytes, i->size);
    int r = CALL(cuModuleLoadDataEx, &c->module[c->n_modules], image, 2, options, values);
    if (r < 0) {
        error_prefix(e, "%s does not load on this GPU", c->target->name);
        append_log(e, log);
    }
    c->n_modules += r == 0;
    free(image);
    free(log);
    return r;
}

static int load_images(struct device_code *c, struct error *e)
{
    for (uint32_t k = 0; k < c->target->n_images; k++)
        if (load_image(c, &c->target->image[k], e) < 0)
            return -1;
    return 0;
}

/* Finds the module by the names in its image. Asking the driver for an entry that a module lacks
   is an error, which compute-sanitizer reports. */
static int find_function(const struct device_code *c, const char *entry,
                         struct cu_function **ret, struct error *e)
{
    for (uint32_t k = 0; k < c->n_modules; k++)
        if (c->n_modules == 1 || image_names(&c->target->image[k], entry))
            return CALL(cuModuleGetFunction, ret, c->module[k], entry);
    return error_set(e, ERROR_UNAVAILABLE, "cuda: the code for %s has no kernel %s",
                     c->target->name, entry);
}

uint32_t cuda_find_phase(const struct device_code *c, const char *entry)
{
    uint32_t k = 0;
    while (k < c->n_phases && strcmp(c->phase[k].entry, entry))
        k++;
    return k;
}

/* Finds a phase's kernel, allows it its shared memory, and counts the blocks that fit on the GPU at once.
   c->workers is the largest such count. */
static int load_phase(struct device_code *c, const struct phase *p, struct error *e)
{
    struct loaded_phase *to = &c->phase[cuda_find_phase(c, p->entry)];
    int blocks = 0, processors = cuda_attribute(CU_MULTIPROCESSOR_COUNT, c->gpu.device);
    if (to->function)
        return 0;
    memcpy(to->entry, p->entry, sizeof to->entry);
    if (find_function(c, p->entry, &to->function, e) < 0 ||
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

/* Maps of the launches to come, where some phase needs them. */
static int load_maps(struct device_code *c, struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    if (!hopper_needed(&c->target->launch))
        return 0;
    if (!cuda_has_tensor_maps())
        return error_set(e, ERROR_UNAVAILABLE,
                         "cuda: the code for %s needs tensor maps, which the NVIDIA driver for "
                         "CUDA %d.%d does not make: install one for CUDA 12 or later, or "
                         "compile with --family cuda_tiled",
                         c->target->name, d->version / 1000, d->version % 1000 / 10);
    c->maps = hopper_maps_new(c->artifact, c->target, cuda_encode_map, e);
    return c->maps ? 0 : -1;
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
    s->patterns = place(c, image, at, p->patterns, p->n_patterns * c->target->launch.block_rows,
                        sizeof *p->patterns);
    s->max_cols = p->max_cols;
    s->uses = p->uses;
    s->n = c->artifact->mask->n;
}

static void place_steps(struct device_code *c, const struct plan_steps *p, struct abi_steps *s,
                        uint8_t *image, uint64_t *at)
{
    PLACE(groups, n_groups);
    PLACE(steps, n_steps);
    PLACE(work, n_work);
}

static uint64_t place_all(struct device_code *c, uint8_t *image)
{
    const struct artifact_plan *p = &c->artifact->plan[c->target->plan];
    uint64_t at = 0;
    place_pass(c, &p->forward, &c->plan[0], image, &at);
    place_pass(c, &p->transposed, &c->plan[1], image, &at);
    for (int k = 0; k < PASSES; k++)
        place_steps(c, &p->steps[k], &c->steps[k], image, &at);
    return at;
}

static int upload_tables(struct device_code *c, struct error *e)
{
    uint64_t bytes = place_all(c, NULL);
    if (CALL(cuMemAlloc_v2, &c->tables, bytes ? bytes : 1) < 0)
        return error_prefix(e, "%llu bytes for the plan's tables", (unsigned long long)bytes);
    uint8_t *image = memory_new(bytes, 1);
    place_all(c, image);
    int r = cuda_send_apart(c->tables, image, bytes, e);
    free(image);
    return r;
}

void cuda_tables(const struct device_code *c, bool transposed, uint32_t layer,
                 struct abi_plan *ret)
{
    const struct artifact_plan *p = &c->artifact->plan[c->target->plan];
    const struct plan_pass *pass = transposed ? &p->transposed : &p->forward;
    *ret = c->plan[transposed];
    ret->work += pass->layer_work[layer][0];
    ret->works = (u32)pass->layer_work[layer][1];
    ret->merge = (u32)pass->layer_work[layer][2];
    ret->heads += (size_t)layer * c->artifact->mask->heads;
}

/* ---- load ---- */

/* Waits for launches, as the driver does not promise that freeing and unloading do. Where that fails, as while a stream of
   the context is being captured, tables and modules stay in the context. */
static void unload_inside(struct device_code *c)
{
    const struct cuda_driver *d = cuda_driver();
    if (c->tables && d->cuCtxSynchronize())
        return;
    const int mode = cuda_relax_capture();
    if (c->tables)
        d->cuMemFree_v2(c->tables);
    while (c->n_modules)
        d->cuModuleUnload(c->module[--c->n_modules]);
    cuda_restore_capture(mode);
}

void cuda_unload(struct device_code *c)
{
    if (!c)
        return;
    if (cuda_try_enter(&c->gpu)) {
        unload_inside(c);
        cuda_leave();
    }
    cuda_context_close(&c->gpu);
    hopper_maps_destroy(c->maps);
    free(c);
}

static int load_inside(struct device_code *c, struct error *e)
{
    if (cuda_enter(&c->gpu, e) < 0)
        return -1;
    const int mode = cuda_relax_capture();
    int r = load_maps(c, e) < 0 || load_images(c, e) < 0 || load_phases(c, e) < 0 ||
                    upload_tables(c, e) < 0
                ? -1
                : 0;
    cuda_restore_capture(mode);
    cuda_leave();
    return r;
}

int cuda_load(const struct artifact *a, const struct artifact_target *t, int ordinal,
              struct device_code **ret, struct error *e)
{
    if (cuda_driver()->problem[0])
        return error_set(e, ERROR_UNAVAILABLE, "%s", cuda_driver()->problem);
    struct device_code *c = memory_new(1, sizeof *c);
    c->artifact = a;
    c->target = t;
    if (choose_context(&c->gpu, ordinal, e) < 0 || load_inside(c, e) < 0) {
        cuda_unload(c);
        return -1;
    }
    waves_needed(a, t, c->waves);
    *ret = c;
    return 0;
}
