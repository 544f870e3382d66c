/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/run_options.h"
#include "masks/base/hash.h"
#include "model/data/tasks/table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* They may differ when a run goes on, and are no part of the hash. may_differ() has the exceptions. */
static const char *const harmless[] = {"model", "data",       "recompute",    "save_every",
                                       "keep",  "eval_every", "snap_threads", "alpha",
                                       "zero",  "no_graphs",  "dev_sum"};

/* The share of time: it may differ until the run settles. */
static const char *const share_names[] = {"snap", "threshold"};

static const char *const recomputes[] = {"none", "attention", "layer"};

bool run_reads_windows(const struct run_options *o)
{
    return o->task && o->task->format == TASK_ANSWERS;
}

static void set(json_t *to, const char *name, json_t *value)
{
    json_object_set_new(to, name, value);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void add_what(json_t *to, const struct run_options *o, const char *data_sum,
                     const char *dev_sum)
{
    set(to, "model", json_string(o->model));
    set(to, "data", json_string(o->data));
    set(to, "data_sum", json_string(data_sum));
    if (dev_sum)
        set(to, "dev_sum", json_string(dev_sum));
    set(to, "mask", text_or_null(o->mask));
    set(to, "transform", text_or_null(o->transform));
    set(to, "drop", text_or_null(o->drop));
    set(to, "repeat", count(o->repeat));
    set(to, "positions", count(o->positions));
    set(to, "objective", json_string(o->objective->name));
    if (o->objective->add_options)
        o->objective->add_options(&o->data_options, to);
}

/* Runs of pre-training have no such names. */
static void add_task(json_t *to, const struct run_options *o)
{
    if (!o->task)
        return;
    set(to, "task", json_string(o->task->name));
    set(to, "regression", json_boolean(o->regression));
    set(to, "max_length", count(o->max_length));
    set(to, "stride", count(o->overlap));
    set(to, "epochs", json_real(o->epochs));
    set(to, "null_threshold", json_real(o->null_threshold));
    set(to, "layer_decay", json_real(o->layer_decay));
}

static void add_length(json_t *to, const struct run_options *o)
{
    set(to, "steps", count(o->steps));
    set(to, "tokens", count(o->tokens));
    set(to, "minutes", json_real(o->minutes));
    set(to, "batch", count(o->batch));
    set(to, "accumulate", count(o->accumulate));
    set(to, "overfit_one_batch", json_boolean(o->overfit));
    set(to, "seed", count(o->seed));
}

static void add_optimizer(json_t *to, const struct run_options *o)
{
    const struct optimizer *p = &o->optimizer;
    set(to, "optimizer", json_string(p->kind == OPTIMIZER_LAMB ? "lamb" : "adamw"));
    set(to, "no_bias_correction", json_boolean(!p->bias_correction));
    set(to, "betas", json_pack("[f,f]", p->beta1, p->beta2));
    set(to, "eps", json_real(p->eps));
    set(to, "weight_decay", json_real(p->weight_decay));
    set(to, "clip", json_real(p->clip));
    set(to, "lr", json_real(o->rate));
    set(to, "schedule", json_string(schedule_name(o->decay)));
    set(to, "warmup", json_real(o->warmup));
}

static void add_numerics(json_t *to, const struct run_options *o)
{
    set(to, "dropout", json_real(o->hidden_dropout));
    set(to, "attention_dropout", json_real(o->attention_dropout));
    set(to, "dtype", json_string(o->dtype == ELEMENT_BF16 ? "bf16" : "f32"));
    set(to, "recompute", json_string(recomputes[o->recompute]));
    set(to, "save_every", count(o->save_every));
    set(to, "keep", count(o->keep));
    set(to, "eval_every", count(o->eval_every));
    if (o->zero)
        set(to, "zero", json_true());
    if (o->no_graphs)
        set(to, "no_graphs", json_true());
}

/* Adds the options for learning a mask, only if the run learns one: older runs have no such
   names. */
static void add_learning(json_t *to, const struct learn_options *o)
{
    if (o->kind == LEARN_NOTHING)
        return;
    set(to, "learn_mask", json_string(learn_kind_names[o->kind]));
    set(to, "dam_code", json_boolean(o->code));
    set(to, "per_layer", json_boolean(o->per_layer));
    set(to, "symmetric", json_boolean(o->symmetric));
    set(to, "soft_sample", json_boolean(o->relaxed));
    set(to, "leak", json_boolean(o->leaks));
    set(to, "bi_level", json_boolean(o->two_levels));
    set(to, "lambda", json_real(o->lambda));
    set(to, "tau", json_pack("[f,f]", o->tau, o->tau_end));
    set(to, "mask_scale", json_real(o->scale));
    set(to, "mask_lr", json_real(o->rate));
    set(to, "snap", json_real(o->snap));
    set(to, "snap_threads", count(o->snap_threads));
    set(to, "settle", count(o->settle));
    if (o->threshold) /* older runs have no such name */
        set(to, "threshold", json_true());
    if (o->alpha)
        set(to, "alpha", json_string(o->alpha));
}

json_t *run_options_json(const struct run_options *o, const char *data_sum, const char *dev_sum)
{
    json_t *ret = json_object();
    add_what(ret, o, data_sum, dev_sum);
    add_task(ret, o);
    add_length(ret, o);
    add_optimizer(ret, o);
    add_numerics(ret, o);
    add_learning(ret, &o->learn);
    return ret;
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!strcmp(name, list[k]))
            return true;
    return false;
}

