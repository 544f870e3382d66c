/* SPDX-License-Identifier: Apache-2.0 */
/* The device "emulated": the CUDA text of a kernel file on this CPU (emulated_text.h). */
#include "runtime/device/emulated/emulated.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/emulated/emulated_text.h"
#include "runtime/device/host.h"
#include <stdlib.h>

enum { BLOCKS = 4 };

struct device_code {
    const struct artifact *artifact;
    const struct artifact_target *target;
    struct emulated_text *text;
};

/* ---- loading ---- */

static int find_entries(const struct device_code *c, const struct phase *p, uint32_t count,
                        struct error *e)
{
    for (uint32_t k = 0; k < count; k++)
        if (emulated_find(c->text, p[k].entry, e) < 0)
            return -1;
    return 0;
}

static int open_code(struct device_code *c, struct error *e)
{
    const struct launch_record *l = &c->target->launch;
    if (!c->target->source)
        return error_set(e, ERROR_INPUT, "target %s holds no source to emulate",
                         c->target->name);
    c->text = emulated_open(c->target->source, c->target->name, e);
    return !c->text || find_entries(c, l->forward, l->n_forward, e) < 0 ||
                   find_entries(c, l->backward, l->n_backward, e) < 0
               ? -1
               : 0;
}

static void unload(struct device_code *c)
{
    if (c)
        emulated_close(c->text);
    free(c);
}

static int load(const struct artifact *a, const struct artifact_target *t, int ordinal,
                struct device_code **ret, struct error *e)
{
    (void)ordinal;
    struct device_code *c = memory_new(1, sizeof *c);
    c->artifact = a;
    c->target = t;
    if (open_code(c, e) < 0) {
        unload(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* ---- launching ---- */

static int launch(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    for (uint32_t k = 0; k < l->n_phases; k++) {
        const struct phase *p = &l->phases[k];
        const struct abi_args args = phase_args(p->over, &l->args);
        struct emulated_grid grid = {l->workers, p->threads, p->shared_bytes};
        if (phase_indices(p->over, &args) &&
            emulated_run(c->text, p->entry, &args, &grid, e) < 0)
            return -1;
    }
    return 0;
}

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)c;
    return threads ? threads : BLOCKS;
}

static void tables(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret)
{
    host_tables(&c->artifact->plan[c->target->plan], c->artifact->mask, transposed, layer, ret);
}

/* ---- the device ---- */

static const char *unavailable(void)
{
    return host_compiler_version()[0]
               ? ""
               : "the emulated device needs a host compiler: install clang or gcc";
}

static void describe(struct text *out)
{
    text_add(out, "CUDA code on this CPU, watched (%s)", host_compiler_version());
}

static int prefers(const struct artifact_target *t, int ordinal)
{
    (void)ordinal;
    return t->source ? 1 : 0;
}

const struct device device_emulated = {
    .name = "emulated",
    .on_request = true,
    .unavailable = unavailable,
    .describe = describe,
    .prefers = prefers,
    .load = load,
    .unload = unload,
    .tables = tables,
    .workers = workers,
    .host_memory = true,
    .launch = launch,
    .allocate = host_allocate,
    .release = host_release,
    .upload = host_copy,
    .download = host_copy,
    .sync = host_sync,
};
