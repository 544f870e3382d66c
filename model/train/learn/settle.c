/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/settle.h"
#include "masks/mask.h"
#include "model/attention.h"
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
    if (importance_new(s->layers, s->heads, s->n, "alpha", ret, e) < 0)
        return -1;
    for (uint64_t h = 0; h < heads; h++)
        fill_head(s, l->alpha.value + h * each, ret->value + h * n * n);
    return 0;
}

static int snap(struct learner *l, const struct engine *g, const struct settle_request *q,
                struct settled *ret, struct error *e)
{
    const struct attention_options o = {.folder = q->folder,
                                        .transform = "softmax",
                                        .dtype = g->dtype,
                                        .target = "cpu",
                                        .trains = true,
                                        .dropout = q->dropout};
    struct encoder_attention kernel;
    struct importance p = {0};
    struct encoder_snapped s;
    if (attention_kernel(&g->config, &o, &kernel, e) < 0 || importance_of(l, &p, e) < 0)
        return -1;
    const struct encoder_snap request = {&p, l->options.snap, q->batch,
                                         l->options.snap_threads};
    int r = encoder_snap(&kernel, &request, &s, e);
    importance_finish(&p);
    if (r < 0)
        return error_prefix(e, "--snap");
    l->fixed = s.mask;
    ret->share = s.share;
    ret->retained = s.retained;
    ret->predicted = s.predicted;
    return 0;
}

static double density_of(const struct mask *m)
{
    double sum = 0;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        sum += (double)m->pattern[m->at[k]]->active;
    return sum / ((double)m->layers * m->heads * m->n * m->n);
}

int settle(struct learner *l, const struct engine *g, const struct settle_request *q,
           struct settled *ret, struct error *e)
{
    *ret = (struct settled){
        .share = (double)NAN, .retained = (double)NAN, .predicted = (double)NAN};
    if (l->options.snap <= 0)
        l->fixed = alpha_mask(&l->shape, l->alpha.value);
    else if (snap(l, g, q, ret, e) < 0)
        return -1;
    ret->density = density_of(l->fixed);
    return 0;
}
