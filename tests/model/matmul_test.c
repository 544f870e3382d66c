/* SPDX-License-Identifier: Apache-2.0 */
/* CPU products that training needs beyond inference: weights packed again, from any strides, and weight
   gradients, against float64. */
#include "model/backend/cpu/matmul/matmul_engine.h"
#include "runtime/device/machine.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct matmul *matmul;

static int make(void **state)
{
    (void)state;
    struct error e = {0};
    matmul = matmul_new(&e);
    return matmul ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    matmul_destroy(matmul);
    return 0;
}

/* In [-4, 4), with 7 bits: a bf16. */
static float number(uint64_t k)
{
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15;
    return (float)((int)(x >> 56) - 128) / 32;
}

static void *numbers(enum element type, uint64_t count, uint64_t seed)
{
    float *f32 = malloc(count * sizeof *f32);
    for (uint64_t k = 0; k < count; k++)
        f32[k] = number(k + seed * 1000003);
    void *ret = malloc(count * element_bytes(type));
    elements_from_f32(type, f32, count, ret);
    free(f32);
    return ret;
}

static float *widened(enum element type, const void *list, uint64_t count)
{
    float *ret = malloc(count * sizeof *ret);
    elements_to_f32(type, list, count, ret);
    return ret;
}

/* ---- weight gradients ---- */

enum { BEYOND = 5 }; /* what rows of dW have beyond `in`: never written */

/* Numbers that use all of f32: then rounding, and the order of the sum, show. */
static void widen(struct weight_gradient *g)
{
    if (g->type != ELEMENT_F32)
        return;
    float *dy = (float *)(uintptr_t)g->dy, *x = (float *)(uintptr_t)g->x;
    for (uint64_t k = 0; k < g->rows * g->dy_row; k++)
        dy[k] *= 1 + (float)(k % 1009) / 1013;
    for (uint64_t k = 0; k < g->rows * g->x_row; k++)
        x[k] *= 1 + (float)(k % 997) / 1019;
}

static struct weight_gradient gradient_new(uint32_t in, uint32_t out, uint32_t rows,
                                           enum element type)
{
    struct weight_gradient g = {in, out, rows, type, NULL, NULL, out + 3, in + 32, NULL, 0};
    g.dw_row = in + BEYOND;
    g.dy = numbers(type, rows * g.dy_row, in);
    g.x = numbers(type, rows * g.x_row, out);
    g.dw = numbers(ELEMENT_F32, out * g.dw_row, rows);
    widen(&g);
    return g;
}

static void gradient_free(struct weight_gradient *g)
{
    free((void *)(uintptr_t)g->dy);
    free((void *)(uintptr_t)g->x);
    free(g->dw);
}

/* One row of dW. The error is held against the sum of what is added, taken without signs. */
static void expect_row(const struct weight_gradient *g, uint32_t o, const float *dy,
                       const float *x, const float *before)
{
    for (uint64_t i = 0; i < g->dw_row; i++) {
        double is = (double)before[i], all = fabs(is);
        for (uint32_t r = 0; r < g->rows && i < g->in; r++) {
            double p = (double)dy[r * g->dy_row + o] * (double)x[r * g->x_row + i];
            is += p;
            all += fabs(p);
        }
        double found = (double)g->dw[o * g->dw_row + i];
        if (!(fabs(found - is) <= (i < g->in ? 1e-6 * all : 0)))
            fail_msg("in %u out %u rows %u: dW[%u, %u] is %g, not %g", g->in, g->out, g->rows,
                     o, (unsigned)i, found, is);
    }
}

static void expect_gradient(const struct weight_gradient *g, const float *before)
{
    float *dy = widened(g->type, g->dy, g->rows * g->dy_row),
          *x = widened(g->type, g->x, g->rows * g->x_row);
    for (uint32_t o = 0; o < g->out; o++)
        expect_row(g, o, dy, x, before + o * g->dw_row);
    free(dy);
    free(x);
}

