/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/settle.h"
#include "masks/input/load.h"
#include "masks/mask.h"
#include "model/ops/attention.h"
#include <math.h>
#include <stdlib.h>

static void fill_head(const struct alpha_shape *s, const float *alpha, float *ret)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            const int64_t unit = alpha_unit_at(s, i, j);
            const double x = unit < 0 ? 0 : (double)alpha_logit(s, alpha, (uint64_t)unit);
            *ret++ = unit < 0 ? 1 : (float)(1 / (1 + exp(-x)));
        }
}

/* P of every entry, 1 on a border that is forced on. */
static int importance_of(const struct learner *l, struct importance *ret, struct error *e)
{
    const struct alpha_shape *s = &l->shape;
    const uint64_t heads = (uint64_t)s->layers * s->heads, n = s->n,
                   each = alpha_count(s) / heads;
    const float *alpha = learner_alpha(l, e);
    if (!alpha || importance_new(s->layers, s->heads, s->n, "alpha", ret, e) < 0)
        return -1;
    for (uint64_t h = 0; h < heads; h++)
        fill_head(s, alpha + h * each, ret->value + h * n * n);
    return 0;
}

/* Kernels of the mask that a run settles on. */
static int kernel_of(const struct engine *g, const struct settle_request *q,
                     struct encoder_attention *ret, struct error *e)
{
    const struct attention_options o = {.folder = q->folder,
                                        .transform = "softmax",
                                        .dtype = g->dtype,
                                        .target = engine_target(g),
                                        .trains = true,
                                        .dropout = q->dropout};
    return attention_kernel(&g->config, &o, ret, e);
}

/* The option that gives the share. */
static const char *option_of(const struct learner *l)
{
    return l->options.threshold ? "--threshold" : "--snap";
}

/* Predicted seconds of a layer in which all heads have the same mask, as snap predicts them. */
static int predict_named(const struct learner *l, const char *name,
                         const struct encoder_attention *kernel, const struct settle_request *q,
                         double *ret, struct error *e)
{
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name, .n = l->shape.n,
                                         .heads = l->shape.heads};
    struct mask *m = mask_load(&request, NULL, e);
    if (!m)
        return -1;
    int r = encoder_predict(kernel, m, q->batch, l->options.snap_threads, ret, e);
    mask_destroy(m);
    return r;
}

int settle_check(const struct learner *l, const struct engine *g,
                 const struct settle_request *q, struct error *e)
{
    struct encoder_attention kernel;
    double none, dense;
    if (!(l->options.snap > 0))
        return 0;
    if (kernel_of(g, q, &kernel, e) < 0 || predict_named(l, "none", &kernel, q, &none, e) < 0 ||
        predict_named(l, "dense", &kernel, q, &dense, e) < 0)
        return -1;
    if (none <= l->options.snap * dense)
        return 0;
    return error_set(e, ERROR_FALSE,
                     "%s: no mask is within that time: an empty one takes %.4g of dense's",
                     option_of(l), ceil(none / dense * 1e4) / 1e4);
}

static int snap(struct learner *l, const struct engine *g, const struct settle_request *q,
                struct settled *ret, struct error *e)
{
    const struct learn_options *o = &l->options;
    struct encoder_attention kernel;
    struct importance p = {0};
    struct encoder_snapped s;
    if (kernel_of(g, q, &kernel, e) < 0 || importance_of(l, &p, e) < 0)
        return -1;
    const struct encoder_snap request = {&p, o->snap, o->threshold, q->batch, o->snap_threads};
    int r = importance_check(&p, option_of(l), e);
    if (r == 0 && (r = encoder_snap(&kernel, &request, &s, e)) < 0)
        error_prefix(e, "%s", option_of(l));
    importance_finish(&p);
    if (r < 0)
        return -1;
    l->fixed = s.mask;
    ret->share = s.share;
    ret->retained = s.retained;
    return 0;
}

static int predict(const struct mask *m, const struct engine *g, const struct settle_request *q,
                   double *ret, struct error *e)
{
    struct encoder_attention kernel;
    if (kernel_of(g, q, &kernel, e) < 0 ||
        encoder_predict(&kernel, m, q->batch, g->threads, ret, e) < 0)
        return -1;
    *ret *= (double)g->config.layers / m->layers; /* layers may share a mask */
    return 0;
}

int settle_price(struct learner *l, const struct engine *g, const struct settle_request *q,
                 double *ret, struct error *e)
{
    struct mask *m = alpha_mask(&l->shape, l->before);
    const bool known = l->priced && mask_equal(m, l->priced);
    int r = known ? 0 : predict(m, g, q, &l->price, e);
    mask_destroy(l->priced);
    l->priced = m;
    *ret = l->price;
    return r;
}

static double density_of(const struct mask *m)
{
    double sum = 0;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / ((double)m->layers * m->heads * m->n * m->n);
}

static int take_above_0(struct learner *l, struct error *e)
{
    const float *alpha = learner_alpha(l, e);
    if (!alpha)
        return -1;
    l->fixed = alpha_mask(&l->shape, alpha);
    return 0;
}

int settle(struct learner *l, const struct engine *g, const struct settle_request *q,
           struct settled *ret, struct error *e)
{
    *ret = (struct settled){
        .share = (double)NAN, .retained = (double)NAN, .predicted = (double)NAN};
    if ((l->options.snap > 0 ? snap(l, g, q, ret, e) : take_above_0(l, e)) < 0)
        return -1;
    ret->density = density_of(l->fixed);
    return predict(l->fixed, g, q, &ret->predicted, e);
}
