/* SPDX-License-Identifier: Apache-2.0 */
/* A probe is a mask, a length and what its plan shall favour, whatever is thought of prices so far. Time
   is the thread's own, and the least of several runs, so that a machine that is busy with other
   things measures the same. dQ is timed as the backward pass without its last two phases, dK and dV
   are the rest. */
#include "tools/maskc/probe.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"
#include "tools/check/check.h"
#include "tools/maskc/ceiling.h"
#include "tools/maskc/progress.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADS = 12,
    HEAD_DIM = 64,
    LONGEST = 4096,
    MAX_ROUNDS = 20,
    MIN_RUNS = 1,
    MAX_RUNS = 50
};
static const double seconds_per_pass = 0.005;

enum favour { AS_IT_IS, TILES, LINES, GATHERS, ROWS, MIXED };

static const struct probe {
    const char *mask;
    uint32_t n;
    enum favour favour;
} probes[] = {
    {"dense", 128, TILES},
    {"dense", 512, TILES},
    {"dense", 1024, TILES},
    {"causal", 512, TILES},
    {"blockbert-3", 2048, TILES},
    {"logsparse", 128, MIXED},
    {"longformer", 512, MIXED},
    {"dam-s-example", 512, MIXED},
    {"blockbert-2", 512, TILES},
    {"longformer", 512, TILES},
    {"bigbird", 256, TILES},
    {"none", 128, AS_IT_IS},
    {"star", 128, LINES},
    {"star", 2048, LINES},
    {"logsparse", 128, LINES},
    {"logsparse", 512, LINES},
    {"logsparse", 2048, LINES},
    {"logsparse", 4096, LINES},
    {"strided", 128, LINES},
    {"strided", 512, LINES},
    {"longformer", 128, LINES},
    {"longformer", 2048, LINES},
    {"bigbird", 128, LINES},
    {"bigbird", 512, LINES},
    {"bigbird", 2048, LINES},
    {"random(0.01)", 512, LINES},
    {"dam-s-example", 512, LINES},
    {"dam-s-example", 2048, LINES},
    {"fixed", 128, GATHERS},
    {"fixed", 512, GATHERS},
    {"bigbird", 512, GATHERS},
    {"global(1, 33, 70)|window(2)", 1024, GATHERS},
    {"bigbird", 2048, GATHERS},
    {"dense", 128, ROWS},
    {"longformer", 128, ROWS},
    {"window(2)", 512, ROWS},
    {"bigbird", 1024, ROWS},
    {"star", 2048, AS_IT_IS},
    {"fixed", 1024, AS_IT_IS},
    {"logsparse", 1024, AS_IT_IS},
    {"longformer", 1024, AS_IT_IS},
    {"blockbert-3", 1024, AS_IT_IS},
    /* beside a soft mask, where that is asked for */
    {"dense", 128, TILES},
    {"dense", 512, TILES},
    {"causal", 512, TILES},
    {"bigbird", 512, AS_IT_IS},
};
enum { SOFT_LONGEST = 512 };

enum {
    PROBES = sizeof probes / sizeof *probes,
    SOFT_PROBES = 4,
    HARD_PROBES = PROBES - SOFT_PROBES
};

/* ---- what is planned for ---- */

static void scale(struct machine *m, enum rate first, enum rate last, double factor)
{
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = first; k <= (int)last; k++)
            m->rate[pass][k] *= factor;
}

