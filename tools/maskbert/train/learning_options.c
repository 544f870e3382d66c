/* SPDX-License-Identifier: Apache-2.0 */
/* From a command line to how a mask is learned. */
#include "tools/maskbert/train/pretrain_options.h"
#include <stdlib.h>
#include <string.h>

static int read_kind(const struct options *o, enum learn_kind *ret, struct error *e)
{
    *ret = LEARN_NOTHING;
    if (!o->learn_mask)
        return 0;
    for (int k = LEARN_P; k < LEARN_KINDS; k++)
        if (!strcmp(o->learn_mask, learn_kind_names[k]))
            *ret = (enum learn_kind)k;
    return *ret != LEARN_NOTHING
               ? 0
               : error_set(e, ERROR_INPUT, "--learn-mask %s: p, dam-u or dam-s is expected",
                           o->learn_mask);
}

/* Checks that the options of learning fit the kind. */
static int check_learning(const struct options *o, enum learn_kind kind, struct error *e)
{
    const bool samples = kind == LEARN_ENTRIES || kind == LEARN_DISTANCES;
    const struct {
        const char *name, *with;
        bool given, fits;
    } each[] = {
        {"dam-code", " dam-s", o->dam_code, kind == LEARN_DISTANCES},
        {"symmetric", " dam-u", o->symmetric, kind == LEARN_ENTRIES},
        {"tau", " dam-u or dam-s", o->tau, samples},
        {"soft-sample", " dam-u or dam-s", o->relaxed, samples},
        {"leak", " dam-u or dam-s", o->leaks, samples},
        {"per-layer", "", o->per_layer, kind},
        {"lambda", "", o->lambda_given, kind},
        {"mask-scale", "", o->mask_scale_given, kind},
        {"mask-lr", "", o->mask_rate_given, kind},
        {"mask-lr-ratio", "", o->mask_rate_ratio_given, kind},
        {"bi-level", "", o->bi_level, kind},
        {"settle", "", o->settle_given, kind},
        {"snap", "", o->settle_share_given, kind},
        {"threshold", "", o->threshold_given, kind},
        {"alpha", "", o->alpha, kind},
    };
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k].given && !each[k].fits)
            return error_set(e, ERROR_INPUT, "--%s: goes with --learn-mask%s", each[k].name,
                             each[k].with);
    return 0;
}

/* A learned mask takes the place of a fixed one. */
static int check_mask(const struct options *o, struct error *e)
{
    const char *wrong = o->mask        ? "mask"
                        : o->transform ? "transform"
                        : o->drop      ? "drop"
                        : o->repeats   ? "repeats"
                                       : NULL;
    return wrong ? error_set(e, ERROR_INPUT, "--%s: does not go with --learn-mask", wrong) : 0;
}

/* A temperature that ends at `end`. */
static bool read_temperature(const char *text, const char *end, double *ret)
{
    char copy[64], *rest;
    const size_t length = (size_t)(end - text);
    if (!length || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *ret = strtod(copy, &rest);
    return !*rest && *ret >= 1e-6 && *ret <= 1e6;
}

static int read_tau(const char *text, struct learn_options *ret, struct error *e)
{
    ret->tau = ret->tau_end = 1;
    if (!text)
        return 0;
    const char *dots = strstr(text, ".."), *end = text + strlen(text),
               *second = dots ? dots + 2 : text;
    return read_temperature(text, dots ? dots : end, &ret->tau) &&
                   read_temperature(second, end, &ret->tau_end)
               ? 0
               : error_set(e, ERROR_INPUT,
                           "--tau %s: a number from 1e-6 to 1e6 is expected, or two, as 1..0.1",
                           text);
}

static int read_settling(const struct options *o, struct learn_options *ret, struct error *e)
{
    const char *name = o->threshold_given ? "threshold" : "snap";
    const double share = o->threshold_given ? o->threshold : o->settle_share;
    const bool given = o->settle_share_given || o->threshold_given;
    if (o->settle_share_given && o->threshold_given)
        return error_set(e, ERROR_INPUT, "--snap and --threshold: one of them is expected");
    if (given && !(share > 0 && share <= 1))
        return error_set(e, ERROR_INPUT, "--%s %g: a share above 0 and at most 1 is expected",
                         name, share);
    if (given && !o->settle_given)
        return error_set(e, ERROR_INPUT, "--%s: --settle STEPS is expected, too", name);
    if (o->settle_given && !o->settle)
        return error_set(e, ERROR_INPUT, "--settle: a whole number from 1 is expected");
    if (o->settle_given && o->minutes_given)
        return error_set(e, ERROR_INPUT,
                         "--settle: --steps or --tokens is expected, not --minutes");
    ret->settle = o->settle;
    ret->snap = share;
    ret->threshold = o->threshold_given;
    ret->alpha = o->alpha;
    return 0;
}

static int read_numbers(const struct options *o, double rate, struct learn_options *ret,
                        struct error *e)
{
    const double ratio = o->mask_rate_ratio_given ? o->mask_rate_ratio : 10;
    ret->scale = o->mask_scale_given ? o->mask_scale : 10;
    /* Only the ratio of c and lambda in c dX + lambda matters: the paper's least lambda, 1e-4, goes with c = 10000. */
    ret->lambda = o->lambda_given ? o->lambda : ret->kind == LEARN_P ? 0 : 1e-8 * ret->scale;
    ret->rate = o->mask_rate_given ? o->mask_rate : ratio * rate;
    if (o->mask_rate_given && o->mask_rate_ratio_given)
        return error_set(e, ERROR_INPUT,
                         "--mask-lr and --mask-lr-ratio: one of them is expected");
    if (!(ret->lambda >= 0 && ret->lambda < 1e30))
        return error_set(e, ERROR_INPUT, "--lambda %g: 0 or more, below 1e30, is expected",
                         ret->lambda);
    if (!(ret->scale > 0 && ret->scale <= 1e6))
        return error_set(e, ERROR_INPUT, "--mask-scale %g: above 0, up to 1e6 is expected",
                         ret->scale);
    if (ret->rate >= 0 && ret->rate < 1e30)
        return 0;
    if (o->mask_rate_given)
        return error_set(e, ERROR_INPUT, "--mask-lr %g: 0 or more, below 1e30, is expected",
                         ret->rate);
    return error_set(e, ERROR_INPUT,
                     "--mask-lr-ratio %g: 0 or more is expected, and a product with --lr below "
                     "1e30; --lr is %g",
                     ratio, rate);
}

int learning_options(const struct options *o, struct run_options *ret, struct error *e)
{
    enum learn_kind kind;
    if (read_kind(o, &kind, e) < 0 || check_learning(o, kind, e) < 0)
        return -1;
    ret->learn = (struct learn_options){.kind = kind};
    if (kind == LEARN_NOTHING)
        return 0;
    ret->learn = (struct learn_options){.kind = kind,
                                        .code = o->dam_code,
                                        .per_layer = o->per_layer,
                                        .symmetric = o->symmetric,
                                        .relaxed = o->relaxed,
                                        .leaks = o->leaks,
                                        .two_levels = o->bi_level};
    if (o->bi_level && ret->batch < 2)
        return error_set(e, ERROR_INPUT, "--bi-level: a --batch of 2 or more is expected");
    return check_mask(o, e) < 0 || read_tau(o->tau, &ret->learn, e) < 0 ||
                   read_numbers(o, ret->rate, &ret->learn, e) < 0 ||
                   read_settling(o, &ret->learn, e) < 0
               ? -1
               : 0;
}
