/* SPDX-License-Identifier: Apache-2.0 */
/* The search over kernel families: a plan for each pair of a forward and a backward family. The cheapest wins, but a
   later pair only if it is over LEAST_FAMILY_GAIN cheaper. The summary of the winner lists the prices of the others. */
#include "gen/cost/margins.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_KEPT = 1 << 20 /* of transposed patterns */ };

/* Families that support the pass; only the requested one if it is among them. */
static uint32_t list_pass(const struct plan_problem *problem, enum family_pass pass,
                          const struct kernel_family *asked,
                          const struct kernel_family *ret[FAMILIES_MOST])
{
    const struct kernel_request *r = &problem->config->request;
    uint32_t count = 0;
    if (asked && asked->applies(problem->target, r, pass)) {
        ret[0] = asked;
        return 1;
    }
    const uint32_t all = family_list(problem->target, r, pass, ret);
    for (uint32_t k = 0; k < all; k++)
        if (!problem->by_rates || !ret[k]->step_shapes)
            ret[count++] = ret[k];
    return count;
}

static bool takes_some(const struct plan_problem *problem, const struct kernel_family *f)
{
    const struct kernel_request *r = &problem->config->request;
    return f->applies(problem->target, r, FAMILY_FORWARD) ||
           (r->backward && f->applies(problem->target, r, FAMILY_BACKWARD));
}

/* True if one plan serves both passes: one family computes both, or two whose row blocks have the same height and neither
   of which is `alone`. */
static bool share_plan(const struct target *t, const struct kernel_config *c)
{
    if (!c->backward || c->forward == c->backward)
        return true;
    return !c->forward->alone && !c->backward->alone &&
           c->forward->shape(t, c).block_rows == c->backward->shape(t, c).block_rows;
}

/* True if both configs have the same plan at the same price. */
static bool same_plan(const struct target *t, const struct kernel_config *a,
                      const struct kernel_config *b)
{
    const struct item_kernels x = family_item_kernels(t, a), y = family_item_kernels(t, b);
    const struct family_shape p = family_shape(t, a), q = family_shape(t, b);
    const bool rates = a->forward->rates == b->forward->rates &&
                       (!a->backward || a->backward->rates == b->backward->rates);
    return rates && family_can(t, a) == family_can(t, b) && !memcmp(&x, &y, sizeof x) &&
           p.block_rows == q.block_rows && a->forward->matrix == b->forward->matrix;
}

static bool is_new(const struct target *t, const struct kernel_config *list, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (same_plan(t, &list[k], &list[count]))
            return false;
    return true;
}

uint32_t families_list(const struct plan_problem *problem, const struct kernel_family *asked,
                       struct kernel_config ret[PAIRS_MOST])
{
    const struct kernel_family *forward[FAMILIES_MOST], *backward[FAMILIES_MOST] = {NULL};
    const bool both = problem->config->request.backward;
    const uint32_t n_forward = list_pass(problem, FAMILY_FORWARD, asked, forward),
                   n_backward = both ? list_pass(problem, FAMILY_BACKWARD, asked, backward) : 1;
    uint32_t count = 0;
    for (uint32_t f = 0; f < n_forward; f++)
        for (uint32_t b = 0; b < n_backward; b++) {
            ret[count] = *problem->config;
            ret[count].forward = forward[f];
            ret[count].backward = backward[b];
            count +=
                share_plan(problem->target, &ret[count]) && is_new(problem->target, ret, count);
        }
    return count;
}

/* Seconds of both passes over all layers, with as many sequences as fill a GPU. */
static double seconds_of(const struct plan *p)
{
    const uint32_t batch = plan_full_batch(p);
    double sum = 0;
    for (uint32_t layer = 0; layer < p->layers; layer++)
        for (int backward = 0; backward <= p->config.request.backward; backward++)
            sum += plan_predict(p, backward, layer, batch, 1);
    return sum;
}

/* The family's entry, or a new one; null where there is no room. */
static struct plan_rejected *rejected_entry(struct plan_summary *s,
                                            const struct kernel_family *family)
{
    for (uint32_t k = 0; k < s->n_rejected; k++)
        if (s->rejected[k].family == family)
            return &s->rejected[k];
    if (s->n_rejected == sizeof s->rejected / sizeof *s->rejected)
        return NULL;
    struct plan_rejected *r = &s->rejected[s->n_rejected++];
    *r = (struct plan_rejected){.family = family, .predicted = INFINITY};
    return r;
}