static struct machine favoured(const struct machine *row, enum favour favour)
{
    struct machine m = *row;
    const double dear = 20;
    if (favour == MIXED) { /* lines for tiles of few entries, tiles for the others */
        scale(&m, RATE_GATHER, RATE_GATHER, dear);
        scale(&m, RATE_MIXED, RATE_MIXED_ROW, 0);
    }
    if (favour == ROWS) {
        scale(&m, RATE_TILE_FLOP, RATE_LINE_ROW, dear);
        scale(&m, RATE_ITEM, RATE_ITEM_ELEMENT, dear);
        scale(&m, RATE_ROW_ENTRY, RATE_ROW_RANGE, 1 / dear);
    }
    if (favour == TILES || favour == GATHERS)
        scale(&m, RATE_LINE_ENTRY, RATE_ROW_RANGE, dear);
    if (favour == LINES)
        scale(&m, RATE_TILE_FLOP, RATE_GATHER, dear);
    if (favour == GATHERS)
        scale(&m, RATE_GATHER, RATE_GATHER, 1 / dear);
    if (favour == TILES)
        scale(&m, RATE_GATHER, RATE_GATHER, dear);
    return m;
}

/* ---- buffers ---- */

struct lab {
    const struct machine *row;
    const struct target *target;
    struct features features;
    struct cache *cache;
    void *tensor[8];               /* [LONGEST][HEADS][HEAD_DIM], longer than any probe's */
    float *lse, *soft, *grad_soft; /* [HEADS][SOFT_LONGEST][SOFT_LONGEST] */
    uint8_t *workspace;
    uint64_t workspace_room;
};

static void fill(enum abi_dtype dtype, uint8_t *to, uint64_t count)
{
    uint32_t x = 1, bytes = dtype_bytes(dtype);
    for (uint64_t k = 0; k < count; k++) {
        x = x * 1664525 + 1013904223;
        dtype_encode(dtype, (double)x / 2147483648.0 - 1, to + k * bytes);
    }
}

static void open_lab(struct lab *l)
{
    uint64_t count = (uint64_t)LONGEST * HEADS * HEAD_DIM;
    for (int k = 0; k < 8; k++) {
        l->tensor[k] = memory_aligned(count, dtype_bytes(l->features.dtype));
        if (k < 4)
            fill(l->features.dtype, l->tensor[k], count);
    }
    l->lse = memory_aligned((uint64_t)LONGEST * HEADS, sizeof *l->lse);
    count = (uint64_t)SOFT_LONGEST * SOFT_LONGEST * HEADS;
    l->soft = memory_aligned(count, sizeof *l->soft);
    l->grad_soft = memory_aligned(count, sizeof *l->grad_soft);
    fill(ABI_F32, (uint8_t *)l->soft, count);
}

static void close_lab(struct lab *l)
{
    for (int k = 0; k < 8; k++)
        free(l->tensor[k]);
    free(l->lse);
    free(l->soft);
    free(l->grad_soft);
    free(l->workspace);
}

static struct maskc_launch launch_of(struct lab *l, const struct maskc_kernel *k,
                                     enum maskc_pass pass)
{
    struct maskc_launch m = {
        .pass = pass,
        .query = {.data = l->tensor[0]},
        .key = {.data = l->tensor[1]},
        .value = {.data = l->tensor[2]},
        .grad_out = {.data = l->tensor[3]},
        .out = {.data = l->tensor[4]},
        .grad_query = {.data = l->tensor[5]},
        .grad_key = {.data = l->tensor[6]},
        .grad_value = {.data = l->tensor[7]},
        .lse = l->lse,
        .threads = 1,
    };
    if (k->artifact->features.soft) {
        m.soft = l->soft;
        m.grad_soft = pass == MASKC_BACKWARD ? l->grad_soft : NULL;
    }
    m.workspace_bytes = maskc_workspace_bytes(k, &m);
    if (m.workspace_bytes > l->workspace_room) {
        free(l->workspace);
        l->workspace_room = m.workspace_bytes;
        l->workspace = memory_aligned(l->workspace_room, 1);
    }
    m.workspace = l->workspace;
    return m;
}

/* ---- time ---- */

