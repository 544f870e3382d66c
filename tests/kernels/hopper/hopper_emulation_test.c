/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation of sm_90's primitives: a pipeline of copies and products gives the definition's bits whenever copies and
   products run, and each way to break it is refused with the line. Faults and
   shapes of $MASKC_KNOWN/hopper_emulation.txt are skipped (known.h); --update writes it. */
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/device/emulated/emulated_text.h"
#include "runtime/emulated/tensor_map.h"
#include "tests/kernels/hopper/faults.h"
#include "tests/kernels/hopper/pipeline.h"
#include "tests/kernels/hopper/shapes.h"
#include "tests/kernels/hopper/text.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 100 queries and 250 keys, so that boxes reach past both ends; heads of 64, of which the kernel works on the second. */
enum {
    QUERIES = 100,
    KEYS = 250,
    STEPS = 4,
    HEADS = 2,
    D = 64,
    ROWS = STEPS * 64,
    THREADS = 288,
    SHARED_BYTES = 1024 + 50 * 1024
};
enum { TIMINGS = 3 }; /* seeds 0, 1, 2: copies and products late, early, mixed */

struct tensor {
    uint16_t at[ROWS][HEADS][D];
};

struct pipeline_args {
    struct emulated_tensor_map q, k, v, o;
    const uint32_t *words;
    uint8_t more[4096]; /* the text copies as many bytes as its longest arguments have */
} __attribute__((aligned(64)));

struct pipeline {
    struct tensor q, k, v, o;
    uint32_t words[(STEPS + 1) * 64];
};

/* ---- the definition ---- */

/* A whole number that bf16 and f16 hold exactly. */
static uint16_t half_of(int x, bool f16)
{
    const float magnitude = (float)abs(x);
    uint32_t bits;
    memcpy(&bits, &magnitude, 4);
    assert_true(abs(x) <= 256);
    const uint16_t sign = x < 0 ? 0x8000 : 0;
    if (f16)
        return sign | (uint16_t)(x ? (bits >> 13) - (112u << 10) : 0);
    return sign | (uint16_t)(bits >> 16);
}

/* -1, 0, 0 or 1. */
static int entry(uint32_t tensor, uint32_t row, uint32_t d)
{
    uint32_t x = (tensor * 1000003u + row * 257u + d + 1) * 2654435761u;
    x ^= x >> 15;
    const uint32_t k = x * 2246822519u >> 13 & 3;
    return (k == 1) - (k == 2);
}

static void fill(struct pipeline *p, bool f16)
{
    memset(p, 0xff, sizeof *p); /* NaN where nothing may be read, or written */
    for (uint32_t row = 0; row < KEYS; row++)
        for (uint32_t d = 0; d < D; d++) {
            p->k.at[row][1][d] = half_of(entry(1, row, d), f16);
            p->v.at[row][1][d] = half_of(entry(2, row, d), f16);
            if (row < QUERIES)
                p->q.at[row][1][d] = half_of(entry(0, row, d), f16);
        }
    for (uint32_t k = 0; k < (STEPS + 1) * 64; k++)
        p->words[k] = k * 2654435761u >> 7;
}

/* O of the second head. */
static void expect(const struct pipeline *p, int ret[QUERIES][D])
{
    for (uint32_t row = 0; row < QUERIES; row++)
        for (uint32_t key = 0; key < KEYS; key++) {
            int s = 0;
            for (uint32_t d = 0; d < D; d++)
                s += entry(0, row, d) * entry(1, key, d);
            const uint32_t step = key / 64, odd = (p->words[64 * step + row % 64] ^ step) & 1;
            for (uint32_t d = 0; d < D; d++)
                ret[row][d] += (odd ? -s : s) * entry(2, key, d);
        }
}

/* Elements of O that differ from the definition, or lie outside of it and are written. */
static uint32_t count_wrong(const struct pipeline *p, bool f16)
{
    static int want[QUERIES][D];
    static bool known;
    uint32_t wrong = 0;
    if (!known)
        expect(p, want);
    known = true;
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t h = 0; h < HEADS; h++)
            for (uint32_t d = 0; d < D; d++) {
                const uint16_t o = p->o.at[row][h][d];
                const uint16_t right = h && row < QUERIES ? half_of(want[row][d], f16) : 0xffff;
                wrong += o != right && ((o | right) & 0x7fff); /* either zero */
            }
    return wrong;
}

