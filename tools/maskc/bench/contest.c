/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel of bench beside the kernels that it is compared with, in interleaved rounds (rounds.h): medians, beside the
   predictions and the floor. */
#include "tools/maskc/bench/contest.h"
#include "masks/base/memory.h"
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/rounds.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_CAPACITY = 160 };

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
    const double entries = (double)p->length * problem_keys(p),
                 of_dense = (double)dense->length * problem_keys(dense);
    return (struct bench_prediction){.ours = c->all[OURS].kernel,
                                     .dense = c->all[DENSE].kernel,
                                     .calibration = b->o->calibration,
                                     .layer = p->layer,
                                     .threads = b->threads,
                                     .times = of_dense > 0 ? entries / of_dense : 1};
}

/* Share of the kernel whose threads ran most: a kernel with little work for one of its threads is not a busy machine. */
static double cpu_share(const struct bench *b, const struct contest *c)
{
    double most = 0;
    if (c->all[OURS].kernel->device != &device_cpu)
        return 1;
    for (uint32_t k = 0; k < c->n; k++)
        most = fmax(most, busy_share(&c->all[k].timed, b->threads));
    return most;
}

static int add_result(struct bench *b, struct contest *c, bool backward, struct error *e)
{
    const struct contender *ours = &c->all[OURS];
    const struct problem *p = &c->problem[OURS];
    const int64_t named = b->o->layer;
    struct bench_result r = {.length = p->length,
                             .keys = problem_keys(p),
                             .layer = named > 0 ? (uint32_t)named : 0,
                             .one_layer = p->mask->layers > 1 || named >= 0,
                             .heads = p->mask->heads,
                             .batch = p->batch,
                             .head_dim = p->head_dim,
                             .dtype = p->dtype,
                             .backward = backward,
                             .dropout = p->dropout,
                             .sparsity = bench_sparsity(p)};
    char what[NAME_CAPACITY], size[BENCH_SIZE];
    bench_size(r.length, r.keys, size);
    snprintf(what, sizeof what, "%s n=%s %s %s", c->name, size, dtype_name(p->dtype),
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
    r.dense_keys = problem_keys(&c->problem[DENSE]);
    r.cpu_share = cpu_share(b, c);
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

int bench_kernel(struct bench *b, struct maskc_kernel *k, const char *name, struct error *e)
{
    struct contest contest = {.name = name, .all[OURS].kernel = k};
    bool backward = b->backward && k->artifact->request.backward;
    /* a mask of which --layer took one layer has no other */
    const uint32_t layer =
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
    else
        code = bench_contest(b, &contest, backward, e);
    for (uint32_t c = 0; c < CONTENDERS; c++)
        contender_finish(&contest.all[c]);
    return code;
}
