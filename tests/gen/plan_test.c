/* SPDX-License-Identifier: Apache-2.0 */
/* Plan == mask, judged twice: by plan_check, and by the plain decoder of plain_plan.h. Then plans are damaged, and plan_check
   must reject whatever the plain decoder rejects. Seeded by MASKC_TEST_SEED; the seed is printed. */
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "tests/gen/plain_plan.h"
#include "tests/gen/random_mask.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DAMAGES = 40 };
static u32 masks = 600, damaged = 60; /* --few: a quarter */

static struct random start(void)
{
    const char *seed = getenv("MASKC_TEST_SEED");
    struct random r = {seed ? strtoull(seed, NULL, 0) : 20260101};
    print_message("seed %llu\n", (unsigned long long)r.state);
    return r;
}

/* ---- random masks ---- */

static const char *const target_names[] = {
    "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16", "x86-64-amx", "sm_80", "sm_90a"};

/* The default machine, or one on which lines and single rows are never worth it, so that strides are
   taken by their classes. */
static struct machine random_machine(struct random *r, const struct target *t,
                                     const struct kernel_request *f)
{
    static const enum rate dear[] = {RATE_LINE_ENTRY, RATE_ROW_ENTRY, RATE_TILE_MASK};
    struct error e = {0};
    struct machine m = *machine_find(family_machine(t, f), &e);
    if (random_below(r, 3))
        return m;
    for (int p = 0; p < PASSES; p++)
        for (size_t k = 0; k < sizeof dear / sizeof *dear; k++)
            m.rate[p][dear[k]] *= 100;
    return m;
}

/* Structures that a plan points to. */
struct setting {
    struct target target;
    struct machine machine;
};

static struct plan *random_plan(struct random *r, const struct mask *m, struct setting *s)
{
    struct target *t = &s->target;
    static const uint32_t row_blocks[] = {32, 32, 64, 128}, dims[] = {16, 64, 136, 256};
    struct error e = {0};
    const struct target *found = target_find(target_names[random_below(r, 6)], &e);
    assert_non_null(found);
    *t = *found;
    t->block_rows = row_blocks[random_below(r, 4)];
    struct kernel_request f = {.head_dim = dims[random_below(r, 4)], .backward = true};
    f.dtype = random_below(r, 2) ? ABI_F32 : ABI_BF16;
    s->machine = random_machine(r, t, &f);
    struct plan *p = plan_build(m, t, &f, &s->machine, NULL, &e);
    if (!p)
        fail_msg("%s", e.text);
    return p;
}

/* Predictions on a GPU equal the figures that calibration fits, part by part. */
static void check_parts(const struct plan *p)
{
    const struct price *x = &p->price[PASS_FORWARD];
    struct effort e = plan_effort(p, PASS_FORWARD, 0, 2, 1);
    double bytes = e.count[UNIT_STREAM] * x->stream + e.count[UNIT_EXPOSED] * x->exposed;
    double sum = (price_of(x, &e) - bytes) * plan_spread(p, PASS_FORWARD, 0, 2, 0) +
                 bytes * (p->config.tall ? 2 : 1) / p->machine->workers +
                 plan_launches(p, PASS_FORWARD, 0) * p->machine->launch;
    sum = fmax(sum, plan_floor(p, false, 0, 2, 0));
    assert_true(fabs(plan_predict(p, false, 0, 2, 0) / sum - 1) < 1e-9);
}

static void check_summary(const struct plan *p, const struct mask *m)
{
    for (u32 k = 0; k < p->n_masks; k++) {
        const struct plan_summary *s = &p->forward.summary[k];
        double density = (double)m->pattern[k]->active / ((double)p->n * p->n);
        assert_true(s->predicted <= s->dense_predicted);
        assert_true(s->executed_fraction >= density - 1e-12 && s->executed_fraction <= 1);
        assert_true(s->lowering[0] && s->reason[0] && s->n_rejected < LOWERINGS_MOST);
        assert_int_equal(!strcmp(s->lowering, "empty"), m->pattern[k]->active == 0);
    }
    double ours = plan_predict(p, true, 0, 2, 3);
    assert_true(ours > 0 && ours <= plan_predict_dense(p, true, 0, 2, 3));
    assert_true(ours >= plan_floor(p, true, 0, 2, 3));
}

/* Number of times the largest cost must be quartered to reach this cost. */
static u32 quarterings(u32 cost, u32 largest)
{
    u32 times = 0;
    for (; times < 16 && cost < largest / 4; times++)
        largest /= 4;
    return times;
}

/* Dearer items first, to a factor of four, and within that by head; on a CPU head by head, and first
   partial items, on CUDA those that resume last. */