static bool is_harmless(const char *name)
{
    return is_one_of(name, harmless, sizeof harmless / sizeof *harmless);
}

static bool is_share(const char *name)
{
    return is_one_of(name, share_names, sizeof share_names / sizeof *share_names);
}

/* Evaluations on the dev file choose the model of a run with a task. Older runs have no sum of that file. A state has what
   became of --alpha. */
static bool may_differ(const json_t *stored, const char *name, enum run_stage stage)
{
    if (is_share(name))
        return stage != RUN_HAS_SETTLED;
    if (!strcmp(name, "alpha"))
        return stage != RUN_HAS_NO_STATE;
    const bool chooses = !strcmp(name, "eval_every") || !strcmp(name, "dev_sum");
    return is_harmless(name) &&
           !(chooses && json_object_get(stored, "task") && json_object_get(stored, name));
}

static bool is_sum(const char *name)
{
    return !strcmp(name, "data_sum") || !strcmp(name, "dev_sum");
}

static void name_option(const char *name, char ret[48])
{
    snprintf(ret, 48, "--%s", !strcmp(name, "repeat") ? "repeats" : name);
    for (char *c = ret; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

static int differs(const json_t *now, const char *name, const json_t *was, const json_t *is,
                   struct error *e)
{
    const char *command = json_object_get(now, "task") ? "finetune" : "pretrain";
    char option[48];
    name_option(name, option);
    if (is_sum(name)) /* which means nothing to people */
        return error_set(e, ERROR_INPUT,
                         "--data: its samples are not those that the run began with; --resume "
                         "needs the same files");
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(10);
    char *old = was ? json_dumps(was, flags) : NULL, *new = is ? json_dumps(is, flags) : NULL;
    error_set(e, ERROR_INPUT,
              "%s: the run has %s, this command %s; --resume needs the same command. "
              "`%s RUN -o NEW` trains its weights with other options; the optimizer's "
              "moments and the schedule begin anew",
              option, old ? old : "none", new ? new : "none", command);
    free(old);
    free(new);
    return -1;
}

/* 0.1 and the 0.1 that was read are equal; so are 1 and 1.0. */
static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b) && !(json_is_integer(a) && json_is_integer(b)))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

int run_options_compare(const json_t *stored, const json_t *now, enum run_stage stage,
                        struct error *e)
{
    const char *name;
    json_t *is;
    json_object_foreach((json_t *)(uintptr_t)now, name, is)
    {
        const json_t *was = json_object_get(stored, name);
        if (!may_differ(stored, name, stage) && !(was && same(was, is)))
            return differs(now, name, was, is, e);
    }
    json_object_foreach((json_t *)(uintptr_t)stored, name, is)
    {
        if (!may_differ(stored, name, stage) && !json_object_get(now, name))
            return differs(now, name, is, NULL, e);
    }
    return 0;
}

bool run_options_take_share(json_t *stored, const json_t *now)
{
    bool ret = false;
    for (size_t k = 0; k < sizeof share_names / sizeof *share_names; k++) {
        json_t *was = json_object_get(stored, share_names[k]),
               *is = json_object_get(now, share_names[k]);
        if (was == is || (was && is && same(was, is)))
            continue;
        ret = true;
        if (is)
            json_object_set(stored, share_names[k], is);
        else
            json_object_del(stored, share_names[k]);
    }
    return ret;
}

/* True for options that may differ between ranks: paths to the same files, and threads. */
static bool is_own(const char *name)
{
    return !strcmp(name, "model") || !strcmp(name, "data") || !strcmp(name, "snap_threads") ||
           !strcmp(name, "alpha");
}

int run_options_same(const json_t *first, const json_t *own, struct error *e)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(10);
    const char *name;
    json_t *is;
    char option[48];
    json_object_foreach((json_t *)(uintptr_t)own, name, is)
    {
        const json_t *of_first = json_object_get(first, name);
        if (is_own(name) || (of_first && same(of_first, is)))
            continue;
        if (is_sum(name))
            return error_set(e, ERROR_INPUT, "--data: other samples than on rank 0");
        char *one = of_first ? json_dumps(of_first, flags) : NULL,
             *other = json_dumps(is, flags);
        name_option(name, option);
        error_set(e, ERROR_INPUT, "%s is %s, on rank 0 %s", option, other, one ? one : "none");
        free(one);
        free(other);
        return -1;
    }
    return json_object_size(own) == json_object_size(first)
               ? 0
               : error_set(e, ERROR_INPUT, "other options than on rank 0");
}

void run_options_hash(const json_t *options, bool with_share, char ret[33])
{
    json_t *copy = json_copy((json_t *)(uintptr_t)options);
    for (size_t k = 0; k < sizeof harmless / sizeof *harmless; k++)
        json_object_del(copy, harmless[k]);
    for (size_t k = 0; k < sizeof share_names / sizeof *share_names && !with_share; k++)
        json_object_del(copy, share_names[k]);
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    const XXH128_hash_t sum = XXH3_128bits(text, strlen(text));
    snprintf(ret, 33, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
    free(text);
    json_decref(copy);
}
