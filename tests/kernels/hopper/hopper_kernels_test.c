/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of cuda_hopper, run by the emulation, against float64: each kernel shape with each feature that the family
   accepts, and equal bits with copies and products as late as their waits allow, as early as possible and mixed.
   `hopper_kernels_test --all [K/N]` runs the gallery in both types, four lengths and each shape, every N-th case from the K-th
   on. Cases of $MASKC_KNOWN/hopper_kernels.txt are skipped (known.h); --update writes it. */
#include "gen/key_shape.h"
#include "masks/language/gallery.h"
#include "tests/support/covering.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct row {
    const char *mask[2]; /* of even and of odd heads */
    uint32_t n;
    const char *shape;
    struct kernel_request request;
    struct key_shape keys;
};

/* clang-format off */
#define MASKS(...)         {__VA_ARGS__}
#define F(type, dim, ...)  {.dtype = ABI_##type, .head_dim = dim, .backward = true, __VA_ARGS__}
#define START(heads, keys) {heads, keys, MASK_ALIGN_START}
#define END(heads, keys)   {heads, keys, MASK_ALIGN_END}
static const struct row rows[] = {
    /* every shape, whole and partial tiles, warpgroups in turn */
    {MASKS("dense", "causal"), 400, "wide", F(BF16, 64)},
    {MASKS("causal", "window(40)"), 400, "wide", F(F16, 64, .dropout = true)},
    {MASKS("window(100)", "blocks(2)"), 330, "four", F(BF16, 64)},
    {MASKS("dense", "random(0.05, seed=4)|rows(5)|columns(9)"), 300, "four", F(F16, 64, .dropout = true)},
    {MASKS("causal", "longformer(20,2)"), 200, "narrow", F(BF16, 64)},
    {MASKS("window(30)|global(0)", "dense"), 150, "narrow", F(F16, 64, .dropout = true)},
    {MASKS("causal", "dense"), 300, "deep", F(BF16, 128)},
    {MASKS("longformer(40,2)", "causal"), 260, "deep", F(F16, 128, .dropout = true)},
    {MASKS("window(40)|columns(3,77)", "dense"), 300, "deep", F(BF16, 96, .dropout = true)},
    {MASKS("causal", "rows(5,40)|columns(7)|distance(2,9)"), 141, "deep", F(F16, 72)},
    /* head dimensions between, the forward pass only */
    {MASKS("causal", "window(9)"), 200, "wide", F(F16, 16, .dropout = true)},
    {MASKS("longformer(40,2)", "dense"), 200, "narrow", F(BF16, 40)},
    {MASKS("random(0.1, seed=4)", "causal"), 220, "four", F(BF16, 32)},
    {MASKS("causal", "dense"), 300, "wide", {.dtype = ABI_BF16, .head_dim = 64}},
    {MASKS("strided(16)", "dense"), 200, "deep", {.dtype = ABI_F16, .head_dim = 128, .dropout = true}},
    /* rows that see few keys, or none; gathered columns */
    {MASKS("diagonal(0)", "window(1) - rows(3)"), 300, "wide", F(BF16, 64, .dropout = true)},
    {MASKS("local(24) & ~window(1) - rows(0)", "diagonal(0)"), 137, "narrow", F(F16, 48, .dropout = true)},
    {MASKS("columns(0,9,200)|diagonal(1)", "none"), 300, "deep", F(BF16, 104)},
    {MASKS("random(0.02, seed=9)", "stride(8)|diagonal(1)|rows(30)"), 400, "wide", F(F16, 64)},
    {MASKS("random(0.02, seed=9)", "columns(7)|rows(3)"), 300, "four", F(BF16, 64, .dropout = true)},
    /* short sequences */
    {MASKS("causal", "dense"), 1, "wide", F(BF16, 64)},
    {MASKS("causal", "dense"), 31, "narrow", F(F16, 64)},
    {MASKS("dense", "window(3)"), 65, "deep", F(BF16, 128, .dropout = true)},
    /* query heads that share key heads, other numbers of keys */
    {MASKS("longformer(40,2)", "causal"), 200, "wide", F(BF16, 64), START(2, 0)},
    {MASKS("causal", "window(20)"), 150, "narrow", F(F16, 64, .dropout = true), START(1, 0)},
    {MASKS("causal", "dense"), 200, "deep", F(BF16, 128), START(2, 0)},
    {MASKS("causal", "window(30)|global(0)"), 100, "wide", F(BF16, 64), END(0, 270)},
    {MASKS("causal", "dense"), 270, "narrow", F(BF16, 64, .dropout = true), START(0, 100)},
    {MASKS("rows(5)|diagonal(0)", "causal"), 150, "deep", F(F16, 96), END(1, 229)},
    {MASKS("stride(8)|diagonal(1)|rows(30)", "causal"), 141, "four", F(F16, 64, .dropout = true), START(2, 77)},
    {MASKS("columns(0, 3)|window(20)", "none"), 130, "wide", F(BF16, 64), START(0, 1)},
    /* global rows that are cut into parts */
    {MASKS("rows(5,1620)|columns(7)|diagonal(0)"), 1700, "wide", F(BF16, 64)},
    {MASKS("rows(0,1620)|diagonal(0)"), 1700, "deep", F(F16, 96, .dropout = true)},
};
/* clang-format on */

