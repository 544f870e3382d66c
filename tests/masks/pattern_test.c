/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns against plain n x n bytes: building, asking, cropping, turning. */
#include "tests/masks/help.h"
#include <stdlib.h>
#include <string.h>

static const uint32_t lengths[] = {1, 2, 3, 7, 63, 64, 65, 130};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, ROUNDS = 40 };

/* Random bytes: noise of some density, long runs, or empty and full rows. */
static uint8_t *make_bytes(uint32_t n, uint64_t *state)
{
    uint8_t *m = memory_new((size_t)n * n, 1);
    uint64_t kind = next_random(state) % 4, density = next_random(state) % 101;
    uint8_t value = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool whole = next_random(state) % 3 == 0;
        for (uint32_t j = 0; j < n; j++) {
            bool draw = next_random(state) % 100 < density;
            if (kind == 0)
                value = draw;
            else if (kind == 1 && next_random(state) % 8 == 0)
                value = !value;
            else if (kind == 2 && j == 0)
                value = whole ? 0xff : 0;
            else if (kind == 3)
                value = draw && (i + j) % 5 != 0 ? 1 : 0;
            m[(size_t)i * n + j] = value;
        }
    }
    return m;
}

static void check_runs(const struct pattern *p)
{
    uint64_t active = 0;
    assert_int_equal(p->row[0], 0);
    assert_int_equal(p->row[p->n], p->n_runs);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t sum = 0;
        for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++) {
            assert_true(p->run[r].begin < p->run[r].end && p->run[r].end <= p->n);
            assert_true(r == p->row[i] || p->run[r - 1].end < p->run[r].begin);
            sum += p->run[r].end - p->run[r].begin;
        }
        assert_int_equal(pattern_row_active(p, i), sum);
        active += sum;
    }
    assert_int_equal(p->active, active);
}

/* Whether entry (i, j) of p is bytes[i * rows + j * columns] for all i, j. */
static void check_equal(const struct pattern *p, const uint8_t *bytes, size_t rows,
                        size_t columns)
{
    check_runs(p);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            if (pattern_test(p, i, j) != (bytes[i * rows + j * columns] != 0))
                fail_msg("n %u: entry %u, %u is wrong", p->n, i, j);
}

static struct pattern *from_bits(const uint8_t *m, uint32_t n)
{
    size_t words = ((size_t)n + 63) / 64 + 1;
    uint64_t *bits = memory_new(n * words, sizeof *bits);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < words * 64; j++)
            if (j >= n || m[(size_t)i * n + j])
                bits[i * words + j / 64] |= UINT64_C(1) << j % 64;
    struct pattern *p = pattern_from_bits(bits, n, words);
    free(bits);
    return p;
}

static void check_matrix(uint32_t n, uint64_t *state)
{
    struct error e = {0};
    uint8_t *m = make_bytes(n, state);
    struct pattern *p = pattern_from_bytes(m, n, n), *q = from_bits(m, n);
    check_equal(p, m, n, 1);
    assert_true(pattern_equal(p, q) && p->hash == q->hash);
    struct pattern *t = pattern_transpose(p, &e), *back = pattern_transpose(t, &e);
    check_equal(t, m, 1, n);
    assert_true(pattern_equal(p, back));
    uint32_t small = 1 + (uint32_t)(next_random(state) % n);
    struct pattern *crop = pattern_crop(p, small), *direct = pattern_from_bytes(m, small, n);
    check_equal(crop, m, n, 1);
    assert_true(pattern_equal(crop, direct));
    struct pattern *copy = pattern_copy(p);
    assert_true(pattern_equal(copy, p));
    m[(size_t)(n - 1) * n] = !m[(size_t)(n - 1) * n];
    struct pattern *other = pattern_from_bytes(m, n, n);
    assert_false(pattern_equal(other, p));
    struct pattern *all[] = {p, q, t, back, crop, direct, copy, other};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        pattern_destroy(all[k]);
    free(m);
}

