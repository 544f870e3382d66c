/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_score.h"
#include "model/evaluate/evaluate.h"
#include <math.h>

int run_score(struct run *r, struct task_scores *ret, struct error *e)
{
    const struct objective *o = r->options.objective;
    const struct dataset *d = o->dataset ? o->dataset(r->held_out) : NULL;
    const struct task_options options = {.max_length = r->options.max_length,
                                         .overlap = r->options.overlap};
    const struct task_runner runner = {r->engine, &options, &r->workspace};
    struct evaluated v;
    *ret = (struct task_scores){0};
    if (!d)
        return 0;
    if (evaluate_dataset(&runner, d, r->options.null_threshold, &v, e) < 0)
        return -1;
    *ret = task_scores_of(d, &v.found);
    evaluated_finish(&v);
    return 0;
}

/* True if the score is the best so far. An undefined value, such as the correlation of constants,
   is the worst. */
bool run_score_is_best(struct run *r, const struct task_scores *s)
{
    const double value = s->score[s->chief].value;
    const bool better =
        !r->facts.best_step || value > r->facts.best || (isnan(r->facts.best) && !isnan(value));
    if (!better)
        return false;
    r->facts.best = value;
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
