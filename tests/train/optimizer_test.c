/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and LAMB over ten steps, against the same in float64; the same bits for any number of threads. */
#include "model/backend/backend.h"
#include "model/train/optimizer.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES = 7, STEPS = 10 };
/* One is longer than two blocks; one is all zeros; three begin as zeros, as biases do, one of them with decay, one with gradients
   near an eps of 1e-8. */
static const struct {
    uint64_t count;
    bool decays;
    float rate_scale, value, gradient; /* factors of the numbers drawn */
} pieces[PIECES] = {{1, true, 1, 1, 1},       {70001, true, 0.75F, 1, 1},
                    {17, false, 0.1F, 0, 1},  {64, true, 0.5F, 0, 0},
                    {5000, false, 1, 1, 1},   {300, true, 1, 0, 1},
                    {300, false, 1, 0, 1e-6F}};

static struct train_state state_new(void)
{
    struct train_state s = {.piece = malloc(PIECES * sizeof *s.piece), .pieces = PIECES};
    for (uint32_t k = 0; k < PIECES; k++) {
        s.piece[k] = (struct piece){NULL, s.count, pieces[k].count, pieces[k].decays,
                                    pieces[k].rate_scale};
        s.count += (pieces[k].count + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    }
    s.device.does = backend_cpu.training; /* whose arrays need no open backend */
    assert_int_equal(train_state_allocate(&s, NULL), 0);
    return s;
}

static void state_free(struct train_state *s)
{
    train_state_finish(s);
    free(s->piece);
}

/* In [-1, 1). */
static float number(uint64_t k)
{
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return (float)(x >> 40) / (1 << 23) - 1;
}

static void fill(const struct train_state *s, float *to, uint64_t seed, float scale)
{
    for (uint32_t k = 0; k < PIECES; k++) {
        const float factor = scale * (to == s->value ? pieces[k].value : pieces[k].gradient);
        for (uint64_t i = 0; i < pieces[k].count; i++)
            to[s->piece[k].first + i] = factor * number(seed * 1000003 + s->piece[k].first + i);
    }
}

/* ---- the same in float64 ---- */

struct plain {
    double *value, *first_moment, *second_moment, *update;
};

static struct plain plain_new(const struct train_state *s)
{
    struct plain p = {malloc(s->count * sizeof(double)), calloc(s->count, sizeof(double)),
                      calloc(s->count, sizeof(double)), calloc(s->count, sizeof(double))};
    for (uint64_t k = 0; k < s->count; k++)
        p.value[k] = (double)s->value[k];
    return p;
}

static void plain_free(struct plain *p)
{
    free(p->value);
    free(p->first_moment);
    free(p->second_moment);
    free(p->update);
}

static double plain_norm(const struct train_state *s)
{
    double sum = 0;
    for (uint64_t k = 0; k < s->count; k++)
        sum += (double)s->gradient[k] * (double)s->gradient[k];
    return sqrt(sum);
}

struct moment {
    const struct optimizer *o;
    double divisor, rate;
    int step;
};

static void plain_update(const struct moment *now, const struct train_state *s,
                         const struct piece *piece, struct plain *p)
{
    const struct optimizer *o = now->o;
    const bool corrects = o->bias_correction || o->kind == OPTIMIZER_LAMB;
    double first = corrects ? 1 - pow(o->beta1, now->step) : 1,
           second = corrects ? 1 - pow(o->beta2, now->step) : 1;
    for (uint64_t k = piece->first; k < piece->first + piece->count; k++) {
        double g = (double)s->gradient[k] / now->divisor;
        p->first_moment[k] = o->beta1 * p->first_moment[k] + (1 - o->beta1) * g;
        p->second_moment[k] = o->beta2 * p->second_moment[k] + (1 - o->beta2) * g * g;
        p->update[k] =
            p->first_moment[k] / first / (sqrt(p->second_moment[k] / second) + o->eps);
        p->update[k] += (piece->decays ? o->weight_decay : 0) * p->value[k];
    }
}

static void plain_piece(const struct moment *now, const struct train_state *s,
                        const struct piece *piece, struct plain *p)
{
    double value = 0, update = 0, ratio = 1;
    plain_update(now, s, piece, p);
    for (uint64_t k = piece->first; k < piece->first + piece->count; k++) {
        value += p->value[k] * p->value[k];
        update += p->update[k] * p->update[k];
    }
    const bool adapts = piece->decays && now->o->weight_decay > 0;
    if (now->o->kind == OPTIMIZER_LAMB && adapts && value > 0 && update > 0)
        ratio = sqrt(value) / sqrt(update);
    for (uint64_t k = piece->first; k < piece->first + piece->count; k++)
        p->value[k] -= now->rate * (double)piece->rate_scale * ratio * p->update[k];
}

/* ---- tests ---- */

#define SQUARE(x) ((x) * (x))

/* In each piece the norm of the error is at most 1e-5 of the norm of what all steps changed. What lies between
   pieces stays 0. */
static void expect_values(const struct train_state *s, const struct plain *p,
                          const double *start)
{
    for (uint32_t k = 0; k < PIECES; k++) {
        double error = 0, moved = 0;
        for (uint64_t i = s->piece[k].first; i < s->piece[k].first + s->piece[k].count; i++) {
            error += SQUARE((double)s->value[i] - p->value[i]);
            moved += SQUARE(p->value[i] - start[i]);
        }
        assert_true(pieces[k].gradient == 0 ? moved == 0 : moved > 0);
        if (!(sqrt(error) <= 1e-5 * sqrt(moved)))
            fail_msg("piece %u: error %g of %g", k, sqrt(error), sqrt(moved));
        uint64_t end = s->piece[k].first + s->piece[k].count;
        for (uint64_t i = end; i < (k + 1 < PIECES ? s->piece[k + 1].first : s->count); i++)
            assert_true(s->value[i] == 0 && s->first_moment[i] == 0 &&
                        s->second_moment[i] == 0);
    }
}

static double step_of(const struct optimizer *o, const struct train_state *s,
                      const struct optimizer_step *at)
{
    double norm;
    assert_int_equal(optimizer_step(o, s, at, &norm, NULL), 0);
    return norm;
}

static double next(const struct optimizer *o, struct train_state *s, int step, uint32_t threads)
{
    fill(s, s->gradient, (uint64_t)step, 0.01f * (float)(step % 3 + 1));
    return step_of(o, s, &(struct optimizer_step){(uint64_t)step, 1e-3 * step, threads});
}

static struct train_state begin(void)
{
    struct train_state s = state_new();
    fill(&s, s.value, 99, 0.05f);
    return s;
}

static struct train_state check_steps(const struct optimizer *o)
{
    struct train_state s = begin();
    struct plain p = plain_new(&s), start = plain_new(&s);
    for (int step = 1; step <= STEPS; step++) {
        double is = next(o, &s, step, 1), norm = plain_norm(&s);
        struct moment now = {o, o->clip > 0 ? fmax(1, norm / o->clip) : 1, 1e-3 * step, step};
        assert_true(fabs(is - norm) <= 1e-12 * norm);
        for (uint32_t k = 0; k < PIECES; k++)
            plain_piece(&now, &s, &s.piece[k], &p);
    }
    expect_values(&s, &p, start.value);
    plain_free(&p);
    plain_free(&start);
    return s;
}

static void check_threads(const struct optimizer *o)
{
    struct train_state one = check_steps(o);
    for (uint32_t threads = 2; threads <= 3; threads++) {
        struct train_state s = begin();
        for (int step = 1; step <= STEPS; step++)
            next(o, &s, step, threads);
        assert_memory_equal(one.value, s.value, s.count * sizeof(float));
        assert_memory_equal(one.first_moment, s.first_moment, s.count * sizeof(float));
        assert_memory_equal(one.second_moment, s.second_moment, s.count * sizeof(float));
        state_free(&s);
    }
    state_free(&one);
}

static void test_steps(void **state)
{
    (void)state;
    static const struct optimizer kinds[] = {
        {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-8, 0.1, 0, true},
        {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.1, 0, false},
        {OPTIMIZER_LAMB, 0.9, 0.999, 1e-6, 0.1, 0, true},
        {OPTIMIZER_LAMB, 0.9, 0.999, 1e-6, 0, 0, false}, /* it corrects all the same */
    };
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (int clips = 0; clips < 2; clips++) {
            struct optimizer o = kinds[kind];
            o.clip = clips ? 2.5 : 0;
            check_threads(&o);
        }
}

/* A gradient that is NaN or infinite changes no parameter and no moment. */
static void test_not_finite(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct optimizer o = {
            k % 2 ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.1, 1, true};
        struct train_state s = state_new(), before = state_new();
        fill(&s, s.value, 1, 1);
        fill(&before, before.value, 1, 1);
        fill(&s, s.gradient, 2, 1);
        s.gradient[40000] = bad[k / 2];
        assert_false(isfinite(step_of(&o, &s, &(struct optimizer_step){1, 0.1, 2})));
        assert_memory_equal(s.value, before.value, s.count * sizeof(float));
        assert_memory_equal(s.first_moment, before.first_moment, s.count * sizeof(float));
        assert_memory_equal(s.second_moment, before.second_moment, s.count * sizeof(float));
        state_free(&s);
        state_free(&before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
