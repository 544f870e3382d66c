/* SPDX-License-Identifier: Apache-2.0 */
/* maskc bench: our kernel and our own dense kernel of the same shape, and where ours has a bias or drops out
   the same one without, in interleaved rounds (rounds.h); medians, beside what was predicted and the floor. */
#include "tools/maskc/bench.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "runtime/cache.h"
#include "tools/maskc/bench_compile.h"
#include "tools/maskc/command.h"
#include "tools/maskc/measure_plans.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/rounds.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_CAPACITY = 160 };

struct bench {
    const struct options *o;
    struct bench_compiler compiler;
    struct bench_result *result;
    uint32_t n_results, capacity;
    bool forward, backward;
    char device[128];
    uint32_t threads;
};

enum { OURS, DENSE, CONTENDERS = DENSE + 3 };

/* A kernel and those that it is measured beside. */
struct contest {
    const char *name;
    struct contender all[CONTENDERS];
    struct problem problem[CONTENDERS]; /* DENSE has its own mask */
    uint32_t n;
    uint32_t hard,
        kept; /* the same without the bias, and compiled without dropout; 0: there is none */
};

static double seconds_of(const struct options *o)
{
    return o->seconds > 0 ? o->seconds : 1;
}

/* Dense of a shorter length stands for that of ours: times as many entries, at its own rate. */
static struct bench_prediction predicted_of(const struct bench *b, const struct contest *c)
{
    const struct problem *p = &c->problem[OURS], *dense = &c->problem[DENSE];
    double longer = dense->length ? (double)p->length / dense->length : 1;
    return (struct bench_prediction){.ours = c->all[OURS].kernel,
                                     .dense = c->all[DENSE].kernel,
                                     .calibration = b->o->calibration,
                                     .layer = p->layer,
                                     .threads = b->threads,
                                     .times = longer * longer};
}

static int add_result(struct bench *b, struct contest *c, bool backward, struct error *e)
{
    const struct contender *ours = &c->all[OURS];
    const struct problem *p = &c->problem[OURS];
    struct bench_result r = {.length = p->length,
                             .heads = p->mask->heads,
                             .batch = p->batch,
                             .head_dim = p->head_dim,
                             .dtype = p->dtype,
                             .backward = backward,
                             .dropout = p->dropout,
                             .sparsity = bench_sparsity(p)};
    char what[NAME_CAPACITY];
    snprintf(what, sizeof what, "%s n=%u %s %s", c->name, p->length, dtype_name(p->dtype),
             backward ? "backward" : "forward");
    snprintf(r.mask, sizeof r.mask, "%s", c->name);
    progress_show(what);
    uint32_t count = rounds_measure(c->all, c->n, backward, seconds_of(b->o), e);
    const struct bench_prediction x = predicted_of(b, c);
    if (!count || bench_predict(&x, &r, e))
        return -1;
    r.median = ours->seconds[count / 2];
    r.p10 = ours->seconds[count / 10];
    r.p90 = ours->seconds[count - 1 - count / 10];
    r.dense = x.times * c->all[DENSE].seconds[count / 2];
    r.dense_length = c->problem[DENSE].length;
    r.hard = c->hard ? c->all[c->hard].seconds[count / 2] : 0;
    r.kept = c->kept ? c->all[c->kept].seconds[count / 2] : 0;
    *MEMORY_PUSH(b->result, b->n_results, b->capacity) = r;
    return 0;
}

static void describe_device(struct bench *b, const struct maskc_kernel *k)
{
    snprintf(b->device, sizeof b->device, "%s (%s)", k->device->name, k->target->name);
    b->threads = k->device == &device_cpu ? k->device->workers(k->code, b->o->threads) : 1;
}

/* A problem of another length has tensors of its own. */
static int make_trial(struct contest *c, uint32_t k, const struct problem_data *d,
                      bool backward, uint32_t threads, struct error *e)
{
    struct contender *one = &c->all[k];
    const struct problem *p = &c->problem[k];
    const bool same = p->length == c->problem[OURS].length &&
                      problem_keys(p) == problem_keys(&c->problem[OURS]);
    struct problem_data *own = same ? NULL : problem_inputs(p);
    one->trial = trial_new(one->kernel, p, own ? own : d, backward, threads, e);
    problem_data_destroy(own);
    if (!one->trial || trial_run(one->trial, false, e))
        return -1;
    trial_forget(one->trial);
    return 0;
}

/* The problems and their trials, where forward has run: backward reads what it wrote. */
static int make_trials(struct contest *c, const struct problem_data *d, bool backward,
                       uint32_t threads, struct error *e)
{
    for (uint32_t k = 0; k < c->n; k++) {
        struct contender *one = &c->all[k];
        c->problem[k] = c->problem[OURS];
        c->problem[k].layer = k == DENSE ? 0 : c->problem[OURS].layer;
        c->problem[k].bias = one->kernel->artifact->request.bias;
        c->problem[k].dropout = k && k == c->kept ? 0 : c->problem[OURS].dropout;
        c->problem[k].mask = one->kernel->artifact->mask;
        bench_problem_lengths(&c->problem[k], &one->kernel->artifact->request);
        one->seconds = memory_new(ROUNDS_MOST, sizeof(double));
        if (make_trial(c, k, d, backward, threads, e))
            return -1;
    }
    return 0;
}

