/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_score.h"
#include "model/evaluate/evaluate.h"
#include "model/train/run/run_ranks.h"
#include <math.h>

/* Names of the task's metrics, each of them undefined. */
static struct task_scores undefined(const struct dataset *d)
{
    const char *const nothing = "";
    struct predictions p;
    predictions_begin(&p, d);
    for (size_t k = 0; k < d->count; k++) {
        const struct task_example *x = &d->example[k];
        predictions_set(&p, k, x->labels ? x->label : (const char **)&nothing,
                        x->labels ? x->labels : 1);
    }
    struct task_scores ret = task_scores_of(d, &p);
    predictions_finish(&p);
    for (int k = 0; k < ret.count; k++)
        ret.score[k].value = NAN;
    return ret;
}

static int predict(struct run *r, const struct dataset *d, struct task_scores *ret,
                   struct error *e)
{
    bool not_finite = false;
    const struct task_options options = {.max_length = r->options.max_length,
                                         .overlap = r->options.overlap,
                                         .not_finite = &not_finite};
    const struct task_runner runner = {r->engine, &options, &r->workspace};
    struct evaluated v;
    if (evaluate_dataset(&runner, d, r->options.null_threshold, &v, e) < 0) {
        if (!not_finite)
            return -1;
        *e = (struct error){0};
        *ret = undefined(d);
        return 0;
    }
    *ret = task_scores_of(d, &v.found);
    evaluated_finish(&v);
    return 0;
}

int run_score(struct run *r, struct task_scores *ret, struct error *e)
{
    const struct objective *o = r->options.objective;
    const struct dataset *d = o->dataset ? o->dataset(r->held_out) : NULL;
    *ret = (struct task_scores){0};
    if (!d)
        return 0;
    int result = 0;
    if (run_is_first(r))
        result = predict(r, d, ret, e);
    else
        *ret = undefined(d);
    return comm_follow(run_comm(r), result, e) < 0 ? -1 : run_score_share(run_comm(r), ret, e);
}

int run_score_share(const struct comm *c, struct task_scores *s, struct error *e)
{
    double value[SCORES] = {0};
    uint64_t form[] = {(uint64_t)s->count, (uint64_t)s->chief};
    if (c->rank)
        form[0] = form[1] = 0;
    for (int k = 0; k < s->count && !c->rank; k++)
        value[k] = s->score[k].value;
    if (c->sum_f64(c, value, SCORES, e) < 0 ||
        c->sum_u64(c, form, sizeof form / sizeof *form, e) < 0)
        return -1;
    s->count = (int)form[0];
    s->chief = (int)form[1];
    for (int k = 0; k < s->count; k++)
        s->score[k].value = value[k];
    return 0;
}

/* True if the model is better than the best one: by the metric if it is defined, which that of constants, such as a
   correlation, is not; without a defined metric yet by the loss. Never if the loss is not finite. */
static bool is_better(const struct snapshot_facts *best, double value, double loss)
{
    if (!isfinite(loss) || !best->best_step)
        return isfinite(loss);
    if (isnan(best->best))
        return !isnan(value) || loss < best->best_loss;
    return value > best->best;
}

bool run_score_is_best(struct run *r, const struct task_scores *s, double loss)
{
    const double value = s->score[s->chief].value;
    if (!is_better(&r->facts, value, loss))
        return false;
    r->facts.best = value;
    r->facts.best_loss = loss;
    r->facts.best_step = r->facts.step;
    return true;
}

int run_log_evaluation(struct run *r, const struct evaluation *v, const struct task_scores *s,
                       struct error *e)
{
    struct log_line line = {.field = {{"step", (double)r->facts.step},
                                      {"tokens", (double)r->facts.tokens},
                                      {"loss", v->loss}},
                            .count = 3};
    struct metric metric[METRICS_MOST];
    log_line_add_metrics(&line, metric, v->objective->metrics(&v->losses, metric));
    for (int k = 0; k < s->count; k++)
        log_line_add(&line, &(struct log_field){s->score[k].name, s->score[k].value}, 1);
    return run_log_write(&r->log, "eval", r->options.task ? "dev" : "held-out", line.field,
                         line.count, e);
}
