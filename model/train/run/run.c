/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over steps. */
#include "model/train/run/run.h"
#include "masks/base/text.h"
#include "model/train/flops.h"
#include "model/train/run/pace.h"
#include "model/train/run/run_ranks.h"
#include "model/train/run/run_save.h"
#include "model/train/run/run_say.h"
#include "model/train/run/run_score.h"
#include "model/train/run/run_settle.h"
#include "model/train/run/run_setup.h"
#include "model/train/step/save_gradients.h"
#include <inttypes.h>
#include <math.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct loop {
    struct run *run;
    struct pace pace;
    double began;      /* when the first step of this process did */
    double last;       /* when a line of progress was due last, from then; see run_line_due() */
    double since;      /* when the run's `elapsed` was brought up to date */
    uint64_t warned;   /* the step of the last warning */
    uint64_t launches; /* of the last step */
    bool warned_of_graphs;
    bool stop; /* a rank was asked to stop */
    bool evaluated;
    uint64_t evaluated_at;      /* the step of the last evaluation */
    struct evaluation held_out; /* the last one */
    struct task_scores scores;  /* of the last one, and of the best */
    struct task_scores best;
};

/* ---- how far, how fast ---- */

static void show(struct loop *l, double rate)
{
    const struct run *r = l->run;
    const struct pace *p = &l->pace;
    const double share = run_share(r);
    if (!r->watch->progress || p->weight <= 0)
        return;
    const double steps_left = (double)r->trainer.schedule.steps - (double)r->facts.step;
    struct run_progress progress = {
        .objective = r->options.objective,
        .step = r->facts.step,
        .steps = r->options.minutes > 0 ? 0 : r->trainer.schedule.steps,
        .loss = p->loss / p->weight,
        .rate = rate,
        .tokens_per_s = p->tokens / p->seconds,
        .due = run_line_due(now() - l->began, &l->last),
        .mfu = r->peak > 0 ? p->flops / p->seconds / r->peak : (double)NAN,
        .share = share,
        .left = r->options.minutes > 0 ? 60 * r->options.minutes - r->facts.elapsed
                                       : steps_left * p->seconds / p->weight};
    if (l->scores.count)
        progress.dev = l->scores.score[l->scores.chief];
    pace_means(p, progress.mean);
    r->watch->progress(&progress);
}

static void warn_of_plateau(struct loop *l)
{
    enum { STEPS = 500 };
    const struct run *r = l->run;
    const struct objective *o = r->options.objective;
    double mean[TARGETS_MOST];
    if (!o->plateau || r->options.overfit || l->pace.steps < STEPS ||
        r->facts.step - l->warned < STEPS)
        return;
    struct text line = {0};
    text_add(&line, "step %" PRIu64 ": ", r->facts.step);
    pace_means(&l->pace, mean);
    if (o->plateau(r->data, mean, &line)) {
        run_say(r, text_get(&line));
        l->warned = r->facts.step;
    }
    text_finish(&line);
}

static void warn_of_graphs(struct loop *l)
{
    const char *why = train_state_use(l->run->state).no_graphs;
    struct text line = {0};
    if (!why || l->warned_of_graphs)
        return;
    l->warned_of_graphs = true;
    text_add(&line, "goes on without CUDA graphs: %s", why);
    run_say(l->run, text_get(&line));
    text_finish(&line);
}

/* ---- a step ---- */

static struct log_line begin_line(const struct run *r, double loss)
{
    return (struct log_line){.field = {{"step", (double)r->facts.step},
                                       {"tokens", (double)r->facts.tokens},
                                       {"loss", loss}},
                             .count = 3};
}

