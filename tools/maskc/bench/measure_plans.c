/* SPDX-License-Identifier: Apache-2.0 */
/* bench --measure-plans: the best predicted plans of a mask, compiled and timed in interleaved rounds; the fastest is stored. */
#include "tools/maskc/bench/measure_plans.h"
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "runtime/pipeline/measured_plans.h"
#include "tools/common/table.h"
#include "tools/maskc/bench/bench.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/rounds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plans of one mask to time. */
struct race {
    const struct bench_compiler *compiler;
    const struct mask *mask;
    const struct target *target;
    const struct kernel_request *request;
    struct plan_choice choice[ROUNDS_CONTENDERS];
    double measured[ROUNDS_CONTENDERS]; /* seconds of all passes */
    struct contender all[ROUNDS_CONTENDERS];
    struct problem problem;
    uint32_t n;
};

static int compile_all(struct race *r, struct error *e)
{
    for (uint32_t k = 0; k < r->n; k++) {
        struct bench_compiler c = *r->compiler;
        c.plan = (struct plan_options){.forward = r->choice[k].forward,
                                       .transposed = r->choice[k].transposed};
        if (bench_compile(&c, r->mask, r->target, r->request, &r->all[k].kernel, e))
            return -1;
    }
    return 0;
}

static int open_trials(struct race *r, uint32_t threads, struct error *e)
{
    struct problem_data *d = problem_inputs(&r->problem);
    int code = 0;
    for (uint32_t k = 0; k < r->n && !code; k++) {
        r->all[k].seconds = memory_new(ROUNDS_MOST, sizeof(double));
        r->all[k].own = options_own_clock(r->compiler->o);
        r->all[k].trial =
            trial_new(r->all[k].kernel, &r->problem, d, r->request->backward, threads, e);
        code = r->all[k].trial && !trial_run(r->all[k].trial, false, e) ? 0 : -1;
        if (!code)
            trial_forget(r->all[k].trial);
    }
    problem_data_destroy(d);
    return code;
}

static int time_all(struct race *r, double seconds, struct error *e)
{
    for (int backward = 0; backward <= r->request->backward; backward++) {
        const uint32_t count = rounds_measure(r->all, r->n, backward, seconds, e);
        if (!count)
            return -1;
        for (uint32_t k = 0; k < r->n; k++)
            r->measured[k] += r->all[k].seconds[count / 2];
    }
    return 0;
}

static uint32_t fastest(const struct race *r)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < r->n; k++)
        if (r->measured[k] < r->measured[best])
            best = k;
    return best;
}

static void print(const struct race *r, const char *name, uint32_t best)
{
    struct text lines = {0}, folded = {0};
    char size[BENCH_SIZE];
    bench_size(request_queries(r->request, r->mask), request_keys(r->request, r->mask), size);
    for (uint32_t k = 0; k < r->n; k++)
        text_add(&lines,
                 "%s n=%s %s: plan %u of %u, forward by %s%s%s: predicted %.4g ms, measured "
                 "%.4g ms%s\n",
                 name, size, dtype_name(r->request->dtype), k + 1, r->n, r->choice[k].forward,
                 r->request->backward ? ", transposed by " : "", r->choice[k].transposed,
                 1e3 * r->choice[k].seconds, 1e3 * r->measured[k], k == best ? ", kept" : "");
    lines_fold(text_get(&lines), TABLE_WIDTH, 4, &folded);
    fputs(text_get(&folded), stderr);
    text_finish(&lines);
    text_finish(&folded);
}

/* A file that cannot be used is replaced, with a message. */
static int store(const struct race *r, uint32_t best, const struct plan_race *race,
                 struct error *e)
{
    struct measured_plans all;
    struct error unreadable;
    struct plan_choice choice = r->choice[best];
    char key[33];
    if (measured_load(&all, &unreadable))
        fprintf(stderr, "%s; it is replaced\n", unreadable.text);
    choice.seconds = r->measured[best];
    measured_key(r->mask, r->target, r->request, race->machine, race->family, key);
    measured_add(&all, key, &choice);
    int code = measured_save(&all, e);
    measured_finish(&all);
    return code;
}

int measure_plans(const struct plan_race *race, struct plan_choice *ret, struct error *e)
{
    struct race r = {.compiler = race->compiler,
                     .mask = race->mask,
                     .target = race->target,
                     .request = race->request,
                     .problem = race->problem};
    const uint32_t most = race->plans < ROUNDS_CONTENDERS ? race->plans : ROUNDS_CONTENDERS;
    const struct options *o = race->compiler->o;
    progress_show("plans");
    r.n = plan_choices(race->mask, race->target, race->request, race->machine, race->family,
                       r.choice, most, e);
    int code = r.n && !compile_all(&r, e) && !open_trials(&r, o->threads, e) &&
                       !time_all(&r, o->seconds > 0 ? o->seconds : 1, e)
                   ? 0
                   : -1;
    progress_clear();
    if (!code) {
        const uint32_t best = fastest(&r);
        print(&r, race->name, best);
        *ret = r.choice[best];
        code = store(&r, best, race, e);
    }
    for (uint32_t k = 0; k < r.n; k++)
        contender_finish(&r.all[k]);
    return code;
}
