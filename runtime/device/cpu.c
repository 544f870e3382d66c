/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: the kernel file's shared object is loaded from memory; cpu_launch.c runs it. */
#include "gen/target.h"
#include "masks/base/memory.h"
#include "runtime/device/cpu_code.h"
#include "runtime/device/cpu_threads.h"
#include "runtime/device/machine.h"
#include <dlfcn.h>
#include <stdlib.h>

static const char *cpu_unavailable(void)
{
    return "";
}

static void cpu_describe(struct text *out)
{
    const char *cap = machine_cap();
    text_add(out, "%s, %u threads", machine_level(), threads_cores());
    if (cap)
        text_add(out, "; " MACHINE_CAP " allows up to %s", cap);
}

static int cpu_prefers(const struct artifact_target *t, int ordinal)
{
    (void)ordinal;
    struct error e;
    const struct target *row = target_find(t->name, &e);
    return row && row->kind == TARGET_CPU ? machine_rank(t->name) : 0;
}

static int find_entries(void *library, const struct phase *phase, uint32_t count,
                        entry_fn **ret, struct error *e)
{
    for (uint32_t k = 0; k < count; k++) {
        ret[k] = (entry_fn *)(uintptr_t)dlsym(library, phase[k].entry);
        if (!ret[k])
            return error_set(e, ERROR_INPUT, "the code has no entry point '%s'",
                             phase[k].entry);
    }
    return 0;
}

static void cpu_unload(struct device_code *c)
{
    if (!c)
        return;
    if (c->library)
        dlclose(c->library);
    free(c);
}

static int cpu_load(const struct artifact *a, const struct artifact_target *t, int ordinal,
                    struct device_code **ret, struct error *e)
{
    if (ordinal > 0)
        return error_set(e, ERROR_INPUT, "cpu:%d: there is one CPU device, 'cpu'", ordinal);
    struct device_code *c = memory_new(1, sizeof *c);
    const struct launch_record *r = &t->launch;
    c->plan = &a->plan[t->plan];
    c->mask = a->mask;
    c->record = r;
    c->library = object_open(t->image[0].bytes, t->image[0].size, e);
    if (!c->library || find_entries(c->library, r->forward, r->n_forward, c->forward, e) < 0 ||
        find_entries(c->library, r->backward, r->n_backward, c->backward, e) < 0) {
        cpu_unload(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void cpu_tables(const struct device_code *c, bool transposed, uint32_t layer,
                       struct abi_plan *ret)
{
    host_tables(c->plan, c->mask, transposed, layer, ret);
}

static uint32_t cpu_workers(const struct device_code *c, uint32_t threads)
{
    (void)c;
    enum { MOST = 1024 };
    uint32_t n = threads ? threads : threads_most();
    return n < MOST ? n : MOST;
}

const struct device device_cpu = {
    .name = "cpu",
    .unavailable = cpu_unavailable,
    .describe = cpu_describe,
    .prefers = cpu_prefers,
    .load = cpu_load,
    .unload = cpu_unload,
    .tables = cpu_tables,
    .workers = cpu_workers,
    .slices = true,
    .whole = cpu_whole,
    .host_memory = true,
    .starts = true,
    .launch = cpu_run,
    .allocate = host_allocate,
    .release = host_release,
    .upload = host_copy,
    .download = host_copy,
    .sync = host_sync,
};
