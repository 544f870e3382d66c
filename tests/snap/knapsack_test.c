/* SPDX-License-Identifier: Apache-2.0 */
/* Is the choice among priced candidates within one step of the hull of the best there is, by trying every choice; does
   the hull keep what it must; is a row block's price what the whole plan is predicted to cost more for it? */
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include "tests/snap/made.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, ROW_BLOCKS = 4, CANDIDATES = 12 };

static struct row_pricer *make_pricer(const struct snap_request *r, uint32_t heads, uint32_t n)
{
    struct error e = {0};
    struct kernel_request k = r->kernel;
    k.length = n;
    struct row_pricer *x = row_pricer_new(heads, r->target, &k, r->machine, &e);
    assert_non_null(x);
    return x;
}

static double price_of_block(struct row_pricer *x, const struct pattern *p, uint32_t row0)
{
    const struct row_query q = {.pattern = p, .row0 = row0};
    return row_pricer_price(x, &q);
}

static double sum_all(const struct importance *p)
{
    double sum = 0;
    for (size_t k = 0; k < (size_t)p->heads * p->n * p->n; k++)
        sum += p->value[k];
    return sum;
}

/* Twelve of all candidates, evenly taken, and the first among them. */
static void thin(struct points *p)
{
    assert_true(p->count > CANDIDATES);
    for (uint32_t k = 0, kept = 0; k < p->count; k++) {
        uint32_t next = kept * (p->count - 1) / (CANDIDATES - 1);
        if (k == next && kept < CANDIDATES)
            p->point[kept++] = p->point[k];
        else
            free(p->point[k].words);
    }
    p->count = CANDIDATES;
}

/* The most that any choice keeps whose prices add up to at most `price`. */
static double best_choice(const struct points all[ROW_BLOCKS], uint32_t from, double price)
{
    double best = -INFINITY;
    if (from == ROW_BLOCKS)
        return price >= 0 ? 0 : -INFINITY;
    for (uint32_t k = 0; k < all[from].count; k++) {
        const struct point *p = &all[from].point[k];
        if (p->price <= price)
            best = fmax(best, p->value + best_choice(all, from + 1, price - p->price));
    }
    return best;
}

static struct points copy(const struct points *p)
{
    struct points c = {memory_copy(p->point, p->count * sizeof *p->point), p->count, p->count};
    for (uint32_t k = 0; k < c.count; k++)
        c.point[k].words = NULL;
    return c;
}

static double largest_step(const struct points *hull)
{
    double most = 0;
    for (uint32_t b = 0; b < ROW_BLOCKS; b++)
        for (uint32_t k = 1; k < hull[b].count; k++)
            most = fmax(most, hull[b].point[k].value - hull[b].point[k - 1].value);
    return most;
}

static void compare(const struct points *all, struct points *hull, const struct path *path)
{
    double last = choose_price(path, path->last), first = choose_price(path, 0);
    for (int t = 0; t <= 10; t++) {
        double price = first + (last - first) * t / 10;
        uint64_t k = 0;
        while (k < path->last && choose_price(path, k + 1) <= price)
            k++;
        double ours = path->retained(path, k), bound = choose_bound(path, price);
        double best = best_choice(all, 0, price * (1 + 1e-12)) / path->search->total;
        double step = largest_step(hull) / path->search->total;
        assert_true(ours <= best + 1e-9);
        assert_true(ours >= best - step - 1e-9);
        assert_true(bound >= best - 1e-9 && bound <= ours + step + 1e-9);
    }
}

static void a_choice_is_within_a_step_of_the_best(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct importance p = made_importance(1, 2, N, seed);
        struct snap_request r = made_request("x86-avx512", .5);
        struct row_pricer *row = make_pricer(&r, 2, N);
        struct search x = {.p = &p, .r = &r, .total = sum_all(&p), .block_rows = 32};
        const struct pricer pricer = {.row = row, .price = *row_pricer_prices(row)};
        struct points all[ROW_BLOCKS] = {{0}}, hull[ROW_BLOCKS];
        assert_int_equal(search_blocks(&x), ROW_BLOCKS);
        for (uint32_t b = 0; b < ROW_BLOCKS; b++) {
            struct block block = search_block(&x, b);
            struct candidates c = {{0}};
            candidates_list(&pricer, &block, &c);
            all[b] = c.any;
            points_finish(&c.lines);
            thin(&all[b]);
            hull[b] = copy(&all[b]);
            points_hull(&hull[b]);
            assert_true(hull[b].count > 2);
        }
        struct path path;
        choose_begin(&x, hull, &path);
        compare(all, hull, &path);
        choose_finish(&path);
        for (uint32_t b = 0; b < ROW_BLOCKS; b++) {
            points_finish(&all[b]);
            points_finish(&hull[b]);
        }
        row_pricer_destroy(row);
        importance_finish(&p);
    }
}