/* Dense, at our length or at the longest that fits the time, which the longer of the passes to measure decides. */
static int add_dense(const struct bench *b, struct contest *c, struct error *e)
{
    const struct maskc_kernel *ours = c->all[OURS].kernel;
    const struct bench_prediction x = predicted_of(b, c);
    const bool backward = b->backward && ours->artifact->request.backward;
    uint32_t length;
    return bench_dense_length(&x, c->problem[OURS].batch, backward, seconds_of(b->o), &length,
                              e) ||
                   bench_compile_dense(&b->compiler, ours, length, &c->all[DENSE].kernel, e)
               ? -1
               : 0;
}

/* The kernels that ours is measured beside. */
static int add_contenders(const struct bench *b, struct contest *c, struct error *e)
{
    const struct maskc_kernel *ours = c->all[OURS].kernel;
    struct kernel_request hard = ours->artifact->request, kept = hard;
    hard.bias = ABI_BIAS_NONE;
    kept.dropout = false;
    c->n = DENSE + 1;
    c->hard = ours->artifact->request.bias ? c->n++ : 0;
    c->kept = b->o->dropout > 0 ? c->n++ : 0;
    if (add_dense(b, c, e))
        return -1;
    if (c->hard && bench_compile_as(&b->compiler, ours, &hard, &c->all[c->hard].kernel, e))
        return -1;
    return c->kept ? bench_compile_as(&b->compiler, ours, &kept, &c->all[c->kept].kernel, e)
                   : 0;
}

static int bench_contest(struct bench *b, struct contest *c, bool backward, struct error *e)
{
    const struct problem *p = &c->problem[OURS];
    if (problem_fits(p, e) || add_contenders(b, c, e))
        return -1;
    struct problem_data *d = problem_inputs(p);
    int code = make_trials(c, d, backward, b->o->threads, e);
    problem_data_destroy(d); /* the trials have their own */
    if (!code && b->forward)
        code = add_result(b, c, false, e);
    if (!code && backward)
        code = add_result(b, c, true, e);
    return code;
}

/* Takes the kernel. */
static int bench_kernel(struct bench *b, struct maskc_kernel *k, const char *name,
                        struct error *e)
{
    struct contest contest = {.name = name, .all[OURS].kernel = k};
    bool backward = b->backward && k->artifact->request.backward;
    uint32_t layer =
        b->o->layer > 0 && k->artifact->mask->layers > 1 ? (uint32_t)b->o->layer : 0;
    contest.problem[OURS] =
        bench_problem(b->o, k->artifact->mask, &k->artifact->request, layer);
    int code = -1;
    for (uint32_t c = 0; c < CONTENDERS; c++)
        contest.all[c].own = options_own_clock(b->o);
    describe_device(b, k);
    if (!b->forward && !backward)
        error_set(e, ERROR_INPUT,
                  "%s: --pass backward, but it was compiled with --forward-only", name);
    else if (b->o->dropout > 0 && !k->artifact->request.dropout)
        error_set(e, ERROR_INPUT, "%s: --dropout, but it was compiled without it", name);
    else if (options_own_clock(b->o) && k->device != &device_cpu)
        error_set(e, ERROR_INPUT, "%s: --clock cpu is of a CPU alone, this runs on %s", name,
                  k->device->name);
    else if (layer >= k->artifact->mask->layers)
        error_set(e, ERROR_INPUT, "--layer %u: %s has layers 0..%u", layer, name,
                  k->artifact->mask->layers - 1);
    else
        code = bench_contest(b, &contest, backward, e);
    for (uint32_t c = 0; c < CONTENDERS; c++)
        contender_finish(&contest.all[c]);
    return code;
}

static int bench_file(struct bench *b, const char *path, struct error *e)
{
    const struct options *o = b->o;
    struct maskc_kernel *k;
    if (o->n_lengths || o->dtype || o->target)
        return error_set(
            e, ERROR_INPUT,
            "%s: a kernel file has its own length, dtype and targets: no -n, --dtype, --target",
            path);
    if (o->measure_plans || o->heads || o->head_dim || o->transform || o->bias || o->machine ||
        o->kv_heads || o->kv_length || o->tensor || o->dam || o->border || o->has_threshold ||
        o->has_keep)
        return error_set(e, ERROR_INPUT,
                         "%s: a kernel file is compiled: no options of the mask or the kernel",
                         path);
    return command_load(path, o->device, &k, e) || bench_kernel(b, k, path, e) ? -1 : 0;
}

