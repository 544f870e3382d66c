/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/learner.h"
#include "masks/base/memory.h"
#include "masks/mask.h"
#include "model/train/learn/noise.h"
#include "model/train/learn/sampling.h"
#include <math.h>
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

static void make_alpha(struct learner *l)
{
    struct train_state *s = &l->alpha;
    const uint64_t count = alpha_count(&l->shape);
    l->piece = (struct piece){.first = 0, .count = count};
    *s = (struct train_state){.piece = &l->piece, .pieces = 1, .count = padded(count)};
    s->value = new_floats(s->count);
    s->gradient = new_floats(s->count);
    s->first_moment = new_floats(s->count);
    s->second_moment = new_floats(s->count);
    alpha_initialise(&l->shape, l->seed, s->value);
}

static void make_arrays(struct learner *l)
{
    const struct alpha_shape *s = &l->shape;
    const uint64_t units = alpha_units(s), n = s->n, layer = s->heads * n * n,
                   part = sampling_diagonals(s) ? s->heads * (2 * n - 1) : layer;
    l->noise = new_floats(units);
    l->value = new_floats(units);
    l->derivative = new_floats(units);
    l->before = new_floats(l->alpha.count);
    l->bias = new_floats(s->layers * layer);
    l->d_bias = new_floats(s->layers * part);
    l->part = new_floats(part);
    l->trained = (struct trained_bias){.value = l->bias,
                                       .per_layer = s->layers > 1,
                                       .diagonals = sampling_diagonals(s),
                                       .gradient = l->d_bias,
                                       .part = l->part};
}

int learner_new(const struct learn_options *o, const struct model_config *c, uint64_t seed,
                struct learner **ret, struct error *e)
{
    struct alpha_shape s;
    if (alpha_shape_of(o, c, &s, e) < 0)
        return -1;
    struct learner *l = memory_new(1, sizeof *l);
    l->options = *o;
    l->shape = s;
    l->seed = seed;
    make_alpha(l);
    make_arrays(l);
    *ret = l;
    return 0;
}

void learner_destroy(struct learner *l)
{
    if (!l)
        return;
    float *all[] = {l->alpha.value,
                    l->alpha.gradient,
                    l->alpha.first_moment,
                    l->alpha.second_moment,
                    l->noise,
                    l->value,
                    l->derivative,
                    l->before,
                    l->bias,
                    l->d_bias,
                    l->part};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    mask_destroy(l->fixed);
    mask_destroy(l->priced);
    free(l);
}

double learner_tau(const struct learner *l, double share)
{
    const struct learn_options *o = &l->options;
    return o->tau * pow(o->tau_end / o->tau, share);
}

static void make_bias(struct learner *l, const struct learn_options *o, double tau,
                      const float *noise)
{
    const struct samples_of_mask to = {l->value, l->derivative};
    sampling_draw(&l->shape, o, tau, l->alpha.value, noise, &to);
    sampling_bias(&l->shape, o, l->alpha.value, l->value, l->bias);
}

void learner_begin(struct learner *l, uint64_t step, double tau)
{
    const struct alpha_shape *s = &l->shape;
    const uint64_t n = s->n, each = l->trained.diagonals ? 2 * n - 1 : n * n;
    const bool samples = l->options.kind != LEARN_P;
    if (samples)
        noise_draw(s, l->seed, step, l->noise);
    make_bias(l, &l->options, samples ? tau : 1, samples ? l->noise : NULL);
    memcpy(l->before, l->alpha.value, l->alpha.count * sizeof *l->before);
    memset(l->d_bias, 0, s->layers * s->heads * each * sizeof *l->d_bias);
}

bool learner_gather(struct learner *l)
{
    sampling_back(&l->shape, &l->options, l->derivative, l->d_bias, l->alpha.gradient);
    return elements_not_finite(ELEMENT_F32, l->alpha.gradient, l->alpha.count) ==
           l->alpha.count;
}

void learner_step(struct learner *l, const struct optimizer *o, uint64_t step, double rate,
                  uint32_t threads)
{
    struct optimizer own = *o;
    own.clip = 0;
    optimizer_step(&own, &l->alpha, step, rate, threads);
}

void learner_evaluate(struct learner *l)
{
    struct learn_options o = l->options;
    o.relaxed = o.leaks = false;
    make_bias(l, &o, 1, NULL);
}
