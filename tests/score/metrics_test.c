/* SPDX-License-Identifier: Apache-2.0 */
/* Are the metrics those that one counts by hand on a few cases, undefined ones included? */
#include "tests/support/test.h"
/* after cmocka */
#include "model/score/answers.h"
#include "model/score/classification.h"
#include "model/score/correlation.h"
#include "model/score/threshold.h"
#include <math.h>
#include <stdlib.h>

static void same(double found, double expected)
{
    assert_true(fabs(found - expected) < 1e-15);
}

static void classes_are_counted(void **state)
{
    (void)state;
    const uint32_t gold[] = {1, 1, 1, 0, 0, 0}, found[] = {1, 1, 0, 0, 0, 1};
    same(score_accuracy(gold, found, 6), 4.0 / 6);
    same(score_f1(gold, found, 6, 1), 2.0 / 3); /* TP 2, FP 1, FN 1 */
    same(score_matthews(gold, found, 6, 2), (2 * 2 - 1 * 1) / 9.0);
    const uint32_t constant[] = {0, 0, 0, 0, 0, 0};
    same(score_f1(constant, constant, 6, 1), 0);
    same(score_matthews(gold, constant, 6, 2), 0);
    assert_true(isnan(score_accuracy(gold, found, 0)));
    assert_true(isnan(score_f1(gold, found, 0, 1)));
    assert_true(isnan(score_matthews(gold, found, 0, 2)));
}

static void correlations_are_those_of_the_definition(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 4}, y[] = {1, 4, 9, 16}, tied[] = {1, 2, 2, 3},
                 flat[] = {5, 5, 5, 5}, huge[] = {1e300, 2e300, 3e300, 4e300};
    same(score_pearson(x, y, 4), 25 / sqrt(5 * 129.0));
    same(score_spearman(x, y, 4), 1);
    same(score_spearman(x, tied, 4), 4.5 / sqrt(5 * 4.5)); /* ranks 1, 2.5, 2.5, 4 */
    same(score_pearson(huge, x, 4), 1);
    assert_true(isnan(score_pearson(x, flat, 4)) && isnan(score_spearman(flat, x, 4)));
    assert_true(isnan(score_pearson(x, y, 1)) && isnan(score_pearson(x, y, 0)));
}

static void answers_are_normalized(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"The  Cat, an\tapple!", "cat apple"},
        {"a_b an-other", "ab another"},
        {"the", ""},
        {"\xc3\x89the \xce\x9f\xce\xa3", "\xc3\xa9the \xce\xbf\xcf\x82"}, /* Éthe ΟΣ */
        {"\xe2\x80\x9cthe\xe2\x80\x9d", "\xe2\x80\x9c \xe2\x80\x9d"}, /* not ASCII: they stay */
        {"x\xc2\xa0y\xe3\x80\x80z", "x y z"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char *normal = answer_normalize(cases[k][0]);
        assert_string_equal(normal, cases[k][1]);
        free(normal);
    }
}

static void answers_follow_the_rules_of_their_version(void **state)
{
    (void)state;
    const char *const gold[] = {"the red house", "house"}, *const empty[] = {"the"};
    struct answer_score s = answer_score("a house, red", gold, 2, ANSWERS_V1);
    assert_true(s.exact == 0 && s.f1 == 1);
    s = answer_score("", empty, 1, ANSWERS_V1);
    assert_true(s.exact == 1 && s.f1 == 0);
    s = answer_score("", empty, 1, ANSWERS_V2);
    assert_true(s.exact == 1 && s.f1 == 1);
    s = answer_score("", NULL, 0, ANSWERS_V2);
    assert_true(s.exact == 1 && s.f1 == 1);
    s = answer_score("x", NULL, 0, ANSWERS_V2);
    assert_true(s.exact == 0 && s.f1 == 0);
}

enum { QUESTIONS = 3 };

/* The sum of the questions' scores at a threshold, in percent. */
static struct answer_score score_at(double threshold, const struct dataset *d,
                                    const struct predictions *found, const double *none)
{
    struct answer_score sum = {0, 0};
    for (size_t k = 0; k < d->count; k++) {
        const char *text = none[k] > threshold ? "" : found->of[k].part[0];
        struct answer_score s =
            answer_score(text, d->example[k].gold, d->example[k].golds, ANSWERS_V2);
        sum.exact += 100 * s.exact / (double)d->count;
        sum.f1 += 100 * s.f1 / (double)d->count;
    }
    return sum;
}

static void check_best(const struct dataset *d, const struct predictions *found,
                       const double *none)
{
    const struct best_threshold best = score_best_threshold(d, found, none);
    assert_true(fabs(best.exact - score_at(best.exact_threshold, d, found, none).exact) < 1e-9);
    assert_true(fabs(best.f1 - score_at(best.f1_threshold, d, found, none).f1) < 1e-9);
    for (size_t k = 0; k <= d->count; k++) {
        const double at = k < d->count ? none[k] : -INFINITY;
        const struct answer_score s = score_at(at, d, found, none);
        assert_true(s.exact < best.exact + (at < best.exact_threshold ? -1e-9 : 1e-9));
        assert_true(s.f1 < best.f1 + (at < best.f1_threshold ? -1e-9 : 1e-9));
    }
}

/* It is compared with all thresholds. Two questions of one score, one of them without an answer, change together, in
   whatever order they come. */
static void the_best_threshold_is_that_of_all(void **state)
{
    (void)state;
    const char *gold[] = {"red house"};
    const char *const text[QUESTIONS][1] = {{"red house"}, {"barn"}, {"house"}};
    struct task_example question[QUESTIONS] = {
        {.gold = gold, .golds = 1}, {.golds = 0}, {.gold = gold, .golds = 1}};
    const double none[QUESTIONS] = {0.5, 0.5, -1};
    for (int order = 0; order < 2; order++) {
        const int at[QUESTIONS] = {order, 1 - order, 2};
        struct task_example example[QUESTIONS];
        struct prediction of[QUESTIONS];
        for (int k = 0; k < QUESTIONS; k++) {
            example[k] = question[at[k]];
            of[k] = (struct prediction){text[at[k]], 1, 1};
        }
        check_best(&(struct dataset){.example = example, .count = QUESTIONS},
                   &(struct predictions){.of = of, .count = QUESTIONS}, none);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_counted),
        cmocka_unit_test(correlations_are_those_of_the_definition),
        cmocka_unit_test(answers_are_normalized),
        cmocka_unit_test(answers_follow_the_rules_of_their_version),
        cmocka_unit_test(the_best_threshold_is_that_of_all),
    };
    return cmocka_run_group_tests_name("score/metrics", tests, NULL, NULL);
}
