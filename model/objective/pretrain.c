/* SPDX-License-Identifier: Apache-2.0 */
/* "mlm+nsp" and "mlm": the same data, with and without the target of next sentences. */
#include "model/objective/pretrain.h"
#include "masks/base/memory.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct pretrain_data {
    struct objective_data base;
    struct samples *samples;
};

struct pretrain_batch {
    struct objective_batch base;
    struct sample_batch samples;
};

static const struct pretrain_data *data_of(const struct objective_data *d)
{
    return (const struct pretrain_data *)d;
}

const struct samples *pretrain_samples(const struct objective_data *d)
{
    return data_of(d)->samples;
}

/* ---- data ---- */

static uint64_t tokens_of(const struct samples *s)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        const struct sample_record *p = &s->records.sample[k];
        sum += p->a_count + 2 + (p->b_count ? p->b_count + 1 : 0);
    }
    return sum;
}

static struct objective_data *open_data(const struct objective_source *s, struct error *e)
{
    struct samples *samples =
        samples_open(s->path, s->held_out ? DATA_HELD_OUT : DATA_TRAIN, s->tokenizer, e);
    if (!samples)
        return NULL;
    struct pretrain_data *d = memory_new(1, sizeof *d);
    const struct shard_header *h = samples->header;
    d->samples = samples;
    d->base = (struct objective_data){.natural = h->pairing == PAIRING_NEXT ? &objective_mlm_nsp
                                                                            : &objective_mlm,
                                      .count = samples->count,
                                      .length = h->length,
                                      .vocabulary = h->vocabulary,
                                      .tokens = tokens_of(samples)};
    snprintf(d->base.sum, sizeof d->base.sum, "%016" PRIx64 "%016" PRIx64, h->header_sum.high,
             h->header_sum.low); /* covers the other sums */
    return &d->base;
}

static void close_data(struct objective_data *d)
{
    if (d)
        samples_close(((struct pretrain_data *)d)->samples);
    free(d);
}

static int check_types(const struct objective_data *d, const char *path,
                       const struct model_config *c, struct error *e)
{
    return pretrain_samples(d)->header->pairing == PAIRING_NEXT && c->types == 1 && !c->one_type
               ? error_set(e, ERROR_INPUT, "%s has pairs, the model one type of token", path)
               : 0;
}

static int check_pairs(const struct objective_data *d, const char *path,
                       const struct model_config *c, struct error *e)
{
    if (pretrain_samples(d)->header->pairing != PAIRING_NEXT)
        return error_set(
            e, ERROR_INPUT,
            "--objective mlm+nsp: %s has no pairs; prep with --pairing nsp makes them", path);
    return check_types(d, path, c, e);
}

/* ---- batches ---- */

static struct objective_batch *new_batch(void)
{
    return memory_new(1, sizeof(struct pretrain_batch));
}

static void destroy_batch(struct objective_batch *b)
{
    if (b)
        sample_batch_finish(&((struct pretrain_batch *)b)->samples);
    free(b);
}

static void make_batch(const struct objective_data *d, const struct batch_request *r,
                       struct objective_batch *ret)
{
    struct pretrain_batch *b = (struct pretrain_batch *)ret;
    const struct sample_options o = {.seed = r->seed,
                                     .probability = r->options->mlm_probability,
                                     .whole_words = r->options->whole_words};
    samples_batch(pretrain_samples(d), &o, r->epoch, r->first, r->count, &b->samples);
    ret->batch = b->samples.batch;
}

static void make_words(const struct objective_data *d, const struct batch_request *r,
                       struct objective_batch *ret)
{
    make_batch(d, r, ret);
    ret->batch.targets = 1; /* SAMPLE_WORDS */
}

/* ---- numbers ---- */

static uint32_t step_metrics(const double mean[TARGETS_MOST], struct metric ret[METRICS_MOST])
{
    ret[0] = (struct metric){"mlm", mean[SAMPLE_WORDS]};
    ret[1] = (struct metric){"nsp", mean[SAMPLE_NEXT]};
    return 2;
}

