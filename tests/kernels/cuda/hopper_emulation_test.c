/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation of sm_90's primitives: a pipeline of copies and products gives the definition's bits whenever copies and
   products run, and each way to break it is refused with the line. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/device/emulated/emulated_text.h"
#include "runtime/emulated/tensor_map.h"
#include "tests/kernels/cuda/hopper_pipeline.h"
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
} __attribute__((aligned(64)));

struct pipeline {
    struct tensor q, k, v, o;
    uint32_t words[STEPS * 64];
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
    for (uint32_t k = 0; k < STEPS * 64; k++)
        p->words[k] = k * 2654435761u >> 7;
}

static int expected(const struct pipeline *p, uint32_t row, uint32_t d)
{
    int sum = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        int s = 0;
        for (uint32_t e = 0; e < D; e++)
            s += entry(0, row, e) * entry(1, key, e);
        const uint32_t step = key / 64, odd = (p->words[64 * step + row % 64] ^ step) & 1;
        sum += (odd ? -s : s) * entry(2, key, d);
    }
    return sum;
}

static void check_output(const struct pipeline *p, bool f16, const char *what)
{
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t h = 0; h < HEADS; h++)
            for (uint32_t d = 0; d < D; d++) {
                const uint16_t want =
                    h && row < QUERIES ? half_of(expected(p, row, d), f16) : 0xffff;
                if (p->o.at[row][h][d] != want &&
                    (want & 0x7fff || p->o.at[row][h][d] & 0x7fff))
                    fail_msg("%s: O[%u][%u][%u] is %04x, not %04x", what, row, h, d,
                             p->o.at[row][h][d], want);
            }
}

/* ---- running a text ---- */

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

static const char *template_of(const char *name)
{
    for (const struct source_file *f = templates_embedded; f->name; f++)
        if (!strcmp(f->name, name))
            return f->text;
    fail_msg("no template %s", name);
    return NULL;
}

/* The text in one piece, with all that it includes. */
static char *flatten(const char *text, bool f16, bool rows_in_registers)
{
    static const char *const names[] = {"abi.h",
                                        "cuda/common/device.h",
                                        "cuda/common/matrix.h",
                                        "cuda/common/numbers.h",
                                        "cuda/common/sizes.h",
                                        "cuda/common/work_item.h",
                                        "cuda/hopper/args.h",
                                        "cuda/hopper/device.h",
                                        "cuda/hopper/wgmma.h"};
    enum { NAMES = sizeof names / sizeof *names };
    struct source_file files[NAMES + 2];
    struct text config = {0}, out = {0};
    text_add(&config, "#include \"abi.h\"\nenum { DTYPE = ABI_%s, ROWS_IN_REGISTERS = %d };\n",
             f16 ? "F16" : "BF16", rows_in_registers);
    files[0] = (struct source_file){"entry.cu", text};
    for (size_t k = 0; k < NAMES; k++)
        files[k + 1] = (struct source_file){names[k], template_of(names[k])};
    files[NAMES + 1] = (struct source_file){"kernel_config.h", text_get(&config)};
    const struct source s = {.files = files, .n_files = NAMES + 2};
    source_flatten(&s, &out);
    text_finish(&config);
    return text_take(&out);
}

static struct emulated_text *open_text(const char *text, bool f16, bool rows_in_registers)
{
    struct error e = {0};
    char *flat = flatten(text, f16, rows_in_registers);
    struct emulated_text *t = emulated_open(flat, "the pipeline", &e);
    if (!t)
        fail_msg("%s\n%s", e.text, text);
    free(flat);
    return t;
}

/* What the launch returns; *e is what the emulation found. */
static int run(const struct emulated_text *t, struct pipeline *p, uint64_t seed,
               struct error *e)
{
    const struct pipeline_args args = {map_of(&p->q, QUERIES, 64), map_of(&p->k, KEYS, 32),
                                       map_of(&p->v, KEYS, 32), map_of(&p->o, QUERIES, 64),
                                       p->words};
    const struct emulated_grid grid = {1, THREADS, SHARED_BYTES};
    *e = (struct error){0};
    emulated_set_seed(seed);
    int r = emulated_run(t, "pipeline", &args, &grid, e);
    emulated_set_seed(0);
    return r;
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
        struct emulated_text *t = open_text(PIPELINE_TEXT, f16, rows_in_registers);
        for (uint64_t seed = 0; seed < 2 * TIMINGS; seed++) {
            struct pipeline *p = new_pipeline(f16);
            struct error e;
            char what[60];
            snprintf(what, sizeof what, "%s, rows in registers %d, seed %d",
                     f16 ? "f16" : "bf16", rows_in_registers, (int)seed);
            if (run(t, p, seed, &e) < 0)
                fail_msg("%s: %s", what, e.text);
            check_output(p, f16, what);
            free(p);
        }
        emulated_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests_name("hopper_emulation", tests, NULL, NULL);
}