static const char *default_target(const struct options *o)
{
    if (o->device && !strncmp(o->device, "cuda", 4))
        return o->device; /* as a target: that GPU's own */
    return o->device && !strcmp(o->device, "emulated") ? "sm_80" : "cpu";
}

/* The plans of the mask beside each other; *ret is the fastest. */
static int race(const struct bench *b, struct compile_request *r, const struct mask *m,
                const char *name, struct plan_choice *ret, struct error *e)
{
    const struct options *o = b->o;
    const struct machine *machine =
        machine_choose(r->machine, r->calibration, r->targets[0], &r->request, e);
    r->request.length = m->n;
    const struct plan_race race = {.name = name,
                                   .compiler = &b->compiler,
                                   .mask = m,
                                   .target = r->targets[0],
                                   .request = &r->request,
                                   .machine = machine,
                                   .plans = o->measure_plans,
                                   .problem = bench_problem(o, m, &r->request, 0)};
    return machine && !problem_fits(&race.problem, e) ? measure_plans(&race, ret, e) : -1;
}

static int bench_mask(struct bench *b, const char *name, uint32_t n, const char *dtype,
                      struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request r;
    struct options o = *b->o;
    struct maskc_kernel *k;
    o.dtype = dtype;
    o.forward_only = o.forward_only || !b->backward;
    o.with_dropout = o.dropout > 0;
    if (command_request(&o, default_target(&o), target, &r, e))
        return -1;
    struct mask *m = options_kernel_mask(&o, name, n, 12, &r.request, e);
    struct plan_choice choice = {0};
    struct bench_compiler best = b->compiler;
    int code = m ? 0 : -1;
    if (!code && o.measure_plans) {
        code = race(b, &r, m, name, &choice, e);
        best.plan =
            (struct plan_options){.forward = choice.forward, .transposed = choice.transposed};
    }
    code = code || bench_compile(&best, m, target[0], &r.request, &k, e) ? -1 : 0;
    mask_destroy(m);
    return code ? -1 : bench_kernel(b, k, name, e);
}

/* Every length with every dtype; a mask without -n has its own. */
static int bench_argument(struct bench *b, const char *name, struct error *e)
{
    if (has_suffix(name, ".mkb"))
        return bench_file(b, name, e);
    char *list = memory_text(b->o->dtype ? b->o->dtype : "f32,bf16"), *rest = list;
    int code = 0;
    for (char *dtype; !code && (dtype = strsep(&rest, ","));)
        for (uint32_t k = 0; !code && k < (b->o->n_lengths ? b->o->n_lengths : 1); k++)
            code = bench_mask(b, name, b->o->length[k], dtype, e);
    free(list);
    return code;
}

static int read_passes(struct bench *b, struct error *e)
{
    char *list = memory_text(b->o->pass ? b->o->pass : "forward,backward"), *rest = list;
    int code = 0;
    for (char *word; (word = strsep(&rest, ","));)
        if (!strcmp(word, "forward"))
            b->forward = true;
        else if (!strcmp(word, "backward"))
            b->backward = true;
        else
            code =
                error_set(e, ERROR_INPUT, "--pass: '%s' is neither forward nor backward", word);
    b->backward = b->backward && !b->o->forward_only;
    free(list);
    if (!code && !b->forward && !b->backward)
        code = error_set(e, ERROR_INPUT, "--pass backward and --forward-only leave nothing");
    return code;
}

static int bench(const struct options *o, struct error *e)
{
    struct bench b = {.o = o, .compiler.o = o};
    if (o->plot && !has_suffix(o->plot, ".svg") && !has_suffix(o->plot, ".png"))
        return error_set(e, ERROR_INPUT, "--plot %s: FILE.svg or FILE.png is expected",
                         o->plot);
    if (o->seconds < 0)
        return error_set(e, ERROR_INPUT, "--seconds %g: a time above 0 is expected",
                         o->seconds);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return error_set(e, ERROR_INPUT, "--dropout %g: 0 <= P < 1 is expected", o->dropout);
    if (options_check_clock(o, e) || read_passes(&b, e))
        return -1;
    b.compiler.cache = cache_open(NULL);
    int code = 0;
    for (uint32_t k = 0; k < o->n_arguments && !code; k++)
        code = bench_argument(&b, o->argument[k], e);
    progress_clear();
    if (!code && o->plot)
        code = bench_plot(b.result, b.n_results, o->plot, e);
    if (!code && o->json)
        bench_print_json(b.device, b.threads, b.result, b.n_results);
    else if (!code)
        bench_print_table(b.device, b.threads, b.result, b.n_results);
    free(b.result);
    cache_close(b.compiler.cache);
    return code;
}

int command_bench(const struct options *o)
{
    struct error e = {0};
    return bench(o, &e) ? command_fail(&e) : 0;
}
