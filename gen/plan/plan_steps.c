/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a plan whose kernels read them, and its times, which come from the clocks of its steps rather than from prices of
   items. */
#include "gen/plan/internal.h"
#include <math.h>
#include <string.h>

/* Tokens of a batch that fills a GPU. */
enum { FULL_TOKENS = 1 << 16 };

uint32_t plan_full_batch(const struct plan *p)
{
    return p->machine->kind == TARGET_CUDA && p->n < FULL_TOKENS ? FULL_TOKENS / p->n : 1;
}

struct step_launch plan_step_launch(const struct plan *p, enum machine_pass pass,
                                    uint32_t batch)
{
    const struct request_sides sides = plan_sides(p, pass == PASS_DKV);
    return (struct step_launch){.machine = p->machine,
                                .pass = pass,
                                .head_dim = p->config.request.head_dim,
                                .batch = batch,
                                .rows = sides.rows,
                                .columns = sides.columns,
                                .heads = p->heads,
                                .n_masks = p->n_masks,
                                .at = p->at};
}

/* The shape that a pass of the plan takes; null where its kernels read items. */
static const struct step_shape *shape_of(const struct plan *p, enum machine_pass pass)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    const uint32_t count = family_step_shapes(p->target, &p->config, pass, shape);
    return count ? shape[p->config.step_shape[pass]] : NULL;
}

static struct plan_pass *tables_of(struct plan *p, enum machine_pass pass)
{
    return pass == PASS_DKV ? &p->transposed : &p->forward;
}

/* ---- summaries ---- */

/* Heads of one mask in a batch that fills the GPU. */
static double full_heads(const struct plan *p)
{
    return (double)p->heads * plan_full_batch(p);
}

/* Replaces the seconds in a summary (one head, one worker) by step-based ones. Rejected lowerings have item prices only:
   their seconds are scaled by the same factor. */
static void tell_times(const struct plan *p, enum machine_pass pass, uint32_t which,
                       struct plan_summary *s)
{
    const struct step_launch l = plan_step_launch(p, pass, 1);
    const struct step_shape *shape = shape_of(p, pass);
    const double heads = full_heads(p), share = p->machine->workers / heads;
    const double by_items = s->predicted;
    s->predicted = share * steps_mask_seconds(&l, shape, &p->steps[pass], which, heads);
    s->dense_predicted = fmax(s->predicted, share * steps_dense_seconds(&l, shape, heads, 0));
    for (uint32_t k = 0; k < s->n_rejected; k++) {
        struct plan_rejected *r = &s->rejected[k];
        const bool dense = !strcmp(r->lowering, "dense");
        r->predicted = dense ? s->dense_predicted : r->predicted * s->predicted / by_items;
    }
}

void plan_add_steps(struct plan *p)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    for (int k = 0; k < PASSES; k++) {
        const enum machine_pass pass = (enum machine_pass)k;
        const uint32_t count = family_step_shapes(p->target, &p->config, pass, shape);
        struct plan_pass *tables = tables_of(p, pass);
        const struct step_source source = {tables,    p->at,    p->n,
                                           p->layers, p->heads, p->n_masks};
        const struct step_launch launch = plan_step_launch(p, pass, plan_full_batch(p));
        if (!count)
            continue;
        p->config.step_shape[k] = steps_choose(&source, &launch, shape, count, &p->steps[k]);
        for (uint32_t which = 0; which < p->n_masks && pass != PASS_DQ; which++)
            tell_times(p, pass, which, &tables->summary[which]);
    }
}

/* ---- times ---- */

bool plan_reads_steps(const struct plan *p)
{
    return p->steps[PASS_FORWARD].group_first != NULL;
}

double predict_steps(const struct plan *p, enum machine_pass pass, uint32_t layer,
                     uint32_t batch)
{
    const struct step_launch l = plan_step_launch(p, pass, batch);
    return steps_seconds(&l, shape_of(p, pass), &p->steps[pass], layer) +
           plan_launches(p, pass, layer) * p->machine->launch;
}

/* Share of partial tiles among all tiles of the layer's heads. */
static double partial_share(const struct plan *p, enum machine_pass pass, uint32_t layer)
{
    const struct plan_pass *t = pass == PASS_DKV ? &p->transposed : &p->forward;
    double partial = 0, all = 0;
    for (uint32_t h = 0; h < p->heads; h++) {
        const struct effort *e = &t->summary[p->at[(size_t)layer * p->heads + h]].dense;
        partial += e->count[UNIT_PARTIAL];
        all += e->count[UNIT_PARTIAL] + e->count[UNIT_FULL];
    }
    return all > 0 ? partial / all : 0;
}

double predict_steps_every_tile(const struct plan *p, bool backward, uint32_t layer,
                                double heads)
{
    double sum = 0;
    for (int k = backward ? PASS_DQ : PASS_FORWARD; k <= (backward ? PASS_DKV : PASS_FORWARD);
         k++) {
        const enum machine_pass pass = (enum machine_pass)k;
        const struct step_launch l = plan_step_launch(p, pass, 1);
        sum +=
            steps_dense_seconds(&l, shape_of(p, pass), heads, partial_share(p, pass, layer)) +
            p->machine->launch;
    }
    return sum;
}

/* Sums of the forward pass, or of both others. */
double predict_steps_dense(const struct plan *p, bool backward, double heads)
{
    double sum = 0;
    for (int k = backward ? PASS_DQ : PASS_FORWARD; k <= (backward ? PASS_DKV : PASS_FORWARD);
         k++) {
        const struct step_launch l = plan_step_launch(p, (enum machine_pass)k, 1);
        sum += steps_dense_seconds(&l, shape_of(p, (enum machine_pass)k), heads, 0) +
               p->machine->launch;
    }
    return sum;
}

double predict_steps_mask(const struct plan *p, bool backward, uint32_t which, double heads)
{
    double sum = 0;
    for (int k = backward ? PASS_DQ : PASS_FORWARD; k <= (backward ? PASS_DKV : PASS_FORWARD);
         k++) {
        const struct step_launch l = plan_step_launch(p, (enum machine_pass)k, 1);
        sum += steps_mask_seconds(&l, shape_of(p, (enum machine_pass)k), &p->steps[k], which,
                                  heads) +
               p->machine->launch;
    }
    return sum;
}
