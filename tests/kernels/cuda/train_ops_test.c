/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of training (templates/train_ops): each entry in the emulation against its definition in float64, and what
   NVRTC makes of them without a GPU: nothing is spilled. `--list` prints what it finds; `--machine TARGET` runs what ptxas
   made in place of the text (tests/sass). */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include "tests/kernels/cuda/train_ops_rows.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- losses ---- */

static void finds_losses(const struct bench *b, uint32_t columns)
{
    enum { FEW = 6, COUNTED = FEW - 1 }; /* the last row has no label */
    struct matrix x = matrix_new(FEW * columns, true, 0),
                  y = matrix_new(FEW * columns, b->s.wide, 0);
    struct train_row_loss *loss = memory_new(FEW, sizeof *loss);
    uint32_t *label = memory_new(FEW, sizeof *label);
    float *weight = memory_new(1, sizeof *weight);
    double *truth = memory_new(FEW * (size_t)columns, sizeof *truth), expected[FEW];
    bench_lend(loss, FEW * sizeof *loss);
    bench_lend(label, FEW * sizeof *label);
    bench_lend(weight, sizeof *weight);
    *weight = 0.5f;
    label[COUNTED] = TRAIN_NOWHERE;
    for (uint32_t r = 0; r < COUNTED; r++) {
        double sum = 0;
        label[r] = r * 5 % columns;
        for (uint32_t k = 0; k < columns; k++)
            sum += exp(x.value[r * columns + k]);
        for (uint32_t k = 0; k < columns; k++)
            truth[r * columns + k] =
                0.5 * (exp(x.value[r * columns + k]) / sum - (k == label[r] ? 1 : 0));
        expected[r] = log(sum) - x.value[r * columns + label[r]];
    }
    const struct train_args a = {.rows = FEW,
                                 .columns = columns,
                                 .weight = weight,
                                 .label = label,
                                 .x = x.bytes,
                                 .y = y.bytes,
                                 .loss = loss};
    bench_train(b, "train_cross_entropy", &a);
    matrix_compare(&y, truth, "train_cross_entropy");
    for (uint32_t r = 0; r < COUNTED; r++)
        assert_true(fabs(log((double)loss[r].sum) + (double)loss[r].most -
                         (double)loss[r].logit - expected[r]) <= 2e-6);
    matrix_finish(&x);
    matrix_finish(&y);
    bench_take_back(loss);
    bench_take_back(label);
    bench_take_back(weight);
    free(truth);
}

/* ---- arrays ---- */

static void steps(const struct bench *b)
{
    enum { COUNT = 3000, FIRST = 1000 };
    struct matrix m[4], part = matrix_new(4, true, 0); /* value, gradient, moments */
    double *truth = memory_new(COUNT, sizeof *truth), value = 0, update = 0;
    struct train_block *block = memory_new(2, sizeof *block);
    bench_lend(block, 2 * sizeof *block);
    for (int k = 0; k < 4; k++)
        m[k] = matrix_new(COUNT, true, k == 3 ? 2 : 0);
    block[0] = (struct train_block){0, FIRST, 0.1f, 1};
    block[1] = (struct train_block){FIRST, COUNT - FIRST, 0, 0.5f};
    for (uint32_t k = 0; k < COUNT; k++) {
        const double g = 0.5 * m[1].value[k], first = 0.9 * m[2].value[k] + 0.1 * g,
                     second = 0.99 * m[3].value[k] + 0.01 * g * g,
                     u = first * 2 / (sqrt(second * 3) + 1e-3) +
                         (k < FIRST ? 0.1 : 0) * m[0].value[k];
        truth[k] = m[0].value[k] - 0.25 * (k < FIRST ? 1 : 0.5) * u;
        value += k < FIRST ? 0 : m[0].value[k] * m[0].value[k];
        update += k < FIRST ? 0 : u * u;
    }
    struct train_args a = {.rows = 2,
                           .mode = TRAIN_MOVE_MOMENTS | TRAIN_MEASURE,
                           .eps = 1e-3f,
                           .part = part.bytes,
                           .block = block,
                           .value = m[0].bytes,
                           .gradient = m[1].bytes,
                           .first_moment = m[2].bytes,
                           .second_moment = m[3].bytes,
                           .rate = 0.25f,
                           .gradient_scale = 0.5f,
                           .beta1 = 0.9f,
                           .rest1 = 0.1f,
                           .beta2 = 0.99f,
                           .rest2 = 0.01f,
                           .first_scale = 2,
                           .second_scale = 3};
    bench_train(b, "train_update", &a);
    assert_true(fabs(matrix_read(&part, 2) / value - 1) <= 1e-5);
    assert_true(fabs(matrix_read(&part, 3) / update - 1) <= 1e-5);
    a.mode = TRAIN_MOVE_VALUES;
    bench_train(b, "train_update", &a);
    matrix_compare(&m[0], truth, "train_update");
    for (int k = 0; k < 4; k++)
        matrix_finish(&m[k]);
    matrix_finish(&part);
    bench_take_back(block);
    free(truth);
}