static int log_step(struct loop *l, const struct step_result *s, double seconds, double flops,
                    struct error *e)
{
    struct run *r = l->run;
    double price;
    if (!run_is_first(r))
        return 0;
    if (run_price(r, &price, e) < 0)
        return -1;
    struct log_line line = begin_line(r, s->loss);
    struct metric metric[METRICS_MOST];
    log_line_add_metrics(&line, metric, r->options.objective->step_metrics(s->mean, metric));
    const struct log_field pace[] = {
        {"lr", s->rate},
        {"grad_norm", s->norm},
        {"tokens_per_s", (double)s->tokens / seconds},
        {"mfu", r->peak > 0 ? flops / seconds / r->peak : (double)NAN},
        {"elapsed_s", r->facts.elapsed},
        {"ranks", run_comm(r)->size},
    };
    const struct log_field mask[] = {
        {"l1", s->mask.l1},
        {"density", s->mask.density},
        {"entropy", s->mask.entropy},
        {"p_diagonal", s->mask.p_diagonal},
        {"p_neighbour", s->mask.p_neighbour},
        {"p_special", s->mask.p_special},
        {"price_s", price},
    };
    log_line_add(&line, pace, sizeof pace / sizeof *pace);
    if (s->launches)
        log_line_add(&line, &(struct log_field){"launches", (double)s->launches}, 1);
    if (r->trainer.learner)
        log_line_add(&line, mask, sizeof mask / sizeof *mask - (isnan(price) ? 1 : 0));
    return run_log_write(&r->log, NULL, NULL, line.field, line.count, e);
}

/* `faulty`: the first rank whose part is not finite. */
static int not_finite(struct run *r, uint32_t faulty, struct error *e)
{
    struct error ignored = {0};
    run_log_event(r, "nan", &ignored);
    error_set(e, ERROR_FALSE,
              "step %" PRIu64
              ": the loss or its gradient is not finite; what was saved before stays",
              r->facts.step);
    return faulty < run_comm(r)->size ? error_prefix(e, "rank %u", faulty) : -1;
}

static int bring_up_to_date(struct loop *l, struct error *e)
{
    const double t = now();
    l->run->facts.elapsed += t - l->since;
    l->since = t;
    return run_ranks_time(l->run, &l->stop, e);
}

static struct step_request next_step(const struct run *r)
{
    const uint64_t step = r->facts.step + 1, last = run_learning_steps(r);
    struct step_request q = {.step = step, .rate = run_rate(r, step, r->options.rate)};
    if (!r->trainer.learner)
        return q;
    const double share = r->options.minutes > 0 ? run_share(r)
                         : last > 1             ? (double)(step - 1) / (double)(last - 1)
                                                : 0;
    q.mask_rate = run_rate(r, step, r->options.learn.rate);
    q.tau = learner_tau(r->learner, share);
    return q;
}

static int step(struct loop *l, struct step_result *s, struct error *e)
{
    struct run *r = l->run;
    const double begin = r->facts.elapsed;
    const struct step_request q = next_step(r);
    if (run_settle(r, e) < 0 || trainer_step(&r->trainer, &q, s, e) < 0)
        return -1;
    if (bring_up_to_date(l, e) < 0)
        return -1;
    const double seconds = fmax(r->facts.elapsed - begin, 1e-9),
                 flops = batch_flops(r->engine, &r->trainer.batch->batch);
    r->facts.step++;
    r->facts.tokens += s->tokens;
    r->facts.place += r->options.batch;
    if (comm_agree(run_comm(r), log_step(l, s, seconds, flops, e), e) < 0)
        return -1;
    if (!s->finite)
        return not_finite(r, s->faulty, e);
    pace_keep(&l->pace, s, flops, seconds);
    l->launches = s->launches;
    return 0;
}

/* ---- between steps ---- */

static int evaluate(struct loop *l, struct error *e)
{
    struct run *r = l->run;
    struct evaluation v;
    if (r->watch->tell)
        r->watch->tell("evaluating");
    if (trainer_evaluate(&r->trainer, r->held_out, &r->options.data_options, &v, e) < 0 ||
        run_score(r, &l->scores, e) < 0)
        return -1;
    l->held_out = v;
    l->evaluated = true;
    l->evaluated_at = r->facts.step;
    if (l->scores.count && run_score_is_best(r, &l->scores, v.loss))
        l->best = l->scores;
    run_say_evaluation(r, &v, &l->scores);
    return comm_agree(run_comm(r), run_log_evaluation(r, &v, &l->scores, e), e);
}

static bool is_due(uint64_t every, uint64_t step)
{
    return every && step % every == 0;
}

/* True if the last step reached the end of an epoch. */
static bool ends_epoch(const struct run *r)
{
    const uint64_t place = r->facts.place, count = r->data->count;
    return r->options.task && place / count > (place - r->options.batch) / count;
}

