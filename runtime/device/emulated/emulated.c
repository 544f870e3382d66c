/* SPDX-License-Identifier: Apache-2.0 */
/* The device "emulated": the CUDA text of a kernel file on this CPU (emulated_text.h). */
#include "runtime/device/emulated/emulated.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/emulated/emulated_stream.h"
#include "runtime/device/emulated/emulated_text.h"
#include "runtime/device/hopper_args.h"
#include "runtime/device/host.h"
#include "runtime/emulated/tensor_map.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4 };

struct device_code {
    const struct artifact *artifact;
    const struct artifact_target *target;
    struct emulated_text *text;
    struct hopper_maps *maps; /* null where no phase needs them */
    bool waves[2];            /* as on a GPU */
    u32 *patterns[2]; /* with maps: copies of both directions, which bulk copies may read */
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
    if (c) {
        emulated_close(c->text);
        hopper_maps_destroy(c->maps);
        free(c->patterns[0]);
        free(c->patterns[1]);
    }
    free(c);
}

static int encode_map(const struct map_shape *s, struct tensor_map *ret, struct error *e)
{
    struct emulated_tensor_map m = {
        .magic = EMULATED_TENSOR_MAP,
        .address = (uintptr_t)s->address,
        .element_bytes = (uint32_t)s->stride[0],
        .swizzle = 128,
    };
    (void)e;
    for (int k = 0; k < MAP_DIMENSIONS; k++) {
        m.stride[k] = s->stride[k];
        m.extent[k] = (uint32_t)s->extent[k];
        m.box[k] = s->box[k];
    }
    memcpy(ret->opaque, &m, sizeof m);
    return 0;
}

/* An aligned copy of the patterns: in a file they are only at multiples of 4 bytes, and bulk copies
   need multiples of 16. */
static u32 *align_patterns(const struct plan_pass *p, uint32_t block_rows)
{
    const size_t words = (size_t)p->n_patterns * block_rows;
    u32 *copy = memory_aligned(words, sizeof *copy);
    if (words)
        memcpy(copy, p->patterns, words * sizeof *copy);
    return copy;
}

static int load_hopper(struct device_code *c, struct error *e)
{
    const struct artifact_plan *p = &c->artifact->plan[c->target->plan];
    if (!hopper_needed(&c->target->launch))
        return 0;
    c->maps = hopper_maps_new(c->artifact, c->target, encode_map, e);
    c->patterns[0] = align_patterns(&p->forward, p->block_rows);
    c->patterns[1] = align_patterns(&p->transposed, p->block_rows);
    return c->maps ? 0 : -1;
}

static int load(const struct artifact *a, const struct artifact_target *t, int ordinal,
                struct device_code **ret, struct error *e)
{
    (void)ordinal;
    struct device_code *c = memory_new(1, sizeof *c);
    c->artifact = a;
    c->target = t;
    waves_needed(a, t, c->waves);
    if (open_code(c, e) < 0 || load_hopper(c, e) < 0) {
        unload(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* ---- launching ---- */

/* The text copies as many bytes as its longest arguments have. */
union phase_args {
    struct abi_args plain;
    struct hopper_args hopper;
};

static int run_phase(const struct device_code *c, const struct phase *p, uint64_t indices,
                     const union phase_args *args, const struct device_launch *l,
                     struct error *e)
{
    const uint32_t waves = c->waves[over_transposed(p->over)] ? p->waves : 0;
    const struct emulated_launch launch = {c->text,
                                           p->entry,
                                           {l->workers, p->threads, p->shared_bytes, waves},
                                           args,
                                           sizeof *args};
    if (l->launches && indices)
        ++*l->launches;
    return indices ? emulated_submit_launch(l->emulated, &launch, e) : 0;
}

static int launch_hopper(const struct device_code *c, const struct phase *p,
                         const struct device_launch *l, struct error *e)
{
    const struct plan_steps *s = c->artifact->plan[c->target->plan].steps;
    struct abi_steps steps[PASSES];
    union phase_args args;
    for (int k = 0; k < PASSES; k++)
        steps[k] = (struct abi_steps){s[k].work, s[k].groups, s[k].steps, 0, 0};
    return hopper_fill(c->maps, p, l, steps, &args.hopper, e) < 0
               ? -1
               : run_phase(c, p, hopper_indices(&args.hopper), &args, l, e);
}

static int launch_phase(const struct device_code *c, const struct phase *p,
                        const struct device_launch *l, struct error *e)
{
    if (p->arguments != PHASE_ARGS)
        return launch_hopper(c, p, l, e);
    union phase_args args;
    args.plain = phase_args(p->over, &l->args);
    return run_phase(c, p, phase_indices(p->over, &args.plain), &args, l, e);
}

static int launch(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (launch_phase(c, &l->phases[k], l, e) < 0)
            return -1;
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
    if (c->patterns[transposed])
        ret->patterns = c->patterns[transposed];
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