static void reduces_and_adds(const struct bench *b)
{
    enum { COUNT = TRAIN_PART + 700 };
    struct matrix x = matrix_new(COUNT, true, 0), y = matrix_new(COUNT, true, 0),
                  part = matrix_new(2, true, 0);
    double truth[2] = {0}, *sum = memory_copy(y.value, COUNT * sizeof *sum);
    for (uint32_t k = 0; k < COUNT; k++) {
        truth[k / TRAIN_PART] += x.value[k] * x.value[k];
        sum[k] += x.value[k];
    }
    struct train_args a = {.count = COUNT, .x = x.bytes, .y = y.bytes, .part = part.bytes};
    bench_train(b, "train_reduce", &a);
    matrix_compare(&part, truth, "train_reduce");
    bench_train(b, "train_add", &a);
    matrix_compare(&y, sum, "train_add");
    for (uint32_t k = 0; k < COUNT; k++)
        assert_true(matrix_read(&x, k) == 0);
    matrix_write(&x, 5, NAN);
    a.mode = 1;
    bench_train(b, "train_reduce", &a);
    assert_true(isnan(matrix_read(&part, 0)) && matrix_read(&part, 1) == 0);
    matrix_finish(&x);
    matrix_finish(&y);
    matrix_finish(&part);
    free(sum);
}

/* ---- activations ---- */

static double derivative(uint32_t kind, double x)
{
    const double s = 1 / (1 + exp(-x)), c = sqrt(2 / 3.14159265358979),
                 t = tanh(c * (x + 0.044715 * x * x * x));
    switch (kind) {
    case ROWS_AFTER_GELU:
        return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(2 * 3.14159265358979);
    case ROWS_AFTER_GELU_TANH:
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
    case ROWS_AFTER_RELU:
        return x > 0;
    case ROWS_AFTER_SILU:
        return s + x * s * (1 - s);
    case ROWS_AFTER_TANH:
        return 1 - tanh(x) * tanh(x);
    default:
        return 1;
    }
}

static void activates_back(const struct bench *b, uint32_t kind)
{
    enum { COLUMNS = 7 };
    struct matrix x = matrix_new(TRAIN_TEST_ROWS * COLUMNS, true, 0),
                  d = matrix_new(TRAIN_TEST_ROWS * COLUMNS, true, 0),
                  y = matrix_new(TRAIN_TEST_ROWS * COLUMNS, b->s.wide, 0);
    double truth[TRAIN_TEST_ROWS * COLUMNS];
    for (uint32_t k = 0; k < TRAIN_TEST_ROWS * COLUMNS; k++) {
        matrix_write(&x, k, (float)(6 * x.value[k]));
        truth[k] = d.value[k] * derivative(kind, matrix_read(&x, k));
    }
    const struct train_args a = {.rows = TRAIN_TEST_ROWS,
                                 .columns = COLUMNS,
                                 .wide = 1,
                                 .after = kind,
                                 .x = x.bytes,
                                 .d = d.bytes,
                                 .y = y.bytes};
    bench_train(b, "train_activate_back", &a);
    matrix_compare(&y, truth, "train_activate_back");
    matrix_finish(&x);
    matrix_finish(&d);
    matrix_finish(&y);
}

static double activation(uint32_t kind, double x)
{
    const double t = tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x));
    return kind == ROWS_AFTER_GELU        ? 0.5 * x * (1 + erf(x / sqrt(2)))
           : kind == ROWS_AFTER_GELU_TANH ? 0.5 * x * (1 + t)
           : kind == ROWS_AFTER_SILU      ? x / (1 + exp(-x))
                                          : x;
}

