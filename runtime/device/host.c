/* SPDX-License-Identifier: Apache-2.0 */
/* Devices in this process: see host.h. */
#include "runtime/device/host.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool write_all(int file, const uint8_t *bytes, uint64_t size)
{
    while (size > 0) {
        ssize_t n = write(file, bytes, size);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            bytes += n;
            size -= (uint64_t)n;
        }
    }
    return true;
}

/* A path to the file under which no other object was opened. The system's loader takes equal names
   for equal objects, and file numbers are reused. So the bits of a counter choose between "/." and
   "/" in the path. */
static void unique_path(int file, char *ret, size_t capacity)
{
    static _Atomic uint32_t opened;
    size_t at = (size_t)snprintf(ret, capacity, "/proc/self/fd");
    for (uint32_t bits = ++opened; bits; bits >>= 1)
        at += (size_t)snprintf(ret + at, capacity - at, bits & 1 ? "/." : "/");
    snprintf(ret + at, capacity - at, "/%d", file);
}

void *object_open(const uint8_t *bytes, uint64_t size, struct error *e)
{
    char path[128];
    void *object = NULL;
    int file = memfd_create("maskc", MFD_CLOEXEC);
    if (file < 0 || !write_all(file, bytes, size)) {
        error_set(e, ERROR_UNAVAILABLE, "cannot hold the code in memory: %s", strerror(errno));
    } else {
        unique_path(file, path, sizeof path);
        object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!object)
            error_set(e, ERROR_INPUT, "the code cannot be loaded: %s", dlerror());
    }
    if (file >= 0)
        close(file);
    return object;
}

void host_tables(const struct artifact_plan *p, const struct mask *m, bool transposed,
                 uint32_t layer, struct abi_plan *ret)
{
    const struct plan_pass *s = transposed ? &p->transposed : &p->forward;
    *ret = (struct abi_plan){
        .work = s->work + s->layer_work[layer][0],
        .works = (u32)s->layer_work[layer][1],
        .merge = (u32)s->layer_work[layer][2],
        .heads = s->heads + (size_t)layer * m->heads,
        .items = s->items,
        .pieces = s->pieces,
        .ranges = s->ranges,
        .tiles = s->tiles,
        .lines = s->lines,
        .gathers = s->gathers,
        .columns = s->columns,
        .patterns = s->patterns,
        .max_cols = s->max_cols,
        .uses = s->uses,
        .n = m->n,
    };
}

void *host_allocate(const struct device_code *c, uint64_t bytes, struct error *e)
{
    (void)c;
    enum { LINE = 64, LARGE_PAGE = 2 << 20, WORTH_IT = 1 << 20 };
    const bool large = bytes >= WORTH_IT && bytes <= SIZE_MAX / 2;
    void *p = NULL;
    if (large)
        bytes = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    if (bytes > SIZE_MAX / 2 ||
        posix_memalign(&p, large ? LARGE_PAGE : LINE, bytes ? bytes : 1)) {
        error_set(e, ERROR_UNAVAILABLE, "no memory for %llu bytes", (unsigned long long)bytes);
        return NULL;
    }
    /* A head's rows are a page or so apart, and each small page costs a walk. A hint: what becomes of it
       does not matter. */
    if (large)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void host_release(const struct device_code *c, void *p)
{
    (void)c;
    free(p);
}

int host_copy(const struct device_code *c, void *to, const void *from, uint64_t bytes,
              struct error *e)
{
    (void)c;
    (void)e;
    if (bytes)
        memcpy(to, from, bytes);
    return 0;
}

int host_sync(const struct device_code *c, struct error *e)
{
    (void)c;
    (void)e;
    return 0;
}
