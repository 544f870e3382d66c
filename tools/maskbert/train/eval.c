/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert eval: the loss on the held-out part of a DATA folder. */
#include "model/checkpoint/json.h"
#include "model/objective/pretrain.h"
#include "model/train/step/trainer.h"
#include "tools/common/table.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/finetune/eval_task.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PROBABILITY 0.15

/* A trainer that takes no step. */
struct held_out {
    struct run_options options;
    struct trainer trainer;
    struct objective_data *data;
};

static int load_engine(const struct options *o, struct held_out *h, struct error *e)
{
    struct engine_options options = {.mask = o->mask,
                                     .transform = o->transform,
                                     .drop = o->drop,
                                     .drop_seed = o->seed,
                                     .drop_length = h->data->length,
                                     .threads = o->threads,
                                     .device = o->device,
                                     .parts = h->trainer.objective->parts,
                                     .progress = session_tell,
                                     .trains = true};
    if (session_dtype(o, &options.dtype, e) < 0)
        return -1;
    h->trainer.engine = engine_load(o->argument, &options, e);
    session_tell(NULL);
    return h->trainer.engine ? 0 : -1;
}

static int check_data(const struct options *o, const struct held_out *h, struct error *e)
{
    const struct shard_header *header = pretrain_samples(h->data)->header;
    const struct engine *g = h->trainer.engine;
    if (header->length > g->longest)
        return error_set(e, ERROR_INPUT, "%s: samples of %u tokens, the model has %u positions",
                         o->data, header->length, g->longest);
    if (g->tokenizer &&
        !shard_sum_equal(header->vocabulary_sum, shard_vocabulary_sum(g->tokenizer)))
        return error_set(e, ERROR_INPUT, "%s: made with another vocabulary than the model's",
                         o->data);
    return header->vocabulary > g->config.vocabulary
               ? error_set(e, ERROR_INPUT, "%s: made with %u tokens, the model has %u", o->data,
                           header->vocabulary, g->config.vocabulary)
               : 0;
}

/* A run with --objective mlm leaves the head for next sentences as it was before. */
static int trained_words_only(const char *folder, bool *ret, struct error *e)
{
    json_t *run;
    if (json_read_optional(folder, "run.json", &run, e) < 0)
        return -1;
    const char *objective = json_string_value(json_object_get(run, "objective"));
    *ret = objective && !strcmp(objective, "mlm");
    json_decref(run);
    return 0;
}

/* Next sentences are judged where DATA has pairs and the model a head for them that was trained. */
static int find_pairs(const struct options *o, const struct samples *s, bool *ret,
                      struct error *e)
{
    struct model_config c = {0};
    struct error ignored = {0};
    bool words_only;
    if (trained_words_only(o->argument, &words_only, e) < 0)
        return -1;
    const bool has = config_read(o->argument, &c, &ignored) == 0 && config_parts(&c) & PART_NSP;
    config_finish(&c);
    *ret = has && !words_only && s->header->pairing == PAIRING_NEXT;
    return 0;
}

static int open_all(const struct options *o, struct held_out *h, struct error *e)
{
    bool pairs;
    h->data =
        objective_mlm.open(&(struct objective_source){.path = o->data, .held_out = true}, e);
    if (!h->data || find_pairs(o, pretrain_samples(h->data), &pairs, e) < 0)
        return -1;
    struct trainer *p = &h->trainer;
    p->objective = pairs ? &objective_mlm_nsp : &objective_mlm;
    p->options = &h->options;
    h->options.batch = 1;
    if (load_engine(o, h, e) < 0 || check_data(o, h, e) < 0 ||
        train_state_new(p->engine, &p->state, e) < 0)
        return -1;
    trainer_begin(p);
    return 0;
}

static void print_text(const struct evaluation *v)
{
    struct text line = {0};
    v->objective->text(&v->losses, &line);
    text_add(&line, "; %llu tokens\n", (unsigned long long)v->tokens);
    lines_print(&line, TABLE_WIDTH, 2);
}

static void print_json(const struct evaluation *v)
{
    struct metric metric[METRICS_MOST];
    json_t *json = json_pack("{s:f, s:n, s:n, s:n, s:n, s:I}", "loss", v->loss, "mlm", "nsp",
                             "perplexity", "accuracy", "tokens", (json_int_t)v->tokens);
    const uint32_t metrics = v->objective->metrics(&v->losses, metric);
    for (uint32_t k = 0; k < metrics; k++)
        json_object_set_new(json, metric[k].name, json_real(metric[k].value));
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(json);
}

static void close_all(struct held_out *h)
{
    trainer_finish(&h->trainer);
    train_state_destroy(h->trainer.state);
    engine_destroy(h->trainer.engine);
    objective_mlm.close(h->data);
}

static int evaluate(const struct options *o, struct held_out *h, struct evaluation *ret,
                    struct error *e)
{
    const double probability =
        o->mlm_probability_given ? o->mlm_probability : DEFAULT_PROBABILITY;
    if (!o->data)
        return error_set(e, ERROR_INPUT,
                         "eval: --data DATA is expected, or --task TASK --data FOLDER");
    if (!(probability > 0 && probability < 1))
        return error_set(e, ERROR_INPUT,
                         "--mlm-probability %g: above 0 and below 1 is expected", probability);
    if (open_all(o, h, e) < 0)
        return -1;
    session_tell("evaluating");
    const struct objective_options settings = {.mlm_probability = probability,
                                               .whole_words = o->whole_word};
    int r = trainer_evaluate(&h->trainer, h->data, &settings, ret, e);
    session_tell(NULL);
    if (r == 0 && !isfinite(ret->loss))
        r = error_set(e, ERROR_FALSE, "%s: the model's loss is not finite", o->data);
    return r;
}

/* Refuses options that only the other kind of evaluation reads. */
static int check_options(const struct options *o, struct error *e)
{
    const struct {
        const char *name;
        bool given, of_task;
    } rows[] = {{"--split", o->part != NULL, true},
                {"--predictions", o->predictions != NULL, true},
                {"--nbest", o->nbest != NULL, true},
                {"--stride", o->stride != 0, true},
                {"--max-length", o->max_length != 0, true},
                {"--regression", o->regression, true},
                {"--null-threshold", o->null_threshold_given, true},
                {"--mlm-probability", o->mlm_probability_given, false},
                {"--whole-word", o->whole_word, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].given && rows[k].of_task != (o->task != NULL))
            return error_set(e, ERROR_INPUT, "%s: %s --task alone", rows[k].name,
                             rows[k].of_task ? "with" : "without");
    return o->seed_given && !o->drop
               ? error_set(e, ERROR_INPUT, "--seed: with --drop random:K alone")
               : 0;
}

int command_eval(const struct options *o)
{
    struct error e = {0};
    struct held_out h = {0};
    struct evaluation v;
    if (check_options(o, &e) < 0)
        return command_fail(&e);
    if (o->task)
        return eval_task(o, &e) < 0 ? command_fail(&e) : 0;
    int r = evaluate(o, &h, &v, &e);
    if (r == 0)
        (o->json ? print_json : print_text)(&v);
    close_all(&h);
    return r < 0 ? command_fail(&e) : 0;
}
