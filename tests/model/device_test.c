/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on devices other than the CPU against BERT in float64, over the table that the CPU has too;
   usage: device_test [FOLDER of the fake libcuda.so.1]. First on "emulated", and on "cuda" where this
   machine has a GPU; where it has none, the test runs itself again with the fake GPU in the loader's path:
   everything but the GPU is then real, kernels run in the emulation, products are computed from what
   cuBLASLt was told. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/gpu/driver.h"
#include "model/engine/encoder.h"
#include "model/engine/heads.h"
#include "runtime/compile/compile.h"
#include "runtime/device/device.h"
#include "tests/model/device_subject.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- against float64 ---- */

/* Where batches are recorded: again in one workspace, recorded, then replayed; all the same. */
static float *encode(const struct engine *g, const struct batch *b, int repeats)
{
    struct engine_workspace workspace = {0};
    const size_t bytes = (size_t)batch_tokens(b) * g->config.hidden * sizeof(float);
    batch_encode(g, b->list, SEQUENCES, &workspace);
    float *first = workspace_rows(g, &workspace);
    for (int again = 0; g->encoder->backend->driver->rounds_up && again < repeats; again++) {
        batch_encode(g, b->list, SEQUENCES, &workspace);
        float *next = workspace_rows(g, &workspace);
        assert_memory_equal(first, next, bytes);
        free(next);
    }
    engine_workspace_finish(&workspace);
    return first;
}

void device_check(const struct bert_case *c, enum element dtype, double worst, double rms)
{
    struct batch b;
    batch_make(&b);
    random_model_of(c);
    struct engine *g = device_load(c->mask, c->transform, dtype, 0);
    batch_suit(&b, &g->config);
    double *truth = plain_rows(g, c->mask, c->transform, c->lambda, &b);
    float *x = encode(g, &b, c == bert_cases ? 2 : 1);
    must_be_close(c->name, x, truth, (size_t)batch_tokens(&b) * c->hidden, worst, rms);
    free(x);
    free(truth);
    engine_destroy(g);
}

/* True if the case runs on the device under test. "emulated" runs every second case: "cuda" runs the same kernels for all of them. */
static bool is_checked(const struct bert_case *c)
{
    if (!strcmp(device_name, "emulated") && (c - bert_cases) % 2)
        return false;
    return !c->type || c->layers > 1;
}

static void equals_float64(void **unused)
{
    (void)unused;
    for (const struct bert_case *c = bert_cases; c->name; c++)
        if (is_checked(c))
            device_check(c, ELEMENT_F32, 1e-5, 1e-5);
}

/* As close as the CPU must be. */
static void bf16_is_close(void **unused)
{
    (void)unused;
    for (const struct bert_case *c = bert_cases; c->name; c++)
        if (is_checked(c) && !strcmp(c->transform, "softmax") && !c->type)
            device_check(c, ELEMENT_BF16, 0.05, 0.02);
}

static void heads_equal_float64(void **unused)
{
    (void)unused;
    struct batch b;
    struct engine_workspace workspace = {0};
    struct error e = {0};
    uint32_t rows[] = {0, 7, 40};
    float pooled[SEQUENCES * 64], means[SEQUENCES * 64], words[3 * VOCABULARY],
        next[2 * SEQUENCES];
    batch_make(&b);
    random_model(1, 64, 4, 2, "gelu");
    struct engine *g = device_load(NULL, NULL, ELEMENT_F32, PART_POOLER | PART_MLM | PART_NSP);
    double *truth = plain_rows(g, "dense", "softmax", 0, &b);
    struct plain_bert plain = {&g->config, &g->weights};
    batch_encode(g, b.list, SEQUENCES, &workspace);
    assert_int_equal(head_pool(g, &workspace, pooled, &e), 0);
    assert_int_equal(head_words(g, &workspace, rows, 3, words, &e), 0);
    assert_int_equal(head_next(g, &workspace, next, &e), 0);
    assert_int_equal(head_mean(g, &workspace, means, &e), 0);
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        const uint32_t first = (uint32_t)workspace.offsets[s], n = b.list[s].count;
        double mean[64] = {0};
        for (uint32_t k = 0; k < n * 64; k++)
            mean[k % 64] += truth[(size_t)first * 64 + k] / n;
        must_be_close("mean", means + (size_t)s * 64, mean, 64, 1e-5, 1e-5);
    }
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        double *y = plain_pooled(&plain, truth + (size_t)workspace.offsets[s] * 64);
        must_be_close("pooled", pooled + (size_t)s * 64, y, 64, 1e-5, 1e-5);
        assert_true(isfinite(next[2 * s]) && isfinite(next[2 * s + 1]));
        free(y);
    }
    for (uint32_t k = 0; k < 3; k++) {
        double *y = plain_words(&plain, truth + (size_t)rows[k] * 64);
        must_be_close("words", words + (size_t)k * VOCABULARY, y, VOCABULARY, 1e-5, 1e-5);
        free(y);
    }
    engine_workspace_finish(&workspace);
    engine_destroy(g);
    free(truth);
}