/* Lists a family once, by the cheapest plan of its pairs. */
static void note_pass(const struct plan *lost, const struct plan_pass *from,
                      const struct kernel_family *family, struct plan_pass *to)
{
    for (uint32_t k = 0; k < lost->n_masks; k++) {
        const struct plan_summary *theirs = &from->summary[k];
        struct plan_rejected *r = rejected_entry(&to->summary[k], family);
        if (!r || theirs->predicted >= r->predicted)
            continue;
        snprintf(r->lowering, sizeof r->lowering, "%s", theirs->lowering);
        r->predicted = theirs->predicted;
    }
}

/* Adds the price of another pair of families to the summary of `won`. */
static void note_lost(const struct plan *lost, struct plan *won)
{
    if (lost->config.forward != won->config.forward)
        note_pass(lost, &lost->forward, lost->config.forward, &won->forward);
    if (won->config.request.backward && lost->config.backward != won->config.backward)
        note_pass(lost, &lost->transposed, lost->config.backward, &won->transposed);
}

/* Returns the cheapest plan and destroys the others. A later one must save more than LEAST_FAMILY_GAIN. */
static struct plan *take_cheapest(struct plan *const *plan, uint32_t count)
{
    uint32_t best = 0;
    double least = seconds_of(plan[0]);
    for (uint32_t k = 1; k < count; k++) {
        const double seconds = seconds_of(plan[k]);
        if (seconds >= least * (1 - LEAST_FAMILY_GAIN))
            continue;
        least = seconds;
        best = k;
    }
    for (uint32_t k = 0; k < count; k++)
        if (k != best) {
            note_lost(plan[k], plan[best]);
            plan_destroy(plan[k]);
        }
    return plan[best];
}

static int check_asked(const struct plan_problem *problem, const struct kernel_family *asked,
                       struct error *e)
{
    if (!asked || takes_some(problem, asked))
        return 0;
    return error_set(
        e, ERROR_INPUT,
        "kernel family %s takes no pass of this for target %s (%s, head dim %u): it takes %s",
        asked->name, problem->target->name, dtype_name(problem->config->request.dtype),
        problem->config->request.head_dim, asked->takes);
}

/* Makes the plans that can be made; returns their number. With more than one pair, transposed patterns are shared between
   the plans, unless they have more than ROWS_KEPT rows in total. */
static uint32_t make_plans(const struct plan_problem *problem, struct kernel_config *list,
                           uint32_t pairs, struct plan *ret[PAIRS_MOST], struct error *e)
{
    const struct mask *m = problem->mask;
    const bool keep = pairs > 1 && (uint64_t)m->n * m->n_patterns <= ROWS_KEPT;
    struct pattern **transposes = keep ? memory_new(m->n_patterns, sizeof *transposes) : NULL;
    uint32_t count = 0;
    for (uint32_t k = 0; k < pairs; k++) {
        struct plan_problem own = *problem;
        own.config = &list[k];
        own.transposes = transposes;
        ret[count] = plan_of_heights(&own, e);
        if (ret[count])
            plan_add_steps(ret[count++]);
    }
    for (uint32_t k = 0; k < m->n_patterns && keep; k++)
        pattern_destroy(transposes[k]);
    free(transposes);
    return count;
}

struct plan *families_choose(const struct plan_problem *problem,
                             const struct kernel_family *asked, struct kernel_config *ret,
                             struct error *e)
{
    struct kernel_config list[PAIRS_MOST];
    struct plan *plan[PAIRS_MOST], *won;
    if (check_asked(problem, asked, e))
        return NULL;
    const uint32_t pairs = families_list(problem, asked, list);
    const uint32_t count = make_plans(problem, list, pairs, plan, e);
    if (!count)
        return NULL;
    won = take_cheapest(plan, count);
    *ret = *problem->config;
    ret->forward = won->config.forward;
    ret->backward = won->config.backward;
    ret->tall = won->config.tall;
    memcpy(ret->step_shape, won->config.step_shape, sizeof ret->step_shape);
    return won;
}
