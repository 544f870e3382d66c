/* SPDX-License-Identifier: Apache-2.0 */
/* Learned masks without a model: do samples have the frequencies that alpha says, is noise a function of (seed, step) alone,
   are bias, gradient and measures their definitions? */
#include "masks/base/memory.h"
#include "masks/mask.h"
#include "model/train/learn/measures.h"
#include "model/train/learn/noise.h"
#include "model/train/learn/sampling.h"
#include "tests/support/test.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9, HEADS = 2, DRAWS = 10000, MOST = 2 * HEADS * N * N };

static const struct model_config config = {.layers = 2, .heads = HEADS, .positions = N};

static struct alpha_shape shape_of(const struct learn_options *o)
{
    struct alpha_shape s;
    struct error e = {0};
    assert_int_equal(alpha_shape_of(o, &config, &s, &e), 0);
    assert_true(alpha_count(&s) <= 2 * MOST);
    return s;
}

/* From -3 to 3, the same for both entries of a symmetric unit. */
static void fill(const struct alpha_shape *s, float *alpha)
{
    const uint64_t count = alpha_count(s);
    for (uint64_t k = 0; k < count; k++)
        alpha[k] = 3 * (float)sin(1.7 * (double)k);
    for (uint64_t h = 0; s->symmetric && h < count / (N * N); h++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                alpha[h * N * N + i * N + j] = alpha[h * N * N + j * N + i];
}

/* The largest value that chi-square takes with probability 1 - 1e-4 (Wilson and Hilferty). */
static double chi_square_limit(double freedom)
{
    const double z = 3.719, part = 2 / (9 * freedom);
    return freedom * pow(1 - part + z * sqrt(part), 3);
}

static void count_samples(const struct alpha_shape *s, const struct learn_options *o,
                          const float *alpha, uint32_t *on)
{
    float noise[MOST], value[MOST], derivative[MOST];
    const struct samples_of_mask to = {value, derivative};
    for (uint64_t step = 1; step <= DRAWS; step++) {
        noise_draw(s, 11, step, noise);
        sampling_draw(s, o, 1, alpha, noise, &to);
        for (uint64_t k = 0; k < alpha_units(s); k++) {
            assert_true(value[k] == 0 || value[k] == 1);
            on[k] += value[k] > 0;
        }
    }
}

static void samples_have_the_frequencies_of_alpha(void **unused)
{
    const struct learn_options each[] = {{.kind = LEARN_ENTRIES},
                                         {.kind = LEARN_ENTRIES, .per_layer = true},
                                         {.kind = LEARN_DISTANCES},
                                         {.kind = LEARN_DISTANCES, .code = true}};
    (void)unused;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const struct alpha_shape s = shape_of(&each[k]);
        float alpha[2 * MOST];
        uint32_t on[MOST] = {0};
        double sum = 0;
        fill(&s, alpha);
        count_samples(&s, &each[k], alpha, on);
        for (uint64_t u = 0; u < alpha_units(&s); u++) {
            const double p = 1 / (1 + exp(-(double)alpha_logit(&s, alpha, u))),
                         d = on[u] - DRAWS * p;
            sum += d * d / (DRAWS * p * (1 - p));
        }
        const double freedom = (double)alpha_units(&s), limit = chi_square_limit(freedom);
        if (!(sum < limit && sum > 2 * freedom - limit))
            fail_msg("shape %zu: chi-square %g of %g units, at most %g", k, sum, freedom,
                     limit);
    }
}

static void noise_is_a_function_of_seed_and_step(void **unused)
{
    const struct learn_options o = {.kind = LEARN_ENTRIES, .symmetric = true};
    const struct model_config large = {.layers = 1, .heads = 3, .positions = 64};
    struct alpha_shape s;
    struct error e = {0};
    (void)unused;
    assert_int_equal(alpha_shape_of(&o, &large, &s, &e), 0);
    const uint64_t units = alpha_units(&s);
    float *a = memory_new(units, sizeof *a), *b = memory_new(units, sizeof *b);
    noise_draw(&s, 5, 7, a);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        noise_draw(&s, 5, 7, b);
        assert_memory_equal(a, b, units * sizeof *a);
    }
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++)
            assert_true(a[i * 64 + j] == a[j * 64 + i]);
    const uint64_t others[][2] = {
        {5, 8}, {6, 7}, {5, 7 + (UINT64_C(1) << 32)}, {5 + (UINT64_C(1) << 32), 7}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        noise_draw(&s, others[k][0], others[k][1], b);
        uint64_t equal = 0;
        for (uint64_t u = 0; u < units; u++)
            equal += a[u] == b[u];
        assert_true(equal < 10);
    }
    free(a);
    free(b);
}

