/* SPDX-License-Identifier: Apache-2.0 */
/* Do kernels with fewer key heads than query heads, or with unequal numbers of queries and keys, agree with float64 on random
   shapes, and give the same bits for any number of threads? Heads of a group have different masks. A kernel depends on
   neither shape nor mask, so each is used for many. All CPU levels; CUDA: key_shape_cuda_test. For unequal numbers, is the
   mask the right part of the square one? Are unsupported combinations refused? */
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known known;

enum { MAX_TARGETS = 8, SHAPES = 5, BATCH = 3, MOST_HEADS = 6 };

static const struct kernel_request requests[] = {
    {.dtype = ABI_F32, .head_dim = 32, .dropout = true, .backward = true},
    {.dtype = ABI_BF16, .head_dim = 64, .backward = true},
    {.dtype = ABI_F16,
     .head_dim = 40,
     .transform = ABI_SPARSEGEN,
     .lambda = -2,
     .dropout = true,
     .backward = true},
    {.dtype = ABI_BF16, .head_dim = 64, .dropout = true, .backward = true},
    {.dtype = ABI_BF16, .head_dim = 32, .bias = ABI_BIAS_ADD, .backward = true},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static const char *const masks[] = {
    "causal",
    "window(5) | global(0, -1)",
    "dense",
    "stride(5) | window(1)",
    "random(0.2)",
    "diagonal(-9, -2, 0, 1)",
    "columns(0, 3) | window(20)",
    "rows(0..2) | diagonal(0)",
    "blocks(3, shift=1)",
    "none",
};
enum { MASKS = sizeof masks / sizeof *masks };

/* Masks in which few queries see few of many keys, also far apart. */
static const char *const few_masks[] = {
    "window(5)",        "global(0, 1) | window(20)", "columns(70, 150, 290)",
    "columns(80..123)", "diagonal(-9, -2, 0, 1)",    "random(0.01)",
    "rows(0..2)",       "blocks(40, shift=1)",       "stride(7) & window(90)",
};
enum { FEW_MASKS = sizeof few_masks / sizeof *few_masks };

struct random {
    uint64_t seed;
    uint32_t count;
};

/* 0 .. below - 1. */
static uint32_t draw(struct random *r, uint32_t below)
{
    uint32_t word[4];
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    reference_philox((const uint32_t[4]){r->count++}, key, word);
    return (uint32_t)((uint64_t)word[0] * below >> 32);
}

/* Shapes of K and V: grouped heads, a rectangular matrix, or both. */
enum { GROUPED_ALONE, RECTANGULAR_ALONE, BOTH, KINDS, FEW_BESIDE_MANY = KINDS };

struct shape {
    uint32_t heads, queries;
    struct key_shape keys;
};

static struct shape draw_shape(struct random *r, int kind)
{
    static const uint32_t lengths[] = {1, 31, 32, 45, 64, 77, 100, 129};
    static const uint32_t heads[][2] = {{2, 1}, {4, 2}, {6, 2}, {6, 3}, {3, 1}};
    const uint32_t k = draw(r, 5), m = 1 + draw(r, 7);
    struct shape s = {heads[k][0], lengths[draw(r, 8)], {0, 0, MASK_ALIGN_START}};
    if (kind != RECTANGULAR_ALONE)
        s.keys.heads = heads[k][1];
    if (kind != GROUPED_ALONE)
        s.keys.length = lengths[m] == s.queries ? lengths[m] + 7 : lengths[m];
    s.keys.align = draw(r, 2) ? MASK_ALIGN_END : MASK_ALIGN_START;
    return s;
}

/* Few queries and many keys, or the reverse. */
static struct shape draw_few(struct random *r)
{
    static const uint32_t few[] = {1, 3, 40}, many[] = {300, 517, 1200};
    static const uint32_t heads[][2] = {{2, 0}, {3, 0}, {4, 2}};
    const uint32_t k = draw(r, 3), less = few[draw(r, 3)], more = many[draw(r, 3)];
    const bool queries = draw(r, 4) > 0;
    struct shape s = {heads[k][0],
                      queries ? less : more,
                      {heads[k][1], queries ? more : less, MASK_ALIGN_START}};
    s.keys.align = draw(r, 3) ? MASK_ALIGN_END : MASK_ALIGN_START;
    return s;
}

/* A mask for each head, of so many tokens. */
static struct mask *draw_mask(struct random *r, int kind, uint32_t heads, uint32_t n)
{
    struct pattern *given[MOST_HEADS];
    for (uint32_t h = 0; h < heads; h++) {
        const char *name =
            kind == FEW_BESIDE_MANY ? few_masks[draw(r, FEW_MASKS)] : masks[draw(r, MASKS)];
        struct mask *one = subject_mask(n > 20 ? name : "causal", n);
        given[h] = pattern_copy(one->pattern[0]);
        mask_destroy(one);
    }
    return mask_new(1, heads, given, "heads of several masks");
}

struct lengths {
    int32_t queries[BATCH], keys[BATCH], starts[BATCH];
};

static void draw_lengths(struct random *r, uint32_t queries, uint32_t keys, struct lengths *ret)
{
    for (uint32_t b = 0; b < BATCH; b++) {
        ret->queries[b] = b ? (int32_t)draw(r, queries + 1) : (int32_t)queries;
        ret->keys[b] = b == 1 ? (int32_t)keys : (int32_t)draw(r, keys + 1);
        ret->starts[b] = (int32_t)draw(r, queries + 1 - (uint32_t)ret->queries[b]);
    }
}

static struct problem draw_problem(const struct maskc_kernel *k, struct random *r)
{
    struct problem p = problem_of(k);
    p.batch = BATCH;
    p.dropout = k->artifact->request.dropout ? 0.2 : 0;
    p.seed = draw(r, 1000);
    p.random_seed = draw(r, 1000);
    return p;
}

/* Padded batches of ragged sequences; with as many keys as queries packed ones too, and starts. */
static uint32_t check_ways(const struct maskc_kernel *k, struct random *r, const char *what)
{
    struct lengths x;
    struct problem p = draw_problem(k, r), other;
    draw_lengths(r, p.length, problem_keys(&p), &x);
    p.lengths = x.queries;
    p.key_lengths = p.key_length ? x.keys : NULL;
    p.layout = LAYOUT_BHND;
    uint32_t wrong = subject_check(k, &p, true, what);
    if (p.key_length)
        return wrong;
    other = p;
    other.packed = true;
    other.layout = LAYOUT_QKV;
    wrong += subject_check(k, &other, true, what);
    p.starts = x.starts;
    return wrong + (k->device->starts ? subject_check(k, &p, true, what) : 0);
}

static void check_threads(const struct maskc_kernel *k, const struct problem *p)
{
    struct error e = {0};
    const uint64_t bytes = problem_key_elements(p) * sizeof(double);
    struct problem_data *one = problem_inputs(p), *three = problem_data_copy(p, one);
    if (kernel_run_problem(k, p, one, true, 1, &e) ||
        kernel_run_problem(k, p, three, true, 3, &e))
        fail_msg("%s", e.text);
    assert_memory_equal(one->o, three->o, problem_elements(p) * sizeof(double));
    assert_memory_equal(one->d_k, three->d_k, bytes);
    assert_memory_equal(one->d_v, three->d_v, bytes);
    problem_data_destroy(one);
    problem_data_destroy(three);
}

static uint32_t check_shape(const struct target *t, struct kernel_request f, struct random *r,
                            int kind, struct cache *cache)
{
    char what[160];
    struct error e = {0};
    const struct shape s = kind == FEW_BESIDE_MANY ? draw_few(r) : draw_shape(r, kind);
    struct mask *m = draw_mask(r, kind, s.heads, key_shape_side(&s.keys, s.queries));
    if (key_shape_apply(&s.keys, s.queries, &m, &f, &e))
        fail_msg("%s", e.text);
    const uint64_t drawn[] = {r->seed, r->count}; /* without the padding of *r */
    const struct cache_key key =
        known_key_join(known_subject_key(m, t, &f, NULL), cache_key(drawn, sizeof drawn));
    if (known_skips(&known, key)) {
        mask_destroy(m);
        return 0;
    }
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    snprintf(what, sizeof what,
             "%s, %s, %u heads, %u key heads, %u queries, %u keys, seed %u:", subject_name(t),
             dtype_name(f.dtype), s.heads, s.keys.heads, s.queries, s.keys.length,
             (unsigned)r->seed);
    uint32_t wrong = check_ways(k, r, what);
    const struct problem p = draw_problem(k, r);
    check_threads(k, &p);
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return wrong;
}

static int kind_of(uint32_t target, uint32_t request)
{
    return requests[request].bias ? GROUPED_ALONE : (int)((target + request) % KINDS);
}

/* Every target, every second request on it, each with one kind of K and V. */
static void check_shapes(bool few, struct cache *cache)
{
    const struct target *list[MAX_TARGETS];
    const uint32_t count = subject_targets(list, MAX_TARGETS);
    uint32_t wrong = 0, ran = 0;
    for (uint32_t t = 0; t < count; t++)
        for (uint32_t q = 0; q < REQUESTS; q++) {
            const int kind = kind_of(t, q);
            if ((t + q) % 2 || list[t]->kind == TARGET_CUDA || (few && kind == GROUPED_ALONE))
                continue;
            for (uint32_t k = 0; k < SHAPES; k++, ran++) {
                struct random r = {1 + (t * REQUESTS + q) * SHAPES + k, 0};
                wrong +=
                    check_shape(list[t], requests[q], &r, few ? FEW_BESIDE_MANY : kind, cache);
            }
        }
    assert_true(ran > REQUESTS);
    assert_int_equal(wrong, 0);
}

static void test_random_shapes(void **state)
{
    check_shapes(false, *state);
}

/* Kernels pack no columns but those that items read: the rest of the workspace is NaN, as it was before the launch. */
static void test_few_beside_many(void **state)
{
    check_shapes(true, *state);
}

/* Entry (i, j) is the square's where query i and key j stand. */
static void test_mask_between_is_the_rule(void **state)
{
    static const uint32_t sizes[][2] = {{5, 9}, {9, 5}, {1, 40}, {33, 2}, {64, 65}};
    (void)state;
    for (uint32_t x = 0; x < 2 * sizeof sizes / sizeof *sizes; x++) {
        struct error e = {0};
        const uint32_t queries = sizes[x / 2][0], keys = sizes[x / 2][1],
                       side = queries > keys ? queries : keys;
        const bool end = x % 2;
        struct mask *square = subject_mask("random(0.4, seed=3)", side);
        struct mask *m = mask_rectangle(square, queries, keys, end, &e);
        assert_non_null(m);
        assert_true(mask_within(m, queries, keys));
        for (uint32_t i = 0; i < side; i++)
            for (uint32_t j = 0; j < side; j++) {
                const bool in = i < queries && j < keys;
                const uint32_t row = end ? i + side - queries : i,
                               column = end ? j + side - keys : j;
                assert_int_equal(pattern_test(m->pattern[0], i, j),
                                 in && pattern_test(square->pattern[0], row, column));
            }
        assert_null(mask_rectangle(square, queries, keys + side, end, &e));
        mask_destroy(m);
        mask_destroy(square);
    }
}

/* Each unsupported combination or mismatched size is refused with one clear line. */
static void test_refused(void **state)
{
    const struct key_shape odd = {4, 0, MASK_ALIGN_START}, longer = {0, 9, MASK_ALIGN_START};
    struct kernel_request bias = {.head_dim = 64, .bias = ABI_BIAS_ADD},
                          none = {.head_dim = 64};
    struct error e = {0};
    (void)state;
    struct mask *one = subject_mask("dense", 8), *m = mask_repeat_heads(one, 6, &e);
    const struct kernel_request wrong[] = {
        {.kv_heads = 4},
        {.kv_heads = 6},
        {.kv_heads = 12},
        {.queries = 8},
        {.keys = 8},
        {.queries = 8, .keys = 9},
        {.queries = 8, .keys = 8},
        {.queries = 7, .keys = 8}, /* the mask has entries in row 7 */
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_false(key_shape_fits(&wrong[k], m));
    none.kv_heads = 3;
    assert_true(key_shape_fits(&none, m));
    assert_int_equal(key_shape_apply(&odd, 8, &m, &none, &e), -1);
    assert_non_null(strstr(e.text, "do not divide"));
    assert_null(m);
    assert_int_equal(key_shape_apply(&longer, 8, &one, &bias, &e), -1);
    assert_non_null(strstr(e.text, "soft mask"));
    assert_null(one);
}

int main(int argc, char **argv)
{
    struct cache *cache = subject_start();
    known_start_subject(&known, "key_shape", "tests/kernels/cpu/key_shape_test.c",
                        argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_between_is_the_rule),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_prestate(test_random_shapes, cache),
        cmocka_unit_test_prestate(test_few_beside_many, cache),
    };
    int failed = cmocka_run_group_tests_name("key_shape", tests, NULL, NULL);
    subject_finish(cache);
    return known_finish(&known, failed);
}
