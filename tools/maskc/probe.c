/* SPDX-License-Identifier: Apache-2.0 */
/* A probe is a mask, a length and what its plan shall favour, whatever is thought of prices so far. Time
   is the thread's own, and the least of several runs, so that a machine that is busy with other
   things measures the same; of a GPU it is the clock's, of as many launches as last two milliseconds,
   waited for together. dQ is timed as the backward pass up to dQ, dK and dV are the rest. */
#include "tools/maskc/probe.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"
#include "tools/check/check.h"
#include "tools/maskc/ceiling.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/turns.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADS = 12,
    HEAD_DIM = 64,
    LONGEST = 4096,
    GPU_TOKENS = 16384, /* of a launch: strips enough for all processors, many times over */
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
    bool single; /* a GPU's: one sequence, and not as many as fill it */
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

static const struct probe gpu_probes[] = {
    {"none", 64, AS_IT_IS, true}, /* little more than its launch */
    {"dense", 64, AS_IT_IS, true},
    {"dense", 128, TILES}, /* short where there are kernels for that, as the next */
    {"longformer", 256, AS_IT_IS},
    {"dense", 512, TILES},
    {"dense", 1024, TILES},
    {"causal", 1024, TILES},
    {"blockbert-3", 2048, TILES},
    {"longformer", 1024, TILES},
    {"bigbird", 1024, TILES},
    {"logsparse", 1024, TILES},
    {"none", 1024, AS_IT_IS},
    {"fixed", 1024, GATHERS},
    {"bigbird", 512, GATHERS},
    {"bigbird", 2048, GATHERS},
    {"global(1, 33, 70)|window(2)", 1024, GATHERS},
    {"random(0.01)", 1024, GATHERS},
    {"dense", 512, ROWS},
    {"longformer", 1024, ROWS},
    {"window(2)", 2048, ROWS},
    {"bigbird", 1024, ROWS},
    {"star", 2048, AS_IT_IS},
    {"fixed", 1024, AS_IT_IS},
    {"logsparse", 2048, AS_IT_IS},
    {"longformer", 4096, AS_IT_IS},
    {"blockbert-3", 1024, AS_IT_IS},
    /* where templates walk lines */
    {"star", 2048, LINES},
    {"logsparse", 512, LINES},
    {"logsparse", 4096, LINES},
    {"strided", 512, LINES},
    {"longformer", 2048, LINES},
    {"bigbird", 512, LINES},
    {"random(0.01)", 512, LINES},
    {"dam-s-example", 2048, LINES},
};

enum {
    GPU_PROBES = sizeof gpu_probes / sizeof *gpu_probes,
    GPU_LINES = 8, /* the last */
};
typedef char gpu_probes_are_no_more[(int)GPU_PROBES <= (int)PROBES ? 1 : -1];

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
    const char *device;
    const struct maskc_kernel
        *owner;                    /* of a GPU: by which its memory is had; null: the host's */
    void *tensor[8];               /* [tokens][HEADS][HEAD_DIM], longer than any probe's */
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

static void *take(const struct lab *l, uint64_t bytes, struct error *e)
{
    return l->owner ? l->owner->device->allocate(l->owner->code, bytes, e)
                    : memory_aligned(bytes, 1);
}

static void give_back(const struct lab *l, void *p)
{
    if (l->owner)
        l->owner->device->release(l->owner->code, p);
    else
        free(p);
}

/* The image as often as it goes into so many bytes. */
static void *take_filled(const struct lab *l, const uint8_t *image, uint64_t image_bytes,
                         uint64_t bytes, struct error *e)
{
    uint8_t *p = take(l, bytes, e);
    bool ok = true;
    for (uint64_t at = 0; p && ok && at < bytes; at += image_bytes)
        if (l->owner)
            ok = !l->owner->device->upload(l->owner->code, p + at, image, image_bytes, e);
        else
            memcpy(p + at, image, image_bytes);
    if (ok)
        return p;
    give_back(l, p);
    return NULL;
}

