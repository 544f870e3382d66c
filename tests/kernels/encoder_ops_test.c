/* SPDX-License-Identifier: Apache-2.0 */
/* The row kernels (templates/encoder_ops): each entry in the emulation against its definition in float64, for
   rows of many lengths, and what NVRTC makes of them without a GPU. `rows_test --list` prints what it
   finds; `rows_test --machine TARGET` runs what ptxas made in place of the text (tests/sass). */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/emulated_text.h"
#include "templates/abi.h"
#include "tests/support/test.h"
/* after abi.h */
#include "templates/encoder_ops/args.h"
#include "tests/support/sass_setup.h"
/* after setup.h */
#include "tests/sass/image.h"
#include "tests/sass/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static uint64_t state = 1;

/* -1 .. 1 */
static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 33) / 0x1p30 - 1);
}

static float round_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, 4);
    return x;
}

/* A matrix as a kernel sees it, and its values. */
struct matrix {
    void *bytes; /* ends where malloc does: what reads beyond is seen by sanitizers */
    double *value;
    uint64_t count;
    bool wide;
};

static void write_one(const struct matrix *m, uint64_t k, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (m->wide)
        ((float *)m->bytes)[k] = x;
    else
        ((uint16_t *)m->bytes)[k] = (uint16_t)(bits >> 16);
}

static double read_one(const struct matrix *m, uint64_t k)
{
    if (m->wide)
        return (double)((float *)m->bytes)[k];
    uint32_t bits = (uint32_t)((uint16_t *)m->bytes)[k] << 16;
    float x;
    memcpy(&x, &bits, 4);
    return (double)x;
}

static const char *machine;          /* the target whose machine code runs; null: the text */
static struct memory machine_memory; /* its kernels' matrices */

static struct matrix new_matrix(uint64_t count, bool wide, float offset)
{
    struct matrix m = {memory_new(count, wide ? 4 : 2), memory_new(count, sizeof(double)),
                       count, wide};
    for (uint64_t k = 0; k < count; k++) {
        float x = draw() + offset;
        write_one(&m, k, wide ? x : round_half(x));
        m.value[k] = read_one(&m, k);
    }
    memory_lend(&machine_memory, m.bytes, count * (wide ? 4 : 2));
    return m;
}

static void matrix_finish(struct matrix *m)
{
    memory_unlend(&machine_memory, m->bytes);
    free(m->bytes);
    free(m->value);
}

/* Of the largest value; NaN fails. bf16 is rounded once, to 8 bits. */
static void compare(const struct matrix *m, const double *truth, const char *what)
{
    double largest = 1e-3, worst = 0;
    for (uint64_t k = 0; k < m->count; k++)
        largest = fmax(largest, fabs(truth[k]));
    for (uint64_t k = 0; k < m->count; k++) {
        double error = fabs(read_one(m, k) - truth[k]);
        worst = error <= worst ? worst : error;
    }
    if (!(worst <= largest * (m->wide ? 2e-6 : 0x1p-8)))
        fail_msg("%s: off by %g of the largest value", what, worst / largest);
}

/* ---- one shape ---- */

enum { ROWS = 11, WORDS = 9, PLACES = 5, TYPES = 2 };

struct shape {
    uint32_t hidden;
    bool wide; /* f32 */
};

struct bench {
    struct shape s;
    struct emulated_text *text;
    struct image code; /* of the machine */
    struct matrix gain, shift, bias;
};

static struct source *source_of(const struct shape *s)
{
    struct rows_features f = {s->wide ? ABI_F32 : ABI_BF16, s->hidden};
    return rows_source(&f);
}

static void open_text(struct bench *b, const struct source *source)
{
    struct error e = {0};
    struct text flat = {0};
    source_flatten(source, &flat);
    b->text = emulated_open(text_get(&flat), "rows", &e);
    if (!b->text)
        fail_msg("%s", e.text);
    text_finish(&flat);
}

static void open_machine(struct bench *b, const struct source *source)
{
    struct error e = {0};
    struct binary made = {0};
    char why[400];
    if (nvrtc_compile(source, target_find(machine, &e), &made, &e) < 0)
        fail_msg("%s", e.text);
    if (image_load(&b->code, made.image[0].bytes, made.image[0].size, why, sizeof why) < 0)
        fail_msg("%s", why);
    binary_finish(&made);
}

static void open_bench(struct bench *b, struct shape s)
{
    struct source *source = source_of(&s);
    *b = (struct bench){.s = s};
    if (machine)
        open_machine(b, source);
    else
        open_text(b, source);
    source_destroy(source);
    b->gain = new_matrix(s.hidden, true, 1);
    b->shift = new_matrix(s.hidden, true, 0);
    b->bias = new_matrix(s.hidden, true, 0);
}

static void close_bench(struct bench *b)
{
    matrix_finish(&b->gain);
    matrix_finish(&b->shift);
    matrix_finish(&b->bias);
    image_finish(&b->code);
    emulated_close(b->text);
}

enum { BLOCKS = 2 }; /* rows are more than the warps */

