/* SPDX-License-Identifier: Apache-2.0 */
/* From a command line to the options of a run. */
#include "tools/maskbert/train/pretrain_options.h"
#include "tools/maskbert/session.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BATCH = 32, DEFAULT_SAVE_EVERY = 1000, DEFAULT_KEEP = 2, MOST_BATCH = 1 << 20 };

/* An option's value in [least, most), or its default. */
struct real {
    const char *option, *expected;
    double value, otherwise, least, most;
    bool given;
};

static int read_real(const struct real *r, double *ret, struct error *e)
{
    *ret = r->given ? r->value : r->otherwise;
    return *ret >= r->least && *ret < r->most
               ? 0
               : error_set(e, ERROR_INPUT, "--%s %g: %s is expected", r->option, r->value,
                           r->expected);
}

static int read_reals(const struct options *o, struct run_options *ret, struct error *e)
{
    const bool google = o->no_bias_correction || ret->optimizer.kind == OPTIMIZER_LAMB;
    const double all = 1e300;
    double attention = 0;
    const struct real each[] = {
        {"lr", "0 or more", o->rate, 1e-4, 0, all, o->rate_given},
        {"warmup", "0 or more", o->warmup, 0.01, 0, 1e15, o->warmup_given},
        {"eps", "0 or more", o->eps, google ? 1e-6 : 1e-8, 0, all, o->eps_given},
        {"weight-decay", "0 or more", o->weight_decay, 0.01, 0, all, o->weight_decay_given},
        {"clip", "0 or more", o->clip, 1, 0, all, o->clip_given},
        {"dropout", "from 0 to below 0.99", o->dropout, -1, o->dropout_given ? 0 : -1, 0.99,
         o->dropout_given},
        {"attention-dropout", "from 0 to below 0.99", o->attention_dropout, -1,
         o->attention_dropout_given ? 0 : -1, 0.99, o->attention_dropout_given},
        {"mlm-probability", "above 0 and below 1", o->mlm_probability, 0.15, 1e-9, 1,
         o->mlm_probability_given},
    };
    double *const to[] = {&ret->rate,           &ret->warmup,
                          &ret->optimizer.eps,  &ret->optimizer.weight_decay,
                          &ret->optimizer.clip, &ret->hidden_dropout,
                          &attention,           &ret->data_options.mlm_probability};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (read_real(&each[k], to[k], e) < 0)
            return -1;
    ret->attention_dropout = o->attention_dropout_given ? attention : ret->hidden_dropout;
    return 0;
}

static int read_betas(const struct options *o, struct optimizer *ret, struct error *e)
{
    char *end;
    ret->beta1 = 0.9;
    ret->beta2 = 0.999;
    if (!o->betas)
        return 0;
    ret->beta1 = strtod(o->betas, &end);
    const bool comma = end > o->betas && *end == ',';
    const char *second = comma ? end + 1 : "";
    ret->beta2 = strtod(second, &end);
    return comma && end > second && !*end && ret->beta1 >= 0 && ret->beta1 < 1 &&
                   ret->beta2 >= 0 && ret->beta2 < 1
               ? 0
               : error_set(
                     e, ERROR_INPUT,
                     "--betas %s: two numbers from 0 to below 1 are expected, as 0.9,0.999",
                     o->betas);
}

/* Which of the names; null: the first. */
static int read_choice(const char *option, const char *text, const char *const *name,
                       uint32_t *ret, struct error *e)
{
    char list[128] = "";
    *ret = 0;
    for (uint32_t k = 0; text && name[k]; k++) {
        if (!strcmp(text, name[k])) {
            *ret = k;
            return 0;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 !k            ? ""
                 : name[k + 1] ? ", "
                               : " or ",
                 name[k]);
    }
    return text ? error_set(e, ERROR_INPUT, "--%s %s: %s is expected", option, text, list) : 0;
}

