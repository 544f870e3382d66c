/* SPDX-License-Identifier: Apache-2.0 */
/* maskc_compile_runs: the kernel file is that of the same mask in bytes; long masks go that way; each wrong array is
   refused with one line. */
#include "masks/base/memory.h"
#include "runtime/artifact/artifact.h"
#include "runtime/maskc.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, HEADS = 3, N = 40, ROWS = LAYERS * HEADS * N };

struct runs {
    uint64_t rows[ROWS + 1];
    int32_t runs[2 * ROWS * N];
};

/* Runs of random lengths and gaps, some rows empty; and the same as bytes. */
static void draw(struct runs *x, uint8_t *bits)
{
    uint32_t state = 1;
    uint64_t count = 0;
    memset(bits, 0, (size_t)ROWS * N);
    for (uint64_t r = 0; r < ROWS; r++) {
        x->rows[r] = count;
        for (uint32_t j = r % 7 ? 0 : N; j < N;) {
            state = state * 1664525 + 1013904223;
            const uint32_t begin = j + (state >> 28), end = begin + 1 + (state >> 20 & 7);
            if (end > N)
                break;
            x->runs[2 * count] = (int32_t)begin;
            x->runs[2 * count++ + 1] = (int32_t)end;
            memset(bits + r * N + begin, 1, end - begin);
            j = end; /* runs may touch */
        }
    }
    x->rows[ROWS] = count;
}

static const struct maskc_options options = {.struct_size = sizeof options,
                                             .targets = "x86-64-v3",
                                             .forward_only = 1,
                                             .machine = "x86-avx2"};

/* All but the name of the mask, which the file has. */
static void runs_are_the_mask_of_bytes(void **state)
{
    (void)state;
    struct runs *x = memory_new(1, sizeof *x);
    uint8_t *bits = memory_new(ROWS, N);
    struct maskc_bytes a = {0}, b = {0};
    struct maskc_error error = {0};
    struct artifact *from_runs, *from_bits;
    struct error e = {0};
    draw(x, bits);
    assert_true(x->rows[ROWS] > 500);
    if (maskc_compile_runs(x->rows, x->runs, LAYERS, HEADS, N, &options, &a, &error))
        fail_msg("%s", error.text);
    assert_int_equal(maskc_compile_dense(bits, LAYERS, HEADS, N, &options, &b, &error), 0);
    assert_int_equal(artifact_read(a.data, a.size, "A", &from_runs, &e), 0);
    assert_int_equal(artifact_read(b.data, b.size, "B", &from_bits, &e), 0);
    const struct mask *m = from_runs->mask, *k = from_bits->mask;
    assert_int_equal(m->n_patterns, k->n_patterns);
    for (uint32_t p = 0; p < m->n_patterns; p++)
        assert_true(pattern_equal(m->pattern[p], k->pattern[p]));
    assert_memory_equal(m->at, k->at, LAYERS * HEADS * sizeof *m->at);
    for (uint32_t h = 0; h < HEADS; h++)
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = 0; j < N; j++)
                assert_int_equal(pattern_test(mask_pattern(m, 1, h), i, j),
                                 bits[((HEADS + h) * N + i) * N + j]);
    artifact_destroy(from_runs);
    artifact_destroy(from_bits);
    maskc_bytes_free(&a);
    maskc_bytes_free(&b);
    free(bits);
    free(x);
}

/* 65536 tokens, of which n x n bytes would be 4 GiB. */
static void long_masks_go_that_way(void **state)
{
    (void)state;
    enum { LONG = 65536, WINDOW = 64 };
    uint64_t *rows = memory_new(LONG + 1, sizeof *rows);
    int32_t *runs = memory_new(LONG, 2 * sizeof *runs);
    struct maskc_bytes bytes = {0};
    struct maskc_error error = {0};
    struct maskc_kernel *kernel;
    for (int32_t i = 0; i < LONG; i++) {
        rows[i + 1] = (uint64_t)i + 1;
        runs[2 * i] = i < WINDOW ? 0 : i - WINDOW;
        runs[2 * i + 1] = i + WINDOW < LONG ? i + WINDOW + 1 : LONG;
    }
    struct maskc_options o = options;
    o.heads = 4; /* repeated */
    if (maskc_compile_runs(rows, runs, 1, 1, LONG, &o, &bytes, &error))
        fail_msg("%s", error.text);
    struct maskc_info info = {.struct_size = sizeof info};
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error), 0);
    maskc_kernel_info(kernel, &info);
    assert_int_equal(info.length, LONG);
    assert_int_equal(info.heads, 4);
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
    free(rows);
    free(runs);
}

static void wrong_runs_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t rows[7];
        int32_t runs[6];
        const char *text;
    } cases[] = {
        {{1, 1, 1, 1, 1, 1, 1}, {0, 1}, "runs: rows[0] is not 0"},
        {{0, 1, 0, 0, 0, 0, 0},
         {0, 1},
         "runs: layer 0, head 0, query 1: its offset in rows is below the one before, or has "
         "more "
         "runs than there are keys"},
        {{0, 0, 0, 0, 4, 4, 4},
         {0, 1},
         "runs: layer 0, head 1, query 0: its offset in rows is below the one before, or has "
         "more "
         "runs than there are keys"},
        {{0, 0, 0, 0, 0, 1, 1},
         {-1, 1},
         "runs: layer 0, head 1, query 1: a run is outside of the keys 0..n - 1"},
        {{0, 1, 1, 1, 1, 1, 1},
         {0, 4},
         "runs: layer 0, head 0, query 0: a run is outside of the keys 0..n - 1"},
        {{0, 1, 1, 1, 1, 1, 1},
         {2, 2},
         "runs: layer 0, head 0, query 0: a run ends where it begins, or before"},
        {{0, 0, 2, 2, 2, 2, 2},
         {1, 3, 0, 1},
         "runs: layer 0, head 0, query 1: runs overlap or do not ascend"},
        {{0, 0, 2, 2, 2, 2, 2},
         {0, 2, 1, 3},
         "runs: layer 0, head 0, query 1: runs overlap or do not ascend"},
    };
    struct maskc_bytes bytes = {0};
    struct maskc_error error;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(
            maskc_compile_runs(cases[k].rows, cases[k].runs, 1, 2, 3, &options, &bytes, &error),
            MASKC_BAD_INPUT);
        assert_string_equal(error.text, cases[k].text);
        assert_null(bytes.data);
    }
    assert_int_equal(
        maskc_compile_runs((uint64_t[]){0, 1}, NULL, 1, 1, 1, NULL, &bytes, &error),
        MASKC_BAD_INPUT);
    assert_string_equal(error.text, "runs: rows names runs, but there is no array");
    assert_int_equal(maskc_compile_runs(NULL, NULL, 1, 1, 1, NULL, &bytes, &error),
                     MASKC_BAD_INPUT);
    assert_int_equal(maskc_compile_runs((uint64_t[]){0}, NULL, 1, 1, 0, NULL, &bytes, &error),
                     MASKC_BAD_INPUT);
    assert_int_equal(
        maskc_compile_runs((uint64_t[]){0}, NULL, UINT32_MAX, 1, 1, NULL, &bytes, &error),
        MASKC_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_the_mask_of_bytes),
        cmocka_unit_test(long_masks_go_that_way),
        cmocka_unit_test(wrong_runs_are_refused),
    };
    return cmocka_run_group_tests_name("runtime/runs", tests, NULL, NULL);
}