static int open_tensors(struct lab *l, uint64_t tokens, struct error *e)
{
    const uint64_t count = (uint64_t)LONGEST * HEADS * HEAD_DIM;
    const uint64_t image_bytes = count * dtype_bytes(l->features.dtype);
    uint8_t *image = memory_aligned(image_bytes, 1);
    bool ok = true;
    fill(l->features.dtype, image, count);
    for (int k = 0; k < 8 && ok; k++) {
        uint64_t bytes = image_bytes / LONGEST * tokens;
        l->tensor[k] = k < 4 ? take_filled(l, image, image_bytes, bytes, e) : take(l, bytes, e);
        ok = l->tensor[k];
    }
    free(image);
    return ok ? 0 : -1;
}

static int open_lab(struct lab *l, struct error *e)
{
    const uint64_t tokens = l->owner ? GPU_TOKENS : LONGEST;
    if (open_tensors(l, tokens, e) || !(l->lse = take(l, tokens * HEADS * sizeof *l->lse, e)))
        return -1;
    if (l->owner)
        return 0; /* soft masks are measured on a CPU alone */
    uint64_t count = (uint64_t)SOFT_LONGEST * SOFT_LONGEST * HEADS;
    l->soft = memory_aligned(count, sizeof *l->soft);
    l->grad_soft = memory_aligned(count, sizeof *l->grad_soft);
    fill(ABI_F32, (uint8_t *)l->soft, count);
    return 0;
}

static void close_lab(struct lab *l)
{
    for (int k = 0; k < 8; k++)
        give_back(l, l->tensor[k]);
    give_back(l, l->lse);
    give_back(l, l->workspace);
    free(l->soft);
    free(l->grad_soft);
}

static int make_room(struct lab *l, uint64_t bytes, struct error *e)
{
    if (bytes <= l->workspace_room)
        return 0;
    give_back(l, l->workspace);
    l->workspace = take(l, bytes, e);
    l->workspace_room = l->workspace ? bytes : 0;
    return l->workspace ? 0 : -1;
}

