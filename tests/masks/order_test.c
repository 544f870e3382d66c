/* SPDX-License-Identifier: Apache-2.0 */
/* Is every order a permutation, is the bandwidth of a shuffled path 1 after reverse Cuthill-McKee, is the curve Hilbert's, and is
   a permuted mask P M P^T? */
#include "masks/graph/order.h"
#include "tests/masks/help.h"
#include <stdlib.h>

static void shuffle(uint64_t *state, uint32_t *order, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        order[k] = k;
    for (uint32_t k = n; k > 1; k--) {
        uint32_t other = (uint32_t)(next_random(state) % k), kept = order[k - 1];
        order[k - 1] = order[other];
        order[other] = kept;
    }
}

static void permuted_masks_are_their_definition(void **unused)
{
    (void)unused;
    enum { N = 70 };
    uint64_t state = 3;
    uint32_t order[N];
    for (int round = 0; round < 20; round++) {
        struct error e = {0};
        struct mask *m = load_text(round % 2 ? "random(0.1)" : "bigbird | rows(3)", N);
        shuffle(&state, order, N);
        struct mask *permuted = mask_permute(m, order, &e);
        assert_non_null(permuted);
        for (uint32_t p = 0; p < N; p++)
            for (uint32_t q = 0; q < N; q++)
                assert_int_equal(pattern_test(permuted->pattern[0], p, q),
                                 pattern_test(m->pattern[0], order[p], order[q]));
        uint32_t *position = order_invert(order, N);
        struct mask *back = mask_permute(permuted, position, &e);
        assert_true(mask_equal(m, back));
        free(position);
        mask_destroy(back);
        mask_destroy(permuted);
        mask_destroy(m);
    }
}

/* The largest distance of two tokens of which one sees the other. */
static uint32_t bandwidth(const struct pattern *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++) {
            uint32_t first = p->run[r].begin, last = p->run[r].end - 1;
            most = first < i && i - first > most ? i - first : most;
            most = last > i && last - i > most ? last - i : most;
        }
    return most;
}

/* Bandwidth of a mask in the order that `find` gives its graph. */
static uint32_t ordered_bandwidth(struct mask *m,
                                  uint32_t *(*find)(const struct pattern *graph))
{
    struct error e = {0};
    struct pattern *graph = order_graph(m, &e);
    assert_non_null(graph);
    uint32_t *order = find(graph);
    assert_true(order_is_permutation(order, m->n));
    struct mask *permuted = mask_permute(m, order, &e);
    uint32_t ret = bandwidth(permuted->pattern[0]);
    mask_destroy(permuted);
    free(order);
    pattern_destroy(graph);
    return ret;
}

static void shuffled_masks_become_narrow(void **unused)
{
    (void)unused;
    enum { N = 300 };
    static const struct {
        const char *mask;
        uint32_t rcm; /* at most */
    } rows[] = {{"window(1)", 1}, {"diagonal(1)", 1},
                {"window(4)", 8}, {"neighborhood(10,30,3,3)", 40},
                {"local(10)", 9}, {"none", 0}};
    uint64_t state = 5;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint32_t order[N];
        struct error e = {0};
        struct mask *m = load_text(rows[k].mask, N);
        shuffle(&state, order, N);
        struct mask *shuffled = mask_permute(m, order, &e);
        uint32_t narrow = ordered_bandwidth(shuffled, order_rcm);
        if (narrow > rows[k].rcm)
            fail_msg("%s: bandwidth %u, at most %u is expected", rows[k].mask, narrow,
                     rows[k].rcm);
        ordered_bandwidth(shuffled, order_bisect);
        mask_destroy(shuffled);
        mask_destroy(m);
    }
}

/* Random sparse graphs, many of them not connected. */
static void orders_are_permutations(void **unused)
{
    (void)unused;
    for (uint32_t n = 1; n < 200; n += 13) {
        struct mask *m = load_text("random(0.01) | random(0.001, seed=2) & causal", n);
        ordered_bandwidth(m, order_rcm);
        ordered_bandwidth(m, order_bisect);
        mask_destroy(m);
    }
}

/* Along the curve through all cells of a grid neighbours are neighbours. */
static void curve_is_hilberts(void **unused)
{
    (void)unused;
    static const uint32_t side[] = {0, 256, 16, 8};
    for (uint32_t axes = 1; axes <= 3; axes++) {
        uint32_t n = 1;
        for (uint32_t k = 0; k < axes; k++)
            n *= side[axes];
        double *point = memory_new((size_t)n * axes, sizeof *point);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0, rest = i; k < axes; k++, rest /= side[axes])
                point[i * axes + k] = 3 - 0.25 * (rest % side[axes]);
        uint32_t *order = order_curve(point, n, axes);
        assert_true(order_is_permutation(order, n));
        for (uint32_t p = 1; p < n; p++) {
            double far = 0;
            for (uint32_t k = 0; k < axes; k++) {
                double x = point[order[p] * axes + k] - point[order[p - 1] * axes + k];
                far += x < 0 ? -x : x;
            }
            assert_true(far == 0.25);
        }
        free(order);
        free(point);
    }
    double same[] = {7, 7, 7, 7};
    uint32_t *order = order_curve(same, 4, 1);
    for (uint32_t p = 0; p < 4; p++)
        assert_int_equal(order[p], p);
    free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permuted_masks_are_their_definition),
        cmocka_unit_test(shuffled_masks_become_narrow),
        cmocka_unit_test(orders_are_permutations),
        cmocka_unit_test(curve_is_hilberts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
