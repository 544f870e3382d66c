/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/cuda/encoder_ops_bench.h"
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/emulated/emulated_text.h"
#include "tests/sass/memory.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;

/* -1 .. 1 */
static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 33) / 0x1p30 - 1);
}

float round_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, 4);
    return x;
}

void matrix_write(const struct matrix *m, uint64_t k, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (m->wide)
        ((float *)m->bytes)[k] = x;
    else
        ((uint16_t *)m->bytes)[k] = (uint16_t)(bits >> 16);
}

double matrix_read(const struct matrix *m, uint64_t k)
{
    if (m->wide)
        return (double)((float *)m->bytes)[k];
    uint32_t bits = (uint32_t)((uint16_t *)m->bytes)[k] << 16;
    float x;
    memcpy(&x, &bits, 4);
    return (double)x;
}

const char *bench_machine;
static struct memory machine_memory; /* its kernels' matrices */

struct matrix matrix_new(uint64_t count, bool wide, float offset)
{
    struct matrix m = {memory_new(count, wide ? 4 : 2), memory_new(count, sizeof(double)),
                       count, wide};
    for (uint64_t k = 0; k < count; k++) {
        float x = draw() + offset;
        matrix_write(&m, k, wide ? x : round_bf16(x));
        m.value[k] = matrix_read(&m, k);
    }
    memory_lend(&machine_memory, m.bytes, count * (wide ? 4 : 2));
    return m;
}

void matrix_finish(struct matrix *m)
{
    memory_unlend(&machine_memory, m->bytes);
    free(m->bytes);
    free(m->value);
}

void matrix_compare(const struct matrix *m, const double *truth, const char *what)
{
    double largest = 1e-3, worst = 0;
    for (uint64_t k = 0; k < m->count; k++)
        largest = fmax(largest, fabs(truth[k]));
    for (uint64_t k = 0; k < m->count; k++) {
        double error = fabs(matrix_read(m, k) - truth[k]);
        worst = error <= worst ? worst : error;
    }
    if (!(worst <= largest * (m->wide ? 2e-6 : 0x1p-8)))
        fail_msg("%s: off by %g of the largest value", what, worst / largest);
}

struct source *bench_source(const struct shape *s)
{
    struct encoder_ops_features f = {s->wide ? ABI_F32 : ABI_BF16, s->hidden, s->trains};
    return encoder_ops_source(&f);
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
    if (nvrtc_compile(source, target_find(bench_machine, &e), &made, &e) < 0)
        fail_msg("%s", e.text);
    if (image_load(&b->code, made.image[0].bytes, made.image[0].size, why, sizeof why) < 0)
        fail_msg("%s", why);
    binary_finish(&made);
}

void bench_open(struct bench *b, struct shape s)
{
    struct source *source = bench_source(&s);
    *b = (struct bench){.s = s};
    if (bench_machine)
        open_machine(b, source);
    else
        open_text(b, source);
    source_destroy(source);
    b->gain = matrix_new(s.hidden, true, 1);
    b->shift = matrix_new(s.hidden, true, 0);
    b->bias = matrix_new(s.hidden, true, 0);
}

void bench_close(struct bench *b)
{
    matrix_finish(&b->gain);
    matrix_finish(&b->shift);
    matrix_finish(&b->bias);
    image_finish(&b->code);
    emulated_close(b->text);
}

enum { BLOCKS = 2 }; /* rows are more than the warps */

void bench_lend(const void *p, uint64_t bytes)
{
    memory_lend(&machine_memory, p, bytes);
}

void bench_unlend(const void *p)
{
    memory_unlend(&machine_memory, p);
}

/* dynamic: bytes of shared memory that the launch adds. */
static void launch_machine(struct bench *b, const char *entry, const void *a, uint32_t dynamic)
{
    char why[FAULT_TEXT];
    struct program *p = b->code.entry;
    while (strcmp(p->entry, entry))
        p++;
    program_arguments(p, ROWS_THREADS, (const uint32_t[]){BLOCKS, 1, 1},
                      &(void *){(void *)(uintptr_t)a});
    for (uint32_t k = 0; k < BLOCKS; k++) {
        struct block one = {.program = p,
                            .memory = &machine_memory,
                            .warps = ROWS_THREADS / 32,
                            .index = k,
                            .grid = BLOCKS,
                            .shared_bytes = p->shared_base + p->shared_static + dynamic,
                            .left = 10000000,
                            .fault = why};
        if (block_run(&one))
            fail_msg("%s", why);
    }
}

/* Lists of words are on the stack. */
void bench_launch(const struct bench *b, const char *entry, const struct rows_args *a)
{
    struct error e = {0};
    struct emulated_grid grid = {BLOCKS, ROWS_THREADS, 0};
    const void *const lists[] = {a->number, a->position, a->type, a->offsets};
    if (!bench_machine) {
        if (emulated_run(b->text, entry, a, &grid, &e) < 0)
            fail_msg("%s", e.text);
        return;
    }
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        if (lists[k])
            memory_lend(&machine_memory, lists[k], (a->rows + (k == 3)) * sizeof(uint32_t));
    launch_machine((struct bench *)(uintptr_t)b, entry, a, 0);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        if (lists[k])
            memory_unlend(&machine_memory, lists[k]);
}

void bench_keeps_nan(const struct bench *b)
{
    enum { COUNT = 22, COLUMNS = 2 };
    static const uint32_t made = 0x7fffffff;
    struct matrix y = matrix_new(COUNT, b->s.wide, 0), bias = matrix_new(COLUMNS, true, 0);
    memcpy((float *)bias.bytes + 1, &made, sizeof made);
    const struct rows_args a = {.rows = COUNT / COLUMNS,
                                .columns = COLUMNS,
                                .wide = b->s.wide,
                                .bias = bias.bytes,
                                .x = y.bytes,
                                .y = y.bytes};
    bench_launch(b, "rows_finish", &a);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(isnan(matrix_read(&y, k)), k % COLUMNS);
    matrix_finish(&y);
    matrix_finish(&bias);
}

void bench_train(const struct bench *b, const char *entry, const struct train_args *a)
{
    struct error e = {0};
    const struct emulated_grid grid = {BLOCKS, TRAIN_THREADS, TRAIN_SHARED};
    if (bench_machine)
        launch_machine((struct bench *)(uintptr_t)b, entry, a, TRAIN_SHARED);
    else if (emulated_run(b->text, entry, a, &grid, &e) < 0)
        fail_msg("%s", e.text);
}
