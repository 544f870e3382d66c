/* SPDX-License-Identifier: Apache-2.0 */
/* maskc snap --measure: masks of several kinds that keep as much, compiled and timed in interleaved rounds, as bench does. */
#include "masks/base/memory.h"
#include "runtime/base/cache.h"
#include "tools/maskc/bench/compile.h"
#include "tools/maskc/progress.h"
#include "tools/maskc/rounds.h"
#include "tools/maskc/snap/task.h"
#include <stdlib.h>

/* Seconds for all masks and layers of a pass. */
#define MEASURED_SECONDS 2.0

struct measured {
    struct contender contender[SNAP_KINDS];
    struct problem problem[SNAP_KINDS]; /* trials keep a pointer */
    int kind[SNAP_KINDS];
    uint32_t count;
};

/* The kinds that have a mask, the fastest by prediction first. */
static void choose_kinds(const struct task *t, struct measured *m)
{
    for (int k = 0; k < SNAP_KINDS; k++) {
        uint32_t at = m->count;
        if (!t->equal.kind[k].mask)
            continue;
        for (; at && t->equal.kind[m->kind[at - 1]].predicted > t->equal.kind[k].predicted;
             at--)
            m->kind[at] = m->kind[at - 1];
        m->kind[at] = k;
        m->count++;
    }
    m->count = m->count < t->o->measure ? m->count : t->o->measure;
}

static int compile(const struct task *t, struct measured *m, struct error *e)
{
    struct bench_compiler c = {.o = t->o, .cache = cache_open(NULL)};
    int failed = 0;
    for (uint32_t k = 0; k < m->count && !failed; k++) {
        const struct mask *mask = t->equal.kind[m->kind[k]].mask;
        struct mask *more =
            t->request.repeat > 1 ? mask_repeat_heads(mask, t->request.repeat, e) : NULL;
        failed = bench_compile(&c, more ? more : mask, t->request.target, &t->request.kernel,
                               &m->contender[k].kernel, e);
        mask_destroy(more);
    }
    cache_close(c.cache);
    return failed;
}

static struct problem make_problem(const struct task *t, const struct maskc_kernel *k,
                                   uint32_t layer)
{
    const struct artifact *a = k->artifact;
    return (struct problem){.mask = a->mask,
                            .layer = layer,
                            .batch = t->request.batch,
                            .length = a->mask->n,
                            .head_dim = a->request.head_dim,
                            .dtype = a->request.dtype,
                            .transform = a->request.transform,
                            .lambda = (double)a->request.lambda,
                            .bias = a->request.bias,
                            .random_seed = 1};
}

/* Backward reads what forward has written, so that runs once. */
static int begin_layer(const struct task *t, struct measured *m, uint32_t layer,
                       struct error *e)
{
    struct problem p = make_problem(t, m->contender[0].kernel, layer);
    if (problem_fits(&p, e) < 0)
        return -1;
    struct problem_data *d = problem_inputs(&p);
    int failed = 0;
    for (uint32_t k = 0; k < m->count && !failed; k++) {
        struct contender *c = &m->contender[k];
        c->own = options_own_clock(t->o);
        m->problem[k] = make_problem(t, c->kernel, layer);
        c->seconds = c->seconds ? c->seconds : memory_new(ROUNDS_MOST, sizeof(double));
        c->trial =
            trial_new(c->kernel, &m->problem[k], d, t->request.training, t->request.threads, e);
        failed = !c->trial || trial_run(c->trial, false, e) ? -1 : 0;
    }
    problem_data_destroy(d);
    return failed;
}

static int time_layer(struct task *t, struct measured *m, uint32_t layer, struct error *e)
{
    double seconds = MEASURED_SECONDS / (t->p.layers * (1 + t->request.training));
    int failed = begin_layer(t, m, layer, e);
    for (int backward = 0; backward <= t->request.training && !failed; backward++) {
        uint32_t rounds = rounds_measure(m->contender, m->count, backward, seconds, e);
        failed = rounds ? 0 : -1;
        for (uint32_t k = 0; k < m->count && !failed; k++)
            t->measured[m->kind[k]] += m->contender[k].seconds[rounds / 2];
    }
    for (uint32_t k = 0; k < m->count; k++) {
        trial_destroy(m->contender[k].trial);
        m->contender[k].trial = NULL;
    }
    return failed;
}

int task_measure(struct task *t, struct error *e)
{
    struct measured m = {0};
    choose_kinds(t, &m);
    progress_show("compiling");
    int failed = compile(t, &m, e);
    for (uint32_t l = 0; l < t->p.layers && !failed; l++) {
        progress_show("measuring");
        failed = time_layer(t, &m, l, e);
    }
    for (uint32_t k = 0; k < SNAP_KINDS; k++)
        contender_finish(&m.contender[k]);
    t->chosen = t->equal.kind[m.kind[0]];
    for (uint32_t k = 1; k < m.count; k++)
        if (t->measured[m.kind[k]] < t->measured[t->chosen.kind])
            t->chosen = t->equal.kind[m.kind[k]];
    progress_clear();
    return failed;
}