/* Gated feed forwards (GeGLU): the activation of the first half multiplies the second. */
static void glu_activates_back(const struct bench *b, uint32_t kind)
{
    enum { COLUMNS = 7, ALL = TRAIN_TEST_ROWS * COLUMNS };
    struct matrix x = matrix_new(2 * ALL, b->s.wide, 0), d = matrix_new(ALL, true, 0),
                  y = matrix_new(2 * ALL, b->s.wide, 0);
    double truth[2 * ALL];
    for (uint32_t k = 0; k < ALL; k++) {
        const uint32_t at = k / COLUMNS * 2 * COLUMNS + k % COLUMNS;
        matrix_write(&x, at, (float)(3 * x.value[at]));
        const double first = matrix_read(&x, at), value = matrix_read(&x, at + COLUMNS);
        truth[at] = d.value[k] * value * derivative(kind, first);
        truth[at + COLUMNS] = d.value[k] * activation(kind, first);
    }
    const struct train_args a = {.rows = TRAIN_TEST_ROWS,
                                 .columns = COLUMNS,
                                 .after = kind,
                                 .x = x.bytes,
                                 .d = d.bytes,
                                 .y = y.bytes};
    bench_train(b, "train_glu_back", &a);
    matrix_compare(&y, truth, "train_glu_back");
    matrix_finish(&x);
    matrix_finish(&d);
    matrix_finish(&y);
}

static const struct shape shapes[] = {{130, true, true}, {36, false, true}};

static void entries_do_what_they_say(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct bench b;
        bench_open(&b, shapes[k]);
        train_normalises(&b);
        train_sums_columns(&b, 150);
        train_adds_segments(&b);
        finds_losses(&b, 301);
        steps(&b);
        reduces_and_adds(&b);
        train_packs(&b);
        glu_activates_back(&b, ROWS_AFTER_GELU);
        glu_activates_back(&b, ROWS_AFTER_GELU_TANH);
        glu_activates_back(&b, ROWS_AFTER_SILU);
        for (uint32_t kind = ROWS_AFTER_NONE; kind <= ROWS_AFTER_TANH; kind++)
            activates_back(&b, kind);
        bench_close(&b);
    }
}

/* ---- what NVRTC makes of them ---- */

static bool listing;

enum { ENTRIES = 15 };

static void compile_one(const char *target, const struct shape *s)
{
    struct kernel_resources found[ENTRIES];
    uint32_t n = 0;
    struct error e = {0};
    struct binary made = {0};
    struct source *source = bench_source(s);
    if (nvrtc_compile(source, target_find(target, &e), &made, &e) < 0)
        fail_msg("%s", e.text);
    /* More than a binary lists. */
    if (cubin_resources(made.image[0].bytes, made.image[0].size, found, ENTRIES, &n, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(n, ENTRIES);
    for (uint32_t k = 0; k < n; k++) {
        const struct kernel_resources *r = &found[k];
        if (listing)
            print_message("%-7s %4s H %4u %-20s %3u registers %4u spilled %6u code\n", target,
                          s->wide ? "f32" : "bf16", s->hidden, r->entry, r->registers,
                          r->spill_bytes, r->code_bytes);
        if (r->registers > 160 || r->spill_bytes || r->code_bytes > 40960)
            fail_msg("%s, H %u: %s has %u registers, %u bytes spilled, %u of code", target,
                     s->hidden, r->entry, r->registers, r->spill_bytes, r->code_bytes);
    }
    binary_finish(&made);
    source_destroy(source);
}

static void nothing_is_spilled(void **unused)
{
    static const struct {
        const char *target;
        struct shape shape;
    } each[] = {{"sm_80", {768, false, true}},
                {"sm_90a", {1024, true, true}},
                {"sm_100a", {1024, false, true}}};
    struct error e = {0};
    (void)unused;
    if (!nvrtc_version(&e)[0]) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        compile_one(each[k].target, &each[k].shape);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_do_what_they_say),
        cmocka_unit_test(nothing_is_spilled),
    };
    const struct CMUnitTest run[] = {cmocka_unit_test(entries_do_what_they_say)};
    listing = argc > 1 && !strcmp(argv[1], "--list");
    if (argc < 3 || strcmp(argv[1], "--machine"))
        return cmocka_run_group_tests_name("kernels of training", tests, NULL, NULL);
    const char *missing = setup_missing();
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    bench_machine = argv[2];
    return cmocka_run_group_tests_name("kernels of training, machine code", run, NULL, NULL);
}
