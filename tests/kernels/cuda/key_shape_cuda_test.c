/* SPDX-License-Identifier: Apache-2.0 */
/* Do CUDA kernels with fewer key than query heads, and with other numbers of keys than of queries, agree with float64 in
   every family, forward and backward, with each feature that goes with them, and give the same bits in any order of
   threads? Run by the emulation. `key_shape_cuda_test 'f32 *'` takes tests of such names. */
#include "gen/key_shape.h"
#include "tests/support/covering.h"
#include "tests/support/known/known_text.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *mask[2]; /* of even and of odd heads */
    uint32_t heads, queries;
    struct key_shape keys;
    struct kernel_request request;
    bool tiled; /* never by the resident kernels */
};

/* clang-format off */
#define F(type, dim, ...) {.dtype = ABI_##type, .head_dim = dim, .backward = true, __VA_ARGS__}
#define SPARSEGEN         .transform = ABI_SPARSEGEN, .lambda = 0.3f
#define MASKS(...)        {__VA_ARGS__}
#define START(heads, keys) {heads, keys, MASK_ALIGN_START}
#define END(heads, keys)   {heads, keys, MASK_ALIGN_END}
static const struct row rows[] = {
    /* float and tf32 */
    {MASKS("window(4)|global(0)-diagonal(0)", "dense"), 4, 61, START(2, 0), F(F32, 32)},
    {MASKS("rows(5,40)|columns(7)|distance(2,9)", "blocks(2)"), 6, 45, START(2, 0), F(F32, 16, SPARSEGEN, .dropout = true)},
    {MASKS("blocks(2)", "causal"), 4, 64, START(1, 0), F(TF32, 64, .dropout = true)},
    {MASKS("summary(4, 1) - random(0.15, seed=4) | diagonal(0)", "causal"), 4, 70, START(2, 0), F(F32, 40, .bias = ABI_BIAS_ADD)},
    {MASKS("rows(5,40)|columns(7)|distance(2,9)", "dense"), 2, 45, END(0, 100), F(F32, 24, .dropout = true)},
    {MASKS("causal", "window(5)"), 4, 77, START(2, 40), F(TF32, 32)},
    {MASKS("dense", "rows(5)|diagonal(0)"), 2, 40, END(1, 33), F(F32, 136, SPARSEGEN)},
    /* resident */
    {MASKS("longformer(20,2)", "causal"), 4, 128, START(2, 0), F(BF16, 64)},
    {MASKS("window(4)|global(0)-diagonal(0)", "dense"), 6, 61, START(2, 0), F(F16, 80, .dropout = true)},
    {MASKS("blocks(2)", "causal"), 4, 64, START(1, 0), F(BF16, 24, SPARSEGEN)},
    /* resident forward, tiled backward */
    {MASKS("window(40)", "longformer(40,2)"), 4, 200, START(2, 0), F(BF16, 64)},
    /* tiled */
    {MASKS("longformer(40,2)", "rows(5,40)|columns(7,140)|distance(2,9)"), 4, 141, START(2, 0), F(F16, 64, .dropout = true), true},
    {MASKS("stride(8)|diagonal(1)|rows(30)", "causal"), 4, 141, START(2, 0), F(BF16, 40, .bias = ABI_BIAS_SCALE)},
    {MASKS("longformer(40,2)", "causal"), 2, 100, START(1, 0), F(F16, 160, SPARSEGEN), true},
    {MASKS("strided(16)", "dense"), 2, 449, START(1, 0), F(BF16, 64), true},
    {MASKS("rows(5,1620)|columns(7)|diagonal(0)", "window(1)"), 2, 1700, START(1, 0), F(BF16, 32)},
    {MASKS("causal", "window(30)|global(0)"), 2, 100, END(0, 170), F(BF16, 64)},
    {MASKS("stride(8)|diagonal(1)|rows(30)", "causal"), 4, 141, START(2, 77), F(F16, 32, .dropout = true)},
    {MASKS("dense", "rows(5)|diagonal(0)"), 2, 33, END(1, 129), F(BF16, 80, SPARSEGEN)},
    {MASKS("strided(16)", "dense"), 2, 400, END(1, 449), F(BF16, 128)},
    {MASKS("rows(5,1620)|columns(7)|diagonal(0)", "window(1)"), 1, 1700, START(0, 1650), F(BF16, 16)},
    {MASKS("columns(0, 3)|window(20)", "none"), 2, 130, START(0, 1), F(F16, 200)},
    {MASKS("causal", "dense"), 4, 1, END(2, 64), {.dtype = ABI_BF16, .head_dim = 64}},
    {MASKS("causal", "window(9)"), 4, 50, END(2, 64), {.dtype = ABI_F32, .head_dim = 64}},
};
enum { ROWS = sizeof rows / sizeof *rows };
/* clang-format on */

