/* SPDX-License-Identifier: Apache-2.0 */
/* Does snap stay within the time by the whole plan's prediction, keep at least what each rival keeps (built here again,
   one by one, not by bisection), never keep less for more time, and give the same mask twice? */
#include "masks/base/memory.h"
#include "masks/readers/keep.h"
#include "tests/snap/made.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const machines_here[] = {"x86-avx512", "x86-avx2", "x86-amx"};
enum { MACHINES = 3 };
static uint64_t seeds = 2;         /* importances on each machine; --all: twenty, --few: one */
static int budgets[] = {20, 8, 8}; /* of each kind of request; --few: five, four, four */

/* Seconds of all layers, by a plan of our own. */
static double predict(const struct mask *m, const struct snap_request *r)
{
    struct error e = {0};
    struct kernel_request kernel = r->kernel;
    kernel.length = m->n;
    struct plan *p = plan_build(m, r->target, &kernel, r->machine, NULL, &e);
    assert_non_null(p);
    double sum = 0;
    for (uint32_t l = 0; l < m->layers; l++)
        for (int backward = 0; backward <= r->training; backward++)
            sum += plan_predict(p, backward, l, 1, 1);
    plan_destroy(p);
    return sum;
}

static void the_plan_is_within_the_time(void **unused)
{
    (void)unused;
    struct importance p = made_importance(2, 3, 128, 5);
    for (int k = 0; k < MACHINES; k++)
        for (int training = 0; training < 2; training++) {
            struct snap_request r = made_request(machines_here[k], .35);
            r.training = training;
            struct snap_result s = made_solution(&p, &r);
            double seconds = predict(s.best.mask, &r);
            assert_true(seconds <= .35 * s.dense_predicted);
            assert_true(seconds > .2 * s.dense_predicted);
            assert_true(seconds == s.best.predicted);
            assert_true(s.best.retained == snap_retained(&p, s.best.mask));
            assert_true(s.bound >= s.best.retained && s.bound <= 1);
            snap_result_finish(&s);
        }
    importance_finish(&p);
}

static void more_time_never_keeps_less(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 2, 96, 7);
    for (int kind = 0; kind < 3; kind++) {
        double before = 0;
        for (int k = 1; k <= budgets[kind]; k++) {
            struct snap_request r = made_request("x86-avx512", .2 + .8 * k / budgets[kind]);
            r.training = kind == 1;
            r.uniform = kind == 2;
            struct snap_result s = made_solution(&p, &r);
            assert_true(s.best.retained >= before);
            before = s.best.retained;
            snap_result_finish(&s);
        }
        assert_true(before > .99);
    }
    importance_finish(&p);
}

static void the_same_mask_twice(void **unused)
{
    (void)unused;
    struct importance p = made_importance(2, 2, 96, 9);
    struct snap_request r = made_request("x86-amx", .4);
    struct snap_result a = made_solution(&p, &r), b = made_solution(&p, &r);
    for (int k = 0; k < SNAP_KINDS; k++) {
        assert_true(!a.kind[k].mask == !b.kind[k].mask);
        assert_true(!a.kind[k].mask || mask_equal(a.kind[k].mask, b.kind[k].mask));
    }
    assert_true(mask_equal(a.best.mask, b.best.mask));
    snap_result_finish(&a);
    snap_result_finish(&b);
    importance_finish(&p);
}

/* A rival's mask: entry (i, j) of a head is on. `size` grows from 0 to 1. */
struct rival {
    const struct importance *p;
    double size;
    double *sum;  /* of each 32 x 32 tile, [head, row, column] */
    double *tile; /* the same, ascending */
    uint32_t tiles;
};

static double tile_sum(const struct importance *p, size_t head, uint32_t i0, uint32_t j0)
{
    double sum = 0;
    for (uint32_t i = i0; i < i0 + 32 && i < p->n; i++)
        for (uint32_t j = j0; j < j0 + 32 && j < p->n; j++)
            sum += p->value[(head * p->n + i) * p->n + j];
    return sum;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void list_tiles(struct rival *r)
{
    uint32_t side = (r->p->n + 31) / 32, heads = r->p->layers * r->p->heads;
    r->sum = memory_new((size_t)heads * side * side, sizeof *r->sum);
    r->tile = memory_new((size_t)heads * side * side, sizeof *r->tile);
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t t = 0; t < side * side; t++)
            r->sum[r->tiles++] = tile_sum(r->p, h, t / side * 32, t % side * 32);
    memcpy(r->tile, r->sum, r->tiles * sizeof *r->tile);
    qsort(r->tile, r->tiles, sizeof *r->tile, ascending);
}

