/* SPDX-License-Identifier: Apache-2.0 */
/* Residue classes on every CPU target that runs here, every dtype: rows that two items share, heads
   with strides beside heads without, padded, shorter, ragged and packed batches, dropout; beside a bias, whose gradient
   and its sums along diagonals go by the class; with sparsegen, where rows have nothing but their class; against float64, and the same bits for any number of threads, whether these take heads or items. Made up
   machines see to it that strides are taken for classes, whatever real ones cost. */
#include "gen/family/family.h"
#include "masks/base/memory.h"
#include "runtime/artifact/artifact.h"
#include "runtime/pipeline/calibration.h"
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known known;

enum { MAX_TARGETS = 8, DIM = 40, BATCH = 3, HEADS = 3, LAYERS = 2 };

enum rest { REST_TILES, REST_LINES, NO_REST }; /* what visits entries outside of the classes */

struct shape {
    enum rest rest;
    uint32_t n, length; /* of the mask, of the tensors */
    bool ragged, packed, dropout;
    const char *head[HEADS]; /* of layer 0; layer 1 has them the other way round */
};

static const struct shape shapes[] = {
    {REST_TILES,
     181,
     181,
     false,
     false,
     false,
     {"strided(10)", "strided(11) | global(0)", "window(3)"}},
    {REST_LINES,
     180,
     143,
     true,
     false,
     true,
     {"strided(9) & causal", "stride(8)", "strided(10)"}},
    {REST_TILES, 165, 165, true, true, true, {"window(60) & stride(5)", "strided(10)", "none"}},
    {NO_REST, 170, 170, true, false, true, {"stride(9)", "stride(8) & causal", "none"}},
};

/* Beside plain softmax. */
static const struct variant {
    enum abi_transform transform;
    enum abi_bias bias;
} variants[] = {
    {ABI_SOFTMAX, ABI_BIAS_NONE},
    {ABI_SOFTMAX, ABI_BIAS_ADD},
    {ABI_SOFTMAX, ABI_BIAS_SCALE},
    {ABI_SPARSEGEN, ABI_BIAS_NONE},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* REST_LINES makes tiles with a mask test dearest, then lines; else lines are dearest, then tiles. */
static void bend(struct machine *m, enum rest rest)
{
    const bool lines = rest == REST_LINES;
    for (int p = 0; p < PASSES; p++) {
        double *rate = m->rate[p];
        for (int r = 0; r < RATES; r++)
            rate[r] = 1e-14;
        rate[RATE_TILE_ENTRY] = lines ? 1e-14 : 1e-9;
        rate[RATE_TILE_MASK] = lines ? 1e-6 : 1e-14;
        rate[RATE_LINE_ENTRY] = lines ? 1e-9 : 1e-3;
        rate[RATE_ROW_ENTRY] = 1e-3;
    }
}

static void bend_all(struct calibration *c, enum rest rest)
{
    *c = (struct calibration){.count = 0};
    for (const struct machine *m = machines; m->name; m++) {
        struct machine bent = *m;
        bend(&bent, rest);
        if (m->kind == TARGET_CPU)
            calibration_add(c, m, NULL, &bent);
    }
}

static struct maskc_kernel *load(const struct mask *m, const struct target *t,
                                 const struct kernel_request *f, enum rest rest,
                                 struct cache *cache)
{
    struct calibration calibration;
    bend_all(&calibration, rest);
    const struct compile_request r = {.mask = m,
                                      .targets = &t,
                                      .n_targets = 1,
                                      .request = *f,
                                      .calibration = &calibration,
                                      .cache = cache};
    return subject_load_request(&r);
}

static struct cache_key key_of(const struct shape *s, const struct mask *m,
                               const struct target *t, const struct kernel_request *f)
{
    struct error e;
    struct machine bent = *machine_find(family_machine(t, f), &e);
    const uint32_t number = (uint32_t)(s - shapes);
    bend(&bent, s->rest);
    return known_key_join(known_subject_key(m, t, f, &bent), cache_key(&number, sizeof number));
}

static struct mask *make_mask(const struct shape *s)
{
    struct pattern *given[LAYERS * HEADS];
    for (uint32_t h = 0; h < HEADS; h++) {
        struct mask *one = subject_mask(s->head[h], s->n);
        given[h] = pattern_copy(one->pattern[0]);
        given[LAYERS * HEADS - 1 - h] = pattern_copy(one->pattern[0]);
        mask_destroy(one);
    }
    return mask_new(LAYERS, HEADS, given, "strides");
}

static bool same(const double *a, const double *b, uint64_t count)
{
    return !memcmp(a, b, count * sizeof *a);
}

/* One thread and 3 take heads, 4 take items. */
static void check_threads(const struct maskc_kernel *k, const struct problem *p)
{
    static const uint32_t threads[] = {1, 3, 4};
    struct problem_data *d[3], *inputs = problem_inputs(p);
    const uint64_t count = problem_elements(p);
    struct error e = {0};
    for (uint32_t t = 0; t < 3; t++) {
        d[t] = problem_data_copy(p, inputs);
        reference_plain(p, d[t], true); /* O and LSE that a backward pass reads */
        if (kernel_run_problem(k, p, d[t], true, threads[t], &e))
            fail_msg("%s", e.text);
        assert_true(same(d[t]->o, d[0]->o, count) && same(d[t]->d_q, d[0]->d_q, count));
        assert_true(same(d[t]->d_k, d[0]->d_k, count) && same(d[t]->d_v, d[0]->d_v, count));
        if (p->bias) {
            assert_true(same(d[t]->d_x, d[0]->d_x, problem_bias_elements(p)));
            assert_true(same(d[t]->d_diagonal, d[0]->d_diagonal, problem_diagonal_elements(p)));
        }
    }
    for (uint32_t t = 0; t < 3; t++)
        problem_data_destroy(d[t]);
    problem_data_destroy(inputs);
}

/* Checks which lowerings of the plan visit the entries: residue classes, and another one for the entries that these leave. */
static void check_uses(const struct shape *s, const struct plan_pass *p)
{
    static const u32 rest[] = {[REST_TILES] = ABI_SPLIT | 1u << ABI_TILES,
                               [REST_LINES] = ABI_SPLIT | 1u << ABI_DIAGONAL,
                               [NO_REST] = 0};
    const u32 all = 1u << ABI_RESIDUE | rest[s->rest];
    assert_int_equal(p->uses & (all | ABI_SPLIT), all);
}

static uint32_t run_one(const struct shape *s, const struct target *t, enum abi_dtype dtype,
                        const struct variant *v, struct cache *cache)
{
    char what[80];
    uint32_t wrong = 0;
    const int32_t ragged[BATCH] = {(int32_t)s->length, 7, (int32_t)s->length - 30};
    struct kernel_request f = {.dtype = dtype,
                               .head_dim = DIM,
                               .transform = v->transform,
                               .lambda = v->transform ? -4 : 0,
                               .bias = v->bias,
                               .backward = true,
                               .dropout = true}; /* one source for all shapes */
    struct mask *m = make_mask(s);
    if (known_skips(&known, key_of(s, m, t, &f))) {
        mask_destroy(m);
        return 0;
    }
    struct maskc_kernel *k = load(m, t, &f, s->rest, cache);
    const struct artifact_plan *plan = &k->artifact->plan[k->target->plan];
    check_uses(s, &plan->forward);
    check_uses(s, &plan->transposed);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        struct problem p = {
            .mask = m,
            .layer = layer,
            .batch = BATCH,
            .length = s->length,
            .head_dim = DIM,
            .lengths = s->ragged ? ragged : NULL,
            .packed = s->packed,
            .dtype = dtype,
            .transform = v->transform,
            .lambda = (double)f.lambda,
            .bias = v->bias,
            .dropout = s->dropout ? 0.25 : 0,
            .seed = 99,
            .random_seed = layer,
        };
        snprintf(what, sizeof what, "n=%u %s %s %s%s", s->n, subject_name(t), dtype_name(dtype),
                 bias_name(v->bias), v->transform ? " sparsegen" : "");
        wrong += subject_check(k, &p, true, what);
        if (layer == 0)
            check_threads(k, &p);
    }
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return wrong;
}