static void check_gradient(uint32_t in, uint32_t out, uint32_t rows, enum element type)
{
    struct weight_gradient g = gradient_new(in, out, rows, type);
    const size_t bytes = out * g.dw_row * sizeof(float);
    float *before = malloc(bytes), *first = malloc(bytes);
    struct error e = {0};
    memcpy(before, g.dw, bytes);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        memcpy(g.dw, before, bytes);
        assert_int_equal(matmul_weight_gradients(matmul, &g, 1, threads, &e), 0);
        if (threads == 1)
            memcpy(first, g.dw, bytes);
        assert_memory_equal(first, g.dw, bytes);
    }
    expect_gradient(&g, before);
    free(before);
    free(first);
    gradient_free(&g);
}

static const uint32_t shapes[][3] = {{1, 1, 1},       {7, 33, 31},    {64, 2, 512},
                                     {33, 129, 513},  {520, 130, 70}, {48, 40, 1100},
                                     {513, 16, 1057}, {16, 300, 0}};

static void test_gradient(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int bf16 = 0; bf16 <= 1; bf16++)
            check_gradient(shapes[k][0], shapes[k][1], shapes[k][2],
                           bf16 ? ELEMENT_BF16 : ELEMENT_F32);
}

/* A list on several threads, whole and cut after GRADIENT_ROWS rows: the same bits. */
static void test_order(void **state)
{
    enum { LIST = 3 };
    static const uint32_t rows[LIST] = {1400, 700, 512};
    struct weight_gradient list[LIST], part[2 * LIST];
    float *whole[LIST];
    struct error e = {0};
    (void)state;
    for (uint32_t k = 0; k < LIST; k++) {
        list[k] = gradient_new(200 + k, 300 - k, rows[k], ELEMENT_F32);
        whole[k] = memcpy(malloc(list[k].out * list[k].dw_row * sizeof(float)), list[k].dw,
                          list[k].out * list[k].dw_row * sizeof(float));
        part[k] = part[LIST + k] = list[k];
        part[k].rows = GRADIENT_ROWS;
        part[LIST + k].rows -= GRADIENT_ROWS;
        part[LIST + k].dy = (const float *)list[k].dy + GRADIENT_ROWS * list[k].dy_row;
        part[LIST + k].x = (const float *)list[k].x + GRADIENT_ROWS * list[k].x_row;
    }
    assert_int_equal(matmul_weight_gradients(matmul, part, LIST, 1, &e), 0);
    assert_int_equal(matmul_weight_gradients(matmul, part + LIST, LIST, 2, &e), 0);
    for (uint32_t k = 0; k < LIST; k++) {
        float *cut = list[k].dw;
        list[k].dw = whole[k];
        whole[k] = cut;
    }
    assert_int_equal(matmul_weight_gradients(matmul, list, LIST, 3, &e), 0);
    for (uint32_t k = 0; k < LIST; k++) {
        assert_memory_equal(list[k].dw, whole[k], list[k].out * list[k].dw_row * sizeof(float));
        free(whole[k]);
        gradient_free(&list[k]);
    }
}

/* ---- packing again ---- */

enum { ROWS = 16 };

/* y of [ROWS] rows of numbers. */
static float *multiply(const struct linear *l)
{
    struct error e = {0};
    const struct product_use use = {ROWS, 1, false};
    const struct product *p = product_find(matmul, l, &use, &e);
    struct product_workspace w = {0};
    void *x = numbers(l->shape.x, (uint64_t)ROWS * l->shape.in, 3);
    float *y = malloc((uint64_t)ROWS * l->shape.out * sizeof *y);
    assert_non_null(p);
    assert_int_equal(product_workspace_grow(matmul, p, &w, &e), 0);
    assert_int_equal(product_run(p, l, x, y, &w), 0);
    product_workspace_finish(&w);
    free(x);
    return y;
}

/* The value rounded to the type, as the product multiplies with it. */
static double weight_of(enum element type, float value)
{
    uint16_t half;
    float ret = value;
    elements_from_f32(type, &value, 1, type == ELEMENT_BF16 ? (void *)&half : &ret);
    if (type == ELEMENT_BF16)
        elements_to_f32(type, &half, 1, &ret);
    return (double)ret;
}

