/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel file becomes something that can be launched: read and checked, a device and one of the
   file's targets picked, the code loaded. */
#include "runtime/load/load.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/device/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file's targets, and the cap that may be why none of them runs. */
static void list_targets(const struct artifact *a, char *ret, size_t capacity)
{
    size_t at = 0;
    const char *cap = machine_cap();
    ret[0] = 0;
    for (uint32_t k = 0; k < a->n_targets && at < capacity; k++)
        at +=
            (size_t)snprintf(ret + at, capacity - at, "%s%s", k ? ", " : "", a->target[k].name);
    if (cap && at < capacity)
        snprintf(ret + at, capacity - at, "; " MACHINE_CAP " is %s", cap);
}

/* The file's best target for a device, or null. */
static const struct artifact_target *best_target(const struct artifact *a,
                                                 const struct device *d, int ordinal)
{
    const struct artifact_target *best = NULL;
    int score = 0;
    for (uint32_t k = 0; k < a->n_targets; k++) {
        int s = d->prefers(&a->target[k], ordinal);
        if (s > score) {
            score = s;
            best = &a->target[k];
        }
    }
    return best;
}

static int pick_asked(struct maskc_kernel *k, const struct device *asked, int ordinal,
                      struct error *e)
{
    char names[256];
    const char *why = asked->unavailable();
    if (why[0])
        return error_set(e, ERROR_UNAVAILABLE, "%s", why);
    k->device = asked;
    k->target = best_target(k->artifact, asked, ordinal);
    if (k->target)
        return 0;
    list_targets(k->artifact, names, sizeof names);
    return error_set(e, ERROR_UNAVAILABLE,
                     "device %s cannot run what the kernel file holds (%s)", asked->name,
                     names);
}

/* True if the file has code for such devices. Otherwise they are not asked whether they are usable: that starts a GPU's driver, which
   a process that is forked afterwards cannot use. */
static bool has_code_for(const struct artifact *a, const struct device *d)
{
    const enum target_kind kind = d == &device_cuda ? TARGET_CUDA : TARGET_CPU;
    for (uint32_t k = 0; k < a->n_targets; k++)
        if (target_find(a->target[k].name, NULL)->kind == kind)
            return true;
    return false;
}

static int pick_any(struct maskc_kernel *k, int ordinal, struct error *e)
{
    char names[256];
    for (const struct device *const *d = devices; *d; d++) {
        if ((*d)->on_request || !has_code_for(k->artifact, *d) || (*d)->unavailable()[0])
            continue;
        k->device = *d;
        k->target = best_target(k->artifact, *d, ordinal);
        if (k->target)
            return 0;
    }
    list_targets(k->artifact, names, sizeof names);
    return error_set(
        e, ERROR_UNAVAILABLE,
        "no device of this machine runs what the kernel file holds (%s); compile it "
        "for 'cpu'%s",
        names, devices_advice);
}

static int load_bytes(struct maskc_kernel *k, uint64_t size, const char *path,
                      const char *device, struct error *e)
{
    const struct device *asked;
    int ordinal;
    if (machine_check_cap(e) < 0 || device_find(device, &asked, &ordinal, e) < 0 ||
        artifact_read(k->bytes, size, path, &k->artifact, e) < 0)
        return -1;
    if ((asked ? pick_asked(k, asked, ordinal, e) : pick_any(k, ordinal, e)) < 0)
        return error_prefix(e, "%s", path);
    return k->device->load(k->artifact, k->target, ordinal, &k->code, e);
}

int kernel_load(const void *data, uint64_t size, const char *path, const char *device,
                struct maskc_kernel **ret, struct error *e)
{
    struct maskc_kernel *k = memory_new(1, sizeof *k);
    k->bytes = memory_aligned(size, 1);
    k->size = size;
    if (size)
        memcpy(k->bytes, data, size);
    if (load_bytes(k, size, path, device, e) < 0) {
        kernel_unload(k);
        return -1;
    }
    *ret = k;
    return 0;
}

int kernel_load_file(const char *path, const char *device, struct maskc_kernel **ret,
                     struct error *e)
{
    struct file file;
    if (file_open(path, &file, e) < 0)
        return -1;
    int r = kernel_load(file.bytes, file.size, path, device, ret, e);
    file_close(&file);
    return r;
}

void kernel_unload(struct maskc_kernel *k)
{
    if (!k)
        return;
    if (k->code)
        k->device->unload(k->code);
    artifact_destroy(k->artifact);
    free(k->bytes);
    free(k);
}