static int time_pass(struct lab *l, const struct maskc_kernel *k, enum maskc_pass pass,
                     double *ret, struct error *e)
{
    struct maskc_launch m = launch_of(l, k, pass);
    double total = 0, best = 0;
    for (int run = 0; run < MIN_RUNS || (run < MAX_RUNS && total < seconds_per_pass); run++) {
        double start = thread_seconds();
        if (launch_run(k, &m, e))
            return -1;
        double seconds = thread_seconds() - start;
        best = run == 0 || seconds < best ? seconds : best;
        total += seconds;
    }
    *ret = best;
    return 0;
}

/* Backward with the first `phases` of its phases. */
static int time_backward(struct lab *l, struct maskc_kernel *k, uint32_t phases, double *ret,
                         struct error *e)
{
    struct launch_record *r = &k->artifact->target[k->target - k->artifact->target].launch;
    uint32_t all = r->n_backward;
    r->n_backward = phases < all ? phases : all;
    int code = time_pass(l, k, MASKC_BACKWARD, ret, e);
    r->n_backward = all;
    return code;
}

static int time_kernel(struct lab *l, struct maskc_kernel *k, double seconds[PASSES],
                       struct error *e)
{
    double now[PASSES];
    if (time_pass(l, k, MASKC_FORWARD, &now[PASS_FORWARD], e) ||
        time_backward(l, k, 2, &now[PASS_DQ], e) ||
        time_backward(l, k, UINT32_MAX, &now[PASS_DKV], e))
        return -1;
    for (int pass = 0; pass < PASSES; pass++)
        if (!seconds[pass] || now[pass] < seconds[pass])
            seconds[pass] = now[pass];
    return 0;
}

/* ---- one probe ---- */

static struct maskc_kernel *compile(struct lab *l, const struct mask *m,
                                    const struct features *f, const struct calibration *c,
                                    struct error *e)
{
    struct compile_request r = {.mask = m,
                                .targets = &l->target,
                                .n_targets = 1,
                                .features = *f,
                                .calibration = c,
                                .cache = l->cache};
    struct maskc_kernel *k = NULL;
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    if (!kernel_compile(&r, &bytes, &size, e) &&
        kernel_load(bytes, size, "a probe", "cpu", &k, e))
        k = NULL;
    free(bytes);
    return k;
}

static void fill_rows(const struct plan *p, struct probe_time *t)
{
    struct price_shape shape = {&p->features, p->target, p->n, p->heads};
    struct effort e[PASSES];
    double least = 0.05 * t->seconds[PASS_DQ]; /* where noise swallows the last phase */
    t->seconds[PASS_DKV] -= t->seconds[PASS_DQ];
    t->seconds[PASS_DKV] = t->seconds[PASS_DKV] > least ? t->seconds[PASS_DKV] : least;
    for (int k = 0; k < PASSES; k++)
        e[k] = plan_effort(p, (enum machine_pass)k, 0, 1, 1);
    for (int k = 0; k < PASSES; k++) {
        effort_terms(p->machine, shape, &e[k], t->row[k].term);
        double left = t->seconds[k] - (k == PASS_DKV ? 0 : p->machine->launch);
        t->row[k].seconds = left > 1e-7 ? left : 1e-7;
    }
}

/* A probe set up: planned twice, for the kernel and for its counts. */
struct trial_kernel {
    struct calibration machine;
    struct plan *plan;
    struct maskc_kernel *kernel;
};

static void finish_probe(struct trial_kernel *k)
{
    kernel_unload(k->kernel);
    plan_destroy(k->plan);
}

