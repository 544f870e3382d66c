/* SPDX-License-Identifier: Apache-2.0 */
/* A probe is a mask, a length and what its plan shall favour, planned, compiled, timed by microbench.c, and then a
   row for each pass that rates are fitted to. */
#include "tools/maskc/calibrate/probe.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "runtime/base/thread_pool.h"
#include "runtime/pipeline/pipeline.h"
#include "tools/maskc/calibrate/microbench.h"
#include "tools/maskc/progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 20 };

/* ---- one probe ---- */

static struct maskc_kernel *compile(struct microbench *l, const struct mask *m,
                                    const struct kernel_request *f, struct plan *planned,
                                    const struct calibration *c, struct error *e)
{
    struct compile_request r = {.mask = m,
                                .targets = &l->target,
                                .n_targets = 1,
                                .request = *f,
                                .planned = planned,
                                .calibration = c,
                                .cache = l->cache};
    struct maskc_kernel *k = NULL;
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    if (!kernel_compile(&r, &bytes, &size, e) &&
        kernel_load(bytes, size, "a probe", l->device, &k, e))
        k = NULL;
    free(bytes);
    return k;
}

/* A probe set up: its plan, whose counts rates are fitted to, and the kernel of this plan. */
struct trial_kernel {
    const struct probe *probe;
    struct calibration machine;
    struct plan *plan;
    struct maskc_kernel *kernel;
    double round[PASSES][MAX_ROUNDS], spent; /* seconds */
    int rounds;
};

/* As many sequences as fill a GPU and fit the tensors. */
static uint32_t batch_of(const struct microbench *l, const struct probe *probe)
{
    const uint32_t times =
        probe->head_dim > MICROBENCH_HEAD_DIM ? probe->head_dim / MICROBENCH_HEAD_DIM : 1;
    return l->owner && !probe->single ? GPU_TOKENS / probe->n / times : 1;
}

/* dK and dV took what the whole backward pass took longer than dQ. */
static void part_gradients(struct probe_time *t)
{
    double least = 0.05 * t->seconds[PASS_DQ]; /* where noise swallows the last phase */
    t->seconds[PASS_DKV] -= t->seconds[PASS_DQ];
    t->seconds[PASS_DKV] = t->seconds[PASS_DKV] > least ? t->seconds[PASS_DKV] : least;
}

/* Where one phase makes all gradients, as they are thought to share it. */
static void share_gradients(const struct plan *p, struct probe_time *t)
{
    double thought[PASSES];
    for (int k = PASS_DQ; k < PASSES; k++) {
        struct effort e = plan_effort(p, (enum machine_pass)k, 0, 1, 1);
        thought[k] = price_of(&p->price[k], &e);
    }
    t->seconds[PASS_DQ] =
        t->seconds[PASS_DKV] * thought[PASS_DQ] / (thought[PASS_DQ] + thought[PASS_DKV]);
    t->seconds[PASS_DKV] -= t->seconds[PASS_DQ];
}

#define LEAST 1e-7 /* seconds that rates are fitted to */

static void fill_row(const struct plan *p, enum machine_pass pass, double launch,
                     struct probe_time *t)
{
    struct price_shape shape = family_price_shape(p->target, &p->config, p->n, p->heads);
    struct effort e = plan_effort(p, pass, 0, 1, 1);
    effort_terms(p->machine, shape, &e, t->row[pass].term);
    t->row[pass].seconds = fmax(t->seconds[pass] - launch, LEAST);
}

static void fill_rows(const struct plan *p, struct probe_time *t)
{
    part_gradients(t);
    for (int k = 0; k < PASSES; k++)
        fill_row(p, (enum machine_pass)k, k == PASS_DKV ? 0 : p->machine->launch, t);
}

/* On a GPU launches take time of their own, which is subtracted: dQ and dK, dV have one each, unless one phase makes all gradients. */
static void fill_gpu_rows(const struct trial_kernel *k, uint32_t batch, double launch,
                          struct probe_time *t)
{
    const struct plan *p = k->plan;
    if (microbench_shares_gradients(k->kernel))
        share_gradients(p, t);
    else
        part_gradients(t);
    for (int pass = 0; pass < PASSES; pass++) {
        const enum machine_pass which = (enum machine_pass)pass;
        const double rest = probe_gpu_terms(p, which, batch, t->row[pass].term);
        const double fixed = rest + launch * plan_launches(p, which, 0);
        t->row[pass].seconds = fmax(t->seconds[pass] - fixed, LEAST);
    }
}

