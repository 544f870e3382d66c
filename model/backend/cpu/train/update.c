/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's loops. A step goes over the pieces in blocks of at most BLOCK elements, which threads share. Norms are
   sums of the blocks' sums in double, in the order of the buffer. With norms of pieces there are two passes over the
   parameters: the update u is not stored, but made again from the moments once |u| is known. */
#include "masks/base/memory.h"
#include "model/backend/cpu/train/train.h"
#include <math.h>
#include <stdlib.h>

enum { BLOCK = NORM_BLOCK };

struct block {
    const struct piece *piece;
    uint64_t first;
    uint32_t count;
    double value_squares, update_squares; /* of pieces' norms */
    float scale;                          /* of the update: trust and the piece's rate_scale */
};

struct step {
    const struct train_state *state;
    struct block *block;
    uint32_t blocks, threads;
    struct update number;
};

static void divide(struct step *s)
{
    uint32_t capacity = 0;
    for (uint32_t k = 0; k < s->state->pieces; k++) {
        const struct piece *p = &s->state->piece[k];
        for (uint64_t at = 0; at < p->count; at += BLOCK) {
            uint64_t left = p->count - at;
            *MEMORY_PUSH(s->block, s->blocks, capacity) = (struct block){
                .piece = p,
                .first = p->first + at,
                .count = left < BLOCK ? (uint32_t)left : BLOCK,
                .scale = p->rate_scale,
            };
        }
    }
}

static double squares(const float *x, uint32_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < count; k++)
        sum += (double)x[k] * (double)x[k];
    return sum;
}

static void gradient_squares(const struct step *s, double *ret)
{
#pragma omp parallel for num_threads(s->threads)
    for (uint32_t k = 0; k < s->blocks; k++)
        ret[k] = squares(s->state->gradient + s->block[k].first, s->block[k].count);
}

static double gradient_norm(const struct step *s)
{
    double *part = memory_new(s->blocks, sizeof *part), sum = 0;
    gradient_squares(s, part);
    for (uint32_t k = 0; k < s->blocks; k++)
        sum += part[k];
    free(part);
    return sqrt(sum);
}

/* ---- one block ---- */

static void move_moments(const struct step *s, const struct block *b)
{
    const float *g = s->state->gradient + b->first, scale = s->number.gradient_scale;
    const float beta1 = s->number.beta1, rest1 = s->number.rest1, beta2 = s->number.beta2,
                rest2 = s->number.rest2;
    float *m = s->state->first_moment + b->first, *v = s->state->second_moment + b->first;
#pragma omp simd
    for (uint32_t k = 0; k < b->count; k++) {
        float x = g[k] * scale;
        m[k] = beta1 * m[k] + rest1 * x;
        v[k] = beta2 * v[k] + rest2 * x * x;
    }
}

/* u = m' / (sqrt(v') + eps) + decay value */
static inline float update(const struct step *s, float decay, float m, float v, float value)
{
    return m * s->number.first_scale / (sqrtf(v * s->number.second_scale) + s->number.eps) +
           decay * value;
}

static void measure(const struct step *s, struct block *b)
{
    const struct step c = *s;
    const float *m = s->state->first_moment + b->first, *v = s->state->second_moment + b->first,
                *value = s->state->value + b->first;
    const float decay = b->piece->decays ? s->number.decay : 0;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < b->count; k++) {
        double u = (double)update(&c, decay, m[k], v[k], value[k]);
        sum += u * u;
    }
    b->update_squares = sum;
    b->value_squares = squares(value, b->count);
}

static void move_values(const struct step *s, const struct block *b)
{
    const struct step c = *s;
    const float *m = s->state->first_moment + b->first, *v = s->state->second_moment + b->first;
    const float decay = b->piece->decays ? s->number.decay : 0,
                scale = s->number.rate * b->scale;
    float *value = s->state->value + b->first;
#pragma omp simd
    for (uint32_t k = 0; k < b->count; k++)
        value[k] -= scale * update(&c, decay, m[k], v[k], value[k]);
}

/* ---- all blocks ---- */

static void step_once(const struct step *s)
{
#pragma omp parallel for num_threads(s->threads)
    for (uint32_t k = 0; k < s->blocks; k++) {
        move_moments(s, &s->block[k]);
        move_values(s, &s->block[k]);
    }
}

/* |value| / |u| of each piece that decays, to all its blocks. */
static void set_scales(const struct step *s)
{
    uint32_t end;
    for (uint32_t k = 0; k < s->blocks; k = end) {
        double value = 0, of_update = 0;
        for (end = k; end < s->blocks && s->block[end].piece == s->block[k].piece; end++) {
            value += s->block[end].value_squares;
            of_update += s->block[end].update_squares;
        }
        if (!s->block[k].piece->decays || s->number.decay == 0 || value == 0 || of_update == 0)
            continue;
        for (uint32_t i = k; i < end; i++)
            s->block[i].scale = (float)sqrt(value / of_update) * s->block[i].piece->rate_scale;
    }
}

static void step_by_norms(const struct step *s)
{
#pragma omp parallel for num_threads(s->threads)
    for (uint32_t k = 0; k < s->blocks; k++) {
        move_moments(s, &s->block[k]);
        measure(s, &s->block[k]);
    }
    set_scales(s);
#pragma omp parallel for num_threads(s->threads)
    for (uint32_t k = 0; k < s->blocks; k++)
        move_values(s, &s->block[k]);
}

int cpu_gradient_norm(const struct train_state *state, uint32_t threads, double *ret,
                      struct error *e)
{
    struct step s = {.state = state, .threads = threads};
    (void)e;
    divide(&s);
    *ret = gradient_norm(&s);
    free(s.block);
    return 0;
}

int cpu_gradient_squares(const struct train_state *state, uint32_t threads, double *ret,
                         struct error *e)
{
    struct step s = {.state = state, .threads = threads};
    (void)e;
    divide(&s);
    gradient_squares(&s, ret);
    free(s.block);
    return 0;
}

int cpu_update(const struct train_state *state, const struct update *u, uint32_t threads,
               struct error *e)
{
    struct step s = {.state = state, .threads = threads, .number = *u};
    (void)e;
    divide(&s);
    if (u->by_norms)
        step_by_norms(&s);
    else
        step_once(&s);
    free(s.block);
    return 0;
}