static int open_probe(struct lab *l, const struct probe *probe, enum abi_soft soft,
                      struct trial_kernel *k, struct probe_time *t, struct error *e)
{
    static const char *const words[] = {"",          ", by tiles", ", by lines", ", by gathers",
                                        ", by rows", ", mixed"};
    struct mask_request request = {
        .name = probe->mask, .n = probe->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    struct machine m = favoured(l->row, probe->favour);
    struct features f = l->features;
    f.soft = soft;
    calibration_add(&k->machine, l->row, &m);
    snprintf(t->name, sizeof t->name, "%s n=%u%s%s", probe->mask, probe->n,
             words[probe->favour], soft ? ", soft" : "");
    struct mask *mask = mask_load(&request, NULL, e);
    if (mask)
        k->plan = plan_build(mask, l->target, &f, &k->machine.row[0].machine, e);
    if (k->plan)
        k->kernel = compile(l, mask, &f, &k->machine, e);
    if (k->plan)
        snprintf(t->lowering, 80, "%s", k->plan->forward.summary[0].lowering);
    mask_destroy(mask);
    return k->kernel ? 0 : -1;
}

struct probes {
    struct lab lab;
    enum abi_soft soft;
    uint32_t count;
    struct trial_kernel *kernel; /* [count] */
    struct probe_time *times;    /* [count] */
};

struct probes *probes_new(const struct machine *row, const struct target *t,
                          enum abi_dtype dtype, enum abi_soft soft, struct cache *cache)
{
    struct probes *p = memory_new(1, sizeof *p);
    p->lab.row = row;
    p->lab.target = t;
    p->lab.features = (struct features){.dtype = dtype, .head_dim = HEAD_DIM, .backward = true};
    p->lab.cache = cache;
    p->soft = soft;
    p->count = soft ? PROBES : HARD_PROBES;
    p->kernel = memory_new(p->count, sizeof *p->kernel);
    p->times = memory_new(p->count, sizeof *p->times);
    open_lab(&p->lab);
    return p;
}

void probes_destroy(struct probes *p)
{
    if (!p)
        return;
    for (uint32_t k = 0; k < p->count; k++)
        finish_probe(&p->kernel[k]);
    close_lab(&p->lab);
    free(p->kernel);
    free(p->times);
    free(p);
}

uint32_t probes_count(const struct probes *p)
{
    return p->count;
}

const struct probe_time *probes_times(const struct probes *p)
{
    return p->times;
}

/* ---- all of several ---- */

struct opening {
    struct probes *const *list;
    uint32_t lists;
    struct error *error; /* [lists][PROBES] */
};

/* Neighbours are of different lists, whose kernels have no text in common. */
static void open_one(void *context, uint32_t index)
{
    struct opening *o = context;
    struct probes *p = o->list[index % o->lists];
    uint32_t k = index / o->lists;
    if (k < p->count)
        open_probe(&p->lab, &probes[k], k < HARD_PROBES ? ABI_SOFT_NONE : p->soft,
                   &p->kernel[k], &p->times[k], &o->error[index]);
}

/* Compilers work side by side: what is compiled first takes longer than all that is measured. */
int probes_open(struct probes *const *list, uint32_t lists, struct error *e)
{
    struct opening o = {list, lists, memory_new(lists * PROBES, sizeof *o.error)};
    int code = 0;
    progress_show("compiling");
    crew_run(lists * PROBES, open_one, &o);
    for (uint32_t index = 0; index < lists * PROBES && !code; index++) {
        const struct probes *p = list[index % lists];
        if (index / lists < p->count && !p->kernel[index / lists].kernel) {
            *e = o.error[index];
            code = -1;
        }
    }
    free(o.error);
    return code;
}

/* Rounds over all probes: what disturbs one round of a probe has passed by the next. */
int probes_time(struct probes *p, double seconds, struct error *e)
{
    const double end = thread_seconds() + seconds;
    for (uint32_t k = 0; k < p->count || (k < MAX_ROUNDS * p->count && thread_seconds() < end);
         k++) {
        uint32_t at = k % p->count;
        progress_show(p->times[at].name);
        if (time_kernel(&p->lab, p->kernel[at].kernel, p->times[at].seconds, e))
            return -1;
    }
    for (uint32_t k = 0; k < p->count; k++)
        fill_rows(p->kernel[k].plan, &p->times[k]);
    return 0;
}