static void finish_probe(struct trial_kernel *k)
{
    kernel_unload(k->kernel);
    plan_destroy(k->plan);
}

static int open_probe(struct microbench *l, const struct probe *probe, enum abi_bias bias,
                      struct trial_kernel *k, struct probe_time *t, struct error *e)
{
    static const char *const words[] = {"",          ", by tiles", ", by lines", ", by gathers",
                                        ", by rows", ", mixed"};
    struct mask_request request = {
        .name = probe->mask, .n = probe->n, .heads = MICROBENCH_HEADS, MASK_REQUEST_DEFAULTS};
    const struct plan_options plain = {
        .plain = true, .by_rates = true}; /* what the probe favours, no other's choice */
    struct machine m = probe_machine(l->row, probe->favour);
    struct kernel_request f = l->request;
    f.bias = bias;
    f.length = probe->n;
    f.head_dim = probe->head_dim ? probe->head_dim : MICROBENCH_HEAD_DIM;
    k->probe = probe;
    calibration_add(&k->machine, l->row, l->target->kind == TARGET_CUDA ? l->target : NULL, &m);
    snprintf(t->name, sizeof t->name, "%s n=%u%s%s", probe->mask, probe->n,
             words[probe->favour], bias ? ", soft" : "");
    if (probe->head_dim)
        snprintf(t->name + strlen(t->name), sizeof t->name - strlen(t->name), ", D=%u",
                 probe->head_dim);
    struct mask *mask = mask_load(&request, NULL, e);
    if (mask)
        k->plan = plan_build(mask, l->target, &f, &k->machine.row[0].machine, &plain, e);
    if (k->plan)
        k->kernel = compile(l, mask, &f, k->plan, &k->machine, e);
    if (k->plan)
        snprintf(t->lowering, 80, "%s", k->plan->forward.summary[0].lowering);
    mask_destroy(mask);
    return k->kernel ? 0 : -1;
}

struct probes {
    struct microbench bench;
    const struct probe *all; /* [count] */
    enum abi_bias bias;
    double launch; /* seconds of a GPU's */
    double wake;   /* of a CPU's threads */
    uint32_t count;
    struct trial_kernel *kernel; /* [count] */
    struct probe_time *times;    /* [count] */
};

struct probes *probes_new(const struct machine *row, const struct target *t,
                          enum abi_dtype dtype, enum abi_bias bias, const char *device,
                          struct cache *cache)
{
    const bool lines = row->rate[PASS_FORWARD][RATE_LINE_ENTRY] > 0;
    struct probes *p = memory_new(1, sizeof *p);
    p->bench.row = row;
    p->bench.target = t;
    p->bench.request = (struct kernel_request){
        .dtype = dtype, .head_dim = MICROBENCH_HEAD_DIM, .backward = true};
    p->bench.cache = cache;
    p->bench.device = device;
    p->bias = bias;
    p->all = probe_table(t->kind, lines, bias != ABI_BIAS_NONE, &p->count);
    p->kernel = memory_new(p->count, sizeof *p->kernel);
    p->times = memory_new(p->count, sizeof *p->times);
    return p;
}

void probes_destroy(struct probes *p)
{
    if (!p)
        return;
    microbench_close(&p->bench);
    for (uint32_t k = 0; k < p->count; k++)
        finish_probe(&p->kernel[k]);
    free(p->kernel);
    free(p->times);
    free(p);
}

uint32_t probes_count(const struct probes *p)
{
    return p->count;
}

double probes_wake(const struct probes *p)
{
    return p->wake;
}

double probes_launch(const struct probes *p)
{
    return p->launch;
}

const struct probe_time *probes_times(const struct probes *p)
{
    return p->times;
}

/* ---- all of several ---- */

struct opening {
    struct probes *const *list;
    uint32_t lists;
    struct error *error; /* [lists][PROBES_MOST] */
};

/* Neighbours are of different lists, whose kernels have no text in common. */
static void open_one(void *context, uint32_t index)
{
    struct opening *o = context;
    struct probes *p = o->list[index % o->lists];
    uint32_t k = index / o->lists;
    char line[64];
    snprintf(line, sizeof line, "compiling probe %u of %u", index + 1, o->lists * p->count);
    if (k >= p->count)
        return;
    progress_show(line);
    open_probe(&p->bench, &p->all[k], p->all[k].bias ? p->bias : ABI_BIAS_NONE, &p->kernel[k],
               &p->times[k], &o->error[index]);
}

