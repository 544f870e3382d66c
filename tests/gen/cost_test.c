/* SPDX-License-Identifier: Apache-2.0 */
/* Prices and the fit: both sides of the table of terms agree, made-up rates are found again from made-up
   times, also where some of these are wrong. */
#include "gen/cost/fit.h"
#include "gen/cost/price.h"
#include "gen/family/family.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

enum { ROWS = 60 };

static double draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) / (double)(1 << 24);
}

static const struct kernel_config config = {
    .request = {.dtype = ABI_F32, .head_dim = 64, .backward = true}};
static struct price_shape shape_of(const struct kernel_config *c)
{
    return family_price_shape(&targets[0], c, 2048, 12);
}

static struct effort some_effort(uint32_t *state)
{
    struct effort e;
    for (int k = 0; k < UNITS; k++)
        e.count[k] = draw(state) < 0.4 ? floor(1 + 1000 * draw(state)) : 0;
    return e;
}

static void check_terms(struct price_shape s)
{
    uint32_t random = 1;
    for (const struct machine *m = machines; m->name; m++)
        for (int pass = 0; pass < PASSES; pass++) {
            struct effort e = some_effort(&random);
            struct price p = price_make(m, (enum machine_pass)pass, s);
            struct fit_row row = {.seconds = 1};
            effort_terms(m, s, &e, row.term);
            double seconds = price_of(&p, &e);
            assert_true(seconds > 0);
            assert_true(fabs(fit_seconds(&row, m->rate[pass]) / seconds - 1) < 1e-12);
        }
}

/* Also in tall row blocks, whose blocks share otherwise in what a processor does. */
static void test_terms(void **state)
{
    (void)state;
    struct kernel_config f = config;
    f.tall = true;
    check_terms(shape_of(&config));
    check_terms(shape_of(&f));
}

/* A bias costs on every machine and in each pass, but brings no lines where there are none. */
static void test_bias(void **state)
{
    (void)state;
    struct kernel_config f = config;
    f.request.bias = ABI_BIAS_ADD;
    const struct price_shape shape = shape_of(&config), bias = shape_of(&f);
    for (const struct machine *m = machines; m->name; m++)
        for (int pass = 0; pass < PASSES; pass++) {
            struct price without = price_make(m, (enum machine_pass)pass, shape);
            struct price with = price_make(m, (enum machine_pass)pass, bias);
            assert_true(with.full > without.full && with.partial > without.partial);
            assert_true(with.row > without.row && with.item == without.item);
            assert_true(without.walk > 0 ? with.walk > without.walk : with.walk == 0);
        }
}

/* Rates up to five times more or less than the prior; times with some percent of noise. */
static void make_rows(const struct machine *m, struct fit_row row[ROWS], double rate[RATES],
                      double noise)
{
    uint32_t random = 7;
    for (int k = 0; k < RATES; k++)
        rate[k] = m->rate[PASS_FORWARD][k] * pow(5, 2 * draw(&random) - 1);
    for (int k = 0; k < ROWS; k++) {
        struct effort e = some_effort(&random);
        effort_terms(m, shape_of(&config), &e, row[k].term);
        row[k].seconds = fit_seconds(&row[k], rate) * (1 + noise * (2 * draw(&random) - 1));
    }
}

static double worst_error(const struct fit_row row[ROWS], const double rate[RATES])
{
    double worst = 0;
    for (int k = 0; k < ROWS; k++)
        worst = fmax(worst, fabs(fit_seconds(&row[k], rate) / row[k].seconds - 1));
    return worst;
}

static void test_recovery(void **state)
{
    (void)state;
    const struct machine *m = machine_find("x86-avx2", NULL);
    struct fit_row row[ROWS];
    double rate[RATES], found[RATES];
    make_rows(m, row, rate, 0);
    assert_true(worst_error(row, m->rate[PASS_FORWARD]) > 0.5);
    double rms = fit_rates(row, ROWS, m->rate[PASS_FORWARD], found);
    assert_true(rms < 0.02 && worst_error(row, found) < 0.05);
    /* The fit recovers the rates that dominate the rows. */
    assert_true(fabs(found[RATE_ITEM] / rate[RATE_ITEM] - 1) < 0.1);
    assert_true(fabs(found[RATE_ROW_ITEM] / rate[RATE_ROW_ITEM] - 1) < 0.1);
}

