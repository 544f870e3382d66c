/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of attention under a mask on this machine: predicted by a plan of the mask for the model's kernels, and
   measured in the model. */
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "model/engine/encoder.h"
#include "runtime/compile/compile.h"
#include "runtime/pipeline/calibration.h"
#include "tools/maskbert/prune/prune.h"
#include <omp.h>
#include <stdlib.h>

/* Masks take turns in rounds, so that what else the machine does falls on all of them. */
enum { WARM_ROUNDS = 2, LEAST_ROUNDS = 9, MOST_ROUNDS = 101 };
static const double seconds_each = 0.5;

/* ---- predicted ---- */

int prune_request(const struct prune *p, struct snap_request *ret, struct error *e)
{
    const struct engine *g = p->s.engine;
    const struct attention *a = &g->encoder->attention;
    const char *device = p->engine.device ? p->engine.device : g->device;
    const char *name = g->encoder->backend->target ? g->encoder->backend->target : device;
    const struct kernel_request kernel = {
        .dtype = g->dtype == ELEMENT_BF16 ? ABI_BF16 : ABI_F32,
        .transform = a->transform.sparsegen ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = a->transform.lambda,
        .head_dim = a->padded_dim,
        .length = p->n,
    };
    const struct target *target;
    uint32_t found;
    if (targets_resolve(name, &kernel, &target, 1, &found, e) < 0)
        return -1;
    const struct machine *machine = machine_choose(NULL, p->calibration, target, &kernel, e);
    if (!machine)
        return -1;
    *ret = (struct snap_request){.batch = p->batch,
                                 .threads = g->threads,
                                 .kernel = kernel,
                                 .target = target,
                                 .machine = machine};
    return 0;
}

int prune_predict(const struct prune *p, const struct snap_request *r, const struct mask *m,
                  double *ret, struct error *e)
{
    struct plan *plan = plan_build(m, r->target, &r->kernel, r->machine, NULL, e);
    if (!plan)
        return -1;
    double sum = 0;
    for (uint32_t l = 0; l < p->importance.layers; l++)
        sum += plan_predict(plan, false, m->layers == 1 ? 0 : l, r->batch, r->threads);
    plan_destroy(plan);
    *ret = sum;
    return 0;
}

/* ---- measured ---- */

struct trial {
    struct prune *p;
    struct attention *const *attention;
    uint32_t count;
    struct sequence *list;              /* [batch] of n tokens */
    uint32_t *token_ids;                /* theirs */
    struct engine_workspace *workspace; /* [count] */
    double *seconds;                    /* [count, MOST_ROUNDS] */
    uint32_t rounds;
};

/* Sequences of n tokens, taken from the lines one after another. */
static void make_list(struct trial *t)
{
    const struct prune *p = t->p;
    const struct task_batches *lines = &p->s.batches;
    const size_t all = (size_t)p->batch * p->n;
    size_t at = 0;
    t->token_ids = memory_new(all, sizeof *t->token_ids);
    t->list = memory_new(p->batch, sizeof *t->list);
    for (uint32_t k = 0; at < all; k = (k + 1) % lines->texts)
        for (uint32_t i = 0; i < lines->sequence[k].count && at < all; i++)
            t->token_ids[at++] = lines->sequence[k].token_ids[i];
    for (uint32_t b = 0; b < p->batch; b++)
        t->list[b] = (struct sequence){t->token_ids + (size_t)b * p->n, p->n, p->n};
}

/* Each mask has a workspace of its own: a workspace serves one of them alone. */
static int run(const struct trial *t, uint32_t k, double *ret, struct error *e)
{
    struct engine *g = t->p->s.engine;
    double phase[PHASE_COUNT] = {0};
    t->workspace[k].seconds = phase;
    engine_attention_swap(g, t->attention[k]);
    int r = engine_encode(g, t->list, t->p->batch, &t->workspace[k], e);
    engine_attention_swap(g, t->attention[k]);
    t->workspace[k].seconds = NULL;
    *ret = phase[PHASE_ATTENTION];
    return r;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int run_round(struct trial *t, bool counted, struct error *e)
{
    for (uint32_t k = 0; k < t->count; k++) {
        double seconds;
        if (run(t, k, &seconds, e) < 0)
            return -1;
        if (counted)
            t->seconds[k * MOST_ROUNDS + t->rounds] = seconds;
    }
    t->rounds += counted;
    return 0;
}

static int run_rounds(struct trial *t, struct error *e)
{
    session_tell("timing");
    for (int k = 0; k < WARM_ROUNDS; k++)
        if (run_round(t, false, e) < 0)
            return -1;
    const double end = omp_get_wtime() + seconds_each * t->count;
    while (t->rounds < LEAST_ROUNDS || (t->rounds < MOST_ROUNDS && omp_get_wtime() < end))
        if (run_round(t, true, e) < 0)
            return -1;
    return 0;
}

int prune_time(struct prune *p, struct attention *const *attention, uint32_t count, double *ret,
               struct error *e)
{
    struct trial t = {
        .p = p,
        .attention = attention,
        .count = count,
        .workspace = memory_new(count, sizeof *t.workspace),
        .seconds = memory_new((size_t)count * MOST_ROUNDS, sizeof *t.seconds),
    };
    make_list(&t);
    int r = run_rounds(&t, e);
    for (uint32_t k = 0; k < count; k++) {
        double *seconds = t.seconds + (size_t)k * MOST_ROUNDS;
        if (r == 0) {
            qsort(seconds, t.rounds, sizeof *seconds, compare);
            ret[k] = seconds[t.rounds / 2];
        }
        engine_workspace_finish(&t.workspace[k]);
    }
    free(t.workspace);
    free(t.seconds);
    free(t.list);
    free(t.token_ids);
    return r;
}