static struct known known;

/* Features that all rows together covered. */
static struct {
    uint32_t uses;
    bool resident[2], split, merged, tall; /* resident forward, backward */
} seen;

static void see_pass(const struct plan_pass *p)
{
    seen.uses |= p->uses;
    seen.split |= p->partial_slots != 0;
    seen.merged |= pass_merges(p);
}

static void see(const struct artifact *a)
{
    const struct launch_record *l = &a->target[0].launch;
    seen.resident[0] |= !strcmp(l->forward[0].entry, "attention_resident_forward");
    seen.resident[1] |= !strcmp(l->backward[0].entry, "attention_resident_backward");
    see_pass(&a->plan[0].forward);
    see_pass(&a->plan[0].transposed);
    seen.tall |= a->plan[0].block_rows == 128;
}

static void row_name(const struct row *r, char *ret, size_t storage)
{
    const struct kernel_request *f = &r->request;
    snprintf(ret, storage, "%s D=%u %s, %s: %u heads on %u, %u queries, %u keys%s",
             dtype_name(f->dtype), f->head_dim, r->mask[0], r->mask[1], r->heads, r->keys.heads,
             r->queries, r->keys.length, r->keys.align == MASK_ALIGN_END ? " at the end" : "");
}

/* Null: it ran right before. */
static struct maskc_kernel *load_row(const struct row *r, const char *name)
{
    struct error e = {0};
    struct kernel_case c = {
        .mask = r->mask[0], .n = r->queries, .request = r->request, .tiled = r->tiled};
    struct mask *m =
        covering_heads(r->mask[0], r->mask[1], r->heads, key_shape_side(&r->keys, r->queries));
    if (key_shape_apply(&r->keys, r->queries, &m, &c.request, &e))
        fail_msg("%s", e.text);
    c.own = m;
    struct maskc_kernel *k = known_load_text(&known, &c, name, see);
    mask_destroy(m);
    return k;
}

/* The whole mask; lengths, packed, shorter; long ones as they are alone. */
static void run_row(void **state)
{
    const struct row *r = *state;
    char name[200];
    row_name(r, name, sizeof name);
    struct maskc_kernel *k = load_row(r, name);
    if (!k)
        return;
    struct problem p = fixture_problem(k);
    p.dropout = r->request.dropout ? 0.2 : 0;
    must_hold(k, &p, name);
    if (r->queries < 400)
        must_launch(k, r->queries > 1 && r->keys.length != 1, name);
    if (r->queries < 200)
        must_repeat(k, &p, 2);
    kernel_unload(k);
}

static void test_all_was_seen(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < ABI_KINDS; kind++)
        if (!(seen.uses >> kind & 1))
            fail_msg("no plan has pieces of kind %u", kind);
    assert_true(seen.resident[0] && seen.resident[1]);
    if (!seen.split || !seen.merged || !seen.tall)
        fail_msg("plans have split rows: %d, merged row blocks: %d, tall row blocks: %d",
                 seen.split, seen.merged, seen.tall);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[ROWS + 1] = {{0}};
    static char names[ROWS][200];
    for (size_t k = 0; k < ROWS; k++) {
        row_name(&rows[k], names[k], sizeof names[k]);
        tests[k] = (struct CMUnitTest){.name = names[k],
                                       .test_func = run_row,
                                       .initial_state = (void *)(uintptr_t)&rows[k]};
    }
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(test_all_was_seen);
    const bool update = argc > 1 && !strcmp(argv[1], "--update");
    if (argc > 1 && !update)
        cmocka_set_test_filter(argv[1]);
    known_start_text(&known, "key_shape_cuda", update);
    return known_finish(&known,
                        cmocka_run_group_tests_name("key_shape_cuda", tests, NULL, NULL));
}