static struct maskc_launch launch_of(const struct lab *l, const struct maskc_kernel *k,
                                     enum maskc_pass pass, uint32_t batch)
{
    struct maskc_launch m = {
        .pass = pass,
        .batch = batch,
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
    return m;
}

/* ---- time ---- */

static double lab_seconds(const struct lab *l)
{
    return l->owner ? turns_now() : thread_seconds();
}

/* One turn: the mean of so many launches, on a GPU waited for together. */
static int time_turn(const struct lab *l, const struct maskc_kernel *k,
                     const struct maskc_launch *m, uint32_t launches, double *ret,
                     struct error *e)
{
    double start = lab_seconds(l);
    for (uint32_t at = 0; at < launches; at++)
        if (launch_run(k, m, e))
            return -1;
    if (l->owner && k->device->sync(k->code, e))
        return -1;
    *ret = (lab_seconds(l) - start) / launches;
    return 0;
}

/* On a GPU a launch is timed among many, as a training step would run it; the first brings the code. */
static int find_launches(const struct lab *l, const struct maskc_kernel *k,
                         const struct maskc_launch *m, uint32_t *ret, struct error *e)
{
    double warm;
    *ret = 1;
    for (int turn = 0; l->owner && turn < 2; turn++) {
        if (time_turn(l, k, m, 1, &warm, e))
            return -1;
        *ret = turns_launches(warm);
    }
    return 0;
}

static int time_pass(struct lab *l, const struct maskc_kernel *k, uint32_t batch,
                     enum maskc_pass pass, double *ret, struct error *e)
{
    struct maskc_launch m = launch_of(l, k, pass, batch);
    double total = 0, best = 0, seconds;
    uint32_t launches;
    if (make_room(l, m.workspace_bytes, e))
        return -1;
    m.workspace = l->workspace;
    if (find_launches(l, k, &m, &launches, e))
        return -1;
    for (int run = 0; run < MIN_RUNS || (run < MAX_RUNS && total < seconds_per_pass); run++) {
        if (time_turn(l, k, &m, launches, &seconds, e))
            return -1;
        best = run == 0 || seconds < best ? seconds : best;
        total += seconds * launches;
    }
    *ret = best;
    return 0;
}

static struct launch_record *record_of(const struct maskc_kernel *k)
{
    return &k->artifact->target[k->target - k->artifact->target].launch;
}

/* The phases of the backward pass that make dQ. On a GPU those before the transposed plan: all, where
   one phase makes dQ, dK and dV together. */
static uint32_t query_phases(const struct maskc_kernel *k)
{
    enum { CPU_PHASES = 2 };
    const struct launch_record *r = record_of(k);
    uint32_t count = 0;
    while (count < r->n_backward && !over_transposed(r->backward[count].over))
        count++;
    return k->device == &device_cpu ? CPU_PHASES : count;
}

/* Backward with the first `phases` of its phases. */
static int time_backward(struct lab *l, struct maskc_kernel *k, uint32_t batch, uint32_t phases,
                         double *ret, struct error *e)
{
    struct launch_record *r = record_of(k);
    uint32_t all = r->n_backward;
    r->n_backward = phases < all ? phases : all;
    int code = time_pass(l, k, batch, MASKC_BACKWARD, ret, e);
    r->n_backward = all;
    return code;
}

static int time_kernel(struct lab *l, struct maskc_kernel *k, uint32_t batch,
                       double seconds[PASSES], struct error *e)
{
    double now[PASSES];
    if (time_pass(l, k, batch, MASKC_FORWARD, &now[PASS_FORWARD], e) ||
        time_backward(l, k, batch, query_phases(k), &now[PASS_DQ], e) ||
        time_backward(l, k, batch, UINT32_MAX, &now[PASS_DKV], e))
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
        kernel_load(bytes, size, "a probe", l->device, &k, e))
        k = NULL;
    free(bytes);
    return k;
}

/* A probe set up: planned twice, for the kernel and for its counts. */
struct trial_kernel {
    const struct probe *probe;
    struct calibration machine;
    struct plan *plan;
    struct maskc_kernel *kernel;
};

static uint32_t batch_of(const struct lab *l, const struct probe *probe)
{
    return l->owner && !probe->single ? GPU_TOKENS / probe->n : 1;
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

static void fill_row(const struct plan *p, enum machine_pass pass, uint32_t batch,
                     double launch, struct probe_time *t)
{
    struct price_shape shape = {&p->features, p->target, p->n, p->heads};
    struct effort e = plan_effort(p, pass, 0, batch, 1);
    double left = t->seconds[pass] - launch;
    effort_terms(p->machine, shape, &e, t->row[pass].term);
    t->row[pass].seconds = left > 1e-7 ? left : 1e-7;
}

static void fill_rows(const struct plan *p, struct probe_time *t)
{
    part_gradients(t);
    for (int k = 0; k < PASSES; k++)
        fill_row(p, (enum machine_pass)k, 1, k == PASS_DKV ? 0 : p->machine->launch, t);
}

/* Rates are of one worker: a GPU's items share all, as the prediction has it. dQ and dK and dV are launches
   of their own. */
static void fill_gpu_rows(const struct trial_kernel *k, uint32_t batch, double launch,
                          struct probe_time *t)
{
    const struct plan *p = k->plan;
    if (query_phases(k->kernel) == record_of(k->kernel)->n_backward)
        share_gradients(p, t);
    else
        part_gradients(t);
    for (int pass = 0; pass < PASSES; pass++) {
        enum machine_pass which = (enum machine_pass)pass;
        fill_row(p, which, batch, launch * plan_launches(p, which, 0), t);
        double spread = plan_spread(p, which, 0, batch, 0);
        for (int r = 0; r < RATES; r++)
            t->row[pass].term[r] *= spread;
    }
}

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
    f.length = probe->n;
    k->probe = probe;
    calibration_add(&k->machine, l->row, l->target->kind == TARGET_CUDA ? l->target : NULL, &m);
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
    const struct probe *all; /* [count] */
    enum abi_soft soft;
    double launch; /* seconds of a GPU's */
    uint32_t count;
    struct trial_kernel *kernel; /* [count] */
    struct probe_time *times;    /* [count] */
};

