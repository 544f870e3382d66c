/* SPDX-License-Identifier: Apache-2.0 */
/* The random primitives: Philox against its authors' known answers, every draw against the rule in
   masks/README.md written out plainly, and golden hashes, so that a mask never changes. */
#include "masks/base/random.h"
#include "tests/masks/help.h"
#include "tests/support/locale/comma_locale.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From Random123's kat_vectors, philox4x32 with 10 rounds. */
static void philox_gives_the_known_answers(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        uint32_t got[4];
        philox(known[k].counter, known[k].key, got);
        assert_memory_equal(got, known[k].expected, sizeof got);
    }
}

/* Draw k of (seed, stream, row), straight from the rule. */
static uint64_t draw(uint64_t seed, uint32_t stream, uint32_t row, uint32_t k)
{
    uint32_t counter[4] = {k / 2, row, 0, stream}, out[4];
    philox(counter, (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, out);
    return out[k % 2 * 2] | (uint64_t)out[k % 2 * 2 + 1] << 32;
}

/* The first k distinct values, one draw at a time. */
static void draw_keys(uint64_t seed, uint32_t stream, uint32_t row, uint32_t k, uint32_t n,
                      bool *ret)
{
    bool left_out = k > n / 2;
    uint32_t missing = left_out ? n - k : k;
    memset(ret, left_out, n);
    for (uint32_t at = 0; missing; at++) {
        uint32_t key = (uint32_t)((unsigned __int128)draw(seed, stream, row, at) * n >> 64);
        missing -= ret[key] == left_out;
        ret[key] = !left_out;
    }
}

static void keys_are_the_first_distinct_draws(void **unused)
{
    (void)unused;
    static const uint32_t counts[] = {0, 1, 2, 9, 32, 33, 60, 65};
    bool expected[65];
    for (size_t x = 0; x < sizeof counts / sizeof *counts; x++) {
        struct text t = {0};
        text_add(&t, "random_keys(%u, seed=81985529216486895)", counts[x]);
        struct mask *m = load_text(t.bytes, 65);
        for (uint32_t i = 0; i < 65; i++) {
            draw_keys(UINT64_C(81985529216486895), 2, i, counts[x], 65, expected);
            assert_int_equal(pattern_row_active(m->pattern[0], i), counts[x]);
            for (uint32_t j = 0; j < 65; j++)
                assert_int_equal(pattern_test(m->pattern[0], i, j), expected[j]);
        }
        mask_destroy(m);
        text_finish(&t);
    }
}

/* The vector of masks/README.md. */
static void keys_are_those_of_the_readme(void **unused)
{
    (void)unused;
    static const uint32_t rows[3][3] = {{1, 2, 4}, {4, 6, 7}, {2, 6, 7}};
    struct mask *m = load_text("random_keys(3)", 10);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 3; k++)
            assert_true(pattern_test(m->pattern[0], i, rows[i][k]));
    mask_destroy(m);
}

static void globals_are_the_first_distinct_draws(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"random_global(0)", "random_global(2, seed=5)",
                                        "random_global(50)"};
    static const uint32_t counts[] = {0, 2, 50}, seeds[] = {1, 5, 1};
    bool expected[65];
    for (int x = 0; x < 3; x++) {
        struct mask *m = load_text(texts[x], 65);
        draw_keys(seeds[x], 3, 0, counts[x], 65, expected);
        for (uint32_t i = 0; i < 65; i++)
            for (uint32_t j = 0; j < 65; j++)
                assert_int_equal(pattern_test(m->pattern[0], i, j), expected[i] || expected[j]);
        mask_destroy(m);
    }
}

static double fraction(const char *text, uint32_t n)
{
    struct mask *m = load_text(text, n);
    double d = (double)m->pattern[0]->active / n / n;
    mask_destroy(m);
    return d;
}

/* 5 standard deviations of a binomial count. */
static void random_has_its_density(void **unused)
{
    (void)unused;
    static const double densities[] = {0, 1e-4, 0.01, 0.3, 0.5, 0.7, 0.99, 1};
    enum { LENGTH = 1000 };
    for (size_t k = 0; k < sizeof densities / sizeof *densities; k++) {
        double p = densities[k];
        struct text t = {0};
        text_add(&t, "random(%g, seed=3)", p);
        double got = fraction(t.bytes, LENGTH);
        if (fabs(got - p) > 5 * sqrt(p * (1 - p)) / LENGTH)
            fail_msg("%s: density %g", t.bytes, got);
        text_finish(&t);
    }
}