static void check_order(const struct plan *p, const struct plan_pass *t, u64 first, u64 count)
{
    u32 largest = 0;
    for (u64 k = first; k < first + count; k++) {
        u32 cost = t->items[t->work[k].item].cost;
        largest = cost > largest ? cost : largest;
    }
    for (u64 k = first + 1; k < first + count; k++) {
        u32 before = quarterings(t->items[t->work[k - 1].item].cost, largest);
        u32 here = quarterings(t->items[t->work[k].item].cost, largest);
        bool merging = item_merges(&t->items[t->work[k].item]);
        if (t->uses & ABI_SPLIT && p->target->kind == TARGET_CUDA &&
            merging != item_merges(&t->items[t->work[k - 1].item])) {
            assert_true(merging);
            continue;
        }
        if (p->target->kind == TARGET_CPU) {
            u32 head = t->work[k - 1].head, next = t->work[k].head;
            u32 done = t->items[t->work[k - 1].item].split;
            assert_true(head <= next);
            assert_true(head < next || done >= t->items[t->work[k].item].split);
            assert_true(head < next || done > t->items[t->work[k].item].split ||
                        before <= here);
            continue;
        }
        assert_true(before < here ||
                    (before == here && t->work[k - 1].head <= t->work[k].head));
    }
}

/* Every layer does every item of every head once, and equal layers share their list. */
static void check_work(const struct plan *p, const struct plan_pass *t)
{
    for (u32 l = 0; l < p->layers; l++) {
        const u32 *at = p->at + l * p->heads;
        u64 first = t->layer_work[l][0], count = t->layer_work[l][1], expected = 0, sum = 0;
        for (u32 h = 0; h < p->heads; h++)
            for (u32 i = t->item_first[at[h]]; i < t->item_first[at[h] + 1]; i++, expected++)
                sum += (u64)(h + 1) * (i + 1);
        assert_int_equal(count, expected);
        for (u32 h = 0; h < p->heads; h++) {
            struct abi_head head = t->heads[l * p->heads + h];
            assert_int_equal(head.item, t->item_first[at[h]]);
            assert_int_equal(head.item + head.items, t->item_first[at[h] + 1]);
        }
        for (u64 k = first; k < first + count; k++)
            sum -= (u64)(t->work[k].head + 1) * (t->work[k].item + 1);
        assert_int_equal(sum, 0);
        check_order(p, t, first, count);
        for (u32 other = 0; other < l; other++)
            if (!memcmp(at, p->at + other * p->heads, p->heads * sizeof *at))
                assert_int_equal(first, t->layer_work[other][0]);
    }
}

static void test_random_masks(void **state)
{
    (void)state;
    struct random r = start();
    u32 classes = 0, resumed = 0;
    for (u32 k = 0; k < masks; k++) {
        struct mask *m = random_mask(&r);
        struct setting s;
        struct plan *p = random_plan(&r, m, &s);
        struct error e = {0};
        if (plan_check(p, m, &e))
            fail_msg("mask %u: %s", k, e.text);
        assert_true(plain_equal(p, &p->forward, m, false));
        assert_true(plain_equal(p, &p->transposed, m, true));
        check_work(p, &p->forward);
        check_work(p, &p->transposed);
        check_summary(p, m);
        if (p->target->kind == TARGET_CUDA)
            check_parts(p);
        classes += p->forward.uses >> ABI_RESIDUE & 1;
        resumed += (p->forward.uses & ABI_SPLIT) != 0;
        plan_destroy(p);
        mask_destroy(m);
    }
    assert_true(classes > masks / 50 && resumed > masks / 50);
}

/* ---- damage ---- */

enum { TABLES = 8 };

struct table {
    const char *name;
    void *rows;
    u64 count;
    size_t size;
    size_t skip, skip_size; /* a field that may hold anything */
};

static u32 tables_of(struct plan *p, struct plan_pass *t, struct table *ret)
{
    const size_t cost = offsetof(struct abi_item, cost);
    const struct table all[] = {
        {"items", t->items, t->n_items, sizeof *t->items, cost, sizeof t->items->cost},
        {"pieces", t->pieces, t->n_pieces, sizeof *t->pieces, 0, 0},
        {"ranges", t->ranges, t->n_ranges, sizeof *t->ranges, 0, 0},
        {"tiles", t->tiles, t->n_tiles, sizeof *t->tiles, 0, 0},
        {"lines", t->lines, t->n_lines, sizeof *t->lines, 0, 0},
        {"gathers", t->gathers, t->n_gathers, sizeof *t->gathers, 0, 0},
        {"columns", t->columns, t->n_columns, sizeof *t->columns, 0, 0},
        {"patterns", t->patterns, t->n_patterns, p->block_rows * sizeof(u32), 0, 0},
    };
    memcpy(ret, all, sizeof all);
    return sizeof all / sizeof *all;
}