/* ---- running a text ---- */

static struct known known;

/* Null where this text was as it must be before. */
static struct emulated_text *open_text(const char *text, bool f16)
{
    char *flat = hopper_text_flatten(text, f16, false);
    const struct cache_key key = cache_key(flat, strlen(flat));
    free(flat);
    return known_skips(&known, key) ? NULL : hopper_text_open(text, f16, false);
}

static struct emulated_tensor_map map_of(struct tensor *t, uint32_t rows, uint32_t box)
{
    return (struct emulated_tensor_map){
        .magic = EMULATED_TENSOR_MAP,
        .address = (uintptr_t)t,
        .stride = {2, 2 * D, 2 * D * HEADS, 2 * D * HEADS * ROWS},
        .extent = {D, HEADS, rows, 1},
        .box = {64, 1, box, 1},
        .element_bytes = 2,
        .swizzle = 128};
}

static struct pipeline_args args_of(struct pipeline *p)
{
    return (struct pipeline_args){map_of(&p->q, QUERIES, 64), map_of(&p->k, KEYS, 32),
                                  map_of(&p->v, KEYS, 32), map_of(&p->o, QUERIES, 64),
                                  p->words};
}

/* Returns the launch's result; *e holds the emulation's finding. */
static int run_args(const struct emulated_text *t, const struct pipeline_args *args,
                    uint64_t seed, struct error *e)
{
    const struct emulated_grid grid = {1, THREADS, SHARED_BYTES};
    *e = (struct error){0};
    emulated_set_seed(seed);
    int r = emulated_run(t, "pipeline", args, &grid, e);
    emulated_set_seed(0);
    return r;
}

static int run(const struct emulated_text *t, struct pipeline *p, uint64_t seed,
               struct error *e)
{
    const struct pipeline_args args = args_of(p);
    return run_args(t, &args, seed, e);
}

static struct pipeline *new_pipeline(bool f16)
{
    struct pipeline *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    assert_non_null(p);
    fill(p, f16);
    return p;
}

/* ---- right ---- */

static void test_pipeline(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        const bool f16 = k & 1, rows_in_registers = k & 2;
        struct emulated_text *t = hopper_text_open(PIPELINE_TEXT, f16, rows_in_registers);
        for (uint64_t seed = 0; seed < 2 * TIMINGS; seed++) {
            struct pipeline *p = new_pipeline(f16);
            struct error e;
            char what[60];
            snprintf(what, sizeof what, "%s, rows in registers %d, seed %d",
                     f16 ? "f16" : "bf16", rows_in_registers, (int)seed);
            if (run(t, p, seed, &e) < 0)
                fail_msg("%s: %s", what, e.text);
            if (count_wrong(p, f16))
                fail_msg("%s: %u elements of O are wrong", what, count_wrong(p, f16));
            free(p);
        }
        emulated_close(t);
    }
}

/* ---- the shapes of products ---- */

/* Widths that each kind has: both operands in shared memory, the first in registers, the second with n contiguous. */
static const uint32_t widths[3][9] = {
    {32, 64, 128}, {32, 64, 128}, {16, 32, 48, 64, 80, 96, 112, 128}};

static void check_shape(uint32_t kind, uint32_t n, uint32_t k, bool f16)
{
    struct text text = {0};
    struct error e = {0};
    const struct pipeline_args none = {0};
    const struct emulated_grid grid = {1, 128, 1024 + 2 * 192 * 128};
    text_add(&text, "enum { KIND = %u, N = %u, K = %u, ACCUMULATE = %u };\n%s", kind, n, k,
             n / 16 % 2 + kind % 2, shapes_text);
    struct emulated_text *t = open_text(text_get(&text), f16);
    if (t && emulated_run(t, "shapes", &none, &grid, &e) < 0)
        fail_msg("kind %u, n %u, k %u: %s", kind, n, k, e.text);
    emulated_close(t);
    text_finish(&text);
}

static void test_shapes(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < 3; kind++)
        for (uint32_t k = 0; widths[kind][k]; k++)
            check_shape(kind, widths[kind][k], 16 * (k % 8), k % 2);
}

