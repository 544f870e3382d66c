/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as ptxas made them, run instruction by instruction and checked against float64: each entry of each family,
   each feature at least once, for one target: `sample_test FOLDER sm_80`. Cases of $MASKC_KNOWN/sample_TARGET.txt need not run
   (sample_key.h); --update runs all and writes it. With --all the whole array:
   the gallery x lengths x head dimensions x dtypes; `--all K/N` every N-th of it from the K-th on. */
#include "tests/sass/sample_key.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PAIR(...)   \
    {               \
        __VA_ARGS__ \
    }

static const char *target = "sm_80";
static struct cache *cache;

/* ---- the sample ---- */

#define F(type, dim, ...)                                                   \
    {                                                                       \
        .dtype = ABI_##type, .head_dim = dim, .backward = true, __VA_ARGS__ \
    }
#define KEYS(...)                   \
    {                               \
        __VA_ARGS__, MASK_ALIGN_END \
    }
#define TILED "cuda_tiled" /* which sm_90a does not take by itself at these lengths */
static const struct sass_case cases[] = {
    /* float and tf32 */
    {PAIR("window(4)|global(0)-diagonal(0)"), 61, F(F32, 32)},
    {PAIR("rows(5,40)|columns(7)|distance(2,9)", "blocks(2)"), 45,
     F(F32, 16, .transform = ABI_SPARSEGEN, .lambda = 0.3f, .dropout = true)},
    {PAIR("summary(4, 1) - random(0.15, seed=4) | diagonal(0)"), 70,
     F(F32, 40, .bias = ABI_BIAS_ADD)},
    {PAIR("blocks(2)"), 64, F(TF32, 64, .dropout = true)},
    {PAIR("rows(5,40)|columns(7)|distance(2,9)"), 45,
     F(TF32, 32, .bias = ABI_BIAS_SCALE, .transform = ABI_SPARSEGEN, .lambda = 0.3f)},
    /* resident */
    {PAIR("longformer(20,2)"), 128, F(BF16, 64)},
    {PAIR("window(4)|global(0)-diagonal(0)", "dense"), 61, F(F16, 80, .dropout = true)},
    {PAIR("blocks(2)"), 64, F(BF16, 32, .transform = ABI_SPARSEGEN, .lambda = 0.3f)},
    /* tiled: partial groups that whole ones follow, tall row blocks, columns, rows alone */
    {PAIR("window(100)"), 300, F(BF16, 64)},
    {PAIR("longformer(40,2)"), 260, F(F16, 32, .dropout = true)},
    {PAIR("causal", "dense"), 520, F(BF16, 128), .family = TILED},
    {PAIR("rows(5,40)|columns(7)|distance(2,9)"), 141, F(BF16, 40, .bias = ABI_BIAS_ADD)},
    {PAIR("local(24) & ~window(1) - rows(0)"), 137,
     F(F16, 64, .bias = ABI_BIAS_SCALE, .dropout = true)},
    {PAIR("summary(4, 1) - random(0.15, seed=4) | diagonal(0)"), 150,
     F(BF16, 64, .transform = ABI_SPARSEGEN, .lambda = 0.3f)},
    /* residue classes that row blocks merge, split rows */
    {PAIR("strided(16)", "dense"), 512, F(BF16, 64), .family = TILED},
    {PAIR("stride(8)|diagonal(1)|rows(30)"), 141, F(F16, 256)},
    {PAIR("rows(5,1620)|columns(7)|diagonal(0)"), 1700, F(BF16, 64), .family = TILED},
    /* query heads that share key heads, and other numbers of keys */
    {PAIR("window(4)|global(0)-diagonal(0)", "causal"), 61, F(F32, 32, .dropout = true),
     KEYS(2, 90)},
    {PAIR("longformer(20,2)", "causal"), 128, F(BF16, 64), KEYS(2, 0)},
    {PAIR("stride(8)|diagonal(1)|rows(30)", "causal"), 100, F(F16, 64), KEYS(2, 141)},
};

/* Contents of the sample: entries by family, and the features of plans. */
static struct seen {
    char entry[40][48];
    uint32_t entries;
    uint32_t uses; /* bits of enum abi_kind */
    bool split, merged, tall;
} seen;

