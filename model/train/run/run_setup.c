/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_setup.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include "model/checkpoint/json.h"
#include "model/train/flops.h"
#include "model/train/run/run_model.h"
#include "model/train/run/run_settle.h"
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void tell(const struct run *r, const char *step)
{
    if (r->watch->tell)
        r->watch->tell(step);
}

/* ---- data ---- */

/* Where the options name no objective the data do: pre-training opens them. */
static const struct objective *objective_of(const struct run *r)
{
    const struct objective *o = r->options.objective;
    return o ? o : r->data ? r->data->natural : objective_find("mlm");
}

static struct objective_data *open_part(const struct run *r, const char *folder,
                                        const struct model_config *c, bool held_out,
                                        struct error *e)
{
    struct tokenizer *t = NULL;
    if (path_exists(folder, "tokenizer.json") || path_exists(folder, "vocab.txt")) {
        t = tokenizer_load(folder, TOKENIZER_HF, e);
        if (!t)
            return NULL;
    }
    const struct objective_source source = {
        .path = r->options.data,
        .held_out = held_out,
        .tokenizer = t,
        .longest = r->options.positions ? r->options.positions : c->positions,
        .like = r->data};
    struct objective_data *d = objective_of(r)->open(&source, e);
    tokenizer_destroy(t);
    return d;
}

static int check_data(const struct run *r, const struct model_config *c, struct error *e)
{
    const struct objective_data *h = r->data;
    const struct objective *o = objective_of(r);
    const uint32_t positions = r->options.positions ? r->options.positions : c->positions;
    if (h->vocabulary > c->vocabulary)
        return error_set(e, ERROR_INPUT, "%s: made with %u tokens, the model has %u",
                         r->options.data, h->vocabulary, c->vocabulary);
    if (h->length > positions)
        return error_set(e, ERROR_INPUT,
                         "%s: samples of %u tokens, the model has %u positions; --positions %u "
                         "extends them",
                         r->options.data, h->length, positions, h->length);
    return o->check ? o->check(h, r->options.data, c, e) : 0;
}

/* The objective, or a simpler one if the architecture lacks some of its heads. */
static const struct objective *fitting(const struct objective *o, const struct arch *a)
{
    uint32_t has = 0;
    for (const struct parameter_row *row = a->after; row->name; row++)
        has |= row->part;
    while ((o->parts & ~has) && o->simpler)
        o = o->simpler;
    return o;
}

/* What the options leave to the model and the data. */
static void resolve(struct run *r, const struct model_config *c)
{
    struct run_options *o = &r->options;
    if (o->hidden_dropout < 0)
        o->hidden_dropout = o->overfit ? 0 : c->hidden_dropout;
    if (o->attention_dropout < 0)
        o->attention_dropout = o->overfit ? 0 : c->attention_dropout;
    if (!o->objective)
        o->objective = fitting(objective_of(r), c->arch);
    const double of_step = (double)r->data->tokens / (double)r->data->count * o->batch;
    r->pretrainer.schedule = (struct schedule){
        .decay = o->decay,
        .peak = o->rate,
        .warmup = o->warmup,
        .steps = o->tokens ? (uint64_t)fmax(1, ceil((double)o->tokens / of_step)) : o->steps};
}

static int check_settling(const struct run *r, struct error *e)
{
    const struct learn_options *o = &r->options.learn;
    const uint64_t steps = r->pretrainer.schedule.steps, most = o->alpha ? steps : steps - 1;
    return o->settle > most
               ? error_set(e, ERROR_INPUT,
                           "--settle %" PRIu64 ": %s the run's %" PRIu64 " steps are expected",
                           o->settle, o->alpha ? "at most" : "fewer than", steps)
               : 0;
}

static int open_data(struct run *r, const char *model, struct error *e)
{
    struct model_config c = {0};
    int result = config_read(model, &c, e);
    if (result == 0) {
        tell(r, "reading data");
        r->data = open_part(r, model, &c, false, e);
        result = r->data ? check_data(r, &c, e) : -1;
    }
    if (result == 0 && r->options.eval_every) {
        r->held_out = open_part(r, model, &c, true, e);
        result = r->held_out ? 0 : error_prefix(e, "--eval-every");
    }
    if (result == 0) {
        resolve(r, &c);
        result = check_settling(r, e);
    }
    config_finish(&c);
    return result;
}