/* Every point lies on or below the hull, which is concave. */
static void the_hull_is_one(void **unused)
{
    (void)unused;
    struct point given[] = {{1, 0, NULL}, {2, 5, NULL}, {3, 5, NULL}, {2, 3, NULL},
                            {4, 6, NULL}, {5, 9, NULL}, {9, 9, NULL}, {1, -1, NULL}};
    struct points p = {memory_copy(given, sizeof given), 8, 8};
    points_hull(&p);
    assert_int_equal(p.count, 3);
    assert_true(p.point[0].price == 1);
    assert_true(p.point[1].value == 5);
    assert_true(p.point[2].price == 5);
    points_finish(&p);
}

static double plan_seconds(const struct mask *m, const struct snap_request *r, double *ret_pack)
{
    struct error e = {0};
    struct kernel_request k = r->kernel;
    k.length = m->n;
    struct plan *p = plan_build(m, r->target, &k, r->machine, NULL, &e);
    assert_non_null(p);
    struct effort effort = p->forward.summary[0].effort;
    *ret_pack = p->price[PASS_FORWARD].pack_row * effort.count[UNIT_PACK];
    double seconds = price_of(&p->price[PASS_FORWARD], &effort);
    plan_destroy(p);
    return seconds;
}

/* The price of a mask without strides whose row blocks have tiles: that of its row blocks plus packing. */
static void prices_add_up_to_the_plan(void **unused)
{
    (void)unused;
    enum { HEADS = 3, LENGTH = 128 };
    struct importance p = made_importance(1, 1, LENGTH, 21);
    struct snap_request r = made_request("x86-avx512", .5);
    struct row_pricer *row = make_pricer(&r, HEADS, LENGTH);
    struct search x = {.p = &p, .r = &r, .total = LENGTH, .block_rows = 32};
    uint64_t *words = memory_new(LENGTH * 2, sizeof *words);
    double sum = 0, pack;
    for (uint64_t b = 0; b < search_blocks(&x); b++) {
        struct block block = search_block(&x, b);
        uint64_t *mine = words + block.row0 * 2;
        for (uint32_t c = 0; c < block.rows * LENGTH; c++)
            if (block.value[c] > .02f)
                cells_set(&block, mine, c / LENGTH, c % LENGTH);
        cells_columns(&block, mine, 0, 32);
        struct pattern *one = cells_pattern(&block, mine);
        sum += price_of_block(row, one, block.row0);
        pattern_destroy(one);
    }
    struct pattern *whole = pattern_from_bits(words, LENGTH, 2);
    struct pattern *given[HEADS] = {whole, whole, whole};
    struct mask *m = mask_new(1, HEADS, given, "test");
    double seconds = plan_seconds(m, &r, &pack);
    assert_true(pack > 0);
    assert_true(fabs(sum - (seconds - pack)) <= 1e-9 * seconds);
    mask_destroy(m);
    free(words);
    row_pricer_destroy(row);
    importance_finish(&p);
}

/* Entries that are executed anyway cost nothing, and keep all their importance. */
static void filling_is_free(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 1, N, 33);
    struct snap_request r = made_request("x86-avx512", .5);
    struct row_pricer *row = make_pricer(&r, 12, N);
    struct search x = {.p = &p, .r = &r, .total = N, .block_rows = 32};
    struct block b = search_block(&x, 1);
    uint32_t grew = 0;
    for (uint32_t t = 1; t < 40; t++) {
        uint64_t words[32] = {0}, more[32];
        for (uint32_t c = 0; c < b.rows * N; c++)
            if (b.value[c] > .002f * (float)t)
                cells_set(&b, words, c / N, c % N);
        memcpy(more, words, sizeof more);
        struct pattern *before = cells_pattern(&b, words);
        double price = price_of_block(row, before, b.row0);
        row_pricer_executed(row, more);
        struct pattern *after = cells_pattern(&b, more);
        assert_true(price_of_block(row, after, b.row0) <= price * (1 + 1e-12));
        for (int w = 0; w < 32; w++)
            assert_true((words[w] & ~more[w]) == 0);
        grew += after->active > before->active;
        pattern_destroy(before);
        pattern_destroy(after);
    }
    assert_true(grew > 5);
    row_pricer_destroy(row);
    importance_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_within_a_step_of_the_best),
        cmocka_unit_test(the_hull_is_one),
        cmocka_unit_test(prices_add_up_to_the_plan),
        cmocka_unit_test(filling_is_free),
    };
    return cmocka_run_group_tests_name("gen/snap choice", tests, NULL, NULL);
}