static int read_choices(const struct options *o, struct run_options *ret, struct error *e)
{
    static const char *const optimizers[] = {"adamw", "lamb", NULL},
                             *const recomputes[] = {"none", "attention", "layer", NULL},
                             *const names[] = {"mlm+nsp", "mlm", NULL},
                             *const schedules[] = {"linear", "poly", "cosine", "constant",
                                                   NULL};
    uint32_t optimizer, recompute, objective, schedule;
    if (read_choice("optimizer", o->optimizer, optimizers, &optimizer, e) < 0 ||
        read_choice("recompute", o->recompute, recomputes, &recompute, e) < 0 ||
        read_choice("objective", o->objective, names, &objective, e) < 0 ||
        read_choice("schedule", o->schedule, schedules, &schedule, e) < 0 ||
        session_dtype(o, &ret->dtype, e) < 0)
        return -1;
    ret->optimizer.kind = optimizer ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW;
    ret->optimizer.bias_correction = !o->no_bias_correction;
    ret->recompute = (enum recompute)recompute;
    ret->objective = o->objective ? objective_find(names[objective]) : NULL;
    schedule_parse(schedules[schedule], &ret->decay);
    return 0;
}

static int read_length(const struct options *o, struct run_options *ret, struct error *e)
{
    const int given = o->steps_given + o->tokens_given + o->minutes_given;
    if (given != 1)
        return error_set(e, ERROR_INPUT,
                         "pretrain: one of --steps N, --tokens N, --minutes M is expected");
    if (o->steps_given && (!o->steps || o->steps >= UINT64_C(1) << 40))
        return error_set(e, ERROR_INPUT, "--steps: a whole number from 1 is expected");
    if (o->tokens_given && (!o->tokens || o->tokens >= UINT64_C(1) << 50))
        return error_set(e, ERROR_INPUT, "--tokens: a whole number from 1 is expected");
    if (o->minutes_given && !(o->minutes > 0))
        return error_set(e, ERROR_INPUT, "--minutes %g: more than 0 is expected", o->minutes);
    ret->steps = o->steps;
    ret->tokens = o->tokens;
    ret->minutes = o->minutes;
    return 0;
}

static int read_sizes(const struct options *o, struct run_options *ret, struct error *e)
{
    ret->batch = o->batch ? o->batch : DEFAULT_BATCH;
    ret->accumulate = o->accumulate;
    if (ret->batch > MOST_BATCH)
        return error_set(e, ERROR_INPUT, "--batch %u: at most %d", ret->batch, MOST_BATCH);
    if (ret->accumulate > ret->batch)
        return error_set(e, ERROR_INPUT, "--accumulate %u: a batch of %u has no so many parts",
                         ret->accumulate, ret->batch);
    ret->threads = o->threads;
    ret->save_every = o->save_every_given ? o->save_every : DEFAULT_SAVE_EVERY;
    ret->eval_every = o->eval_every;
    ret->keep = o->keep_states ? o->keep_states : DEFAULT_KEEP;
    return 0;
}

static int read_names(const struct options *o, struct run_options *ret, struct error *e)
{
    if (!o->data)
        return error_set(e, ERROR_INPUT, "pretrain: --data DATA is expected");
    if (!o->output)
        return error_set(e, ERROR_INPUT, "pretrain: -o RUN is expected");
    if (o->repeats && (!o->drop || strncmp(o->drop, "random:", 7) != 0))
        return error_set(e, ERROR_INPUT,
                         "--repeats: only --drop random:K differs from run to run");
    *ret = (struct run_options){.model = o->argument,
                                .data = o->data,
                                .run = o->output,
                                .mask = o->mask,
                                .transform = o->transform,
                                .drop = o->drop,
                                .positions = o->positions,
                                .seed = o->seed,
                                .overfit = o->overfit,
                                .zero = o->zero,
                                .goes_on = o->goes_on,
                                .not_bitwise = o->not_bitwise,
                                .device = o->device,
                                .save_gradients = o->save_gradients,
                                .data_options.whole_words = o->whole_word};
    return 0;
}

int training_options(const struct options *o, struct run_options *ret, struct error *e)
{
    ret->no_graphs = o->no_graphs;
    return read_sizes(o, ret, e) < 0 || read_choices(o, ret, e) < 0 ||
                   read_betas(o, &ret->optimizer, e) < 0 || read_reals(o, ret, e) < 0
               ? -1
               : 0;
}

int pretrain_options(const struct options *o, struct run_options *ret, struct error *e)
{
    return read_names(o, ret, e) < 0 || read_length(o, ret, e) < 0 ||
                   training_options(o, ret, e) < 0 || learning_options(o, ret, e) < 0
               ? -1
               : 0;
}