/* ---- options ---- */

static void make_json(struct run *r)
{
    struct learn_options *learn = &r->options.learn;
    if (learn->snap > 0)
        learn->snap_threads =
            r->options.threads ? r->options.threads : (uint32_t)omp_get_max_threads();
    r->json = run_options_json(&r->options, r->data->sum);
    run_options_hash(r->json, r->facts.options);
}

static int write_json(const struct run *r, struct error *e)
{
    char *text = json_dumps(r->json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    int result = json_write_line(r->folder.path, "run.json", text, e);
    free(text);
    return result;
}

/* The mask that a run settles on stays the same, whatever threads it goes on with. */
static int compare_json(struct run *r, struct error *e)
{
    json_t *stored = json_read(r->folder.path, "run.json", e);
    int result = stored ? run_options_compare(stored, r->json, e) : -1;
    const json_t *threads = json_object_get(stored, "snap_threads");
    if (r->options.learn.snap > 0 && json_is_integer(threads) &&
        json_integer_value(threads) >= 1 && json_integer_value(threads) <= 4096)
        r->options.learn.snap_threads = (uint32_t)json_integer_value(threads);
    json_decref(stored);
    return result;
}

/* The command names the model that the run began with, unless that is gone: the run has its own. */
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

static int load_engine(struct run *r, const struct snapshot *s, struct error *e)
{
    const struct run_options *o = &r->options;
    const bool has_alpha = o->learn.kind != LEARN_NOTHING,
               learns = has_alpha && !run_has_settled(r, s);
    const struct engine_options options = {.dtype = o->dtype,
                                           .threads = o->threads,
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
    if (!r->engine || train_state_new(r->engine, &r->state, e) < 0)
        return -1;
    if (has_alpha && learner_new(&o->learn, r->engine, o->seed, &r->learner, e) < 0)
        return -1;
    r->pretrainer.learner = learns ? r->learner : NULL;
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
    if (strcmp(s->facts.options, r->facts.options) != 0)
        return error_set(e, ERROR_INPUT, "%s: its state is of another run.json", r->folder.run);
    r->facts.step = r->saved = s->facts.step;
    r->facts.tokens = s->facts.tokens;
    r->facts.place = s->facts.place;
    r->facts.elapsed = s->facts.elapsed;
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
    r->pretrainer.engine = r->engine;
    r->pretrainer.state = r->state;
    r->pretrainer.comm = r->options.comm;
    r->pretrainer.objective = r->options.objective;
    r->pretrainer.data = r->data;
    r->pretrainer.options = &r->options;
    pretrainer_begin(&r->pretrainer);
    r->peak = machine_peak(r->engine);
    return run_log_open(&r->log, r->folder.path, e);
}

/* ---- new, or again ---- */

static int begin_new(struct run *r, struct error *e)
{
    const struct snapshot none = {0};
    if (open_data(r, r->options.model, e) < 0 ||
        run_folder_begin(r->options.run, &r->folder, e) < 0)
        return -1;
    make_json(r);
    if (run_model_write(&r->options, r->folder.path, r->options.objective->parts, e) < 0 ||
        write_json(r, e) < 0 || make_ready(r, &none, e) < 0 ||
        (r->learner && learner_save(r->learner, r->folder.path, e) < 0))
        return -1;
    return run_folder_publish(&r->folder, e);
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

static int begin_again(struct run *r, struct error *e)
{
    struct snapshot s = {0};
    if (run_folder_open(r->options.run, &r->folder, e) < 0 ||
        open_data(r, r->folder.path, e) < 0)
        return -1;
    make_json(r);
    if (compare_json(r, e) < 0 || compare_model(r, e) < 0 ||
        snapshot_open(r->folder.path, &s, e) < 0)
        return -1;
    say_damaged(r, &s);
    int result = make_ready(r, &s, e);
    snapshot_close(&s);
    r->resumed = true;
    return result;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

int run_setup(const struct run_options *o, const struct run_watch *w, struct run *ret,
              struct error *e)
{
    *ret = (struct run){.options = *o, .watch = w, .log.fd = -1};
    int r = o->goes_on && is_folder(o->run) ? begin_again(ret, e) : begin_new(ret, e);
    tell(ret, NULL);
    return r;
}

void run_finish(struct run *r)
{
    run_log_close(&r->log);
    pretrainer_finish(&r->pretrainer);
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
