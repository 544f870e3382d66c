/* SPDX-License-Identifier: Apache-2.0 */
/* Biases of the CUDA kernels, on the emulated device against float64: every gallery mask, head
   dimensions that lay out shared memory otherwise, ragged and packed batches in several chunks, and equal
   bits whatever order threads run in. */
#include "masks/base/memory.h"
#include "masks/language/gallery.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static struct known known;

/* Variants in order: dtype, kind and transform. */
static struct kernel_request make_request(uint32_t variant, uint32_t dim)
{
    static const enum abi_dtype dtype[] = {ABI_BF16, ABI_F32, ABI_F16};
    return (struct kernel_request){
        .dtype = dtype[variant % 3],
        .head_dim = dim,
        .backward = true,
        .bias = variant / 3 % 2 ? ABI_BIAS_SCALE : ABI_BIAS_ADD,
        .transform = variant / 6 % 2 ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = variant / 6 % 2 ? -4 : 0,
    };
}

static const int32_t ragged[] = {40, 100, 0, 100, 3};
enum { BATCH = sizeof ragged / sizeof *ragged, LENGTH = 100 };

/* Five sequences are three chunks. */
static struct problem ragged_problem(const struct maskc_kernel *k)
{
    struct problem p = fixture_problem(k);
    p.batch = BATCH;
    p.lengths = ragged;
    return p;
}

/* Every mask with both families, both kinds and two batches, one after the other. */
static void test_gallery(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        const bool many = !strncmp(g->name, "blockbert", 9) || !strncmp(g->name, "dam", 3);
        for (uint32_t both = 0; both < 2; both++, turn++) {
            const struct kernel_case c = {.mask = g->name,
                                          .n = LENGTH,
                                          .request = make_request(both + turn / 2 % 2 * 3, 64)};
            struct maskc_kernel *k =
                known_load_text(&known, &c, turn % 4 < 2 ? "packed" : "ragged", NULL);
            if (!k)
                continue;
            struct problem p = many ? fixture_problem(k) : ragged_problem(k);
            p.packed = !many && turn % 4 < 2;
            p.layout = p.packed ? LAYOUT_QKV : LAYOUT_BHND;
            must_hold(k, &p, g->name);
            kernel_unload(k);
        }
    }
}

/* Other head dimensions, sparsegen and dropout. */
static void test_dims(void **state)
{
    (void)state;
    static const struct {
        const char *mask;
        uint32_t dim, variant;
        bool dropout;
    } row[] = {
        {"longformer", 40, 0, true},         {"random(0.2, seed=2)", 40, 4, false},
        {"bigbird", 128, 3, true},           {"dense", 128, 5, false},
        {"causal", 256, 0, false},           {"window(2)|rows(3)", 64, 9, true},
        {"stride(7)|local(9)", 80, 6, true},
    };
    for (size_t x = 0; x < sizeof row / sizeof *row; x++) {
        struct kernel_case c = {.mask = row[x].mask,
                                .n = LENGTH,
                                .request = make_request(row[x].variant, row[x].dim)};
        c.request.dropout = row[x].dropout;
        struct maskc_kernel *k = known_load_text(&known, &c, "dims", NULL);
        if (!k)
            continue;
        struct problem p = ragged_problem(k);
        p.dropout = row[x].dropout ? 0.2 : 0;
        must_hold(k, &p, row[x].mask);
        p = fixture_problem(k);
        p.length = LENGTH - 30;
        p.scale = -0.4;
        must_hold(k, &p, row[x].mask);
        kernel_unload(k);
    }
}

/* A row that sees one key has no gradient to its bias, to the last bit. */
static void test_one_key(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2; variant++)
        for (uint32_t n = 1; n <= 70; n += 69) {
            const struct kernel_case c = {
                .mask = "diagonal(0)", .n = n, .request = make_request(variant, 256)};
            struct maskc_kernel *k = known_load_text(&known, &c, "one key", NULL);
            if (!k)
                continue;
            struct problem p = fixture_problem(k);
            p.batch = 3;
            must_hold(k, &p, c.mask);
            kernel_unload(k);
        }
}

static void see_split(const struct artifact *a)
{
    assert_true(a->plan[0].forward.uses & ABI_SPLIT);
}

/* Rows that items share: classes of strides before row blocks, and a row that is cut. */
static void test_shared_rows(void **state)
{
    (void)state;
    static const struct kernel_case cases[] = {
        {.mask = "strided(16)", .n = 449},
        {.mask = "rows(5,2047)|columns(7)|diagonal(0)", .n = 2100},
    };
    for (uint32_t k = 0; k < 3; k++) {
        struct kernel_case c = cases[k / 2];
        c.heads = 1;
        c.request = make_request(3 * (k % 2), k < 2 ? 64 : 32); /* bf16 */
        struct maskc_kernel *kernel = known_load_text(&known, &c, "shared", see_split);
        if (!kernel)
            continue;
        struct problem p = fixture_problem(kernel);
        must_hold(kernel, &p, c.mask);
        kernel_unload(kernel);
    }
}

/* P of later keys is 2^7.8 where the maximum of the first tile is subtracted. Times 300, that is more than a half holds. */
static struct problem_data *steep_inputs(const struct problem *p)
{
    struct problem_data *d = problem_inputs(p);
    const uint32_t n = p->length, dim = p->head_dim;
    for (uint64_t k = 0; k < (uint64_t)n * dim; k++) {
        d->q[k] = 1;
        d->k[k] = k / dim < n / 2 ? 0 : 0.68;
    }
    for (uint64_t k = 0; k < (uint64_t)n * n; k++)
        d->x[k] = k % n < n / 2 ? 1 : 300;
    return d;
}

static void test_large_factors(void **state)
{
    struct kernel_case c = {.mask = "dense", .n = 150, .heads = 1, .tiled = true};
    struct error e = {0};
    (void)state;
    c.request =
        (struct kernel_request){.dtype = ABI_F16, .head_dim = 64, .bias = ABI_BIAS_SCALE};
    struct maskc_kernel *k = known_load_text(&known, &c, "large factors", NULL);
    if (!k)
        return;
    const struct problem p = fixture_problem(k);
    struct problem_data *got = steep_inputs(&p), *truth = steep_inputs(&p);
    reference_run(&p, truth, false);
    if (kernel_run_problem(k, &p, got, false, 0, &e) < 0)
        fail_msg("%s", e.text);
    const double error = error_measure(got->o, truth->o, problem_elements(&p));
    if (!(error < 2e-3))
        fail_msg("the error is %g", error);
    problem_data_destroy(got);
    problem_data_destroy(truth);
    kernel_unload(k);
}

static void test_orders(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 4; variant++) {
        struct kernel_case c = {.mask = "window(3)|global(0)|random(0.02)",
                                .n = LENGTH,
                                .heads = 2,
                                .request = make_request(variant, 64)};
        struct maskc_kernel *k = known_load_text(&known, &c, "order", NULL);
        if (!k)
            continue;
        struct problem p = ragged_problem(k);
        must_repeat(k, &p, 3);
        kernel_unload(k);
    }
}

int main(int argc, char **argv)
{
    known_start_text(&known, "bias_cuda", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),       cmocka_unit_test(test_dims),
        cmocka_unit_test(test_one_key),       cmocka_unit_test(test_shared_rows),
        cmocka_unit_test(test_large_factors), cmocka_unit_test(test_orders),
    };
    return known_finish(&known,
                        cmocka_run_group_tests_name("soft masks on CUDA", tests, NULL, NULL));
}
