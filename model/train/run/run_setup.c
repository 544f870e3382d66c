/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_setup.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include "model/comm/nccl/nccl.h"
#include "model/train/flops.h"
#include "model/train/run/run_data.h"
#include "model/train/run/run_model.h"
#include "model/train/run/run_ranks.h"
#include "model/train/run/run_settle.h"
#include "model/train/step/shards.h"
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static void tell(const struct run *r, const char *step)
{
    if (r->watch->tell)
        r->watch->tell(step);
}

/* ---- options ---- */

/* Parts of a batch that the command leaves open: a run that goes on keeps its own. */
static void resolve_parts(struct run *r, bool resumes)
{
    struct run_options *o = &r->options;
    json_t *stored = resumes ? json_read(r->folder.path, "run.json", NULL) : NULL;
    const json_int_t was = json_integer_value(json_object_get(stored, "accumulate"));
    const uint32_t usual = !o->launched ? 1 : o->batch < PARTS_GROUPS ? o->batch : PARTS_GROUPS;
    if (!o->accumulate)
        o->accumulate = was >= 1 && was <= o->batch ? (uint32_t)was : usual;
    json_decref(stored);
}

static int make_json(struct run *r, bool resumes, struct error *e)
{
    struct learn_options *learn = &r->options.learn;
    resolve_parts(r, resumes);
    if (learn->snap > 0)
        learn->snap_threads =
            r->options.threads ? r->options.threads : (uint32_t)omp_get_max_threads();
    r->json =
        run_options_json(&r->options, r->data->sum, r->options.task ? r->held_out->sum : NULL);
    run_options_hash(r->json, false, r->facts.options);
    return run_ranks_compare(r, e);
}