struct probes *probes_new(const struct machine *row, const struct target *t,
                          enum abi_dtype dtype, enum abi_soft soft, const char *device,
                          struct cache *cache)
{
    const bool gpu = t->kind == TARGET_CUDA;
    const bool lines = row->rate[PASS_FORWARD][RATE_LINE_ENTRY] > 0;
    struct probes *p = memory_new(1, sizeof *p);
    p->lab.row = row;
    p->lab.target = t;
    p->lab.features = (struct features){.dtype = dtype, .head_dim = HEAD_DIM, .backward = true};
    p->lab.cache = cache;
    p->lab.device = device;
    p->soft = soft;
    p->all = gpu ? gpu_probes : probes;
    p->count = gpu    ? (lines ? GPU_PROBES : GPU_PROBES - GPU_LINES)
               : soft ? PROBES
                      : HARD_PROBES;
    p->kernel = memory_new(p->count, sizeof *p->kernel);
    p->times = memory_new(p->count, sizeof *p->times);
    return p;
}

void probes_destroy(struct probes *p)
{
    if (!p)
        return;
    close_lab(&p->lab);
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
    struct error *error; /* [lists][PROBES] */
};

/* Neighbours are of different lists, whose kernels have no text in common. */
static void open_one(void *context, uint32_t index)
{
    struct opening *o = context;
    struct probes *p = o->list[index % o->lists];
    uint32_t k = index / o->lists;
    if (k < p->count)
        open_probe(&p->lab, &p->all[k], k < HARD_PROBES ? ABI_SOFT_NONE : p->soft,
                   &p->kernel[k], &p->times[k], &o->error[index]);
}

/* Memory of the GPU is had by one of the kernels that were loaded there. */
static int furnish(struct probes *p, struct error *e)
{
    if (p->lab.target->kind == TARGET_CUDA)
        p->lab.owner = p->kernel[0].kernel;
    return open_lab(&p->lab, e);
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
    for (uint32_t k = 0; k < lists && !code; k++)
        code = furnish(list[k], e);
    return code;
}

static int time_all(struct probes *p, double seconds, struct error *e)
{
    const double end = lab_seconds(&p->lab) + seconds;
    for (uint32_t k = 0;
         k < p->count || (k < MAX_ROUNDS * p->count && lab_seconds(&p->lab) < end); k++) {
        struct trial_kernel *now = &p->kernel[k % p->count];
        struct probe_time *t = &p->times[k % p->count];
        progress_show(t->name);
        if (time_kernel(&p->lab, now->kernel, batch_of(&p->lab, now->probe), t->seconds, e))
            return -1;
    }
    return 0;
}

/* Most of the shortest that was timed: what little the kernel itself did is left to the rates. */
static double find_launch(const struct probes *p)
{
    const double share = 0.8;
    double least = p->times[0].seconds[PASS_FORWARD];
    for (uint32_t k = 1; k < p->count; k++)
        if (p->times[k].seconds[PASS_FORWARD] < least)
            least = p->times[k].seconds[PASS_FORWARD];
    return share * least;
}

/* Rounds over all probes: what disturbs one round of a probe has passed by the next. */
int probes_time(struct probes *p, double seconds, struct error *e)
{
    if (time_all(p, seconds, e))
        return -1;
    p->launch = find_launch(p);
    for (uint32_t k = 0; k < p->count; k++)
        if (p->lab.owner)
            fill_gpu_rows(&p->kernel[k], batch_of(&p->lab, p->kernel[k].probe), p->launch,
                          &p->times[k]);
        else
            fill_rows(p->kernel[k].plan, &p->times[k]);
    return 0;
}