/* ---- wrong ---- */

static char *apply(const struct fault *f)
{
    const char *at = strstr(PIPELINE_TEXT, f->find);
    if (!at || strstr(at + 1, f->find))
        fail_msg("%s: the text has '%s' not once", f->name, f->find);
    struct text out = {0};
    text_add(&out, "%.*s%s%s", (int)(at - PIPELINE_TEXT), PIPELINE_TEXT, f->replace,
             at + strlen(f->find));
    return text_take(&out);
}

static bool is_expected(const struct fault *f, const char *text)
{
    for (size_t k = 0; k < sizeof f->complaints / sizeof *f->complaints && f->complaints[k];
         k++)
        if (strstr(text, f->complaints[k]))
            return true;
    return false;
}

static void check_fault(const struct fault *f, const struct emulated_text *t, uint64_t seed)
{
    struct pipeline *p = new_pipeline(false);
    struct error e;
    const int r = run(t, p, seed, &e);
    if (f->complaints[0] ? r == 0 || !is_expected(f, e.text) || !strstr(e.text, "(line ")
                         : r < 0 || !count_wrong(p, false))
        fail_msg("%s, seed %d: expected '%s', got '%s'", f->name, (int)seed,
                 f->complaints[0] ? f->complaints[0] : "wrong results",
                 r < 0 ? e.text : "nothing");
    free(p);
}

static void test_faults(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        char *text = apply(&faults[k]);
        struct emulated_text *t = open_text(text, false);
        for (uint64_t seed = 0; t && seed < TIMINGS; seed++)
            check_fault(&faults[k], t, seed);
        emulated_close(t);
        free(text);
    }
}

/* ---- tensor maps that the driver would not encode ---- */

static void change_map(struct emulated_tensor_map *m, uint32_t k)
{
    uint32_t *const words[] = {&m->extent[3], &m->box[2],        &m->box[1],
                               &m->box[0],    &m->element_bytes, &m->swizzle};
    uint64_t *const longs[] = {&m->magic, &m->address, &m->stride[0], &m->stride[2],
                               &m->stride[3]};
    static const uint32_t word[] = {0, 257, 0, 32, 4, 64}, add[] = {1, 8, 2, 8, 0};
    if (k < 6)
        *words[k] = word[k];
    else
        *longs[k - 6] += k == 10 ? (uint64_t)1 << 40 : add[k - 6];
}

static void test_tensor_maps(void **state)
{
    (void)state;
    struct emulated_text *t = hopper_text_open(PIPELINE_TEXT, false, false);
    struct pipeline *p = new_pipeline(false);
    for (uint32_t k = 0; k < 11; k++) {
        struct pipeline_args args = args_of(p);
        struct error e = {0};
        change_map(&args.k, k);
        if (run_args(t, &args, 0, &e) == 0 || !strstr(e.text, "tensor map"))
            fail_msg("change %u: '%s'", k, e.text);
    }
    free(p);
    emulated_close(t);
}

/* A store of a box of which one chunk is written: right where the tensor ends behind it. */
static void test_clipped_store(void **state)
{
    (void)state;
    struct emulated_text *t = hopper_text_open(clipped_text, false, false);
    struct pipeline *p = new_pipeline(false);
    struct pipeline_args args = args_of(p);
    struct error e;
    args.o.extent[0] = 8;
    args.o.extent[2] = 1;
    assert_int_equal(run_args(t, &args, 0, &e), 0);
    assert_int_equal(p->o.at[0][0][1], 2);
    assert_int_equal(p->o.at[0][0][8], 0xffff);
    args.o.extent[0] = 9;
    assert_int_equal(run_args(t, &args, 0, &e), -1);
    assert_non_null(strstr(e.text, "reads what nobody wrote"));
    free(p);
    emulated_close(t);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"tests/kernels/hopper/*.[ch]",
                                        "runtime/emulated/*.[ch]",
                                        "runtime/device/emulated/*.[ch]", NULL};
    known_start_files(&known, "hopper_emulation", files,
                      argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline),    cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_tensor_maps), cmocka_unit_test(test_clipped_store),
        cmocka_unit_test(test_faults),
    };
    return known_finish(&known,
                        cmocka_run_group_tests_name("hopper_emulation", tests, NULL, NULL));
}