/* ---- what must not matter ---- */

static const double rounding = 1e-5;

/* Batches of all sizes in one workspace, each after others: what was recorded for one serves the next of its
   rounded size. */
static void company_does_not_matter(void **unused)
{
    (void)unused;
    struct batch b;
    struct engine_workspace workspace = {0};
    batch_make(&b);
    random_model(1, 32, 4, 2, "gelu");
    struct engine *g = device_load("longformer(5,2)", NULL, ELEMENT_F32, 0);
    float *all = batch_rows(g, b.list, SEQUENCES);
    for (int turn = 0; turn < (g->encoder->backend->driver->rounds_up ? 3 : 1); turn++) {
        size_t at = 0;
        for (uint32_t k = 0; k < SEQUENCES; k++) {
            batch_encode(g, &b.list[k], 1, &workspace);
            float *alone = workspace_rows(g, &workspace);
            size_t count = (size_t)b.list[k].count * 32;
            assert_true(worst_of(all + at, alone, count) <= rounding);
            free(alone);
            at += count;
        }
    }
    free(all);
    engine_workspace_finish(&workspace);
    engine_destroy(g);
}

/* So many sequences that their number is rounded up, with empty ones: twice each, the same rows. */
static void many_sequences_are_right(void **unused)
{
    (void)unused;
    enum { MANY = 2 * SEQUENCES + 1, HIDDEN = 32 };
    struct batch b;
    struct sequence list[MANY];
    batch_make(&b);
    random_model(1, HIDDEN, 4, 2, "gelu");
    struct engine *g = device_load("longformer(5,2)", NULL, ELEMENT_F32, 0);
    const size_t count = (size_t)batch_tokens(&b) * HIDDEN;
    for (uint32_t k = 0; k < MANY; k++)
        list[k] = b.list[k % SEQUENCES];
    float *once = batch_rows(g, b.list, SEQUENCES), *all = batch_rows(g, list, MANY);
    assert_true(worst_of(once, all, count) <= rounding);
    assert_true(worst_of(once, all + count, count) <= rounding);
    assert_true(worst_of(once, all + 2 * count, (size_t)b.list[0].count * HIDDEN) <= rounding);
    free(once);
    free(all);
    engine_destroy(g);
}

struct seen {
    float *value;
    size_t count, at;
    uint32_t rows, layers, hidden;
};

static void see(void *context, const struct engine_layer *seen)
{
    struct seen *s = context;
    const float *each[] = {seen->query, seen->key, seen->value}, *hidden = seen->hidden;
    for (uint32_t r = 0; r < s->rows; r++)
        for (int k = 0; k < 3; k++)
            for (uint64_t i = 0; i < seen->row / 3; i++)
                s->value[s->at++] = each[k][r * seen->row + i];
    for (size_t i = 0; i < (size_t)s->rows * s->hidden; i++)
        s->value[s->at++] = hidden[i];
    assert_int_equal(seen->layer, s->layers++);
}