static double share_right(const struct target_loss *t)
{
    return t->count ? (double)t->right / (double)t->count : 0;
}

static uint32_t metrics(const struct batch_loss *l, struct metric ret[METRICS_MOST])
{
    double mean[TARGETS_MOST];
    objective_loss(&objective_mlm, l, mean);
    ret[0] = (struct metric){"perplexity", exp(mean[SAMPLE_WORDS])};
    ret[1] = (struct metric){"accuracy", share_right(&l->target[SAMPLE_WORDS])};
    ret[2] = (struct metric){"mlm", mean[SAMPLE_WORDS]};
    ret[3] = (struct metric){"nsp", mean[SAMPLE_NEXT]};
    ret[4] = (struct metric){"nsp_accuracy", share_right(&l->target[SAMPLE_NEXT])};
    return l->target[SAMPLE_NEXT].count ? 5 : 3;
}

static void add_text(const struct batch_loss *l, struct text *to)
{
    double mean[TARGETS_MOST];
    const double sum = objective_loss(&objective_mlm_nsp, l, mean);
    text_add(to, "MLM loss %.4f, perplexity %.3f, accuracy %.2f %% of the masked tokens",
             mean[SAMPLE_WORDS], exp(mean[SAMPLE_WORDS]),
             100 * share_right(&l->target[SAMPLE_WORDS]));
    if (l->target[SAMPLE_NEXT].count)
        text_add(to, "; NSP loss %.4f, accuracy %.2f %%; sum of losses %.4f", mean[SAMPLE_NEXT],
                 100 * share_right(&l->target[SAMPLE_NEXT]), sum);
}

static void add_losses(double loss, const double mean[TARGETS_MOST], struct text *to)
{
    text_add(to, "loss %.4f (MLM %.4f)", loss, mean[SAMPLE_WORDS]);
}

static void add_loss(double loss, const double mean[TARGETS_MOST], struct text *to)
{
    (void)mean;
    text_add(to, "loss %.4f", loss);
}

static void describe(const struct objective_data *d, struct text *to)
{
    text_add(to, "%u samples, unigram entropy %.4f nats", d->count,
             pretrain_samples(d)->header->entropy);
}

/* A model that has learned no more than how frequent words are stays at their entropy. */
static bool plateau(const struct objective_data *d, const double mean[TARGETS_MOST],
                    struct text *to)
{
    const double entropy = pretrain_samples(d)->header->entropy, mlm = mean[SAMPLE_WORDS];
    if (fabs(mlm - entropy) > 0.02 * entropy)
        return false;
    text_add(to,
             "the loss of masked words, %.3f, sits at the unigram entropy, %.3f: so far the "
             "model knows how frequent words are, and no more",
             mlm, entropy);
    return true;
}

static void add_options(const struct objective_options *o, json_t *to)
{
    json_object_set_new(to, "mlm_probability", json_real(o->mlm_probability));
    if (o->whole_words) /* absent in runs of earlier versions */
        json_object_set_new(to, "whole_word", json_true());
}

const struct objective objective_mlm_nsp = {
    .name = "mlm+nsp",
    .parts = PART_MLM | PART_POOLER | PART_NSP,
    .simpler = &objective_mlm,
    .targets = 2,
    .weight = {1, 1},
    .open = open_data,
    .close = close_data,
    .check = check_pairs,
    .batch_new = new_batch,
    .batch_destroy = destroy_batch,
    .batch = make_batch,
    .step_metrics = step_metrics,
    .metrics = metrics,
    .text = add_text,
    .loss_text = add_losses,
    .describe = describe,
    .plateau = plateau,
    .add_options = add_options,
};

const struct objective objective_mlm = {
    .name = "mlm",
    .parts = PART_MLM,
    .targets = 1,
    .weight = {1},
    .open = open_data,
    .close = close_data,
    .check = check_types,
    .batch_new = new_batch,
    .batch_destroy = destroy_batch,
    .batch = make_words,
    .step_metrics = step_metrics,
    .metrics = metrics,
    .text = add_text,
    .loss_text = add_loss,
    .describe = describe,
    .plateau = plateau,
    .add_options = add_options,
};