static void expect_products(const struct linear *l, const struct weight_view *v,
                            const float *bias)
{
    const struct linear_shape *s = &l->shape;
    float *y = multiply(l);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t o = 0; o < s->out; o++) {
            double is = bias ? (double)bias[o] : 0, all = fabs(is);
            for (uint32_t i = 0; i < s->in; i++) {
                double p = (double)number(r * s->in + i + 3 * 1000003) *
                           weight_of(s->x, v->value[o * v->row + i * v->column]);
                is += p;
                all += fabs(p);
            }
            if (!(fabs((double)y[r * s->out + o] - is) <= 1e-5 * all))
                fail_msg("%u -> %u: y[%u, %u] is %g, not %g", s->in, s->out, r, o,
                         (double)y[r * s->out + o], is);
        }
    free(y);
}

/* Rows and columns in both orders, within a larger array; weights that were packed before give way, a bias too. */
static void check_repack(uint32_t in, uint32_t out, enum element type)
{
    const struct linear_shape shape = {in, out, type, ELEMENT_F32, AFTER_NONE};
    float *value = numbers(ELEMENT_F32, (uint64_t)(in + 9) * (out + 5), 17);
    const struct weight_view plain = {value, in + 9, 1}, transposed = {value + 4, 1, out + 5};
    for (uint64_t k = 0; k < (uint64_t)(in + 9) * (out + 5); k++)
        value[k] *= 1 + (float)(k % 1009) / 1013; /* more bits than bf16 has */
    struct error e = {0};
    struct linear l;
    assert_int_equal(matmul_pack(matmul, &shape, NULL, NULL, &l, &e), 0);
    assert_int_equal(matmul_repack(matmul, &l, &plain, value, &e), 0);
    expect_products(&l, &plain, value);
    assert_int_equal(matmul_repack(matmul, &l, &transposed, NULL, &e), 0);
    expect_products(&l, &transposed, NULL);
    free(value);
}

static void test_repack(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1},    {33, 7},    {64, 192},
                                        {130, 65}, {256, 512}, {312, 1201}};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int bf16 = 0; bf16 <= 1; bf16++)
            check_repack(sizes[k][0], sizes[k][1], bf16 ? ELEMENT_BF16 : ELEMENT_F32);
}

/* Other linears, packed at once by several threads. */
static void test_repack_threads(void **state)
{
    enum { LINEARS = 12 };
    struct linear list[LINEARS];
    int r[LINEARS];
    float *value = numbers(ELEMENT_F32, 100 * 140, 2);
    (void)state;
    for (uint32_t k = 0; k < LINEARS; k++) {
        const struct linear_shape shape = {60 + k, 90, ELEMENT_F32, ELEMENT_F32, AFTER_NONE};
        struct error e = {0};
        assert_int_equal(matmul_pack(matmul, &shape, NULL, NULL, &list[k], &e), 0);
    }
#pragma omp parallel for num_threads(3)
    for (uint32_t k = 0; k < LINEARS; k++) {
        struct error e = {0};
        const struct weight_view v = {value + k, 140, 1};
        r[k] = matmul_repack(matmul, &list[k], &v, NULL, &e);
    }
    for (uint32_t k = 0; k < LINEARS; k++) {
        const struct weight_view v = {value + k, 140, 1};
        assert_int_equal(r[k], 0);
        expect_products(&list[k], &v, NULL);
    }
    free(value);
}

/* Levels that this CPU lacks, that MASKC_MAX_CPU hides, or that are not worth it here, are unused by the library too. */
static void test_level(void **state)
{
    (void)state;
    if (row_level_best() < ROW_V4_BF16)
        assert_false(matmul_multiplies_bf16());
    if (!strcmp(machine_level(),
                "x86-64-v4")) /* also where bf16's instructions are there, but slow */
        assert_false(matmul_multiplies_bf16());
    if (row_level_best() < ROW_V4)
        assert_int_equal(dnnl_get_effective_cpu_isa() & ~dnnl_cpu_isa_avx2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_order),
        cmocka_unit_test(test_repack), cmocka_unit_test(test_repack_threads),
        cmocka_unit_test(test_level)};
    return cmocka_run_group_tests(tests, make, unmake);
}
