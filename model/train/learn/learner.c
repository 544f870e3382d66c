/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/learner.h"
#include "masks/base/memory.h"
#include "masks/mask.h"
#include "model/train/learn/noise.h"
#include "model/train/learn/sampling.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static uint64_t padded(uint64_t count)
{
    return (count + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
}

static float *new_floats(uint64_t count)
{
    return memory_aligned(count, sizeof(float));
}

static int make_alpha(struct learner *l, struct error *e)
{
    struct train_state *s = &l->alpha;
    const uint64_t count = alpha_count(&l->shape);
    l->piece = (struct piece){.first = 0, .count = count, .rate_scale = 1};
    *s = (struct train_state){
        .piece = &l->piece, .pieces = 1, .count = padded(count), .device = s->device};
    if (train_state_allocate(s, e) < 0)
        return -1;
    mirror_begin(&s->device, s->value, s->count, &l->alpha_value);
    mirror_begin(&s->device, s->gradient, s->count, &l->alpha_gradient);
    alpha_initialise(&l->shape, l->seed, l->alpha_value.host);
    return learner_set_alpha(l, e);
}

/* Allocates the bias that attention reads and the gradient that it writes. */
static int make_bias(struct learner *l, struct error *e)
{
    const struct alpha_shape *s = &l->shape;
    const struct training_device *d = &l->alpha.device;
    const uint64_t n = s->n, layer = s->heads * n * n,
                   part = sampling_diagonals(s) ? s->heads * (2 * n - 1) : layer;
    const struct {
        float **array;
        uint64_t count;
    } each[] = {{&l->bias.array, s->layers * layer},
                {&l->d_bias.array, s->layers * part},
                {&l->part, part}};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        *each[k].array = d->does->array_new(d->state, each[k].count, e);
        if (!*each[k].array)
            return -1;
    }
    mirror_begin(d, l->bias.array, s->layers * layer, &l->bias);
    mirror_begin(d, l->d_bias.array, s->layers * part, &l->d_bias);
    l->trained = (struct trained_bias){.value = l->bias.array,
                                       .per_layer = s->layers > 1,
                                       .diagonals = sampling_diagonals(s),
                                       .gradient = l->d_bias.array,
                                       .part = l->part};
    return 0;
}

static void make_arrays(struct learner *l)
{
    const uint64_t units = alpha_units(&l->shape);
    l->noise = new_floats(units);
    l->value = new_floats(units);
    l->derivative = new_floats(units);
    l->before = new_floats(l->alpha.count);
}

int learner_new(const struct learn_options *o, const struct engine *g, uint64_t seed,
                struct learner **ret, struct error *e)
{
    struct alpha_shape s;
    if (alpha_shape_of(o, &g->config, &s, e) < 0)
        return -1;
    struct learner *l = memory_new(1, sizeof *l);
    l->options = *o;
    l->shape = s;
    l->seed = seed;
    l->alpha.device = train_device(g);
    if (make_alpha(l, e) < 0 || make_bias(l, e) < 0) {
        learner_destroy(l);
        return -1;
    }
    make_arrays(l);
    *ret = l;
    return 0;
}

static void destroy_arrays(struct learner *l)
{
    const struct training_device d = l->alpha.device;
    float *const each[] = {l->bias.array, l->d_bias.array, l->part};
    struct mirror *const mirrors[] = {&l->alpha_value, &l->alpha_gradient, &l->bias,
                                      &l->d_bias};
    for (size_t k = 0; k < sizeof mirrors / sizeof *mirrors; k++)
        mirror_finish(mirrors[k]);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        d.does->array_destroy(d.state, each[k]);
    train_state_finish(&l->alpha);
}

void learner_destroy(struct learner *l)
{
    if (!l)
        return;
    destroy_arrays(l);
    free(l->noise);
    free(l->value);
    free(l->derivative);
    free(l->before);
    mask_destroy(l->fixed);
    mask_destroy(l->priced);
    free(l);
}

const float *learner_alpha(const struct learner *l, struct error *e)
{
    return mirror_read(&l->alpha_value, e) < 0 ? NULL : l->alpha_value.host;
}

int learner_set_alpha(const struct learner *l, struct error *e)
{
    return mirror_write(&l->alpha_value, e);
}

double learner_tau(const struct learner *l, double share)
{
    const struct learn_options *o = &l->options;
    return o->tau * pow(o->tau_end / o->tau, share);
}

/* The mask and its bias, of alpha. */
static int draw(struct learner *l, const struct learn_options *o, double tau,
                const float *noise, struct error *e)
{
    const struct samples_of_mask to = {l->value, l->derivative};
    const float *alpha = learner_alpha(l, e);
    if (!alpha)
        return -1;
    sampling_draw(&l->shape, o, tau, alpha, noise, &to);
    sampling_bias(&l->shape, o, alpha, l->value, l->bias.host);
    return mirror_write(&l->bias, e);
}

int learner_begin(struct learner *l, uint64_t step, double tau, struct error *e)
{
    const struct training_device *d = &l->alpha.device;
    const bool samples = l->options.kind != LEARN_P;
    if (samples)
        noise_draw(&l->shape, l->seed, step, l->noise);
    if (draw(l, &l->options, samples ? tau : 1, samples ? l->noise : NULL, e) < 0)
        return -1;
    memcpy(l->before, l->alpha_value.host, l->alpha.count * sizeof *l->before);
    return d->does->array_clear(d->state, l->d_bias.array, l->d_bias.count,
                                (uint32_t)omp_get_max_threads(), e);
}

int learner_gather(struct learner *l, bool *ret_finite, struct error *e)
{
    const float *gradient = l->alpha_gradient.host;
    if (mirror_read(&l->d_bias, e) < 0)
        return -1;
    sampling_back(&l->shape, &l->options, l->derivative, l->d_bias.host,
                  l->alpha_gradient.host);
    *ret_finite = elements_not_finite(ELEMENT_F32, gradient, l->alpha.count) == l->alpha.count;
    return mirror_write(&l->alpha_gradient, e);
}

int learner_step(struct learner *l, const struct optimizer *o, const struct optimizer_step *at,
                 struct error *e)
{
    struct optimizer own = *o;
    double norm;
    own.clip = 0;
    return optimizer_step(&own, &l->alpha, at, &norm, e);
}

int learner_evaluate(struct learner *l, struct error *e)
{
    struct learn_options o = l->options;
    o.relaxed = o.leaks = false;
    return draw(l, &o, 1, NULL, e);
}
