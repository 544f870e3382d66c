/* SPDX-License-Identifier: Apache-2.0 */
/* What the chooser must find: masks whose best lowering is known, and on CUDA cut rows, residue classes
   and tall row blocks; these plans hold their mask as all do. */
#include "gen/family/cuda_tiled.h"
#include "gen/lowering/lowering.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include "tests/gen/plain_plan.h"
#include "tests/gen/random_mask.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct plan *plan_of(struct pattern *pattern, struct mask **m)
{
    struct error e = {0};
    struct kernel_request f = {.head_dim = 64, .backward = true};
    *m = mask_new(1, 1, &pattern, "test");
    return plan_build(*m, target_find("x86-64-v4", &e), &f, machine_find("x86-avx512", &e), &e);
}

static struct pattern *made(uint32_t n, bool (*on)(uint32_t n, uint32_t i, uint32_t j))
{
    uint8_t *bytes = memory_new((size_t)n * n, 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            bytes[(size_t)i * n + j] = on(n, i, j);
    struct pattern *p = pattern_from_bytes(bytes, n, n);
    free(bytes);
    return p;
}

static bool dense(uint32_t n, uint32_t i, uint32_t j)
{
    return i < n && j < n;
}

static bool none(uint32_t n, uint32_t i, uint32_t j)
{
    return i >= n && j >= n;
}

static bool halves(uint32_t n, uint32_t i, uint32_t j)
{
    return i / (n / 2) == j / (n / 2);
}

static bool causal(uint32_t n, uint32_t i, uint32_t j)
{
    return j <= i && i < n;
}

static bool distances(uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t d = i > j ? i - j : j - i;
    bool border = !i || !j || i == n - 1 || j == n - 1;
    return d && (border || d == 1 || d == 2 || d == 5 || d == 11 || d == 30);
}

static bool long_row(uint32_t n, uint32_t i, uint32_t j)
{
    return i == j || (i == 5 && j < n);
}

static bool band_and_stride(uint32_t n, uint32_t i, uint32_t j)
{
    return (i % 25 == j % 25 || i - j + 25 < 51) && i < n;
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
        {dense, 128, "dense", 0.99},
        {dense, 100, "dense", 0.99},
        {none, 128, "empty", 4},
        {halves, 256, "blocks", 1.6},
        {causal, 128, "tiles", 1.3},
        {causal, 1024, "tiles+blocks", 1.7},
        {distances, 128, "diagonal+rows", 2},
        {checkers, 128, "dense", 0.99},
        {stride, 512, "residue", 4},
        {strided, 2048, "tiles+diagonal+residue", 3},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct mask *m;
        struct plan *p = plan_of(made(rows[k].n, rows[k].on), &m);
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
    struct mask *m;
    struct error e = {0};
    struct plan *p = plan_of(pattern_finish(band), &m);
    assert_int_equal(plan_check(p, m, &e), 0);
    assert_int_equal(p->forward.n_items, n / 32);
    assert_true(p->forward.n_ranges <= n / 32 && p->forward.n_tiles <= 4 * n / 32);
    assert_true(p->forward.n_patterns < 20);
    plan_destroy(p);
    mask_destroy(m);
}

/* What kernels for CUDA do in two launches, and in row blocks of 128 rows. */
static struct plan *cuda_plan(struct mask *m, uint32_t head_dim)
{
    struct error e = {0};
    struct kernel_request f = {.dtype = ABI_BF16, .head_dim = head_dim, .backward = true};
    const struct target *t = target_find("sm_80", &e);
    struct plan *p = plan_build(m, t, &f, machine_find(family_machine(t, &f), &e), &e);
    if (!p || plan_check(p, m, &e))
        fail_msg("%s", e.text);
    return p;
}

static u32 count_merging(const struct plan_pass *t)
{
    u32 merging = 0;
    for (u64 k = 0; k < t->n_items; k++)
        merging += item_merges(&t->items[k]);
    return merging;
}

/* The row is cut into parts with a partial slot each; each lie about them is found. */
static void test_cut_rows(void **state)
{
    (void)state;
    struct error e = {0};
    struct pattern *pattern = made(2100, long_row);
    struct mask *m = mask_new(1, 1, &pattern, "test");
    struct plan *p = cuda_plan(m, 64);
    struct plan_pass *t = &p->forward;
    assert_true(p->config.global_rows && p->config.cut_rows);
    assert_true(!p->config.shared_rows && !p->config.tall);
    assert_true(t->partial_slots >= 2);
    assert_int_equal(t->layer_work[0][2], 1);
    assert_int_equal(count_merging(t), 1);
    struct abi_item *join = &t->items[t->work[t->layer_work[0][1] - 1].item];
    assert_true(join->partial_slots == t->partial_slots && !join->pieces && join->row0 == 5);
    assert_true(t->items[0].split && t->items[1].split);
    u32 *const fields[] = {&join->partial_slots, &join->merge[0], &t->items[0].partial_slot,
                           &t->items[1].row0, &t->items[1].partial_slots};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        *fields[k] ^= 1;
        assert_int_not_equal(plan_check(p, m, &e), 0);
        *fields[k] ^= 1;
    }
    t->layer_work[0][2]--;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    t->layer_work[0][2]++;
    assert_int_equal(plan_check(p, m, &e), 0);
    plan_destroy(p);
    mask_destroy(m);
}