/* A probe that something else disturbed, or two, do not lead the others astray. */
static void test_outliers(void **state)
{
    (void)state;
    const struct machine *m = machine_find("x86-avx2", NULL);
    struct fit_row row[ROWS], clean[ROWS];
    double rate[RATES], found[RATES];
    make_rows(m, clean, rate, 0.03);
    memcpy(row, clean, sizeof row);
    row[3].seconds *= 2.5;
    row[40].seconds *= 2;
    fit_rates(row, ROWS, m->rate[PASS_FORWARD], found);
    int within = 0;
    for (int k = 0; k < ROWS; k++)
        within += fabs(fit_seconds(&clean[k], found) / clean[k].seconds - 1) < 0.2;
    assert_true(within >= ROWS * 85 / 100);
}

/* Nothing measured: all stays as it was; what there is none of, stays none. */
static void test_prior(void **state)
{
    (void)state;
    double prior[RATES], found[RATES];
    memcpy(prior, machine_find("x86-amx", NULL)->rate[PASS_DQ], sizeof prior);
    prior[RATE_GATHER] = 0;
    assert_true(fit_rates(NULL, 0, prior, found) < 1e-12);
    for (int k = 0; k < RATES; k++)
        assert_true(fabs(found[k] - prior[k]) <= 1e-9 * prior[k]);
    struct fit_row row = {.seconds = 1e-3};
    row.term[RATE_GATHER] = 1e6;
    row.term[RATE_ITEM] = 1e3;
    fit_rates(&row, 1, prior, found);
    assert_true(found[RATE_GATHER] == 0 && found[RATE_ITEM] > prior[RATE_ITEM]);
    assert_true(found[RATE_ITEM] <= prior[RATE_ITEM] * FIT_REACH * (1 + 1e-9));
}

static void test_caches(void **state)
{
    (void)state;
    assert_true(cache_miss(1e6, 0) == 0);
    double last = 0;
    for (double size = 1e3; size < 1e9; size *= 1.3) {
        double miss = cache_miss(size, 2e6);
        assert_true(miss >= last && miss <= 1);
        last = miss;
    }
    assert_true(cache_miss(2e5, 2e6) < 0.01 && last > 0.99);
    /* Rows of many heads lie apart, and then fill a cache sooner; a shorter sequence fits again. */
    const struct machine *m = machine_find("x86-avx512", NULL);
    struct price_shape wide = shape_of(&config), alone = wide, brief = wide;
    wide.heads = 16;
    alone.heads = 1;
    brief.n = 128;
    struct price few = price_make(m, PASS_FORWARD, alone),
                 many = price_make(m, PASS_FORWARD, wide);
    struct price small = price_make(m, PASS_FORWARD, brief);
    assert_true(few.column < many.column && small.column < many.column / 10);
    assert_true(few.item_row == many.item_row && few.full < many.full);
}

/* A price of lines is never less than that of their entries, and infinite where there are none. */
static void test_lines(void **state)
{
    (void)state;
    struct price p = {.walk = 1, .line = 2, .column = 3};
    assert_true(price_lines(&p, 32, 32, 1, 32) == 32 + 2 + 96);
    assert_true(price_lines(&p, 32, 1, 1, 1) == 4 + 2 + 3);
    assert_true(price_lines(&p, 32, 0, 0, 0) == 0);
    p.walk = 0;
    assert_true(isinf(price_lines(&p, 32, 1, 1, 1)));
    assert_true(price_lines(&p, 32, 0, 0, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias),     cmocka_unit_test(test_terms),
        cmocka_unit_test(test_recovery), cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_prior),    cmocka_unit_test(test_caches),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