static void launch_machine(struct bench *b, const char *entry, const struct rows_args *a)
{
    char why[FAULT_TEXT];
    struct program *p = b->code.entry;
    while (strcmp(p->entry, entry))
        p++;
    program_arguments(p, ROWS_THREADS, BLOCKS, a);
    for (uint32_t k = 0; k < BLOCKS; k++) {
        struct block one = {.program = p,
                            .memory = &machine_memory,
                            .warps = ROWS_THREADS / 32,
                            .index = k,
                            .grid = BLOCKS,
                            .shared_bytes = p->shared_base + p->shared_static,
                            .left = 10000000,
                            .fault = why};
        if (block_run(&one))
            fail_msg("%s", why);
    }
}

/* Lists of words are on the stack. */
static void launch(const struct bench *b, const char *entry, const struct rows_args *a)
{
    struct error e = {0};
    struct emulated_grid grid = {BLOCKS, ROWS_THREADS, 0};
    const void *const lists[] = {a->number, a->position, a->type, a->offsets};
    if (!machine) {
        if (emulated_run(b->text, entry, a, &grid, &e) < 0)
            fail_msg("%s", e.text);
        return;
    }
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        if (lists[k])
            memory_lend(&machine_memory, lists[k], (a->rows + (k == 3)) * sizeof(uint32_t));
    launch_machine((struct bench *)(uintptr_t)b, entry, a);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        if (lists[k])
            memory_unlend(&machine_memory, lists[k]);
}

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
    struct matrix words = new_matrix(WORDS * n, b->s.wide, 0),
                  places = new_matrix(PLACES * n, true, 0),
                  types = new_matrix(TYPES * n, true, 0),
                  y = new_matrix(ROWS * n, b->s.wide, 0);
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
    launch(b, "rows_embed", &a);
    compare(&y, truth, "rows_embed");
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
    struct matrix x = new_matrix(ROWS * n, true, 8), y = new_matrix(ROWS * n, b->s.wide, 0);
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
    launch(b, "rows_norm", &a);
    /* One column: the variance is 0 and its root that of eps, which magnifies rounding. */
    if (n > 1)
        compare(&y, truth, "rows_norm");
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
    struct matrix y = new_matrix(ROWS * columns, wide, 0), bias = new_matrix(columns, true, 0);
    double *truth = memory_new(y.count, sizeof *truth);
    for (uint64_t k = 0; k < y.count; k++) {
        float x = (float)(6 * y.value[k]);
        write_one(&y, k, wide ? x : round_half(x));
        truth[k] = after(kind, read_one(&y, k) + bias.value[k % columns]);
    }
    struct rows_args a = {.rows = ROWS,
                          .columns = columns,
                          .after = kind,
                          .wide = wide,
                          .bias = bias.bytes,
                          .x = y.bytes,
                          .y = y.bytes};
    launch(b, "rows_finish", &a);
    compare(&y, truth, "rows_finish");
    matrix_finish(&y);
    matrix_finish(&bias);
    free(truth);
}

static void gathers_and_means(const struct bench *b)
{
    static const int32_t offsets[] = {0, 1, 6, ROWS};
    static const uint32_t number[] = {10, 0, 3, 3};
    const uint32_t n = b->s.hidden;
    struct matrix x = new_matrix(ROWS * n, b->s.wide, 0), y = new_matrix(4 * n, b->s.wide, 0),
                  mean = new_matrix(3 * n, true, 0);
    double *truth = memory_new(4 * n, sizeof *truth);
    for (uint32_t k = 0; k < 4 * n; k++)
        truth[k] = x.value[number[k / n] * n + k % n];
    struct rows_args a = {.rows = 4, .number = number, .x = x.bytes, .y = y.bytes};
    launch(b, "rows_gather", &a);
    for (uint32_t k = 0; k < 4 * n; k++)
        assert_true(read_one(&y, k) == truth[k]);
    memset(truth, 0, 4 * n * sizeof *truth);
    for (uint32_t s = 0; s < 3; s++)
        for (int32_t r = offsets[s]; r < offsets[s + 1]; r++)
            for (uint32_t k = 0; k < n; k++)
                truth[s * n + k] +=
                    x.value[(uint32_t)r * n + k] / (offsets[s + 1] - offsets[s]);
    a = (struct rows_args){.rows = 3, .offsets = offsets, .x = x.bytes, .y = mean.bytes};
    launch(b, "rows_mean", &a);
    compare(&mean, truth, "rows_mean");
    matrix_finish(&x);
    matrix_finish(&y);
    matrix_finish(&mean);
    free(truth);
}

static const struct shape shapes[] = {{1, true},   {130, true},  {384, true},
                                      {36, false}, {130, false}, {768, false}};

static void entries_do_what_they_say(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct bench b;
        open_bench(&b, shapes[k]);
        embeds(&b);
        for (int bits = 0; bits < 4; bits++)
            normalises(&b, bits & 1, bits & 2);
        for (uint32_t kind = ROWS_AFTER_NONE; kind <= ROWS_AFTER_TANH; kind++) {
            finishes(&b, 52, kind, b.s.wide);
            finishes(&b, 7, kind, true);
        }
        gathers_and_means(&b);
        close_bench(&b);
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

enum { ENTRIES = 5 };

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
    struct source *source = source_of(s);
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
    machine = argv[2];
    return cmocka_run_group_tests_name("rows, machine code", run, NULL, NULL);
}