static void patterns_are_what_their_bytes_are(void **unused)
{
    (void)unused;
    uint64_t state = 1;
    for (int k = 0; k < N_LENGTHS; k++)
        for (int round = 0; round < ROUNDS; round++)
            check_matrix(lengths[k], &state);
}

static void runs_that_touch_are_merged(void **unused)
{
    (void)unused;
    struct pattern *p = pattern_new(8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(pattern_add(p, i, 0, 2));
        assert_true(pattern_add(p, i, 2, 3));
        assert_true(pattern_add(p, i, 4, 8));
        pattern_row(p, i);
    }
    pattern_finish(p);
    check_runs(p);
    assert_int_equal(p->n_runs, 16);
    assert_int_equal(p->active, 56);
    pattern_destroy(p);
    pattern_destroy(NULL);
}

static void a_long_mask_transposes_in_runs(void **unused)
{
    (void)unused;
    struct mask *m = load_text("window(256) | global(0, -1) | columns(7)", 1 << 17);
    struct error e = {0};
    struct mask *t = mask_transpose(m, &e),
                *expected = load_text("window(256) | global(0, -1) | rows(7)", 1 << 17);
    assert_non_null(t);
    assert_true(mask_equal(t, expected));
    mask_destroy(m);
    mask_destroy(t);
    mask_destroy(expected);
}

/* Three heads, two of them equal; two layers. */
static struct mask *make_mask(void)
{
    struct pattern *given[6];
    uint8_t bytes[9] = {0};
    for (int k = 0; k < 6; k++) {
        bytes[0] = k % 3 == 1;
        given[k] = pattern_from_bytes(bytes, 3, 3);
    }
    return mask_new(2, 3, given, "made");
}

static void equal_patterns_are_stored_once(void **unused)
{
    (void)unused;
    struct mask *m = make_mask();
    assert_int_equal(m->n_patterns, 2);
    const uint32_t expected[] = {0, 1, 0, 0, 1, 0};
    assert_memory_equal(m->at, expected, sizeof expected);
    struct pattern *p = pattern_copy(m->pattern[0]), *same[] = {p, p, p};
    struct mask *shared = mask_new(1, 3, same, NULL);
    assert_int_equal(shared->n_patterns, 1);
    assert_string_equal(shared->source, "");
    mask_destroy(shared);
    mask_destroy(m);
    mask_destroy(NULL);
}

static void masks_are_cropped_repeated_and_split(void **unused)
{
    (void)unused;
    struct error e = {0};
    struct mask *m = make_mask(), *layer = mask_layer(m, 1, &e), *crop = mask_crop(m, 2, &e);
    assert_true(layer->layers == 1 && layer->heads == 3 && layer->n_patterns == 2);
    assert_true(pattern_test(mask_pattern(layer, 0, 1), 0, 0));
    assert_true(crop->n == 2 && crop->layers == 2 && crop->heads == 3);
    assert_null(mask_crop(m, 4, &e));
    assert_null(mask_layer(m, 2, &e));
    assert_null(mask_repeat_heads(m, 2, &e));
    assert_string_equal(e.text, "made: the mask has 3 heads, --heads 2 needs 1 or 2");
    const char *path = test_path("two.mask");
    write_bytes(path, "length 3\nlayers 2\nlayer 0: dense\nlayer 1: causal\n", 48);
    struct mask *one = load((struct mask_request){.name = path}),
                *four = mask_repeat_heads(one, 4, &e);
    assert_true(four->heads == 4 && four->layers == 2 && four->n_patterns == 2);
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t l = 0; l < 2; l++)
            assert_true(pattern_equal(mask_pattern(four, l, h), mask_pattern(one, l, 0)));
    test_folder_remove(NULL);
    mask_destroy(four);
    mask_destroy(one);
    mask_destroy(layer);
    mask_destroy(crop);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_what_their_bytes_are),
        cmocka_unit_test(runs_that_touch_are_merged),
        cmocka_unit_test(a_long_mask_transposes_in_runs),
        cmocka_unit_test(equal_patterns_are_stored_once),
        cmocka_unit_test(masks_are_cropped_repeated_and_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