static void damage(struct random *r, struct plan *p, struct plan_pass *t, const struct mask *m,
                   bool transposed, u32 *hits)
{
    struct table table[TABLES];
    u32 which = random_below(r, tables_of(p, t, table));
    if (!table[which].count)
        return;
    size_t byte = random_below(r, (u32)table[which].size);
    if (byte - table[which].skip < table[which].skip_size)
        return;
    uint8_t *at = (uint8_t *)table[which].rows +
                  random_below(r, (u32)table[which].count) * table[which].size + byte;
    uint8_t bit = (uint8_t)(1u << random_below(r, 8));
    struct error e = {0};
    *at ^= bit;
    bool wrong = !plain_equal(p, t, m, transposed);
    if (wrong && !plan_check(p, m, &e))
        fail_msg("%s, byte %zu, bit %02x: damage that plan_check does not see",
                 table[which].name, byte, bit);
    if (wrong) {
        assert_int_equal(e.kind, ERROR_FALSE);
        assert_true(strlen(e.text) > 10);
        hits[which]++;
    }
    *at ^= bit;
}

static void test_damage(void **state)
{
    (void)state;
    struct random r = start();
    u32 hits[TABLES] = {0};
    for (u32 k = 0; k < damaged; k++) {
        struct mask *m = random_mask(&r);
        struct setting s;
        struct plan *p = random_plan(&r, m, &s);
        struct error e = {0};
        for (u32 d = 0; d < DAMAGES; d++)
            damage(&r, p, d % 2 ? &p->transposed : &p->forward, m, d % 2, hits);
        assert_int_equal(plan_check(p, m, &e), 0);
        plan_destroy(p);
        mask_destroy(m);
    }
    for (u32 k = 0; k < TABLES; k++)
        assert_true(hits[k] > 0); /* every table was damaged at least once */
}

/* Damage outside the tables' bits: work lists, `uses`, `max_cols`, another mask. */
static void test_damaged_lists(void **state)
{
    (void)state;
    struct random r = start();
    struct error e = {0};
    struct pattern *given[2] = {random_pattern(&r, 100), random_pattern(&r, 100)};
    struct mask *m = mask_new(1, 2, given, "random");
    struct setting s;
    struct plan *p = random_plan(&r, m, &s);
    struct plan_pass *f = &p->forward;
    assert_int_equal(plan_check(p, m, &e), 0);
    struct abi_work kept = f->work[1];
    f->work[1] = f->work[0];
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->work[1] = (struct abi_work){2, 0};
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->work[1] = kept;
    f->layer_work[0][1]--;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->layer_work[0][1]++;
    f->uses ^= 1u << ABI_TILES;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->uses ^= 1u << ABI_TILES;
    f->max_cols++;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->max_cols--;
    f->item_first[1]--;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    f->item_first[1]++;
    assert_int_equal(plan_check(p, m, &e), 0);
    struct mask *other = mask_crop(m, 99, &e);
    assert_int_not_equal(plan_check(p, other, &e), 0);
    mask_destroy(other);
    plan_destroy(p);
    mask_destroy(m);
}

/* No item may be said to take another kernel than it does: one that cannot have it, or one that is slower. */
static void test_lies_about_kernels(void **state)
{
    (void)state;
    struct random r = start();
    u32 told[ABI_ITEM_KERNELS] = {0};
    for (u32 k = 0; k < damaged; k++) {
        struct mask *m = random_mask(&r);
        struct setting s;
        struct plan *p = random_plan(&r, m, &s);
        struct error e = {0};
        for (u32 d = 0; d < DAMAGES; d++) {
            struct plan_pass *t = d % 2 ? &p->transposed : &p->forward;
            struct abi_item *item = &t->items[random_below(&r, (u32)t->n_items)];
            const u32 kept = item->kernel;
            item->kernel =
                (kept + 1 + random_below(&r, ABI_ITEM_KERNELS)) % (ABI_ITEM_KERNELS + 1);
            told[kept]++;
            if (!plan_check(p, m, &e))
                fail_msg("%u for %u: a kernel that plan_check believes", item->kernel, kept);
            assert_non_null(strstr(e.text, "a kernel that the item does not take"));
            item->kernel = kept;
        }
        assert_int_equal(plan_check(p, m, &e), 0);
        plan_destroy(p);
        mask_destroy(m);
    }
    for (u32 k = 0; k < ABI_MATRIX_ROW_KERNEL; k++) /* these masks are too small for the last */
        assert_true(told[k] > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--few"))
        masks /= 4, damaged /= 4;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_masks),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damaged_lists),
        cmocka_unit_test(test_lies_about_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