static int write_json(const struct run *r, const json_t *options, struct error *e)
{
    char *text = json_dumps(options, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    int result = json_write_line(r->folder.path, "run.json", text, e);
    free(text);
    return result;
}

/* The mask that a run settles on stays the same, whatever threads it goes on with. */
static int compare_json(struct run *r, enum run_stage stage, struct error *e)
{
    json_t *stored = json_read(r->folder.path, "run.json", e);
    int result = stored ? run_options_compare(stored, r->json, stage, e) : -1;
    json_t *as_stored = json_copy(
        r->json); /* as states of earlier versions have it: with the share of their run */
    if (stored) {
        run_options_take_share(as_stored, stored);
        run_options_hash(as_stored, true, r->older_options);
    }
    json_decref(as_stored);
    const json_t *threads = json_object_get(stored, "snap_threads");
    if (r->options.learn.snap > 0 && json_is_integer(threads) &&
        json_integer_value(threads) >= 1 && json_integer_value(threads) <= 4096)
        r->options.learn.snap_threads = (uint32_t)json_integer_value(threads);
    json_decref(stored);
    return result;
}

/* A run that has not settled may go on with another share, which is its own from there on. */
static int write_share(const struct run *r, struct error *e)
{
    json_t *stored = json_read(r->folder.path, "run.json", e);
    int result = stored ? 0 : -1;
    if (stored && run_options_take_share(stored, r->json)) {
        json_object_set_new(stored, "snap_threads",
                            json_integer(r->options.learn.snap_threads));
        result = write_json(r, stored, e);
    }
    json_decref(stored);
    return result;
}

/* The command's model must have the shape of the run's own copy. If the model is gone, there is nothing to compare. */
static int compare_model(const struct run *r, struct error *e)
{
    struct model_config was = {0}, is = {0};
    int result = config_read(r->folder.path, &was, e);
    if (result == 0 && config_read(r->options.model, &is, NULL) == 0 &&
        (was.vocabulary != is.vocabulary || was.hidden != is.hidden ||
         was.layers != is.layers || was.heads != is.heads ||
         was.intermediate != is.intermediate))
        result = error_set(e, ERROR_INPUT,
                           "%s: the run began with a model of another shape; --resume takes "
                           "the same command",
                           r->options.model);
    config_finish(&was);
    config_finish(&is);
    return result;
}

/* ---- engine and state ---- */

static int read_alpha(const struct learner *l, struct error *e)
{
    if (alpha_read(l->options.alpha, &l->shape, l->alpha_value.host, e) < 0)
        return error_prefix(e, "--alpha");
    return learner_set_alpha(l, e);
}

/* --zero */
static int share_moments(const struct run *r, struct error *e)
{
    const struct comm *c = run_comm(r);
    if (!r->options.zero || c->size == 1)
        return 0;
    return train_state_shard(
        r->state, shard_of(r->state, trainer_needs_pieces(&r->options), c->rank, c->size), e);
}

static int load_engine(struct run *r, const struct snapshot *s, struct error *e)
{
    const struct run_options *o = &r->options;
    const bool has_alpha = o->learn.kind != LEARN_NOTHING,
               learns = has_alpha && !run_has_settled(r, s);
    const struct engine_options options = {.dtype = o->dtype,
                                           .threads = o->threads,
                                           .device = o->device,
                                           .backend = o->backend,
                                           .parts = o->objective->parts,
                                           .progress = r->watch->tell,
                                           .trains = true,
                                           .dropout = o->attention_dropout > 0,
                                           .mask = learns ? "dense" : NULL,
                                           .transform = learns ? "softmax" : NULL,
                                           .biased = learns,
                                           .kernel = s->kernel,
                                           .kernel_size = s->kernel_size};
    r->engine = engine_load(r->folder.path, &options, e);
    tell(r, NULL);
    if (!r->engine || train_state_new(r->engine, &r->state, e) < 0 || share_moments(r, e) < 0)
        return -1;
    if (o->layer_decay > 0)
        train_state_layer_decay(r->state, o->layer_decay);
    if (has_alpha && learner_new(&o->learn, r->engine, o->seed, &r->learner, e) < 0)
        return -1;
    r->trainer.learner = learns ? r->learner : NULL;
    if (has_alpha && !s->kernel && o->learn.alpha && read_alpha(r->learner, e) < 0)
        return -1;
    return has_alpha && !learns ? learner_read_fixed(r->learner, r->folder.path, e) : 0;
}

static int check_identity(const struct run *r, const struct snapshot *s, struct error *e)
{
    const char *was = s->facts.identity, *is = r->facts.identity;
    if (!was || !strcmp(was, is))
        return 0;
    if (!r->options.not_bitwise)
        return error_set(e, ERROR_INPUT,
                         "%s: its state was computed by \"%s\", this is \"%s\": the bits will "
                         "differ, which --not-bitwise allows",
                         r->folder.run, was, is);
    return 0;
}

static int apply_state(struct run *r, const struct snapshot *s, struct error *e)
{
    if (check_identity(r, s, e) < 0)
        return -1;
    if (strcmp(s->facts.options, r->facts.options) != 0 &&
        strcmp(s->facts.options, r->older_options) != 0)
        return error_set(e, ERROR_INPUT, "%s: its state is of another run.json", r->folder.run);
    r->facts.step = r->saved = s->facts.step;
    r->facts.tokens = s->facts.tokens;
    r->facts.place = s->facts.place;
    r->facts.elapsed = s->facts.elapsed;
    r->facts.best = s->facts.best;
    r->facts.best_loss = s->facts.best_loss;
    r->facts.best_step = s->facts.best_step;
    return snapshot_apply(s, r->state, r->learner ? &r->learner->alpha : NULL, e);
}

static int make_ready(struct run *r, const struct snapshot *s, struct error *e)
{
    if (load_engine(r, s, e) < 0)
        return -1;
    r->facts.identity = gradients_identity(r->engine);
    if (s->kernel && apply_state(r, s, e) < 0)
        return -1;
    if (engine_repack(r->engine, e) < 0)
        return -1;
    r->trainer.engine = r->engine;
    r->trainer.state = r->state;
    r->trainer.comm = r->options.comm;
    r->trainer.objective = r->options.objective;
    r->trainer.data = r->data;
    r->trainer.options = &r->options;
    trainer_begin(&r->trainer);
    r->peak = machine_peak(r->engine) * run_comm(r)->size;
    if (run_settle_check(r, e) < 0)
        return -1;
    return run_is_first(r) ? run_log_open(&r->log, r->folder.path, e) : 0;
}

/* ---- new, or again ---- */

static int begin_folder(struct run *r, struct error *e)
{
    if (run_is_first(r))
        return run_folder_begin(r->options.run, &r->folder, e);
    r->folder = run_folder_join(r->options.run, true);
    return 0;
}

/* Writes the model on the first rank before the others load it. */
static int write_model(const struct run *r, struct error *e)
{
    if (!run_is_first(r))
        return 0;
    return run_model_write(&r->options, r->folder.path, r->data, r->watch->say, e) < 0
               ? -1
               : write_json(r, r->json, e);
}

static int publish(struct run *r, struct error *e)
{
    const bool first = run_is_first(r);
    int result = 0;
    if (first && r->learner)
        result = learner_save(r->learner, r->folder.path, e);
    if (first && result == 0)
        result = run_folder_publish(&r->folder, e);
    result = comm_follow(run_comm(r), result, e);
    if (!first)
        run_folder_joined(&r->folder);
    return result;
}

static int begin_new(struct run *r, struct error *e)
{
    const struct snapshot none = {0};
    const struct comm *c = run_comm(r);
    if (comm_agree(c, run_data_open(r, r->options.model, e), e) < 0 ||
        comm_follow(c, begin_folder(r, e), e) < 0 || make_json(r, false, e) < 0 ||
        comm_follow(c, write_model(r, e), e) < 0 ||
        comm_agree(c, make_ready(r, &none, e), e) < 0 || run_ranks_use_nccl(r, e) < 0)
        return -1;
    return publish(r, e);
}

static void say_damaged(const struct run *r, const struct snapshot *s)
{
    struct text line = {0};
    if (!s->damaged || !r->watch->say)
        return;
    text_add(&line, "%s: %u damaged states are passed over", r->folder.run, s->damaged);
    r->watch->say(text_get(&line));
    text_finish(&line);
}

static int open_folder(struct run *r, struct error *e)
{
    if (run_is_first(r))
        return run_folder_open(r->options.run, &r->folder, e);
    r->folder = run_folder_join(r->options.run, false);
    return 0;
}

static int read_state(struct run *r, struct snapshot *s, struct error *e)
{
    if (snapshot_open(r->folder.path, s, e) < 0)
        return -1;
    const enum run_stage stage = !s->kernel              ? RUN_HAS_NO_STATE
                                 : run_has_settled(r, s) ? RUN_HAS_SETTLED
                                                         : RUN_HAS_STATE;
    return compare_json(r, stage, e) < 0 ? -1 : compare_model(r, e);
}

static int make_ready_again(struct run *r, const struct snapshot *s, struct error *e)
{
    if (make_ready(r, s, e) < 0)
        return -1;
    return run_is_first(r) ? write_share(r, e) : 0;
}

static int begin_again(struct run *r, struct error *e)
{
    struct snapshot s = {0};
    const struct comm *c = run_comm(r);
    if (comm_follow(c, open_folder(r, e), e) < 0 ||
        comm_agree(c, run_data_open(r, r->folder.path, e), e) < 0 ||
        make_json(r, true, e) < 0 || comm_agree(c, read_state(r, &s, e), e) < 0) {
        snapshot_close(&s);
        return -1;
    }
    say_damaged(r, &s);
    int result = comm_agree(c, make_ready_again(r, &s, e), e);
    snapshot_close(&s);
    r->resumed = true;
    return result < 0 ? -1 : run_ranks_use_nccl(r, e);
}

int run_setup(const struct run_options *o, const struct run_watch *w, struct run *ret,
              struct error *e)
{
    bool again;
    *ret = (struct run){.options = *o, .watch = w, .log.fd = -1};
    int r = run_ranks_go_on(ret, &again, e);
    if (r == 0)
        r = again ? begin_again(ret, e) : begin_new(ret, e);
    tell(ret, NULL);
    return r < 0 ? r : run_ranks_check(ret, false, e);
}

void run_finish(struct run *r, bool failed)
{
    run_log_close(&r->log);
    trainer_finish(&r->trainer);
    if (r->nccl)
        comm_nccl_close(r->nccl, failed);
    engine_workspace_finish(&r->workspace);
    train_state_destroy(r->state);
    learner_destroy(r->learner);
    engine_destroy(r->engine);
    if (r->held_out)
        r->held_out->natural->close(r->held_out);
    if (r->data)
        r->data->natural->close(r->data);
    json_decref(r->json);
    free(r->facts.identity);
    run_folder_finish(&r->folder);
}
