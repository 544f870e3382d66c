/* SPDX-License-Identifier: Apache-2.0 */
/* The row kernels (templates/encoder_ops): each entry in the emulation against its definition in float64, for
   rows of many lengths, and what NVRTC makes of them without a GPU. `encoder_ops_test --list` prints
   what it finds; `encoder_ops_test --machine TARGET` runs what ptxas made in place of the text (tests/sass). */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "tests/kernels/cuda/encoder_ops_bench.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 11, WORDS = 9, PLACES = 5, TYPES = 2 };

static const float eps = 1e-5f;

static void normalise(const struct bench *b, double *x)
{
    const uint32_t n = b->s.hidden;
    double mean = 0, variance = 0;
    for (uint32_t k = 0; k < n; k++)
        mean += x[k] / n;
    for (uint32_t k = 0; k < n; k++)
        variance += (x[k] - mean) * (x[k] - mean) / n;
    for (uint32_t k = 0; k < n; k++)
        x[k] =
            (x[k] - mean) / sqrt(variance + (double)eps) * b->gain.value[k] + b->shift.value[k];
}

/* ---- the entries ---- */

static void embeds(const struct bench *b)
{
    const uint32_t n = b->s.hidden;
    uint32_t number[ROWS], position[ROWS], type[ROWS];
    struct matrix words = matrix_new(WORDS * n, b->s.wide, 0),
                  places = matrix_new(PLACES * n, true, 0),
                  types = matrix_new(TYPES * n, true, 0),
                  y = matrix_new(ROWS * n, b->s.wide, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint32_t r = 0; r < ROWS; r++) {
        number[r] = r * 5 % WORDS;
        position[r] = r * 3 % PLACES;
        type[r] = r % TYPES;
        for (uint32_t k = 0; k < n; k++)
            truth[r * n + k] = words.value[number[r] * n + k] +
                               places.value[position[r] * n + k] + types.value[type[r] * n + k];
        normalise(b, truth + r * n);
    }
    struct rows_args a = {.rows = ROWS,
                          .eps = eps,
                          .number = number,
                          .position = position,
                          .type = type,
                          .words = words.bytes,
                          .positions = places.bytes,
                          .types = types.bytes,
                          .gain = b->gain.bytes,
                          .shift = b->shift.bytes,
                          .y = y.bytes};
    bench_launch(b, "rows_embed", &a);
    matrix_compare(&y, truth, "rows_embed");
    matrix_finish(&words);
    matrix_finish(&places);
    matrix_finish(&types);
    matrix_finish(&y);
    free(truth);
}

/* In place, over the residual; far from zero, where sums of squares would lose digits. */
static void normalises(const struct bench *b, bool bias, bool residual)
{
    const uint32_t n = b->s.hidden;
    struct matrix x = matrix_new(ROWS * n, true, 8), y = matrix_new(ROWS * n, b->s.wide, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < n; k++)
            truth[r * n + k] = x.value[r * n + k] + (bias ? b->bias.value[k] : 0) +
                               (residual ? y.value[r * n + k] : 0);
        normalise(b, truth + r * n);
    }
    struct rows_args a = {.rows = ROWS,
                          .eps = eps,
                          .gain = b->gain.bytes,
                          .shift = b->shift.bytes,
                          .bias = bias ? b->bias.bytes : NULL,
                          .x = x.bytes,
                          .residual = residual ? y.bytes : NULL,
                          .y = y.bytes};
    bench_launch(b, "rows_norm", &a);
    /* One column: the variance is 0 and its root that of eps, which magnifies rounding. */
    if (n > 1)
        matrix_compare(&y, truth, "rows_norm");
    matrix_finish(&x);
    matrix_finish(&y);
    free(truth);
}

/* Adds each combination of x, bias and residual; in place over the residual. */
static void adds(const struct bench *b, unsigned bits)
{
    const uint32_t n = b->s.hidden;
    const bool x_there = bits & 1, bias = bits & 2, residual = bits & 4;
    struct matrix x = matrix_new(ROWS * n, true, 8), y = matrix_new(ROWS * n, b->s.wide, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint64_t k = 0; k < y.count; k++)
        truth[k] = (x_there ? x.value[k] : 0) + (bias ? b->bias.value[k % n] : 0) +
                   (residual ? y.value[k] : 0);
    struct rows_args a = {.rows = ROWS,
                          .bias = bias ? b->bias.bytes : NULL,
                          .x = x_there ? x.bytes : NULL,
                          .residual = residual ? y.bytes : NULL,
                          .y = y.bytes};
    bench_launch(b, "rows_add", &a);
    matrix_compare(&y, truth, "rows_add");
    matrix_finish(&x);
    matrix_finish(&y);
    free(truth);
}

