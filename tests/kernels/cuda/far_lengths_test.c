/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and offsets that only a GPU sees: the runtime cannot read them there, so kernels themselves keep
   what is wrong with them within the mask and the tensors. The emulated device stands in for one whose
   memory the host cannot read, and each family is given lengths beyond the mask, below zero, and offsets of
   sequences that are too long or end before they begin. */
#include "tests/runtime/launches.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { N = 70, HEADS = 2, DIM = 32, BATCH = 3, MORE = 20, ROWS = BATCH * N };

static const struct kernel_case families[] = {
    {"window(3)|global(0)", N, HEADS, {.dtype = ABI_F32, .head_dim = DIM, .backward = true}},
    {"window(3)|global(0)", N, HEADS, {.dtype = ABI_BF16, .head_dim = DIM, .backward = true}},
    {"causal", N, HEADS, {.dtype = ABI_F16, .head_dim = DIM, .backward = true}, "sm_90a", true},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* A device like the kernel's own, whose memory the host cannot read. */
static struct maskc_kernel *load_far(const struct kernel_case *c, struct device *ret)
{
    struct maskc_kernel *k = must_load_text(c);
    *ret = *k->device;
    ret->host_memory = false;
    k->device = ret;
    return k;
}

/* Inputs of 0.25 to 0.5 and both signs, as halves or as floats; outputs of bytes that no launch writes. */
static struct batch fill(void)
{
    struct batch b = batch_new((size_t)ROWS * HEADS * DIM, (size_t)ROWS * HEADS);
    for (uint32_t t = 0; t < TENSORS; t++) {
        uint16_t *x = (uint16_t *)(void *)b.x[t];
        for (uint32_t k = 0; k < 2 * ROWS * HEADS * DIM; k++)
            x[k] =
                t < INPUTS ? (uint16_t)(0x3400 | ((k * 31 + t * 17) % 1009 & 0x81ff)) : 0x7b7b;
    }
    memset(b.lse, 0x7b, (size_t)ROWS * HEADS * sizeof *b.lse);
    return b;
}

static void run(const struct maskc_kernel *k, const struct batch *b, const int32_t *lengths,
                const int32_t *offsets)
{
    struct maskc_launch l = batch_launch(b, 0, b->lse);
    l.batch = BATCH;
    l.lengths = lengths;
    l.offsets = offsets;
    l.tokens = offsets ? ROWS : 0;
    launch_both(k, l);
}

static void lengths_are_kept_within_the_mask(void **state)
{
    (void)state;
    static const int32_t right[BATCH] = {N, 0, 40}, wrong[BATCH] = {N + 100, -5, 40};
    for (uint32_t f = 0; f < FAMILIES; f++) {
        struct device far;
        struct maskc_kernel *k = load_far(&families[f], &far);
        struct batch one = fill(), two = fill();
        run(k, &one, right, NULL);
        run(k, &two, wrong, NULL);
        for (uint32_t t = INPUTS; t < TENSORS; t++)
            assert_memory_equal(one.x[t], two.x[t], ROWS * HEADS * DIM * sizeof(float));
        assert_memory_equal(one.lse, two.lse, ROWS * HEADS * sizeof(float));
        batch_free(&one);
        batch_free(&two);
        kernel_unload(k);
    }
}

/* Rows of every tensor and of the LSE, from one place of two to another of one. */
static void compare_rows(const struct batch *a, uint32_t at, const struct batch *b, uint32_t to,
                         uint32_t rows, uint32_t row_bytes)
{
    for (uint32_t t = INPUTS; t < TENSORS; t++)
        assert_memory_equal((const char *)a->x[t] + (size_t)at * row_bytes,
                            (const char *)b->x[t] + (size_t)to * row_bytes,
                            (size_t)rows * row_bytes);
    for (uint32_t h = 0; h < HEADS; h++)
        assert_memory_equal(a->lse + h * ROWS + at, b->lse + h * ROWS + to,
                            rows * sizeof(float));
}

/* The first sequence has more rows than the mask, the third fewer than none: rows that are none of the
   mask's stay as they were, and all others are those of the second launch, which is right. */
static void offsets_are_kept_within_the_mask(void **state)
{
    (void)state;
    static const int32_t right[BATCH + 1] = {0, N, N + MORE, N + MORE},
                                       wrong[BATCH + 1] = {0, N + MORE, N + MORE,
                                                           N + MORE - 10};
    for (uint32_t f = 0; f < FAMILIES; f++) {
        struct device far;
        struct maskc_kernel *k = load_far(&families[f], &far);
        const uint32_t row = HEADS * DIM * (families[f].request.dtype == ABI_F32 ? 4 : 2);
        struct batch one = fill(), two = fill(), before = fill();
        run(k, &one, NULL, wrong);
        run(k, &two, NULL, right);
        compare_rows(&one, 0, &two, 0, N, row);
        compare_rows(&one, N, &before, N, ROWS - N, row);
        compare_rows(&two, N + MORE, &before, N + MORE, ROWS - N - MORE, row);
        batch_free(&one);
        batch_free(&two);
        batch_free(&before);
        kernel_unload(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_kept_within_the_mask),
        cmocka_unit_test(offsets_are_kept_within_the_mask),
    };
    return cmocka_run_group_tests_name("far lengths", tests, NULL, NULL);
}