/* M or P, and P, of an entry, by the definition. */
static double entry_of(const struct alpha_shape *s, const float *unit, uint32_t head, int i,
                       int j)
{
    const bool border = i == 0 || j == 0 || i == N - 1 || j == N - 1;
    const int d = abs(i - j);
    if (!s->distances)
        return (double)unit[head * N * N + (uint32_t)(i * N + j)];
    if (!s->border)
        return (double)unit[head * N + (uint32_t)d];
    return border ? 1 : (double)unit[head * (N - 2) + (uint32_t)d];
}

static void measures_are_their_definitions(void **unused)
{
    const struct learn_options each[] = {
        {.kind = LEARN_P},
        {.kind = LEARN_ENTRIES, .per_layer = true},
        {.kind = LEARN_DISTANCES},
        {.kind = LEARN_DISTANCES, .code = true, .per_layer = true}};
    (void)unused;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const struct alpha_shape s = shape_of(&each[k]);
        float alpha[2 * MOST], p[MOST], value[MOST];
        fill(&s, alpha);
        double entropy = 0, l1 = 0, on = 0, diagonal = 0, near = 0, special = 0;
        const uint32_t heads = s.layers * s.heads;
        for (uint64_t u = 0; u < alpha_units(&s); u++) {
            const double x = 1 / (1 + exp(-(double)alpha_logit(&s, alpha, u)));
            p[u] = (float)x;
            value[u] = (float)(u % 3) / 2;
            entropy -= x * log(x) + (1 - x) * log(1 - x);
        }
        for (uint32_t h = 0; h < heads; h++)
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++) {
                    const double x = entry_of(&s, p, h, i, j);
                    l1 += entry_of(&s, value, h, i, j);
                    on += x > 0.5;
                    diagonal += i == j ? x : 0;
                    near += abs(i - j) == 1 ? x : 0;
                    special += i == 0 || j == 0 || i == N - 1 || j == N - 1 ? x : 0;
                }
        const struct mask_measures m = measures_of(&s, alpha, value);
        assert_true(fabs(m.l1 - l1) < 1e-9);
        assert_true(fabs(m.density - on / (heads * N * N)) < 1e-9);
        assert_true(fabs(m.entropy - entropy / (double)alpha_units(&s)) < 1e-6);
        assert_true(fabs(m.p_diagonal - diagonal / (heads * N)) < 1e-6);
        assert_true(fabs(m.p_neighbour - near / (heads * 2 * (N - 1))) < 1e-6);
        assert_true(fabs(m.p_special - special / (heads * 4 * (N - 1))) < 1e-6);
        struct mask *mask = alpha_mask(&s, alpha);
        uint64_t active = 0;
        for (uint32_t h = 0; h < heads; h++)
            active += mask_pattern(mask, h / s.heads, h % s.heads)->active;
        assert_true((double)active == on);
        mask_destroy(mask);
    }
}

/* X of each kind, and what is off. */
static void the_bias_is_its_definition(void **unused)
{
    const struct {
        struct learn_options o;
        double off, on;
    } each[] = {
        {{.kind = LEARN_ENTRIES, .scale = 7}, (double)-INFINITY, 0},
        {{.kind = LEARN_ENTRIES, .scale = 7, .leaks = true}, -7, 0},
        {{.kind = LEARN_DISTANCES, .scale = 7}, (double)-INFINITY, 0},
        {{.kind = LEARN_DISTANCES, .scale = 7, .code = true, .leaks = true}, -7, 0},
    };
    (void)unused;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const struct alpha_shape s = shape_of(&each[k].o);
        float alpha[2 * MOST], value[MOST], derivative[MOST], x[MOST];
        const struct samples_of_mask to = {value, derivative};
        fill(&s, alpha);
        sampling_draw(&s, &each[k].o, 1, alpha, NULL, &to);
        sampling_bias(&s, &each[k].o, alpha, value, x);
        for (uint32_t at = 0; at < HEADS * N * N; at++) {
            const double m =
                entry_of(&s, value, at / (N * N), (int)(at / N % N), (int)(at % N));
            assert_true((double)x[at] == (m > 0 ? each[k].on : each[k].off));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_the_frequencies_of_alpha),
        cmocka_unit_test(noise_is_a_function_of_seed_and_step),
        cmocka_unit_test(measures_are_their_definitions),
        cmocka_unit_test(the_bias_is_its_definition),
    };
    return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