static struct known known;

/* Features that all cases together covered. */
static struct {
    bool cut[2], in_turn, gathered; /* cut: by pass of the plan */
} seen;

static void see(const struct artifact *a)
{
    const struct artifact_plan *p = &a->plan[0];
    assert_int_equal(a->target[0].launch.forward[0].arguments, PHASE_HOPPER_FORWARD);
    seen.cut[0] |= p->forward.partial_slots != 0;
    seen.cut[1] |= p->transposed.partial_slots != 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (uint64_t k = 0; k < p->steps[pass].n_groups; k++) {
            seen.in_turn |= p->steps[pass].groups[k].in_turn;
        }
    for (uint64_t k = 0; k < p->steps[0].n_steps; k++)
        seen.gathered |= (p->steps[0].steps[k].column[0] & ABI_GATHERED) != 0;
}

static void row_name(const struct row *r, char *ret, size_t storage)
{
    snprintf(ret, storage, "%s D=%u %s: %s, %s n=%u on %u heads, %u keys%s%s%s",
             dtype_name(r->request.dtype), r->request.head_dim, r->shape, r->mask[0],
             r->mask[1] ? r->mask[1] : "alone", r->n, r->keys.heads, r->keys.length,
             r->keys.align == MASK_ALIGN_END ? " at the end" : "",
             r->request.dropout ? ", dropout" : "", r->request.backward ? "" : ", forward");
}

/* Null: it ran right before. */
static struct maskc_kernel *load_row(const struct row *r, const char *name)
{
    struct error e = {0};
    struct kernel_case c = {.mask = r->mask[0],
                            .n = r->n,
                            .request = r->request,
                            .target = "sm_90a",
                            .tiled = true,
                            .family = "cuda_hopper",
                            .shape = r->shape};
    struct mask *m =
        covering_heads(r->mask[0], r->mask[1] ? r->mask[1] : r->mask[0],
                       r->keys.heads ? 2 * r->keys.heads : 2, key_shape_side(&r->keys, r->n));
    if (key_shape_apply(&r->keys, r->n, &m, &c.request, &e))
        fail_msg("%s", e.text);
    c.own = m;
    struct maskc_kernel *k = known_load_text(&known, &c, name, see);
    mask_destroy(m);
    return k;
}

enum { SAMPLED = 1000 }; /* longer ones: float64 for some rows only */

/* The rows of a long sequence that are checked, or null: all. */
static const uint8_t *sample_of(uint32_t n)
{
    static uint8_t sample[2048];
    for (uint32_t i = 0; i < n; i++)
        sample[i] = i < 16 || i + 16 >= n || i % 7 == 0 || i == 1620;
    return n > SAMPLED ? sample : NULL;
}

/* Sequences of one and of few tokens beside a longer one; padding holds NaN. */
static void run_short(const struct maskc_kernel *k, struct problem p, const char *name)
{
    const int32_t n = (int32_t)p.length, lengths[] = {1, n < 1000 ? n : n / 2, n < 12 ? n : 12},
                  m = (int32_t)p.key_length, key_lengths[] = {m, 1, m};
    p.batch = 3;
    p.lengths = lengths;
    p.key_lengths = m ? key_lengths : NULL;
    must_hold(k, &p, name);
    if (p.length > SAMPLED) /* parts of global rows, most of them past the end */
        must_repeat(k, &p, 2);
}

