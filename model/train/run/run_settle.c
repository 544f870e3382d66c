/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_settle.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include "model/train/learn/settle.h"
#include "model/train/run/run_ranks.h"
#include "model/train/run/run_save.h"
#include "model/train/run/run_say.h"
#include <math.h>
#include <stdlib.h>

enum { PRICE_EVERY = 10 }; /* steps */

uint64_t run_learning_steps(const struct run *r)
{
    return r->trainer.schedule.steps - r->options.learn.settle;
}

bool run_has_settled(const struct run *r, const struct snapshot *s)
{
    return r->options.learn.settle && s->facts.step > run_learning_steps(r);
}

static int write_event(struct run *r, const struct settled *s, struct error *e)
{
    const struct log_field fields[] = {
        {"step", (double)r->facts.step}, {"tokens", (double)r->facts.tokens},
        {"elapsed_s", r->facts.elapsed}, {"density", s->density},
        {"predicted_s", s->predicted},   {"share", s->share},
        {"retained", s->retained}};
    return run_log_write(&r->log, "event", "mask", fields,
                         r->options.learn.snap > 0 ? sizeof fields / sizeof *fields : 5, e);
}

/* Kernels for the mask in the run's folder take the place of those with a bias. */
static int compile(struct run *r, struct error *e)
{
    const struct run_options *o = &r->options;
    struct model_config now = {0}; /* which file has the mask may have changed */
    if (config_read(r->folder.path, &now, e) < 0)
        return -1;
    char *mask = path_join(r->folder.path, now.mask);
    const struct engine_options options = {.dtype = o->dtype,
                                           .threads = o->threads,
                                           .device = o->device,
                                           .mask = mask,
                                           .transform = "softmax",
                                           .progress = r->watch->tell,
                                           .trains = true,
                                           .dropout = o->attention_dropout > 0};
    int result = engine_reload_attention(r->engine, r->folder.path, &options, e);
    free(mask);
    config_finish(&now);
    if (r->watch->tell)
        r->watch->tell(NULL);
    return result;
}

static struct settle_request make_request(const struct run *r)
{
    const struct run_options *o = &r->options;
    return (struct settle_request){.batch = (o->batch + o->accumulate - 1) / o->accumulate,
                                   .dropout = o->attention_dropout > 0,
                                   .folder = r->folder.path};
}

/* A plan takes a few milliseconds, so the price is asked for now and then. */
int run_price(struct run *r, double *ret, struct error *e)
{
    const struct settle_request q = make_request(r);
    const struct learner *l = r->trainer.learner;
    *ret = (double)NAN;
    if (!l || (r->facts.step - 1) % PRICE_EVERY)
        return 0;
    return settle_price(r->learner, r->engine, &q, ret, e);
}

int run_settle_check(const struct run *r, struct error *e)
{
    const struct settle_request q = make_request(r);
    return r->trainer.learner && r->options.learn.settle && run_is_first(r)
               ? settle_check(r->learner, r->engine, &q, e)
               : 0;
}

/* The learning is not lost with the mask. The error that is reported stays the one of settling. */
static int save_learning(struct run *r)
{
    struct error ignored;
    struct text line = {0};
    if (r->facts.step == r->saved || run_save(r, &ignored) < 0)
        return -1;
    text_add(&line, "what was learned is saved in %s; --resume goes on from there",
             r->options.run);
    run_say(r, text_get(&line));
    text_finish(&line);
    return -1;
}

int run_settle(struct run *r, struct error *e)
{
    const struct run_options *o = &r->options;
    const struct settle_request q = make_request(r);
    struct settled s;
    if (!r->trainer.learner || !o->learn.settle || r->facts.step < run_learning_steps(r))
        return 0;
    if (r->watch->tell)
        r->watch->tell("settling on a mask");
    const bool first = run_is_first(r);
    int result = 0;
    if (first && (settle(r->learner, r->engine, &q, &s, e) < 0 ||
                  learner_save(r->learner, r->folder.path, e) < 0))
        result = -1;
    if (comm_agree(run_comm(r), result, e) < 0)
        return save_learning(r);
    if (!first)
        result = learner_read_fixed(r->learner, r->folder.path, e);
    if (result == 0)
        result = compile(r, e);
    r->trainer.learner = NULL;
    return comm_agree(run_comm(r), result < 0 || !first ? result : write_event(r, &s, e), e);
}
