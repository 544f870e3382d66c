/* SPDX-License-Identifier: Apache-2.0 */
/* Are importances read as they stand in every container, type, shape and order, and refused with the place of what is
   wrong? */
#include "masks/importance.h"
#include "masks/npy.h"
#include "masks/readers/readers.h"
#include "masks/safetensors.h"
#include "tests/masks/help.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct importance read(struct mask_request r)
{
    struct importance p;
    struct error e = {0};
    if (importance_read(&r, &p, &e))
        fail_msg("%s", e.text);
    return p;
}

/* Value of an entry in the test's arrays. */
static double value_of(uint32_t l, uint32_t h, uint32_t i, uint32_t j)
{
    return (l * 7 + h * 5 + i * 3 + j) % 4;
}

static void write_array(const char *path, const char *descr, uint32_t item, bool fortran)
{
    enum { layers = 2, heads = 3, n = 5 };
    uint8_t *bytes = memory_new((size_t)layers * heads * n * n, item);
    char shape[64];
    struct npy a = {.rank = 4, .shape = {layers, heads, n, n}, .fortran = fortran};
    for (uint32_t k = 0; k < layers * heads * n * n; k++) {
        uint32_t at[] = {k / (heads * n * n), k / (n * n) % heads, k / n % n, k % n};
        element_store(descr, value_of(at[0], at[1], at[2], at[3]),
                      bytes + npy_index(&a, (uint64_t[]){at[0], at[1], at[2], at[3]}) * item);
    }
    snprintf(shape, sizeof shape, "(%u, %u, %u, %u)", layers, heads, n, n);
    write_npy(path, descr, shape, fortran, bytes, (size_t)layers * heads * n * n * item);
    free(bytes);
}

static void check(const struct importance *p, uint32_t first, bool mask)
{
    for (uint32_t l = 0; l < p->layers; l++)
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t i = 0; i < p->n; i++)
                for (uint32_t j = 0; j < p->n; j++) {
                    double want = value_of(l + first, h, i, j);
                    want = mask ? want != 0 : want;
                    assert_true(importance_head(p, l, h)[i * p->n + j] == (float)want);
                }
}

static const struct {
    const char *descr;
    uint32_t item;
    bool mask;
} types[] = {{"<f2", 2, false}, {"<f4", 4, false}, {"<f8", 8, false},
             {"|b1", 1, true},  {"<i8", 8, true},  {"|u1", 1, true}};

static void arrays_are_read_as_they_stand(void **unused)
{
    (void)unused;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int fortran = 0; fortran < 2; fortran++) {
            const char *path = test_path("p.npy");
            write_array(path, types[t].descr, types[t].item, fortran);
            struct importance p = read((struct mask_request){.name = path, .layer = -1});
            assert_true(p.layers == 2 && p.heads == 3 && p.n == 5);
            check(&p, 0, types[t].mask);
            importance_finish(&p);
            p = read((struct mask_request){.name = path, .layer = 1, .n = 4, .heads = 3});
            assert_true(p.layers == 1 && p.heads == 3 && p.n == 4);
            check(&p, 1, types[t].mask);
            importance_finish(&p);
        }
}

static void values_beyond_floats_keep_their_ratios(void **unused)
{
    (void)unused;
    static const double unit[] = {1e-310, 1e308};
    const char *path = test_path("wide.npy");
    for (int k = 0; k < 2; k++) {
        const double value[] = {0, unit[k], unit[k] / 4, unit[k] / 2};
        write_npy(path, "<f8", "(2, 2)", false, value, sizeof value);
        struct importance p = read((struct mask_request){.name = path, .layer = -1});
        assert_true(p.value[0] == 0 && p.value[1] == 1 && p.value[2] == .25f &&
                    p.value[3] == .5f);
        importance_finish(&p);
    }
    static const double negative[][4] = {{1, 1, -1e-310, 1}, {1e300, 1, -1, 1}};
    for (int k = 0; k < 2; k++) {
        struct importance p;
        struct error e = {0};
        const struct mask_request r = {.name = path, .layer = -1};
        write_npy(path, "<f8", "(2, 2)", false, negative[k], sizeof negative[k]);
        assert_int_equal(importance_read(&r, &p, &e), -1);
        assert_non_null(strstr(e.text, "a negative value at head 0, query 1, key 0"));
    }
}

static void one_head_is_repeated(void **unused)
{
    (void)unused;
    static const float value[] = {0, 1, 2, 3};
    const char *path = test_path("one.npy");
    write_npy(path, "<f4", "(2, 2)", false, value, sizeof value);
    struct importance p = read((struct mask_request){.name = path, .layer = -1, .heads = 3});
    assert_true(p.layers == 1 && p.heads == 3 && p.n == 2);
    for (uint32_t h = 0; h < 3; h++)
        assert_memory_equal(importance_head(&p, 0, h), value, sizeof value);
    importance_finish(&p);
}

static void tensors_are_read_by_name(void **unused)
{
    (void)unused;
    float value[4] = {1, 0, .5f, 0};
    uint64_t shape[] = {2, 2}, size;
    struct safetensors s = {0};
    safetensors_add(&s, "a", "F32", 2, shape, value);
    safetensors_add(&s, "b", "F32", 2, shape, value);
    uint8_t *bytes = safetensors_write(&s, &size);
    safetensors_finish(&s);
    write_bytes(test_path("p.safetensors"), bytes, size);
    free(bytes);
    struct importance p = read(
        (struct mask_request){.name = test_path("p.safetensors"), .layer = -1, .tensor = "b"});
    assert_memory_equal(p.value, value, sizeof value);
    importance_finish(&p);
}