static double after(uint32_t kind, double x)
{
    switch (kind) {
    case ROWS_AFTER_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case ROWS_AFTER_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    case ROWS_AFTER_RELU:
        return fmax(x, 0);
    case ROWS_AFTER_SILU:
        return x / (1 + exp(-x));
    case ROWS_AFTER_TANH:
        return tanh(x);
    default:
        return x;
    }
}

static void finishes(const struct bench *b, uint32_t columns, uint32_t kind, bool wide)
{
    struct matrix y = matrix_new(ROWS * columns, wide, 0), bias = matrix_new(columns, true, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint64_t k = 0; k < y.count; k++) {
        float x = (float)(6 * y.value[k]);
        matrix_write(&y, k, wide ? x : round_bf16(x));
        truth[k] = after(kind, matrix_read(&y, k) + bias.value[k % columns]);
    }
    struct rows_args a = {.rows = ROWS,
                          .columns = columns,
                          .after = kind,
                          .wide = wide,
                          .bias = bias.bytes,
                          .x = y.bytes,
                          .y = y.bytes};
    bench_launch(b, "rows_finish", &a);
    matrix_compare(&y, truth, "rows_finish");
    matrix_finish(&y);
    matrix_finish(&bias);
    free(truth);
}

static void gathers_and_means(const struct bench *b)
{
    static const int32_t offsets[] = {0, 1, 6, ROWS};
    static const uint32_t number[] = {10, 0, 3, 3};
    const uint32_t n = b->s.hidden;
    struct matrix x = matrix_new(ROWS * n, b->s.wide, 0), y = matrix_new(4 * n, b->s.wide, 0),
                  mean = matrix_new(3 * n, true, 0);
    double *truth = memory_new(4 * n, sizeof *truth);
    for (uint32_t k = 0; k < 4 * n; k++)
        truth[k] = x.value[number[k / n] * n + k % n];
    struct rows_args a = {.rows = 4, .number = number, .x = x.bytes, .y = y.bytes};
    bench_launch(b, "rows_gather", &a);
    for (uint32_t k = 0; k < 4 * n; k++)
        assert_true(matrix_read(&y, k) == truth[k]);
    memset(truth, 0, 4 * n * sizeof *truth);
    for (uint32_t s = 0; s < 3; s++)
        for (int32_t r = offsets[s]; r < offsets[s + 1]; r++)
            for (uint32_t k = 0; k < n; k++)
                truth[s * n + k] +=
                    x.value[(uint32_t)r * n + k] / (offsets[s + 1] - offsets[s]);
    a = (struct rows_args){.rows = 3, .offsets = offsets, .x = x.bytes, .y = mean.bytes};
    bench_launch(b, "rows_mean", &a);
    matrix_compare(&mean, truth, "rows_mean");
    matrix_finish(&x);
    matrix_finish(&y);
    matrix_finish(&mean);
    free(truth);
}

static void glus(const struct bench *b, uint32_t columns, uint32_t kind)
{
    struct matrix x = matrix_new(ROWS * 2 * columns, b->s.wide, 0),
                  y = matrix_new(ROWS * columns, b->s.wide, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint32_t k = 0; k < y.count; k++) {
        const double *row = x.value + (size_t)(k / columns) * 2 * columns;
        truth[k] = after(kind, row[k % columns]) * row[columns + k % columns];
    }
    struct rows_args a = {
        .rows = ROWS, .columns = columns, .after = kind, .x = x.bytes, .y = y.bytes};
    bench_launch(b, "rows_glu", &a);
    matrix_compare(&y, truth, "rows_glu");
    matrix_finish(&x);
    matrix_finish(&y);
    free(truth);
}

