/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that the chooser must find for CUDA: global rows that are cut, residue classes, the row pass and tall
   row blocks; these plans hold their mask as all do. */
#include "gen/family/cuda_tiled.h"
#include "gen/plan/plan.h"
#include "tests/gen/formula_mask.h"
#include "tests/support/test.h"

static bool long_row(uint32_t n, uint32_t i, uint32_t j)
{
    return i == j || (i == 5 && j < n);
}

static bool long_column(uint32_t n, uint32_t i, uint32_t j)
{
    return long_row(n, j, i);
}

/* Blocks of 41 rows, and the last column of each block for all rows after it: those see the block's summary. */
static bool summaries(uint32_t n, uint32_t i, uint32_t j)
{
    return i < n && (i / 41 == j / 41 || (j % 41 == 40 && j < i));
}

static bool band_and_stride(uint32_t n, uint32_t i, uint32_t j)
{
    return (i % 25 == j % 25 || i - j + 25 < 51) && i < n;
}

static struct plan *plan_on(const struct machine *machine, struct mask *m, uint32_t head_dim)
{
    struct error e = {0};
    struct kernel_request f = {.dtype = ABI_BF16, .head_dim = head_dim, .backward = true};
    struct plan *p = plan_build(m, target_find("sm_80", &e), &f, machine, NULL, &e);
    if (!p || plan_check(p, m, &e))
        fail_msg("%s", e.text);
    return p;
}

/* A plan for kernels that merge partial rows in a second launch and take row blocks of 128 rows. */
static struct plan *cuda_plan(struct mask *m, uint32_t head_dim)
{
    return plan_on(machine_find("a100-mma", NULL), m, head_dim);
}

/* Keys of a global row at a quarter of their price: a row leaves its row block, where by the table its tiles cost as much. */
static struct plan *row_plan(struct mask *m, uint32_t head_dim)
{
    struct machine machine = *machine_find("a100-mma", NULL);
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = RATE_ROW_ENTRY; k <= RATE_ROW_FLOP; k++)
            machine.rate[pass][k] /= 4;
    return plan_on(&machine, m, head_dim);
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
    struct mask *m = formula_mask(2100, long_row);
    struct plan *p = row_plan(m, 64);
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

/* The row pass is asked for by a row alone, of queries or of keys, and left out without one; small heads
   always have it. */
static void test_row_pass(void **state)
{
    (void)state;
    static const struct {
        bool (*on)(uint32_t n, uint32_t i, uint32_t j);
        bool global;
    } rows[] = {{long_row, true}, {long_column, true}, {formula_causal, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct mask *m = formula_mask(512, rows[k].on);
        struct plan *p = row_plan(m, 128), *small = row_plan(m, 112);
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
    struct mask *m = formula_mask(1025, band_and_stride);
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

static struct abi_item *find_strided(struct plan_pass *t)
{
    for (u64 k = 0; k < t->n_items; k++)
        if (t->items[k].step > 1)
            return &t->items[k];
    fail_msg("no item has a step");
    return NULL;
}

/* Keys 40, 81, .. are seen by ever fewer queries: one item of most of them, and each lie about it is found. */
static void test_joined_rows(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = formula_mask(1024, summaries);
    struct plan *p = cuda_plan(m, 64);
    struct plan_pass *t = &p->transposed;
    struct abi_item *joined = find_strided(t);
    assert_int_equal(joined->row0, 40);
    assert_int_equal(joined->step, 41);
    assert_true(joined->rows >= 12 && !joined->split && !item_merges(joined));
    assert_int_equal(joined->pieces, 1);
    assert_int_equal(t->pieces[joined->piece].kind, ABI_RESIDUE);
    assert_false(t->uses & (ABI_SPLIT | 1 << ABI_ROWS));
    u32 *const fields[] = {&joined->step, &joined->split, &joined->own[0], &joined->row0};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        *fields[k] ^= 2;
        assert_int_not_equal(plan_check(p, m, &e), 0);
        *fields[k] ^= 2;
    }
    assert_int_equal(plan_check(p, m, &e), 0);
    plan_destroy(p);
    mask_destroy(m);
}

static void test_tall_row_blocks(void **state)
{
    (void)state;
    struct mask *m = formula_mask(700, formula_dense);
    struct plan *tall = cuda_plan(m, 128), *low = cuda_plan(m, 64);
    assert_true(tall->config.tall && tall->block_rows == 128);
    assert_true(!low->config.tall && low->block_rows == 64);
    plan_destroy(tall);
    plan_destroy(low);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_rows),        cmocka_unit_test(test_row_pass),
        cmocka_unit_test(test_strides),         cmocka_unit_test(test_joined_rows),
        cmocka_unit_test(test_tall_row_blocks),
    };
    return cmocka_run_group_tests_name("chooser on CUDA", tests, NULL, NULL);
}