static struct pattern *magnitude(const struct rival *r, size_t head)
{
    size_t count = (size_t)r->p->n * r->p->n;
    double *wide = memory_new(count, sizeof *wide);
    for (size_t k = 0; k < count; k++)
        wide[k] = r->p->value[head * count + k];
    struct pattern *p = keep_greatest(wide, r->p->n, 100 * r->size);
    free(wide);
    return p;
}

static bool in_tiles(const struct rival *r, size_t head, uint32_t i, uint32_t j)
{
    uint32_t least = (uint32_t)((1 - r->size) * r->tiles), side = (r->p->n + 31) / 32;
    return r->sum[(head * side + i / 32) * side + j / 32] >= r->tile[least];
}

static bool in_window(const struct rival *r, size_t head, uint32_t i, uint32_t j)
{
    uint32_t n = r->p->n, d = i > j ? i - j : j - i;
    (void)head;
    return d <= r->size * (n - 1) || !i || !j || i + 1 == n || j + 1 == n;
}

static struct mask *rival_mask(const struct rival *r,
                               bool (*on)(const struct rival *, size_t, uint32_t, uint32_t))
{
    const struct importance *p = r->p;
    struct pattern **given = memory_new((size_t)p->layers * p->heads, sizeof *given);
    uint8_t *bytes = memory_new((size_t)p->n * p->n, 1);
    for (size_t h = 0; h < (size_t)p->layers * p->heads; h++) {
        for (uint32_t k = 0; on && k < p->n * p->n; k++)
            bytes[k] = on(r, h, k / p->n, k % p->n);
        given[h] = on ? pattern_from_bytes(bytes, p->n, p->n) : magnitude(r, h);
    }
    struct mask *m = mask_new(p->layers, p->heads, given, "rival");
    free(bytes);
    free(given);
    return m;
}

/* The most that any size of the rival keeps within the time. */
static double most_of_rival(struct rival *r, const struct snap_request *q, double seconds,
                            bool (*on)(const struct rival *, size_t, uint32_t, uint32_t))
{
    enum { SIZES = 12 };
    double most = 0;
    for (int k = 1; k <= SIZES; k++) {
        r->size = (double)k / SIZES * (on == in_window ? .5 : 1);
        struct mask *m = rival_mask(r, on);
        if (predict(m, q) <= seconds)
            most = fmax(most, snap_retained(r->p, m));
        mask_destroy(m);
    }
    return most;
}

/* True if magnitude and whole tiles have masks within the time, to compare with. */
static bool keeps_most(const struct importance *p, const struct snap_request *q)
{
    struct snap_result s = made_solution(p, q);
    struct rival r = {.p = p};
    const double seconds = q->share * s.dense_predicted;
    list_tiles(&r);
    assert_true(s.best.retained >= most_of_rival(&r, q, seconds, NULL));
    assert_true(s.best.retained >= most_of_rival(&r, q, seconds, in_tiles));
    assert_true(s.best.retained >= most_of_rival(&r, q, seconds, in_window));
    for (int o = 0; o < SNAP_KINDS; o++)
        assert_true(!s.kind[o].mask || s.best.retained >= s.kind[o].retained);
    const bool ret = s.kind[SNAP_MAGNITUDE].mask && s.kind[SNAP_TILES].mask;
    free(r.sum);
    free(r.tile);
    snap_result_finish(&s);
    return ret;
}

/* Within a small share magnitude may keep nothing: a larger one follows. */
static void no_rival_keeps_more(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (int k = 0; k < MACHINES; k++) {
            struct importance p = made_importance(1, 4, 128, 100 + seed);
            double share = .3 + .1 * (double)(seed % 4);
            bool compared = false;
            for (; !compared && share < 1; share += .15) {
                struct snap_request q = made_request(machines_here[k], share);
                compared = keeps_most(&p, &q);
            }
            assert_true(compared);
            importance_finish(&p);
        }
}

static void what_is_asked_to_be_kept_is_kept(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 4, 96, 11);
    static const double keeps[] = {.2, .5, .8, 1};
    for (size_t k = 0; k < sizeof keeps / sizeof *keeps; k++) {
        struct snap_request r = made_request("x86-avx512", 0);
        r.retain = keeps[k];
        struct snap_result s = made_solution(&p, &r);
        for (int o = 0; o < SNAP_KINDS; o++) {
            assert_non_null(s.kind[o].mask);
            assert_true(s.kind[o].retained >= keeps[k] - 1e-9);
            assert_true(s.best.predicted <= s.kind[o].predicted);
        }
        snap_result_finish(&s);
    }
    importance_finish(&p);
}