static bool long_column(uint32_t n, uint32_t i, uint32_t j)
{
    return long_row(n, j, i);
}

/* The row pass is asked for by a row alone, of queries or of keys, and left out without one; small heads
   always have it. */
static void test_row_pass(void **state)
{
    (void)state;
    static const struct {
        bool (*on)(uint32_t n, uint32_t i, uint32_t j);
        bool global;
    } rows[] = {{long_row, true}, {long_column, true}, {causal, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct pattern *pattern = made(512, rows[k].on);
        struct mask *m = mask_new(1, 1, &pattern, "test");
        struct plan *p = cuda_plan(m, 128), *small = cuda_plan(m, 112);
        assert_int_equal(p->config.global_rows, rows[k].global);
        assert_int_equal(tiled_has_row_pass(&p->config), rows[k].global);
        assert_true(tiled_has_row_pass(&small->config));
        plan_destroy(p);
        plan_destroy(small);
        mask_destroy(m);
    }
}

/* At D = 64 the band goes on where the classes left it; at 256 classes have all or there are none. */
static void test_strides(void **state)
{
    (void)state;
    struct pattern *pattern = made(1025, band_and_stride);
    struct mask *m = mask_new(1, 1, &pattern, "test");
    struct plan *shared = cuda_plan(m, 64), *whole = cuda_plan(m, 256);
    assert_true(shared->config.shared_rows && !whole->config.shared_rows);
    assert_true(shared->forward.uses & ABI_SPLIT && shared->transposed.uses & ABI_SPLIT);
    assert_false((whole->forward.uses | whole->transposed.uses) & ABI_SPLIT);
    assert_int_equal(shared->forward.layer_work[0][2], count_merging(&shared->forward));
    assert_true(shared->forward.summary[0].executed_fraction < 0.13);
    plan_destroy(shared);
    plan_destroy(whole);
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
    struct mask *m;
    struct plan *p = plan_of(made(1024, summary_columns), &m);
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
    struct pattern *pattern = made(2048, summary_columns);
    struct mask *m = mask_new(1, 1, &pattern, "test");
    const struct kernel_request f = {.head_dim = 64, .dtype = ABI_BF16, .length = 2048};
    const struct target *t = target_find("x86-64-amx", &e);
    struct plan *p = plan_build(m, t, &f, machine_find(family_machine(t, &f), &e), &e);
    uint32_t all, kept = count_kept(&p->forward, &all);
    assert_true(p->config.gathers_kept > GATHERS_KEPT);
    assert_true(2 * kept > all);
    assert_int_equal(plan_check(p, m, &e), 0);
    plan_destroy(p);
    mask_destroy(m);
}

static void test_tall_row_blocks(void **state)
{
    (void)state;
    struct pattern *pattern = made(700, dense);
    struct mask *m = mask_new(1, 1, &pattern, "test");
    struct plan *tall = cuda_plan(m, 128), *low = cuda_plan(m, 64);
    assert_true(tall->config.tall && tall->block_rows == 128);
    assert_true(!low->config.tall && low->block_rows == 64);
    plan_destroy(tall);
    plan_destroy(low);
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
        struct pattern *pattern = made(2048, on[k]);
        struct mask *m = mask_new(1, 1, &pattern, "test");
        struct kernel_request f = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};
        struct plan *p =
            plan_build(m, target_find("x86-64-amx", &e), &f, machine_find("x86-amx", &e), &e);
        assert_non_null(p);
        const u32 packed = 1u << ABI_TILES | 1u << ABI_BLOCKS | 1u << ABI_COLUMNS;
        assert_true(p->forward.uses & 1u << ABI_DIAGONAL && !(p->forward.uses & packed));
        assert_true(p->transposed.uses & 1u << ABI_DIAGONAL && !(p->transposed.uses & packed));
        assert_int_equal(plan_check(p, m, &e), 0);
        plan_destroy(p);
        mask_destroy(m);
    }
}

static double mixed_rows(const char *mask)
{
    struct error e = {0};
    struct mask_request request = {.name = mask, .n = 512, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    struct kernel_request f = {.head_dim = 64, .backward = true};
    assert_non_null(m);
    struct plan *p =
        plan_build(m, target_find("x86-64-v4", &e), &f, machine_find("x86-avx512", &e), &e);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chooser),        cmocka_unit_test(test_cut_rows),
        cmocka_unit_test(test_strides),        cmocka_unit_test(test_tall_row_blocks),
        cmocka_unit_test(test_long_band),      cmocka_unit_test(test_rows_apart),
        cmocka_unit_test(test_shared_columns), cmocka_unit_test(test_lines_alone),
        cmocka_unit_test(test_row_pass),       cmocka_unit_test(test_scattered_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