/* 1 / (1 + exp(-x)), by another way. */
static double logistic(double x)
{
    return .5 + .5 * tanh(x / 2);
}

static void learned_masks_are_probabilities(void **unused)
{
    (void)unused;
    static const float logits[3 * 2] = {1, -1, 0, 0, -2, 1.5f};
    static const float alpha[9] = {0, 1, -1, 2, 800, -800, .5f, 3, -3};
    write_npy(test_path("d.npy"), "<f4", "(1, 3, 2)", false, logits, sizeof logits);
    struct importance p =
        read((struct mask_request){.name = test_path("d.npy"), .layer = -1, .dam = true});
    for (uint32_t k = 0; k < 9; k++) {
        uint32_t i = k / 3, j = k % 3, d = i > j ? i - j : j - i;
        double want = logistic((double)logits[2 * d] - (double)logits[2 * d + 1]);
        assert_true(fabs((double)p.value[k] - want) < 1e-6);
    }
    importance_finish(&p);
    for (int border = 0; border < 2; border++) {
        write_npy(test_path("a.npy"), "<f4", "(1, 3, 3)", false, alpha, sizeof alpha);
        p = read((struct mask_request){
            .name = test_path("a.npy"), .layer = -1, .dam = true, .border = border});
        for (uint32_t k = 0; k < 9; k++) {
            double want = border && k != 4 ? 1 : logistic((double)alpha[k]);
            assert_true(fabs((double)p.value[k] - want) < 1e-6);
        }
        importance_finish(&p);
    }
}

/* clang-format off */
/* A .npy [n, n] or whatever `shape` says, a request for it, and the error behind the path. */
static const struct {
    const char *shape;
    float values[8];
    uint32_t count;
    struct mask_request request;
    const char *error;
} bad[] = {
    {"(2, 2)", {0, NAN, 1, 1}, 4, {0}, ": NaN at head 0, query 0, key 1, an importance of 0 or more is expected"},
    {"(2, 1, 2, 2)", {0, 0, 1, 1, 0, 0, -1, 1}, 8, {0}, ": a negative value at layer 1, head 0, query 1, key 0, an importance of 0 or more is expected"},
    {"(2, 2, 2)", {0, 0, 1, 1, 0, 0, 0, INFINITY}, 8, {0}, ": an infinite value at head 1, query 1, key 1, an importance of 0 or more is expected"},
    {"(2, 2)", {0}, 4, {0}, ": no value is above zero, nothing to keep"},
    {"(2, 2, 2)", {1, 1, 1, 1, 1, 1, 1, 1}, 8, {.heads = 3}, ": 2 heads, --heads 3 needs 1 or 3"},
    {"(1, 4)", {1, 1, 1, 1}, 4, {0}, ": 1 x 4 is not square, [n,n] is expected"},
    {"(8,)", {1}, 8, {0}, ": 1 dimensions, [n,n], [H,n,n] or [L,H,n,n] is expected"},
    {"(2, 2)", {1, 1, 1, 1}, 4, {.n = 3}, ": -n 3 is larger than the array's length 2"},
    {"(2, 2)", {1, 1, 1, 1}, 4, {.layer = 1}, ": --layer 1 is out of range, 0..0 is expected"},
    {"(2, 2)", {1, 1, 1, 1}, 4, {.has_keep = true}, ": an importance takes no --threshold or --keep"},
    {"(2, 2)", {1, 1, 1, 1}, 4, {.border = true}, ": --border goes with --dam"},
    {"(1, 1, 2, 4)", {1}, 8, {.dam = true}, ": --dam, parameters [H,n,2], [H,n,n] or [H,n-2] are expected, or L such"},
    {"(1, 4, 2)", {1, 1, 1, NAN}, 8, {.dam = true}, ": NaN at [0,1,1], finite numbers are expected"},
};
/* clang-format on */

static void what_is_none_is_refused(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct mask_request r = bad[k].request;
        struct importance p = {.n = 77};
        struct error e = {0};
        char line[512];
        r.name = test_path("bad.npy");
        r.layer = r.layer ? r.layer : -1;
        write_npy(r.name, "<f4", bad[k].shape, false, bad[k].values,
                  bad[k].count * sizeof(float));
        snprintf(line, sizeof line, "%s%s", r.name, bad[k].error);
        assert_int_equal(importance_read(&r, &p, &e), -1);
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_string_equal(e.text, line);
        assert_int_equal(p.n, 77);
    }
    struct error e = {0};
    struct importance p;
    const struct mask_request star = {.name = "star", .layer = -1, .n = 8};
    assert_int_equal(importance_read(&star, &p, &e), -1);
    assert_string_equal(e.text,
                        "star: an importance is an array: .npy or .safetensors is expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_read_as_they_stand),
        cmocka_unit_test(values_beyond_floats_keep_their_ratios),
        cmocka_unit_test(one_head_is_repeated),
        cmocka_unit_test(tensors_are_read_by_name),
        cmocka_unit_test(learned_masks_are_probabilities),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests_name("masks/importance", tests, NULL, test_folder_remove);
}