/* Rows of the importance's head whose most important key is off; of equal ones, the last. */
static uint32_t lost_rows(const struct importance *p, const struct mask *m, uint32_t head)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const float *row = importance_head(p, 0, head) + (size_t)i * p->n;
        uint32_t most = 0;
        for (uint32_t j = 0; j < p->n; j++)
            most = row[j] >= row[most] ? j : most;
        lost += !pattern_test(mask_pattern(m, 0, head), i, most);
    }
    return lost;
}

static void rows_are_kept(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 3, 100, 13);
    memset(p.value + 40 * 100, 0, 100 * sizeof *p.value); /* ties: the last key */
    struct snap_request r = made_request("x86-avx512", .4);
    for (int keep = 0; keep < 2; keep++) {
        r.keep_rows = keep;
        struct snap_result s = made_solution(&p, &r);
        assert_true(predict(s.best.mask, &r) <= .4 * s.dense_predicted);
        for (int k = 0; k < SNAP_KINDS; k++) {
            uint32_t lost = 0;
            for (uint32_t h = 0; s.kind[k].mask && h < 3; h++)
                lost += lost_rows(&p, s.kind[k].mask, h);
            assert_true(keep ? !lost : lost > 0);
        }
        snap_result_finish(&s);
    }
    importance_finish(&p);
}

/* Ties everywhere: still a mask within the time, the same twice, that keeps as much as there is time for. */
static void ties_are_no_trouble(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 2, 96, 1);
    for (size_t k = 0; k < 2 * 96 * 96; k++)
        p.value[k] = 1;
    struct snap_request r = made_request("x86-avx512", .5);
    struct snap_result a = made_solution(&p, &r), b = made_solution(&p, &r);
    assert_true(mask_equal(a.best.mask, b.best.mask));
    assert_true(a.best.retained > .25 && a.best.share <= .5);
    snap_result_finish(&a);
    snap_result_finish(&b);
    importance_finish(&p);
}

static void refuse(const struct importance *p, struct snap_request r, enum error_kind kind,
                   const char *part)
{
    struct snap_result s;
    struct error e = {0};
    assert_int_equal(snap_solve(p, &r, &s, &e), -1);
    assert_int_equal(e.kind, kind);
    if (!strstr(e.text, part))
        fail_msg("'%s' does not say '%s'", e.text, part);
}

static void what_is_wrong_is_refused(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 2, 64, 3);
    struct snap_request r = made_request("x86-avx512", .5), q = r;
    q.retain = .5;
    refuse(&p, q, ERROR_INPUT, "one of a share, a time and what to retain");
    q = r;
    q.share = 1.5;
    refuse(&p, q, ERROR_INPUT, "share of 1.5");
    q.share = NAN;
    refuse(&p, q, ERROR_INPUT, "share of");
    q.share = .001;
    refuse(&p, q, ERROR_FALSE, "the least that can be reached");
    q = r;
    q.training = true;
    q.kernel.backward = false;
    refuse(&p, q, ERROR_INPUT, "backward pass");
    p.value[70] = NAN;
    refuse(&p, r, ERROR_INPUT, "NaN at head 0, query 1, key 6");
    p.value[70] = -1;
    refuse(&p, r, ERROR_INPUT, "a negative value at head 0, query 1, key 6");
    memset(p.value, 0, 2 * 64 * 64 * sizeof *p.value);
    refuse(&p, r, ERROR_INPUT, "no value is above zero");
    importance_finish(&p);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--all"))
        seeds = 20;
    if (argc > 1 && !strcmp(argv[1], "--few"))
        seeds = 1, budgets[0] = 5, budgets[1] = budgets[2] = 4;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_within_the_time),
        cmocka_unit_test(more_time_never_keeps_less),
        cmocka_unit_test(the_same_mask_twice),
        cmocka_unit_test(no_rival_keeps_more),
        cmocka_unit_test(what_is_asked_to_be_kept_is_kept),
        cmocka_unit_test(rows_are_kept),
        cmocka_unit_test(ties_are_no_trouble),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests_name("gen/snap", tests, NULL, NULL);
}
