/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert eval: the loss on the held-out part of a DATA folder. */
#include "model/train/pretrainer.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PROBABILITY 0.15

/* A pretrainer that takes no step. */
struct held_out {
    struct run_options options;
    struct pretrainer pretrainer;
    struct samples *samples;
};

static int load_engine(const struct options *o, bool pairs, struct held_out *h, struct error *e)
{
    struct engine_options options = {.mask = o->mask,
                                     .transform = o->transform,
                                     .drop = o->drop,
                                     .drop_seed = o->seed,
                                     .threads = o->threads,
                                     .device = o->device,
                                     .parts = PART_MLM | (pairs ? PART_POOLER | PART_NSP : 0),
                                     .progress = session_tell,
                                     .trains = true};
    if (session_dtype(o, &options.dtype, e) < 0)
        return -1;
    h->pretrainer.engine = engine_load(o->argument, &options, e);
    session_tell(NULL);
    return h->pretrainer.engine ? 0 : -1;
}

static int check_data(const struct options *o, const struct held_out *h, struct error *e)
{
    const struct shard_header *header = h->samples->header;
    const struct engine *g = h->pretrainer.engine;
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

/* Next sentences are judged where both DATA and the model know them. */
static bool has_pairs(const struct options *o, const struct samples *s)
{
    struct model_config c = {0};
    struct error ignored = {0};
    const bool has = config_read(o->argument, &c, &ignored) == 0 && config_parts(&c) & PART_NSP;
    config_finish(&c);
    return has && s->header->pairing == PAIRING_NEXT;
}

static int open_all(const struct options *o, struct held_out *h, struct error *e)
{
    h->samples = samples_open(o->data, DATA_HELD_OUT, NULL, e);
    if (!h->samples)
        return -1;
    struct pretrainer *p = &h->pretrainer;
    p->pairs = has_pairs(o, h->samples);
    p->options = &h->options;
    h->options.batch = 1;
    if (load_engine(o, p->pairs, h, e) < 0 || check_data(o, h, e) < 0 ||
        train_state_new(p->engine, &p->state, e) < 0)
        return -1;
    pretrainer_begin(p);
    return 0;
}

static void print_text(const struct evaluation *v)
{
    printf("loss %.4f, perplexity %.3f, accuracy %.2f %% of the masked tokens", v->loss,
           v->perplexity, 100 * v->accuracy);
    if (v->pairs)
        printf("; next sentences: loss %.4f, accuracy %.2f %%", v->next,
               100 * v->next_accuracy);
    printf("; %llu tokens\n", (unsigned long long)v->tokens);
}

static void print_json(const struct evaluation *v)
{
    json_t *json = json_pack("{s:f, s:f, s:f, s:f, s:f, s:I}", "loss", v->loss, "mlm", v->mlm,
                             "nsp", v->next, "perplexity", v->perplexity, "accuracy",
                             v->accuracy, "tokens", (json_int_t)v->tokens);
    if (v->pairs)
        json_object_set_new(json, "nsp_accuracy", json_real(v->next_accuracy));
    else
        json_object_set_new(json, "nsp", json_null());
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(json);
}

static void close_all(struct held_out *h)
{
    pretrainer_finish(&h->pretrainer);
    engine_destroy(h->pretrainer.engine);
    train_state_destroy(h->pretrainer.state);
    samples_close(h->samples);
}

static int evaluate(const struct options *o, struct held_out *h, struct evaluation *ret,
                    struct error *e)
{
    const double probability =
        o->mlm_probability_given ? o->mlm_probability : DEFAULT_PROBABILITY;
    if (!o->data)
        return error_set(e, ERROR_INPUT, "eval: --data DATA is expected");
    if (!(probability > 0 && probability < 1))
        return error_set(e, ERROR_INPUT,
                         "--mlm-probability %g: above 0 and below 1 is expected", probability);
    if (o->threads > 4096)
        return error_set(e, ERROR_INPUT, "--threads %u: at most 4096", o->threads);
    if (open_all(o, h, e) < 0)
        return -1;
    session_tell("evaluating");
    int r = pretrainer_evaluate(&h->pretrainer, h->samples, probability, ret, e);
    session_tell(NULL);
    return r;
}

int command_eval(const struct options *o)
{
    struct error e = {0};
    struct held_out h = {0};
    struct evaluation v;
    int r = evaluate(o, &h, &v, &e);
    if (r == 0)
        (o->json ? print_json : print_text)(&v);
    close_all(&h);
    return r < 0 ? command_fail(&e) : 0;
}