static void see_entry(const struct phase *p, const char *family)
{
    char name[48];
    snprintf(name, sizeof name, "%s %.30s", family, p->entry);
    for (uint32_t k = 0; k < seen.entries; k++)
        if (!strcmp(seen.entry[k], name))
            return;
    assert_true(seen.entries < COUNT(seen.entry));
    strcpy(seen.entry[seen.entries++], name);
}

static void see_pass(const struct plan_pass *p)
{
    seen.uses |= p->uses;
    seen.split |= p->partial_slots != 0;
    seen.merged |= pass_merges(p);
}

static void see(const struct artifact *a)
{
    const struct launch_record *l = &a->target[0].launch;
    const char *family = dtype_name(a->request.dtype);
    for (uint32_t x = 0; x < l->n_forward; x++)
        see_entry(&l->forward[x], family);
    for (uint32_t x = 0; x < l->n_backward; x++)
        see_entry(&l->backward[x], family);
    see_pass(&a->plan[0].forward);
    see_pass(&a->plan[0].transposed);
    seen.tall |= a->plan[0].block_rows == 128;
}

/* As the text that it was made from; roundings of a bias' gradient and of far scores are not the same everywhere. */
static void must_follow_text(const struct sass_case *c, const struct maskc_kernel *machine,
                             const struct problem *p)
{
    struct error e = {0};
    struct maskc_kernel *text = setup_try_on("emulated", c, target, cache, &e);
    const double most = c->request.dtype == ABI_F32 ? 2e-6 : 4e-4;
    const double distance = text ? setup_distance(machine, text, p, NULL, &e) : 1;
    kernel_unload(text);
    if (!(distance <= most))
        fail_msg("%s: off by %g from its text, at most %g %s", c->mask[0], distance, most,
                 e.text);
}

static struct known known;

/* The whole mask, then lengths, packed, shorter; long ones as they are alone. */
static void run_case(void **state)
{
    const struct sass_case *c = *state;
    const struct cache_key key = sample_key(c, target, see);
    if (known_skips(&known, key))
        return;
    struct maskc_kernel *k = setup_load(c, target, cache);
    struct problem p = fixture_problem(k);
    p.dropout = c->request.dropout ? 0.2 : 0;
    must_hold(k, &p, c->mask[0]);
    if (c->n < 1000) {
        must_follow_text(c, k, &p);
        must_launch(k, 7, c->mask[0]);
    }
    kernel_unload(k);
}

static void test_all_was_seen(void **state)
{
    static const char *const entries[] = {"f32 attention_forward",
                                          "f32 attention_dq",
                                          "f32 attention_dkv",
                                          "f32 attention_dx",
                                          "tf32 attention_forward",
                                          "tf32 attention_dq",
                                          "tf32 attention_dkv",
                                          "tf32 attention_dx",
                                          "bf16 attention_forward",
                                          "bf16 attention_dq",
                                          "bf16 attention_dkv",
                                          "bf16 attention_dx",
                                          "f16 attention_forward",
                                          "f16 attention_dq",
                                          "f16 attention_dkv",
                                          "f16 attention_dx",
                                          "bf16 attention_resident_forward",
                                          "bf16 attention_resident_backward",
                                          "f16 attention_resident_forward",
                                          "f16 attention_resident_backward",
                                          "f32 attention_key_heads",
                                          "bf16 attention_key_heads",
                                          "f16 attention_key_heads"};
    static const uint32_t kinds[] = {ABI_TILES,  ABI_COLUMNS,  ABI_ROWS,
                                     ABI_BLOCKS, ABI_DIAGONAL, ABI_RESIDUE};
    (void)state;
    for (size_t e = 0; e < COUNT(entries); e++) {
        bool found = false;
        for (uint32_t k = 0; k < seen.entries; k++)
            found |= !strcmp(seen.entry[k], entries[e]);
        if (!found)
            fail_msg("%s is in no case", entries[e]);
    }
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (!(seen.uses >> kinds[k] & 1))
            fail_msg("no plan has pieces of kind %u", kinds[k]);
    /* sm_90a's plans leave no row block anything to merge at these lengths. */
    if (!seen.split || (!seen.merged && !strcmp(target, "sm_80")) || !seen.tall)
        fail_msg("plans have split rows: %d, merged row blocks: %d, tall row blocks: %d",
                 seen.split, seen.merged, seen.tall);
}