/* Neighbours in a row and in a column are as independent as they should be. */
static void random_is_not_correlated(void **unused)
{
    (void)unused;
    assert_true(fabs(fraction("random(0.5) & random(0.5, seed=2)", 1000) - 0.25) < 0.003);
    enum { LENGTH = 1000 };
    struct mask *m = load_text("random(0.5)", LENGTH);
    uint32_t row = 0, column = 0;
    for (uint32_t i = 1; i < LENGTH; i++)
        for (uint32_t j = 1; j < LENGTH; j++) {
            bool here = pattern_test(m->pattern[0], i, j);
            row += here && pattern_test(m->pattern[0], i, j - 1);
            column += here && pattern_test(m->pattern[0], i - 1, j);
        }
    assert_true(abs((int)row - 250000) < 3000 && abs((int)column - 250000) < 3000);
    mask_destroy(m);
}

/* A gap g means draw < (1 - p)^g: the plain rule in long double. */
static void gaps_follow_the_power(void **unused)
{
    (void)unused;
    static const double densities[] = {0.5, 0.25, 0.01, 1e-5};
    for (size_t k = 0; k < sizeof densities / sizeof *densities; k++) {
        struct gaps g = gaps_new(densities[k]);
        struct draws d = draws_begin(9, STREAM_CELLS, 4, 0);
        for (uint32_t x = 0; x < 2000; x++) {
            uint32_t gap = gaps_draw(&g, &d);
            long double u = (long double)draw(9, 1, 4, x) * 0x1p-64L;
            long double q = 1 - (long double)densities[k], slack = 1e-12L;
            assert_true(u < powl(q, gap) + slack);
            assert_true(u >= powl(q, (long double)gap + 1) - slack);
        }
    }
}

/* random(0.7) by its rule: per part of 256 keys, gaps between keys that are off. */
static void cells_are_drawn_in_parts(void **unused)
{
    (void)unused;
    enum { LENGTH = 600, PART = 256 };
    struct mask *m = load_text("random(0.7, seed=6)", LENGTH);
    struct mask *some =
        load_text("(window(3) | columns(250..260, 599)) & random(0.7, seed=6)", LENGTH);
    struct gaps g = gaps_new(1 - 0.7);
    assert_int_equal(g.part, PART);
    for (uint32_t i = 0; i < LENGTH; i++) {
        bool off[LENGTH + PART] = {false};
        for (uint32_t part = 0; part * PART < LENGTH; part++) {
            struct draws d = draws_begin(6, STREAM_CELLS, i, part);
            for (uint32_t j = gaps_draw(&g, &d); j < PART; j += 1 + gaps_draw(&g, &d))
                off[part * PART + j] = true;
        }
        for (uint32_t j = 0; j < LENGTH; j++) {
            bool asked = abs((int)i - (int)j) <= 3 || (j >= 250 && j <= 260) || j == 599;
            assert_int_equal(pattern_test(m->pattern[0], i, j), !off[j]);
            assert_int_equal(pattern_test(some->pattern[0], i, j), asked && !off[j]);
        }
    }
    mask_destroy(m);
    mask_destroy(some);
}

static void masks_never_change(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        uint32_t n;
        uint64_t hash;
    } golden[] = {
        {"random(0.1)", 128, UINT64_C(0xe8986285fc587706)},
        {"random(0.3)", 600, UINT64_C(0x9f6d240f599cb032)},
        {"random(0.9, seed=7)", 128, UINT64_C(0x968ad8000ad02c81)},
        {"random(0.001)", 4096, UINT64_C(0x4cfd0f7de904d4ee)},
        {"random_keys(3)", 128, UINT64_C(0x919991d54e343609)},
        {"random_keys(100, seed=2)", 128, UINT64_C(0xa9e8ee306e745897)},
        {"random_global(2)", 128, UINT64_C(0x574960ab309e8032)},
        {"longformer", 128, UINT64_C(0x48d3450e0f805c70)},
        {"longformer(64, 2)", 512, UINT64_C(0xf3f485e7725a784a)},
        {"bigbird", 128, UINT64_C(0x965768c9b614bb63)},
        {"bigbird(1, 2, 2)", 512, UINT64_C(0xed717d880d19842e)},
    };
    bool same = true;
    for (size_t k = 0; k < sizeof golden / sizeof *golden; k++) {
        struct mask *m = load_text(golden[k].text, golden[k].n);
        if (m->pattern[0]->hash != golden[k].hash) {
            print_error("        {\"%s\", %u, UINT64_C(0x%016" PRIx64 ")},\n", golden[k].text,
                        golden[k].n, m->pattern[0]->hash);
            same = false;
        }
        mask_destroy(m);
    }
    assert_true(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(keys_are_the_first_distinct_draws),
        cmocka_unit_test(keys_are_those_of_the_readme),
        cmocka_unit_test(globals_are_the_first_distinct_draws),
        cmocka_unit_test(random_has_its_density),
        cmocka_unit_test(random_is_not_correlated),
        cmocka_unit_test(gaps_follow_the_power),
        cmocka_unit_test(cells_are_drawn_in_parts),
        cmocka_unit_test(masks_never_change),
    };
    comma_locale(); /* numbers of files and languages have a point in every locale */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
