/* SPDX-License-Identifier: Apache-2.0 */
/* Are masks drawn in the right number, at the right places, and replaced in the right shares? */
#include "model/base/order.h"
#include "model/data/masking.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <string.h>

enum { VOCABULARY = 1000, FIRST_FOLLOWING = 700, LENGTH = 100, DRAWS = 8000 };

static struct masking masking(bool whole_words)
{
    static uint8_t follows[VOCABULARY / 8];
    for (uint32_t k = FIRST_FOLLOWING; k < VOCABULARY; k++)
        follows[k / 8] |= (uint8_t)(1u << k % 8);
    return (struct masking){.probability = 0.15,
                            .whole_words = whole_words,
                            .begin = 2,
                            .end = 3,
                            .mask = 4,
                            .vocabulary = VOCABULARY,
                            .follows = follows};
}

/* [CLS] .. [SEP] .. [SEP]; without whole words no piece follows. */
static void fill_tokens(uint32_t *token, uint32_t count, uint32_t seed, bool pieces)
{
    struct draws d = draws_begin(seed, (enum random_stream)99, 0, 0);
    for (uint32_t k = 0; k < count; k++)
        token[k] = 10 + draws_below(&d, (pieces ? VOCABULARY : FIRST_FOLLOWING) - 10);
    token[0] = 2;
    token[count / 2] = token[count - 1] = 3;
}

static void masks_have_their_shares(void **state)
{
    (void)state;
    struct masking m = masking(false);
    struct masking_memory memory = {0};
    uint32_t at_place[LENGTH] = {0}, masked = 0, kept = 0, all = 0, special = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t token[LENGTH], before[LENGTH], place[LENGTH], label[LENGTH];
        fill_tokens(token, LENGTH, k, false);
        memcpy(before, token, sizeof before);
        uint32_t n = masking_apply(&m, (struct masking_key){9, 0, k}, &memory,
                                   (struct masking_target){token, LENGTH, place, label});
        assert_int_equal(n, 15);
        for (uint32_t j = 0; j < n; j++) {
            assert_true(j == 0 || place[j] > place[j - 1]);
            assert_int_equal(label[j], before[place[j]]);
            assert_true(label[j] != 2 && label[j] != 3);
            at_place[place[j]]++;
            masked += token[place[j]] == m.mask;
            kept += token[place[j]] == label[j];
            special += token[place[j]] < 5 && token[place[j]] != m.mask;
            before[place[j]] = token[place[j]];
        }
        assert_memory_equal(before, token, sizeof token); /* nothing else has changed */
        all += n;
    }
    /* A random token may be [MASK], or what stood there. */
    data_near(masked, all, 0.8 + 0.1 / VOCABULARY);
    data_near(kept, all, 0.1 + 0.1 / VOCABULARY);
    data_near(special, all,
              0.1 * 4 / VOCABULARY); /* random tokens come from the whole vocabulary */
    for (uint32_t k = 0; k < LENGTH; k++)
        if (k == 0 || k == LENGTH / 2 || k == LENGTH - 1)
            assert_int_equal(at_place[k], 0);
        else
            data_near(at_place[k], DRAWS, 15.0 / (LENGTH - 3));
    masking_finish(&memory);
}

static void the_number_of_masks_is_rounded_as_in_python(void **state)
{
    (void)state;
    static const struct {
        uint32_t length;
        double probability;
        uint32_t masked;
    } cases[] = {{4, 0.15, 1},   {30, 0.15, 4}, /* 4.5 */
                 {50, 0.15, 8},                 /* 7.5 */
                 {99, 0.15, 15}, {99, 0, 1},    {99, 1, 96}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct masking m = masking(false);
        struct masking_memory memory = {0};
        uint32_t token[LENGTH], place[LENGTH], label[LENGTH];
        m.probability = cases[k].probability;
        fill_tokens(token, cases[k].length, 1, false);
        assert_int_equal(
            masking_apply(&m, (struct masking_key){1, 2, 3}, &memory,
                          (struct masking_target){token, cases[k].length, place, label}),
            cases[k].masked);
        masking_finish(&memory);
    }
}

static void whole_words_go_together(void **state)
{
    (void)state;
    struct masking m = masking(true);
    struct masking_memory memory = {0};
    uint32_t most = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t token[LENGTH], before[LENGTH], place[LENGTH], label[LENGTH];
        bool chosen[LENGTH + 1] = {false};
        fill_tokens(token, LENGTH, k, true);
        memcpy(before, token, sizeof before);
        uint32_t n = masking_apply(&m, (struct masking_key){9, 0, k}, &memory,
                                   (struct masking_target){token, LENGTH, place, label});
        assert_in_range(n, 1, 15);
        most += n == 15;
        for (uint32_t j = 0; j < n; j++)
            chosen[place[j]] = true;
        for (uint32_t j = 1; j < LENGTH; j++)
            if (before[j] >= FIRST_FOLLOWING && before[j - 1] > 3)
                assert_int_equal(chosen[j], chosen[j - 1]);
    }
    assert_true(most >
                DRAWS * 9 / 10); /* words that are too many are passed over, others fill up */
    masking_finish(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_have_their_shares),
        cmocka_unit_test(the_number_of_masks_is_rounded_as_in_python),
        cmocka_unit_test(whole_words_go_together),
    };
    return cmocka_run_group_tests_name("masking", tests, NULL, NULL);
}
