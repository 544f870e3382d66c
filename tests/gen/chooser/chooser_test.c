/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that the chooser must find on CPUs: masks whose best lowering is known, and the lines, rows and columns that
   kernels take together; these plans hold their mask as all do. */
#include "gen/family/family.h"
#include "gen/lowering/lowering.h"
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "tests/gen/formula_mask.h"
#include "tests/support/test.h"
#include <string.h>

static struct plan *cpu_plan(const struct mask *m)
{
    struct error e = {0};
    struct kernel_request f = {.head_dim = 64, .backward = true};
    return plan_build(m, target_find("x86-64-v4", &e), &f, machine_find("x86-avx512", &e), NULL,
                      &e);
}

static bool none(uint32_t n, uint32_t i, uint32_t j)
{
    return i >= n && j >= n;
}

static bool halves(uint32_t n, uint32_t i, uint32_t j)
{
    return i / (n / 2) == j / (n / 2);
}

static bool distances(uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t d = i > j ? i - j : j - i;
    bool border = !i || !j || i == n - 1 || j == n - 1;
    return d && (border || d == 1 || d == 2 || d == 5 || d == 11 || d == 30);
}

static bool checkers(uint32_t n, uint32_t i, uint32_t j)
{
    return (i * 2654435761u ^ j * 2246822519u) >> 7 & 1 && i < n;
}

static bool stride(uint32_t n, uint32_t i, uint32_t j)
{
    return (i + 16 * n - j) % 16 == 0;
}

static bool strided(uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t d = i > j ? i - j : j - i;
    return i < n && (d <= 45 || d % 45 == 0);
}

static void test_chooser(void **state)
{
    (void)state;
    static const struct {
        bool (*on)(uint32_t n, uint32_t i, uint32_t j);
        uint32_t n;
        const char *lowering;
        double speedup;
    } rows[] = {
        {formula_dense, 128, "dense", 0.99},
        {formula_dense, 100, "dense", 0.99},
        {none, 128, "empty", 4},
        {halves, 256, "blocks", 1.6},
        {formula_causal, 128, "tiles", 1.3},
        {formula_causal, 1024, "tiles+blocks", 1.7},
        {distances, 128, "diagonal+rows", 2},
        {checkers, 128, "dense", 0.99},
        {stride, 512, "residue", 4},
        {strided, 2048, "tiles+diagonal+residue", 3},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct mask *m = formula_mask(rows[k].n, rows[k].on);
        struct plan *p = cpu_plan(m);
        const struct plan_summary *s = &p->forward.summary[0];
        assert_string_equal(s->lowering, rows[k].lowering);
        assert_true(s->dense_predicted / s->predicted > rows[k].speedup);
        plan_destroy(p);
        mask_destroy(m);
    }
}

/* A long band costs its edge: few table rows, whatever its width. */
static void test_long_band(void **state)
{
    (void)state;
    const uint32_t n = 65536, w = 256;
    struct pattern *band = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        pattern_add(band, i, i < w ? 0 : i - w, i + w + 1 < n ? i + w + 1 : n);
        pattern_row(band, i);
    }
    pattern_finish(band);
    struct mask *m = mask_new(1, 1, &band, "test");
    struct error e = {0};
    struct plan *p = cpu_plan(m);
    assert_int_equal(plan_check(p, m, &e), 0);
    assert_int_equal(p->forward.n_items, n / 32);
    assert_true(p->forward.n_ranges <= n / 32 && p->forward.n_tiles <= 4 * n / 32);
    assert_true(p->forward.n_patterns < 20);
    plan_destroy(p);
    mask_destroy(m);
}

static bool summary_columns(uint32_t n, uint32_t i, uint32_t j)
{
    return i < n && (i / 45 == j / 45 || j % 45 == 44);
}

/* The keys that all queries see are 45 apart, 22 of them: nearly all of these rows over keys are
   together, but for one or another that its row block can bear. */
static void test_rows_apart(void **state)
{
    (void)state;
    struct mask *m = formula_mask(1024, summary_columns);
    struct plan *p = cpu_plan(m);
    const struct plan_pass *t = &p->transposed;
    uint32_t rows = 0;
    for (uint64_t k = 0; k < t->n_items; k++) {
        if (t->items[k].step == 1)
            continue;
        assert_int_equal(t->items[k].step, 45);
        assert_int_equal(t->pieces[t->items[k].piece].kind, ABI_BLOCKS);
        rows += t->items[k].rows;
    }
    assert_in_range(rows, 16, 22);
    plan_destroy(p);
    mask_destroy(m);
}

/* Groups of gathered columns that stand in the item before as well. */
static uint32_t count_kept(const struct plan_pass *t, uint32_t *ret_all)
{
    uint32_t kept = 0;
    *ret_all = 0;
    for (uint64_t k = 1; k < t->n_gathers; k++) {
        bool found = false;
        const struct abi_gather *g = &t->gathers[k], *o;
        for (uint64_t i = k > 8 ? k - 8 : 0; i < k && !found; i++) {
            o = &t->gathers[i];
            found =
                o->count == g->count && !memcmp(t->columns + o->first, t->columns + g->first,
                                                g->count * sizeof *t->columns);
        }
        kept += found;
        (*ret_all)++;
    }
    return kept;
}

/* 32 of them come together once, and row blocks take the rest with what else they gather. */
static void test_shared_columns(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = formula_mask(2048, summary_columns);
    const struct kernel_request f = {.head_dim = 64, .dtype = ABI_BF16, .length = 2048};
    const struct target *t = target_find("x86-64-amx", &e);
    struct plan *p = plan_build(m, t, &f, machine_find(family_machine(t, &f), &e), NULL, &e);
    uint32_t all, kept = count_kept(&p->forward, &all);
    assert_true(p->config.gathers_kept > GATHERS_KEPT);
    assert_true(2 * kept > all);
    assert_int_equal(plan_check(p, m, &e), 0);
    plan_destroy(p);
    mask_destroy(m);
}