/* Runs the actions that are due after a step; those at the end of a run are run elsewhere. */
static int after_step(struct loop *l, double rate, struct error *e)
{
    struct run *r = l->run;
    warn_of_plateau(l);
    warn_of_graphs(l);
    show(l, rate);
    if (run_is_done(r))
        return 0;
    if ((ends_epoch(r) || is_due(r->options.eval_every, r->facts.step)) && evaluate(l, e) < 0)
        return -1;
    const bool is_best = r->options.task && r->facts.best_step == r->facts.step;
    if ((is_best || is_due(r->options.save_every, r->facts.step)) && run_save(r, e) < 0)
        return -1;
    return bring_up_to_date(l, e);
}

/* `first`: steps before this call. The time of a run may be over after a save or an evaluation of its last step. */
static int finish(struct loop *l, uint64_t first, struct error *e)
{
    struct run *r = l->run;
    const uint64_t step = r->facts.step;
    const bool evaluates = r->held_out && step > first && l->evaluated_at != step;
    if ((evaluates && evaluate(l, e) < 0) ||
        ((step != r->saved || (evaluates && r->options.task && r->facts.best_step == step)) &&
         run_save(r, e) < 0))
        return -1;
    return r->options.task && !r->facts.best_step
               ? error_set(e, ERROR_FALSE,
                           "%s: no loss on the dev file was finite; the model there is that "
                           "of before training",
                           r->options.run)
               : 0;
}

static int interrupt(struct run *r, struct error *e)
{
    if (r->facts.step > r->saved && run_save(r, e) < 0)
        return -1;
    return comm_agree(run_comm(r), run_log_event(r, "stop", e), e);
}

static struct run_result result_of(const struct loop *l, bool interrupted)
{
    const struct pace *p = &l->pace;
    const struct snapshot_facts *f = &l->run->facts;
    struct run_result ret = {.interrupted = interrupted,
                             .objective = l->run->options.objective,
                             .step = f->step,
                             .tokens = f->tokens,
                             .loss = p->loss / p->weight,
                             .elapsed = f->elapsed,
                             .evaluated = l->evaluated,
                             .held_out = l->held_out,
                             .dev = l->best,
                             .best = f->best,
                             .best_step = f->best_step,
                             .epoch_steps = (double)l->run->data->count / l->run->options.batch,
                             .launches = l->launches,
                             .device_bytes = train_state_use(l->run->state).most_bytes};
    pace_means(p, ret.mean);
    return ret;
}

static int run_steps(struct loop *l, struct run_result *ret, struct error *e)
{
    struct run *r = l->run;
    struct step_result s = {0};
    const uint64_t first = r->facts.step;
    l->since = l->began = now();
    l->last = -1;
    if (bring_up_to_date(l, e) < 0)
        return -1;
    while (!run_is_done(r) && !l->stop)
        if (step(l, &s, e) < 0 || after_step(l, s.rate, e) < 0)
            return -1;
    const bool stop = !run_is_done(r);
    if ((stop ? interrupt(r, e) : finish(l, first, e)) < 0)
        return -1;
    *ret = result_of(l, stop);
    int result = 0;
    if (run_is_first(r) && !stop && r->options.save_gradients && r->facts.step > first)
        result = gradients_save(r->options.save_gradients, &r->trainer, &s, e);
    return comm_follow(run_comm(r), result, e);
}

static int begin_again(struct run *r, struct error *e)
{
    int result = 0;
    if (run_is_first(r) && r->saved && run_model_is_newest(r))
        result = run_save_model(r, e);
    if (result == 0)
        result = run_log_event(r, "resume", e);
    return comm_agree(run_comm(r), result, e);
}

int run_train(const struct run_options *o, const struct run_watch *w, struct run_result *ret,
              struct error *e)
{
    struct run r;
    struct loop l = {.run = &r};
    int result = run_setup(o, w, &r, e);
    if (result == 0) {
        run_say_begin(&r);
        if (r.resumed)
            result = begin_again(&r, e);
    }
    if (result == 0)
        result = run_steps(&l, ret, e);
    if (w->tell)
        w->tell(NULL);
    run_finish(&r, result < 0);
    return result;
}