/* Queries, keys, values and inputs of all layers. */
static struct seen watch(const struct engine *g, const struct batch *b)
{
    struct seen s = {.rows = batch_tokens(b), .hidden = g->config.hidden};
    struct engine_watch w = {see, &s};
    struct engine_workspace workspace = {.watch = &w};
    s.count =
        (size_t)s.rows * (3 * attention_columns(&g->config) + s.hidden) * g->config.layers;
    s.value = memory_new(s.count, sizeof *s.value);
    batch_encode(g, b->list, SEQUENCES, &workspace);
    assert_int_equal(s.at, s.count);
    engine_workspace_finish(&workspace);
    return s;
}

static void watchers_see_the_same(void **unused)
{
    (void)unused;
    struct batch b;
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        skip(); /* no CPU to compare with */
    matmul_destroy(m);
    batch_make(&b);
    random_model(2, 32, 4, 2, "relu");
    struct engine *cpu = device_load_on("cpu", "window(5)", NULL, ELEMENT_F32, 0);
    struct engine *g = device_load("window(5)", NULL, ELEMENT_F32, 0);
    struct seen one = watch(cpu, &b), other = watch(g, &b);
    assert_int_equal(one.count, other.count);
    assert_true(worst_of(one.value, other.value, one.count) <= rounding);
    free(one.value);
    free(other.value);
    engine_destroy(cpu);
    engine_destroy(g);
}

static void phases_are_measured(void **unused)
{
    (void)unused;
    struct batch b;
    double seconds[PHASE_COUNT] = {0};
    struct engine_workspace workspace = {.seconds = seconds};
    batch_make(&b);
    random_model(1, 32, 4, 2, "gelu");
    struct engine *g = device_load("window(5)", NULL, ELEMENT_F32, 0);
    batch_encode(g, b.list, SEQUENCES, &workspace);
    for (int k = 0; k < PHASE_COUNT; k++)
        assert_true(seconds[k] > 0);
    engine_workspace_finish(&workspace);
    engine_destroy(g);
}

/* ---- all ---- */

/* A real one: meson may have put the fake into the loader's path already. */
static bool has_gpu(void)
{
    struct error e = {0};
    return !device_find_fake() && !device_cuda.unavailable()[0] && nvrtc_version(&e)[0];
}

static int run_real(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_float64),           cmocka_unit_test(bf16_is_close),
        cmocka_unit_test(heads_equal_float64),      cmocka_unit_test(company_does_not_matter),
        cmocka_unit_test(many_sequences_are_right), cmocka_unit_test(watchers_see_the_same),
        cmocka_unit_test(phases_are_measured),
    };
    return cmocka_run_group_tests_name(device_name, tests, NULL, NULL);
}

static void needs_nvrtc(void **state)
{
    (void)state;
    skip();
}

static int run_fake(void)
{
    const struct CMUnitTest without[] = {cmocka_unit_test(needs_nvrtc)};
    struct error e = {0};
    if (!device_begin_fake())
        return 1;
    if (!nvrtc_version(&e)[0])
        return cmocka_run_group_tests_name("cuda, no NVRTC", without, NULL, NULL);
    int failed = run_real();
    failed |= device_run_fake_tests();
    device_end_fake();
    return failed;
}

static int run_all(bool with_fake)
{
    device_name = "cuda";
    if (with_fake)
        return run_fake();
    int failed = has_gpu() ? run_real() : 0;
    device_name = "emulated";
    return run_real() || failed;
}

int main(int argc, char **argv)
{
    const bool with_fake = getenv("MASKC_TEST_FAKE_GPU");
    if (!random_begin())
        return 1;
    int failed = run_all(with_fake);
    if (random_end() || failed || with_fake || argc != 2 || has_gpu())
        return failed;
    char path[1024];
    snprintf(path, sizeof path, "%s/libcuda.so.1", argv[1]);
    setenv("MASKC_TEST_FAKE_GPU", "1", 1);
    setenv("MASKC_CUBLASLT", path, 1);
    setenv("LD_LIBRARY_PATH", argv[1], 1);
    execv("/proc/self/exe", argv);
    return 1;
}