static bool ring_and_relay(uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t d = i > j ? i - j : j - i;
    return !i || !j || d <= 1 || (i == n - 1 && j == 1) || (i == 1 && j == n - 1);
}

static bool few_distances(uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t d = i > j ? i - j : j - i;
    return (d == 0 || (d & (d - 1)) == 0) && i < n;
}

/* Beside a matrix unit: lines for all row blocks, since nobody then needs packed operands. */
static void test_lines_alone(void **state)
{
    (void)state;
    static bool (*const on[])(uint32_t n, uint32_t i, uint32_t j) = {ring_and_relay,
                                                                     few_distances};
    for (uint32_t k = 0; k < 2; k++) {
        struct error e = {0};
        struct mask *m = formula_mask(2048, on[k]);
        struct kernel_request f = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};
        struct plan *p = plan_build(m, target_find("x86-64-amx", &e), &f,
                                    machine_find("x86-amx", &e), NULL, &e);
        assert_non_null(p);
        const u32 packed = 1u << ABI_TILES | 1u << ABI_BLOCKS | 1u << ABI_COLUMNS;
        assert_true(p->forward.uses & 1u << ABI_DIAGONAL && !(p->forward.uses & packed));
        assert_true(p->transposed.uses & 1u << ABI_DIAGONAL && !(p->transposed.uses & packed));
        assert_int_equal(plan_check(p, m, &e), 0);
        plan_destroy(p);
        mask_destroy(m);
    }
}

/* Lines alone pack nothing, but for strided residue classes are cheaper, packing included. */
static void test_classes_beat_lines(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = "strided", .n = 512};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    struct kernel_request f = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};
    struct plan *p = plan_build(m, target_find("x86-64-bf16", &e), &f,
                                machine_find("x86-bf16", &e), NULL, &e);
    assert_non_null(p);
    assert_true(p->forward.uses & 1u << ABI_RESIDUE);
    assert_true(p->transposed.uses & 1u << ABI_RESIDUE);
    plan_destroy(p);
    mask_destroy(m);
}

static double mixed_rows(const char *mask)
{
    struct error e = {0};
    struct mask_request request = {.name = mask, .n = 512, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    struct plan *p = cpu_plan(m);
    assert_non_null(p);
    struct effort effort = plan_effort(p, PASS_FORWARD, 0, 1, 1);
    assert_true(effort.count[UNIT_LINE] > 0);
    plan_destroy(p);
    mask_destroy(m);
    return effort.count[UNIT_MIXED_ROW];
}

static void test_scattered_plan(void **state)
{
    (void)state;
    assert_true(mixed_rows("random(0.004)") >= 32);
    assert_true(mixed_rows("distance(1,2,4,7,12)") == 0);
}

/* Gain over dense that is predicted for a random mask in bf16 on AVX2, where single rows compete with tiles. */
static double scattered_gain(const char *mask, uint32_t head_dim, enum abi_dtype dtype,
                             bool *ret_dense)
{
    struct error e = {0};
    const struct mask_request request = {
        .name = mask, .n = 512, .heads = 4, MASK_REQUEST_DEFAULTS};
    const struct kernel_request f = {.head_dim = head_dim, .dtype = dtype, .backward = true};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    struct plan *p =
        plan_build(m, target_find("x86-64-v3", &e), &f, machine_find("x86-avx2", &e), NULL, &e);
    assert_non_null(p);
    const double gain = plan_predict_dense(p, false, 0, 1, 1) / plan_predict(p, false, 0, 1, 1);
    *ret_dense = !strcmp(p->forward.summary[0].lowering, "dense") &&
                 !strcmp(p->transposed.summary[0].lowering, "dense");
    plan_destroy(p);
    mask_destroy(m);
    return gain;
}

/* Measured with rows: .90, .88, .97 and .87 of dense's speed forward (x86-64-v3, one thread, bf16), 1.25 at 7 %. */
static void test_scattered_rows_are_no_slower(void **state)
{
    (void)state;
    static const struct {
        const char *mask;
        uint32_t head_dim;
        bool dense;
    } rows[] = {
        {"random(0.1)", 64, true},   {"random_keys(51)", 64, true},
        {"random(0.12)", 128, true}, {"random(0.14)", 128, true},
        {"random(0.07)", 64, false}, {"random(0.03)", 128, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int dtype = ABI_F32; dtype <= ABI_BF16; dtype++) {
            bool dense;
            const double gain =
                scattered_gain(rows[k].mask, rows[k].head_dim, (enum abi_dtype)dtype, &dense);
            if (dense != rows[k].dense || (!dense && gain < 1.05))
                fail_msg("%s, D = %u, %s: %s, gain %g", rows[k].mask, rows[k].head_dim,
                         dtype == ABI_F32 ? "f32" : "bf16", dense ? "dense" : "not dense",
                         gain);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chooser),
        cmocka_unit_test(test_long_band),
        cmocka_unit_test(test_rows_apart),
        cmocka_unit_test(test_shared_columns),
        cmocka_unit_test(test_lines_alone),
        cmocka_unit_test(test_classes_beat_lines),
        cmocka_unit_test(test_scattered_plan),
        cmocka_unit_test(test_scattered_rows_are_no_slower),
    };
    return cmocka_run_group_tests_name("chooser", tests, NULL, NULL);
}
