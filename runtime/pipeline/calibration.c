/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPU or GPU a calibration belongs to, its rows, and the choice of the row for a plan. calibration_file.c stores it. */
#include "runtime/pipeline/calibration.h"
#include "gen/family/family.h"
#include "masks/base/memory.h"
#include "runtime/base/cache.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whose ---- */

static char *cpu_identity(void)
{
    unsigned brand[13] = {0}, a = 0, b, c, d;
    char *ret;
    for (unsigned k = 0; k < 3; k++)
        if (!__get_cpuid(0x80000002 + k, &brand[4 * k], &brand[4 * k + 1], &brand[4 * k + 2],
                         &brand[4 * k + 3]))
            brand[0] = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        a = 0;
    if (asprintf(&ret, "%s, signature %x; %s", (const char *)brand, a, machine_level()) < 0)
        ret = memory_text("");
    return ret;
}

static char *gpu_identity(int gpu)
{
    struct cuda_gpu g = {.name = ""};
    const char *target = cuda_describe(gpu, &g, NULL) ? NULL : machine_cuda_target(gpu);
    char *ret;
    if (asprintf(&ret, "%s, compute capability %d.%d; %s", g.name, g.capability / 10,
                 g.capability % 10, target ? target : "no target") < 0)
        ret = memory_text("");
    return ret;
}

char *calibration_identity(int whose)
{
    return whose == CALIBRATION_CPU ? cpu_identity() : gpu_identity(whose);
}

void calibration_size(int gpu, struct machine *m)
{
    enum { SHARES = 4 }; /* of a processor */
    struct cuda_gpu g;
    const bool known = !cuda_describe(gpu, &g, NULL);
    m->workers = known ? SHARES * (uint32_t)g.processors : 0;
    m->processors = known && m->processors ? (uint32_t)g.processors : 0;
}

char *calibration_path(int whose)
{
    struct cache *cache = cache_open(NULL);
    char *identity = calibration_identity(whose), *ret = NULL;
    struct cache_key key = cache_key(identity, strlen(identity));
    if (!*cache_directory(cache) ||
        asprintf(&ret, "%s/calibration-%016llx.json", cache_directory(cache),
                 (unsigned long long)key.low) < 0)
        ret = memory_text("");
    free(identity);
    cache_close(cache);
    return ret;
}

/* ---- the struct ---- */

void calibration_add(struct calibration *c, const struct machine *row,
                     const struct target *target, const struct machine *measured)
{
    if (c->count < CALIBRATION_ROWS) {
        struct calibrated *r = &c->row[c->count++];
        r->row = row;
        r->target = target;
        r->machine = *measured;
        snprintf(r->name, sizeof r->name, "%s (%s)", row->name, CALIBRATED);
    }
    for (uint32_t k = 0; k < c->count; k++)
        c->row[k].machine.name = c->row[k].name;
}

const struct machine *calibration_machine(const struct calibration *c, const char *row,
                                          const struct target *target)
{
    const struct target *own = target && target->kind == TARGET_CUDA ? target : NULL;
    for (uint32_t k = 0; c && k < c->count; k++)
        if (c->row[k].target == own && !strcmp(c->row[k].row->name, row))
            return &c->row[k].machine;
    return NULL;
}

void calibration_destroy(struct calibration *c)
{
    free(c);
}

const struct machine *machine_named(const char *name, const struct calibration *c,
                                    const struct target *target, struct error *e)
{
    char row[32];
    snprintf(row, sizeof row, "%s", name);
    char *suffix = strstr(row, " (" CALIBRATED ")");
    if (!suffix)
        return machine_find(name, e);
    *suffix = 0;
    const struct machine *stored = calibration_machine(c, row, target);
    return stored ? stored : machine_find(row, e);
}

/* True if this CPU runs the target, or if it is the target of a GPU of this machine. Calls the driver only for CUDA
   targets. */
static bool is_here(const struct target *t)
{
    const struct cuda_driver *d = t->kind == TARGET_CUDA ? cuda_driver() : NULL;
    for (int k = 0; d && !d->problem[0] && k < d->devices; k++) {
        const char *own = machine_cuda_target(k);
        if (own && !strcmp(own, t->name))
            return true;
    }
    return t->kind == TARGET_CPU && machine_runs(t->name);
}

const struct machine *machine_choose(const char *asked, const struct calibration *c,
                                     const struct target *t, const struct kernel_request *f,
                                     struct error *e)
{
    const char *own = family_machine(t, f);
    const struct machine *stored = calibration_machine(c, own, t);
    if (t->kind == TARGET_CPU && !machine_runs(t->name))
        stored = NULL;
    if (asked && !strcmp(asked, CALIBRATED)) {
        if (stored || !is_here(t))
            return stored ? stored : machine_find(own, e);
        error_set(e, ERROR_INPUT,
                  "no calibration of this machine is stored: run maskc calibrate%s",
                  t->kind == TARGET_CUDA ? " --device cuda" : "");
        return NULL;
    }
    const struct machine *named = asked ? machine_find(asked, e) : NULL;
    if (asked && !named)
        return NULL;
    if (named && named->kind == t->kind)
        return named;
    return stored ? stored : machine_find(own, e);
}