/* Plain softmax everywhere; the others on matrix units, and in one dtype each on one level without. */
static bool is_run(const struct target *t, enum abi_dtype dtype, uint32_t variant)
{
    const struct kernel_request f = {.dtype = dtype, .head_dim = DIM};
    if (t->kind != TARGET_CPU || subject_repeats(t, &f))
        return false;
    if (!variant || t->matrix_machine)
        return true;
    return !strcmp(t->name, "x86-64-v3") &&
           dtype == (variants[variant].bias == ABI_BIAS_SCALE ? ABI_F16 : ABI_F32);
}

/* Rows that two items share need softmax. */
static bool is_shape_of(const struct shape *s, const struct variant *v)
{
    return v->transform == ABI_SOFTMAX ? s->rest != NO_REST : s->rest == NO_REST;
}

static void test_residue(void **state)
{
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS), wrong = 0, runs = 0;
    for (uint32_t v = 0; v < VARIANTS; v++)
        for (uint32_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (uint32_t t = 0; t < count && is_shape_of(&shapes[s], &variants[v]); t++)
                for (int dtype = ABI_F32; dtype <= ABI_F16; dtype++) {
                    if (!is_run(list[t], (enum abi_dtype)dtype, v))
                        continue;
                    wrong += run_one(&shapes[s], list[t], (enum abi_dtype)dtype, &variants[v],
                                     *state) > 0;
                    runs++;
                }
    print_message("%u kernels\n", runs);
    assert_true(runs >= 9);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    struct cache *cache = subject_start();
    known_start_subject(&known, "residue", "tests/kernels/cpu/residue_test.c",
                        argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_residue, cache)};
    int failed = cmocka_run_group_tests_name("residue", tests, NULL, NULL);
    subject_finish(cache);
    return known_finish(&known, failed);
}