/* Memory of the GPU is had by one of the kernels that were loaded there. */
static int furnish(struct probes *p, struct error *e)
{
    if (p->bench.target->kind == TARGET_CUDA)
        p->bench.owner = p->kernel[0].kernel;
    return microbench_open(&p->bench, e);
}

/* Compilers work side by side: what is compiled first takes longer than all that is measured. */
int probes_open(struct probes *const *list, uint32_t lists, struct error *e)
{
    struct opening o = {list, lists, memory_new(lists * PROBES_MOST, sizeof *o.error)};
    int code = 0;
    thread_pool_run(lists * PROBES_MOST, open_one, &o);
    for (uint32_t index = 0; index < lists * PROBES_MOST && !code; index++) {
        const struct probes *p = list[index % lists];
        if (index / lists < p->count && !p->kernel[index / lists].kernel) {
            *e = o.error[index];
            code = -1;
        }
    }
    free(o.error);
    for (uint32_t k = 0; k < lists && !code; k++)
        code = furnish(list[k], e);
    return code;
}

static int time_once(struct probes *p, uint32_t index, struct error *e)
{
    struct trial_kernel *k = &p->kernel[index];
    double start = microbench_seconds(&p->bench), seconds[PASSES];
    char line[160];
    snprintf(line, sizeof line, "%s kernels, probe %u of %u: %s",
             dtype_name(p->bench.request.dtype), index + 1, p->count, p->times[index].name);
    progress_show(line);
    if (microbench_time(&p->bench, k->kernel, batch_of(&p->bench, k->probe), seconds, e))
        return -1;
    for (int pass = 0; pass < PASSES; pass++)
        k->round[pass][k->rounds] = seconds[pass];
    k->rounds++;
    k->spent += microbench_seconds(&p->bench) - start;
    return 0;
}

/* Each probe has the same share of the time, so that short ones, which noise weighs most in, have many rounds. */
static bool is_due(const struct trial_kernel *k, double share)
{
    return !k->rounds || (k->rounds < MAX_ROUNDS && k->spent * (1 + 1.0 / k->rounds) <= share);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower quartile of the rounds: others on the machine only add to what a launch takes, and the least is luck. */
static void take_times(struct trial_kernel *k, struct probe_time *t)
{
    for (int pass = 0; pass < PASSES; pass++) {
        qsort(k->round[pass], (size_t)k->rounds, sizeof(double), ascending);
        t->seconds[pass] = k->round[pass][k->rounds / 4];
    }
}

static int time_all(struct probes *p, double seconds, struct error *e)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t k = 0; k < p->count; k++)
            if (is_due(&p->kernel[k], seconds / p->count)) {
                more = true;
                if (time_once(p, k, e))
                    return -1;
            }
    }
    for (uint32_t k = 0; k < p->count; k++)
        take_times(&p->kernel[k], &p->times[k]);
    return 0;
}

static uint32_t find_shortest(const struct probes *p)
{
    uint32_t at = 0;
    for (uint32_t k = 1; k < p->count; k++)
        if (p->times[k].seconds[PASS_FORWARD] < p->times[at].seconds[PASS_FORWARD])
            at = k;
    return at;
}

/* Most of the shortest that was timed: what little the kernel itself did is left to the rates. */
static double find_launch(const struct probes *p)
{
    const double share = 0.8;
    return share * p->times[find_shortest(p)].seconds[PASS_FORWARD];
}

/* Rounds over all probes: what disturbs one round of a probe has passed by the next. */
int probes_time(struct probes *p, double seconds, struct error *e)
{
    if (time_all(p, seconds, e) ||
        microbench_wake(&p->bench, p->kernel[find_shortest(p)].kernel, &p->wake, e))
        return -1;
    p->launch = find_launch(p);
    for (uint32_t k = 0; k < p->count; k++)
        if (p->bench.owner)
            fill_gpu_rows(&p->kernel[k], batch_of(&p->bench, p->kernel[k].probe), p->launch,
                          &p->times[k]);
        else
            fill_rows(p->kernel[k].plan, &p->times[k]);
    return 0;
}
