/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_data.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/base/windows.h"
#include "model/engine/lengths.h"
#include "model/train/run/run_model.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Where the options name no objective the data do: pre-training opens them. */
static const struct objective *objective_of(const struct run *r)
{
    const struct objective *o = r->options.objective;
    return o         ? o
           : r->data ? r->data->natural
                     : objective_find(r->options.task ? "classify" : "mlm");
}

/* The model that data are opened for. */
struct receiver {
    struct model_config config;
    struct tokenizer *tokenizer; /* null: it has none */
    uint32_t positions, most;    /* tokens that it accepts: `most` of a mask that is shorter */
    uint32_t longest, overlap;   /* of fine-tuning's texts or windows */
};

static int check_length(const struct run *r, const struct receiver *to, struct error *e)
{
    const struct run_options *o = &r->options;
    const uint32_t least = run_reads_windows(o) ? WINDOW_LEAST : TOKENIZER_MIN_LENGTH;
    if (o->max_length > to->positions)
        return error_set(e, ERROR_INPUT,
                         "--max-length %u: the model has %u positions; --positions %u extends "
                         "them",
                         o->max_length, to->positions, o->max_length);
    if (o->max_length > to->most)
        return error_set(e, ERROR_INPUT,
                         "--max-length %u: the model's mask has %u tokens; --mask replaces it",
                         o->max_length, to->most);
    return to->longest < least
               ? error_set(e, ERROR_INPUT, "%s: texts of %u tokens: at least %u are expected",
                           o->model, to->longest, least)
               : 0;
}

/* The lengths that inference from RUN will use: RUN keeps these options, and --positions become the limit of its tokenizer. */
static int find_lengths(const struct run *r, const char *model, struct receiver *to,
                        struct error *e)
{
    const struct run_options *o = &r->options;
    struct lengths l;
    if (!o->task)
        return 0;
    if (lengths_read(model, to->config.json, to->tokenizer, &l, e) < 0)
        return -1;
    if (o->positions)
        l.text = o->positions;
    to->longest = lengths_sample(&l, run_reads_windows(o), to->most, o->max_length);
    to->overlap = lengths_overlap(&l, o->overlap);
    return check_length(r, to, e);
}

static int read_receiver(const struct run *r, const char *model, struct receiver *to,
                         struct error *e)
{
    if (config_read(model, &to->config, e) < 0)
        return -1;
    if (tokenizer_exists(model)) {
        to->tokenizer = tokenizer_load(model, TOKENIZER_HF, e);
        if (!to->tokenizer)
            return -1;
    }
    to->positions = r->options.positions ? r->options.positions : to->config.positions;
    if (run_model_limit(&r->options, model, &to->config, &to->most, e) < 0)
        return -1;
    return find_lengths(r, model, to, e);
}

static void receiver_finish(struct receiver *to)
{
    tokenizer_destroy(to->tokenizer);
    config_finish(&to->config);
}

static struct objective_data *open_part(const struct run *r, const struct receiver *to,
                                        const struct objective_data *like, bool held_out,
                                        struct error *e)
{
    const struct objective_source source = {.path = r->options.data,
                                            .held_out = held_out,
                                            .tokenizer = to->tokenizer,
                                            .longest = to->longest,
                                            .overlap = to->overlap,
                                            .task = r->options.task,
                                            .regression = r->options.regression,
                                            .like = like};
    return objective_of(r)->open(&source, e);
}

static int check_data(const struct run *r, const struct receiver *to, struct error *e)
{
    const struct objective_data *h = r->data;
    const struct objective *o = objective_of(r);
    const struct model_config *c = &to->config;
    if (h->vocabulary > c->vocabulary)
        return error_set(e, ERROR_INPUT, "%s: made with %u tokens, the model has %u",
                         r->options.data, h->vocabulary, c->vocabulary);
    if (h->length > to->positions)
        return error_set(e, ERROR_INPUT,
                         "%s: samples of %u tokens, the model has %u positions; --positions %u "
                         "extends them",
                         r->options.data, h->length, to->positions, h->length);
    if (h->length > to->most)
        return error_set(e, ERROR_INPUT,
                         "%s: samples of %u tokens, the model's mask has %u; --mask replaces "
                         "it",
                         r->options.data, h->length, to->most);
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

static uint64_t steps_of(const struct run_options *o, const struct objective_data *d)
{
    const double of_step = (double)d->tokens / (double)d->count * o->batch;
    if (o->epochs > 0)
        return (uint64_t)fmax(1, ceil(o->epochs * d->count / o->batch));
    return o->tokens ? (uint64_t)fmax(1, ceil((double)o->tokens / of_step)) : o->steps;
}

/* Fills in what depends on the model and the data. */
static int resolve(struct run *r, const struct model_config *c, struct error *e)
{
    struct run_options *o = &r->options;
    if (o->hidden_dropout < 0)
        o->hidden_dropout = o->overfit ? 0 : c->hidden_dropout;
    if (o->attention_dropout < 0)
        o->attention_dropout = o->overfit ? 0 : c->attention_dropout;
    if (!o->objective)
        o->objective = fitting(objective_of(r), c->arch);
    if (o->task && !o->overfit && run_model_head_dropout(o, c, &o->head_dropout, e) < 0)
        return -1;
    r->trainer.schedule = (struct schedule){
        .decay = o->decay, .peak = o->rate, .warmup = o->warmup, .steps = steps_of(o, r->data)};
    return 0;
}

static int check_settling(const struct run *r, struct error *e)
{
    const struct learn_options *o = &r->options.learn;
    const uint64_t steps = r->trainer.schedule.steps, most = o->alpha ? steps : steps - 1;
    return o->settle > most
               ? error_set(e, ERROR_INPUT,
                           "--settle %" PRIu64 ": %s the run's %" PRIu64 " steps are expected",
                           o->settle, o->alpha ? "at most" : "fewer than", steps)
               : 0;
}

/* A head that goes on keeps the numbers of its labels: where they are not those of the data, the data are opened again. */
static int number_labels(struct run *r, const struct receiver *to, struct error *e)
{
    struct objective_data *d = r->data;
    const struct objective *o = objective_of(r);
    uint32_t *label = memory_new((size_t)d->labels + 1, sizeof *label);
    char **name = memory_new((size_t)d->labels + 1, sizeof *name);
    bool moves = false;
    if (d->label && o->model_class && run_model_labels(&to->config, &r->options, o, d, label))
        for (uint32_t k = 0; k < d->labels; k++) {
            name[label[k]] = d->label[k];
            moves |= label[k] != k;
        }
    if (moves) {
        const struct objective_data like = {
            .natural = d->natural, .labels = d->labels, .label = name};
        r->data = open_part(r, to, &like, false, e);
        o->close(d);
    }
    free(name);
    free(label);
    return r->data ? 0 : -1;
}

int run_data_open(struct run *r, const char *model, struct error *e)
{
    struct receiver to = {0};
    int result = read_receiver(r, model, &to, e);
    if (result == 0) {
        if (r->watch->tell)
            r->watch->tell("reading data");
        r->data = open_part(r, &to, NULL, false, e);
        result = r->data ? number_labels(r, &to, e) : -1;
    }
    if (result == 0)
        result = check_data(r, &to, e);
    if (result == 0 && (r->options.eval_every || r->options.task)) {
        r->held_out = open_part(r, &to, r->data, true, e);
        result = r->held_out ? 0 : r->options.task ? -1 : error_prefix(e, "--eval-every");
    }
    if (result == 0)
        result = resolve(r, &to.config, e);
    if (result == 0)
        result = check_settling(r, e);
    receiver_finish(&to);
    return result;
}