static void run_kernel(struct maskc_kernel *k, const char *name)
{
    struct problem p = fixture_problem(k);
    p.dropout = k->artifact->request.dropout ? 0.2 : 0;
    p.sample = sample_of(p.length);
    must_hold(k, &p, name);
    must_repeat(k, &p, 2);
    run_short(k, p, name);
    if (p.length < SAMPLED)
        must_launch(k, p.length > 1 && p.key_length != 1, name);
    kernel_unload(k);
}

static void run_row(void **state)
{
    const struct row *r = *state;
    char name[200];
    row_name(r, name, sizeof name);
    struct maskc_kernel *k = load_row(r, name);
    if (k)
        run_kernel(k, name);
}

static void test_all_was_seen(void **state)
{
    (void)state;
    assert_true(seen.cut[0] && seen.cut[1]);
    assert_true(seen.in_turn);
    assert_true(seen.gathered);
}

static int run_sample(void)
{
    struct CMUnitTest tests[COUNT(rows) + 1] = {{0}};
    static char names[COUNT(rows)][200];
    for (size_t k = 0; k < COUNT(rows); k++) {
        row_name(&rows[k], names[k], sizeof names[k]);
        tests[k] = (struct CMUnitTest){.name = names[k],
                                       .test_func = run_row,
                                       .initial_state = (void *)(uintptr_t)&rows[k]};
    }
    tests[COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_all_was_seen);
    return cmocka_run_group_tests_name("kernels of cuda_hopper", tests, NULL, NULL);
}

/* ---- the whole array ---- */

static const uint32_t lengths[] = {100, 512, 1000, 2048};
static const struct {
    const char *shape;
    uint32_t head_dim;
} shapes[] = {{"wide", 64}, {"four", 64}, {"narrow", 64}, {"deep", 96}, {"deep", 128}};
enum {
    OF_MASK = COUNT(lengths) * COUNT(shapes) * 2 * 2,
    ARRAY_MOST = 32 * OF_MASK,
};

static struct row row_of_array(uint32_t number)
{
    const uint32_t shape = number / COUNT(lengths) % COUNT(shapes);
    struct row r = {.n = lengths[number % COUNT(lengths)], .shape = shapes[shape].shape};
    r.request.head_dim = shapes[shape].head_dim;
    r.request.dtype = number / (COUNT(lengths) * COUNT(shapes)) % 2 ? ABI_F16 : ABI_BF16;
    r.request.backward = number / (2 * COUNT(lengths) * COUNT(shapes)) % 2;
    r.mask[0] = mask_gallery[number / OF_MASK].name;
    return r;
}

static void run_one_of_array(void **state)
{
    const struct row *r = *state;
    char name[200];
    row_name(r, name, sizeof name);
    struct maskc_kernel *k = load_row(r, name);
    struct problem p = fixture_problem(k);
    p.sample = sample_of(r->n);
    if (r->n < 500) {
        run_kernel(k, name);
        return;
    }
    must_hold(k, &p, name);
    must_repeat(k, &p, 2);
    kernel_unload(k);
}

/* Every parts-th of the array, from the part-th on. */
static int run_array(uint32_t part, uint32_t parts)
{
    static struct row r[ARRAY_MOST];
    static char names[ARRAY_MOST][200];
    static struct CMUnitTest tests[ARRAY_MOST];
    uint32_t count = 0, masks = 0;
    while (mask_gallery[masks].name)
        masks++;
    for (uint32_t k = part; k < masks * OF_MASK; k += parts, count++) {
        r[count] = row_of_array(k);
        row_name(&r[count], names[count], sizeof names[count]);
        tests[count] = (struct CMUnitTest){
            .name = names[count], .test_func = run_one_of_array, .initial_state = &r[count]};
    }
    return _cmocka_run_group_tests("array of cuda_hopper", tests, count, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {
        "tests/kernels/hopper/hopper_kernels_test.c", "runtime/emulated/*.[ch]",
        "runtime/device/emulated/*.[ch]", "tests/support/plan_shape.c", NULL};
    uint32_t part = 0, parts = 1;
    const bool update = argc > 1 && !strcmp(argv[1], "--update");
    if (argc > 1 && !strcmp(argv[1], "--all")) {
        if (argc > 2 && (sscanf(argv[2], "%u/%u", &part, &parts) != 2 || !parts))
            return 2;
        return run_array(part, parts);
    }
    if (argc > 1 && !update)
        cmocka_set_test_filter(argv[1]);
    known_start_files(&known, "hopper_kernels", files, update);
    return known_finish(&known, run_sample());
}
