/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for the kernels that bench measures, by the plans in their files. */
#include "gen/key_shape.h"
#include "masks/base/text.h"
#include "tools/maskc/bench/bench.h"
#include <stdio.h>
#include <string.h>

/* The lowerings that the layer's heads use, each once. */
static void join_lowerings(const struct plan *p, const struct plan_pass *pass, uint32_t layer,
                           struct bench_result *r)
{
    struct text t = {0};
    const uint32_t *at = p->at + (uint64_t)layer * p->heads;
    for (uint32_t h = 0; h < p->heads; h++) {
        const char *word = pass->summary[at[h]].lowering;
        bool seen = false;
        for (uint32_t before = 0; before < h && !seen; before++)
            seen = !strcmp(pass->summary[at[before]].lowering, word);
        if (!seen)
            text_add(&t, "%s%s", t.length ? ", " : "", word);
    }
    snprintf(r->lowering, sizeof r->lowering, "%s", text_get(&t));
    snprintf(r->reason, sizeof r->reason, "%s", pass->summary[at[0]].reason);
    text_finish(&t);
}

void bench_size(uint32_t queries, uint32_t keys, char ret[BENCH_SIZE])
{
    const int length = snprintf(ret, BENCH_SIZE, "%u", queries);
    if (keys != queries)
        snprintf(ret + length, BENCH_SIZE - (size_t)length, "x%u", keys);
}

double bench_sparsity(const struct problem *p)
{
    const struct mask *m = p->mask;
    double active = 0, all = (double)p->length * problem_keys(p) * m->heads;
    for (uint32_t h = 0; h < m->heads; h++)
        active += (double)mask_pattern(m, p->layer, h)->active;
    return 100 * (1 - active / all);
}

void bench_problem_lengths(struct problem *p, const struct kernel_request *r)
{
    p->length = request_queries(r, p->mask);
    p->key_length = r->keys;
}

struct problem bench_problem(const struct options *o, const struct mask *m,
                             const struct kernel_request *r, uint32_t layer)
{
    struct problem p = {.mask = m,
                        .layer = layer,
                        .batch = o->batch ? o->batch : 1,
                        .kv_heads = r->kv_heads,
                        .head_dim = r->head_dim,
                        .dtype = r->dtype,
                        .transform = r->transform,
                        .lambda = (double)r->lambda,
                        .bias = r->bias,
                        .dropout = o->dropout,
                        .random_seed = 1};
    bench_problem_lengths(&p, r);
    return p;
}

/* The family of a pass, as the plan in the file names it; null where it does not. */
static const struct kernel_family *family_in_file(const json_t *plan, const char *pass)
{
    const json_t *masks = json_object_get(plan, "masks");
    for (size_t k = 0; k < json_array_size(masks); k++) {
        const json_t *entry = json_array_get(masks, k);
        const char *name = json_string_value(json_object_get(entry, "family"));
        if (name && !strcmp(json_string_value(json_object_get(entry, "pass")), pass))
            return family_find(name, NULL);
    }
    return NULL;
}

static struct kernel_config config_of_file(const struct artifact *a,
                                           const struct artifact_plan *plan)
{
    json_t *j = json_loads(plan->json, 0, NULL);
    const struct kernel_config c = {.request = a->request,
                                    .forward = family_in_file(j, "forward"),
                                    .backward = family_in_file(j, "backward")};
    json_decref(j);
    return c;
}

struct plan *bench_plan(const struct maskc_kernel *k, const struct calibration *calibration,
                        struct error *e)
{
    const struct artifact *a = k->artifact;
    const struct artifact_plan *plan = &a->plan[k->target->plan];
    const struct target *target = target_find(k->target->name, e);
    const struct machine *machine =
        target ? machine_named(plan->machine, calibration, target, e) : NULL;
    struct plan_pass forward = plan->forward;
    forward.block_rows = plan->block_rows;
    const struct kernel_config config = config_of_file(a, plan);
    return machine ? plan_of_tables(a->mask, target, &config, machine, &forward,
                                    &plan->transposed, e)
                   : NULL;
}

int bench_predict(const struct bench_prediction *x, struct bench_result *r, struct error *e)
{
    struct plan *plan = bench_plan(x->ours, x->calibration, e);
    struct plan *dense = plan ? bench_plan(x->dense, x->calibration, e) : NULL;
    if (dense) {
        snprintf(r->machine, sizeof r->machine, "%s", plan->machine->name);
        r->predicted = plan_predict(plan, r->backward, x->layer, r->batch, x->threads);
        r->dense_predicted =
            x->times * plan_predict(dense, r->backward, 0, r->batch, x->threads);
        r->floor = plan_floor(plan, r->backward, x->layer, r->batch, x->threads);
        join_lowerings(plan, r->backward ? &plan->transposed : &plan->forward, x->layer, r);
    }
    plan_destroy(plan);
    plan_destroy(dense);
    return dense ? 0 : -1;
}

/* Dense is timed at a shorter length if one launch is predicted to take longer than this share of the time to measure:
   two launches before, and five rounds, would exceed that time. */
#define DENSE_SHARE 0.5

enum { DENSE_SHORTEST = 512 };

int bench_dense_length(const struct bench_prediction *x, uint32_t batch, bool backward,
                       double seconds, uint32_t *ret, struct error *e)
{
    struct plan *plan = bench_plan(x->ours, x->calibration, e);
    if (!plan)
        return -1;
    const struct request_sides sides = request_sides(&plan->config.request, plan->n, false);
    double dense = 0;
    for (uint32_t k = 0; k < PASSES; k++)
        if (backward ? k != PASS_FORWARD : k == PASS_FORWARD)
            dense +=
                plan->price[k].full * (double)sides.rows * sides.columns * plan->heads * batch;
    if (plan->machine->kind == TARGET_CPU)
        dense /= x->threads;
    else
        dense /= plan->machine->workers;
    *ret = plan->n;
    while (dense > DENSE_SHARE * seconds && *ret / 2 >= DENSE_SHORTEST) {
        *ret /= 2;
        dense /= 4;
    }
    plan_destroy(plan);
    return 0;
}