static void rotates(const struct bench *b, uint32_t half)
{
    enum { HEADS = 5, HEAD = 16, COLUMNS = HEADS * HEAD + 8 };
    uint32_t position[ROWS];
    struct matrix y = matrix_new(ROWS * COLUMNS, b->s.wide, 0),
                  cosine = matrix_new(PLACES * half, true, 0),
                  sine = matrix_new(PLACES * half, true, 0);
    double *truth = memory_copy(y.value, y.count * sizeof *truth);
    for (uint32_t r = 0; r < ROWS; r++) {
        position[r] = r * 3 % PLACES;
        for (uint32_t k = 0; k < HEADS * half; k++) {
            const uint32_t at = r * COLUMNS + k / half * HEAD + k % half,
                           angle = position[r] * half + k % half;
            const double c = cosine.value[angle], s = sine.value[angle];
            truth[at] = y.value[at] * c - y.value[at + half] * s;
            truth[at + half] = y.value[at + half] * c + y.value[at] * s;
        }
    }
    struct rows_args a = {.rows = ROWS,
                          .columns = COLUMNS,
                          .heads = HEADS,
                          .half = half,
                          .head = HEAD,
                          .position = position,
                          .gain = cosine.bytes,
                          .shift = sine.bytes,
                          .y = y.bytes};
    bench_launch(b, "rows_rotate", &a);
    matrix_compare(&y, truth, "rows_rotate");
    matrix_finish(&y);
    matrix_finish(&cosine);
    matrix_finish(&sine);
    free(truth);
}

static const struct shape shapes[] = {{1, true},   {130, true},  {384, true},
                                      {36, false}, {130, false}, {768, false}};
static void entries_do_what_they_say(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct bench b;
        bench_open(&b, shapes[k]);
        embeds(&b);
        for (int bits = 0; bits < 4; bits++)
            normalises(&b, bits & 1, bits & 2);
        for (unsigned bits = 1; bits < 8; bits++)
            adds(&b, bits);
        for (uint32_t kind = ROWS_AFTER_NONE; kind <= ROWS_AFTER_TANH; kind++) {
            finishes(&b, 52, kind, b.s.wide);
            finishes(&b, 7, kind, true);
        }
        glus(&b, 7, ROWS_AFTER_SILU);
        bench_keeps_nan(&b);
        rotates(&b, 3);
        gathers_and_means(&b);
        bench_close(&b);
    }
}

/* ---- what NVRTC makes of them ---- */

static bool listing;

/* Rows lie in registers: 1/32 of one in each lane. No BERT is as wide as the last. */
static const struct {
    uint32_t hidden, registers, spill, code_kib;
} budgets[] = {{130, 40, 0, 16},
               {384, 56, 0, 16},
               {768, 104, 0, 16},
               {1024, 128, 0, 16},
               {4096, 255, 64, 48}};

enum { ENTRIES = 8 };

static void check_kernel(const char *target, const struct shape *s, size_t budget,
                         const struct kernel_resources *r)
{
    const uint32_t registers = budgets[budget].registers,
                   code = 1024 * budgets[budget].code_kib;
    if (listing)
        print_message("%-7s %4s H %4u %-12s %3u registers %4u spilled %6u code\n", target,
                      s->wide ? "f32" : "bf16", s->hidden, r->entry, r->registers,
                      r->spill_bytes, r->code_bytes);
    if (r->registers > registers || r->spill_bytes > budgets[budget].spill ||
        r->code_bytes > code)
        fail_msg(
            "%s, %s, H %u: %s has %u registers (at most %u), %u bytes spilled, %u of code (%u)",
            target, s->wide ? "f32" : "bf16", s->hidden, r->entry, r->registers, registers,
            r->spill_bytes, r->code_bytes, code);
}

static void compile_one(const char *target, const struct shape *s, size_t budget)
{
    struct error e = {0};
    struct binary made = {0};
    struct source *source = bench_source(s);
    if (nvrtc_compile(source, target_find(target, &e), &made, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(made.n_kernels, ENTRIES);
    for (uint32_t k = 0; k < made.n_kernels; k++)
        check_kernel(target, s, budget, &made.kernel[k]);
    binary_finish(&made);
    source_destroy(source);
}

static void they_stay_within_their_budgets(void **unused)
{
    static const char *const chips[] = {"sm_80", "sm_90a"};
    struct error e = {0};
    (void)unused;
    if (!nvrtc_version(&e)[0]) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++)
        for (int wide = 0; wide < 2; wide++) {
            struct shape s = {budgets[k].hidden, wide};
            compile_one(chips[(k + (size_t)wide) % 2], &s, k);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_do_what_they_say),
        cmocka_unit_test(they_stay_within_their_budgets),
    };
    const struct CMUnitTest run[] = {cmocka_unit_test(entries_do_what_they_say)};
    listing = argc > 1 && !strcmp(argv[1], "--list");
    if (argc < 3 || strcmp(argv[1], "--machine"))
        return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
    const char *missing = setup_missing();
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    bench_machine = argv[2];
    return cmocka_run_group_tests_name("rows, machine code", run, NULL, NULL);
}