static int run_sample(void)
{
    struct CMUnitTest tests[COUNT(cases) + 1] = {{0}};
    static char names[COUNT(cases)][80];
    for (size_t k = 0; k < COUNT(cases); k++) {
        const struct kernel_request *f = &cases[k].request;
        snprintf(names[k], sizeof names[k], "%s %s d %u n %u %.30s", target,
                 dtype_name(f->dtype), f->head_dim, cases[k].n, cases[k].mask[0]);
        tests[k] = (struct CMUnitTest){.name = names[k],
                                       .test_func = run_case,
                                       .initial_state = (void *)(uintptr_t)&cases[k]};
    }
    tests[COUNT(cases)] = (struct CMUnitTest)cmocka_unit_test(test_all_was_seen);
    return cmocka_run_group_tests_name("machine code", tests, NULL, NULL);
}

/* The sample beside its list, or in its place. */
static int run_known(bool update)
{
    static char name[64];
    snprintf(name, sizeof name, "sample_%s", target);
    known_start(&known, name, sample_common(), update);
    return known_finish(&known, run_sample());
}

/* ---- the whole array ---- */

static const char *const gallery[] = {
    "dense",   "star",        "logsparse",   "strided",       "fixed",       "longformer(64,2)",
    "bigbird", "blockbert-2", "blockbert-3", "dam-s-example", "window(100)", "causal"};
static const uint32_t lengths[] = {64, 128, 512, 2048}, dims[] = {32, 64, 80, 128};
static const enum abi_dtype dtypes[] = {ABI_BF16, ABI_F16, ABI_F32};

enum { ALL = COUNT(gallery) * COUNT(lengths) * COUNT(dims) * COUNT(dtypes) };

static struct sass_case case_of_all(uint32_t number)
{
    struct sass_case c = {.n = lengths[number % COUNT(lengths)],
                          .request = {.dtype = dtypes[number / 16 % COUNT(dtypes)],
                                      .head_dim = dims[number / 4 % COUNT(dims)],
                                      .backward = true}};
    c.mask[0] = gallery[number / 48];
    return c;
}

static void run_one_of_all(void **state)
{
    const struct sass_case *c = *state;
    static uint8_t sample[2048];
    struct maskc_kernel *k = setup_load(c, target, cache);
    struct problem p = fixture_problem(k);
    for (uint32_t i = 0; i < c->n; i++)
        sample[i] = i < 16 || i + 16 >= c->n || i % 7 == 0;
    p.sample = c->n > 1000 ? sample : NULL; /* float64 would take longer than the machine */
    must_hold(k, &p, c->mask[0]);
    kernel_unload(k);
}

/* Every parts-th of the array, from the part-th on. */
static int run_array(uint32_t part, uint32_t parts)
{
    static struct sass_case c[ALL];
    static char names[ALL][80];
    struct CMUnitTest tests[ALL] = {{0}};
    uint32_t count = 0;
    for (uint32_t k = part; k < ALL; k += parts, count++) {
        c[count] = case_of_all(k);
        snprintf(names[count], sizeof names[count], "%s %s d %u n %u %.30s", target,
                 dtype_name(c[count].request.dtype), c[count].request.head_dim, c[count].n,
                 c[count].mask[0]);
        tests[count] = (struct CMUnitTest){
            .name = names[count], .test_func = run_one_of_all, .initial_state = &c[count]};
    }
    return _cmocka_run_group_tests("array", tests, count, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        print_error(
            "usage: sample_test FOLDER TARGET [--update | --all [K/N]], FOLDER where this "
            "libcuda.so.1 is\n");
        return 2;
    }
    target = argv[2];
    const char *missing = setup_machine(argv, argv[1], target);
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    cache = subject_start();
    uint32_t part = 0, parts = 1;
    if (argc > 4 && (sscanf(argv[4], "%u/%u", &part, &parts) != 2 || !parts))
        return 2;
    const bool update = argc > 3 && !strcmp(argv[3], "--update");
    const int r = argc > 3 && !update ? run_array(part, parts) : run_known(update);
    subject_finish(cache);
    return r;
}
