/* SPDX-License-Identifier: Apache-2.0 */
/* The text view of every gallery mask's plan at length 128 against tests/golden/NAME.plan, for
   machines named in the table. `plan_view_test DIR --update` rewrites the files: read the diff. */
#include "gen/key_shape.h"
#include "gen/plan/plan.h"
#include "masks/base/file.h"
#include "masks/input/load.h"
#include "masks/language/gallery.h"
#include "tests/gen/golden.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *golden_dir;

extern const struct kernel_family family_cuda_hopper;

/* Its steps are told for each pass. */
static void test_steps(void **state)
{
    (void)state;
    struct error e = {0};
    const struct target *t = target_find("sm_90a", &e);
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = "causal", .n = 4096,
                                         .heads = 12};
    const struct kernel_request f = {.dtype = ABI_F16, .head_dim = 64, .backward = true};
    const struct plan_options o = {.family = &family_cuda_hopper};
    struct mask *m = mask_load(&request, NULL, &e);
    struct plan *p = plan_build(m, t, &f, machine_find("h100-mma", &e), &o, &e);
    struct text text = {0};
    plan_print(p, 16, 1, &text);
    assert_non_null(strstr(
        text_get(&text),
        "\n  forward   wide kernel, 3 x 64 rows, steps of 4 x 32 columns: 264 groups, "));
    assert_non_null(strstr(text_get(&text), "\n  dkv       wide kernel, 2 x 64 rows, "));
    json_t *j = plan_json(p, 16, 1), *steps = json_object_get(j, "steps");
    assert_int_equal(json_object_size(steps), PASSES);
    json_t *forward = json_object_get(steps, "forward");
    assert_string_equal(json_string_value(json_object_get(forward, "shape")), "wide");
    assert_int_equal(json_integer_value(json_object_get(forward, "groups")), 264);
    assert_true(json_integer_value(json_object_get(forward, "slots")) > 264);
    json_decref(j);
    text_finish(&text);
    plan_destroy(p);
    mask_destroy(m);
}

static struct plan *plan_gallery(const char *name, const char *target, struct mask **m)
{
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name, .n = 128};
    struct kernel_request f = {.head_dim = 64, .backward = true};
    const struct target *t = target_find(target, &e);
    f.dtype = t->matrix_machine ? ABI_BF16 : ABI_F32; /* what its matrix unit takes */
    *m = mask_load(&request, NULL, &e);
    struct plan *p =
        *m ? plan_build(*m, t, &f, machine_find(family_machine(t, &f), &e), NULL, &e) : NULL;
    if (!p || plan_check(p, *m, &e))
        fail_msg("%s: %s", name, e.text);
    return p;
}

static void check_golden(const char *name, const char *target)
{
    char path[4096];
    struct mask *m;
    struct plan *p = plan_gallery(name, target, &m);
    struct text text = {0};
    plan_print(p, 1, 1, &text);
    if (!strcmp(target, "x86-64-v4"))
        snprintf(path, sizeof path, "%s/%s.plan", golden_dir, name);
    else
        snprintf(path, sizeof path, "%s/%s.%s.plan", golden_dir, name, target);
    golden_compare(path, &text);
    text_finish(&text);
    plan_destroy(p);
    mask_destroy(m);
}

static void test_golden(void **state)
{
    (void)state;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        check_golden(g->name, "x86-64-v4");
    check_golden("dam-s-example", "sm_80");
    check_golden("longformer", "x86-64-v2");
    check_golden("dam-s-example", "x86-64-amx");
}

/* ---- lines that are the same whatever the prices are ---- */

/* A plan, and what its text must have. Keys: 0, or their number; the mask is aligned at the end. */
struct view_row {
    const char *mask, *target;
    uint32_t n, keys;
    enum abi_dtype dtype;
    const char *has[6];
    uint32_t heads; /* 0: 1 */
    bool shared;    /* another lowering is cheaper forward, not in dQ */
};

static struct plan *plan_row(const struct view_row *row, struct mask **m)
{
    struct error e = {0};
    const struct key_shape shape = {0, row->keys, MASK_ALIGN_END};
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = row->mask,
                                         .n = key_shape_side(&shape, row->n),
                                         .heads = row->heads};
    struct kernel_request f = {.dtype = row->dtype, .head_dim = 64, .backward = true};
    const struct target *t = target_find(row->target, &e);
    *m = mask_load(&request, NULL, &e);
    if (!*m || key_shape_apply(&shape, row->n, m, &f, &e))
        fail_msg("%s: %s", row->mask, e.text);
    f.length = (*m)->n;
    struct plan *p = plan_build(*m, t, &f, machine_find(family_machine(t, &f), &e), NULL, &e);
    if (!p || plan_check(p, *m, &e))
        fail_msg("%s: %s", row->mask, e.text);
    return p;
}

/* A plan is never dearer than a lowering that it rejects, unless that is only bounded from below, or the plan is for dQ
   too. */
static void check_rejected(const struct plan_summary *s, bool shared)
{
    for (uint32_t k = 0; k < s->n_rejected && !shared; k++)
        if (!s->rejected[k].family && !s->rejected[k].at_least &&
            s->rejected[k].predicted < s->predicted * (1 - 1e-9))
            fail_msg("%s is dearer than %s", s->lowering, s->rejected[k].lowering);
}

static const struct view_row lines[] = {
    {"dense",
     "x86-64-v4",
     1,
     4096,
     ABI_F32,
     {", 1 query, 4096 keys, ", "(1.00x), floor ", "rows are queries: dense\n",
      "executed  100.00% of", "0 row blocks, 1 single row; 1 row range\n"}},
    {"window(64)",
     "x86-64-v4",
     1,
     4096,
     ABI_F32,
     {"executed  1.59% of", "0 row blocks, 1 single row; 1 row range\n",
      "126 row_block, 2 diagonal, 1 global_row\n", "1 range, 1 column: 0..0\n"}},
    /* Row blocks that see nothing stay whole. */
    {"window(64)", "x86-64-amx", 1, 4096, ABI_BF16, {"    kernels   126 row_block, "}},
    {"window(2)",
     "x86-64-v4",
     128,
     300,
     ABI_F32,
     {"executed  1.66% of", "    visits    4 row blocks, 0 single rows; 20 lines\n",
      "    visits    9 row blocks, 12 single rows; 20 lines; 12 row ranges\n"}},
    {"dense", "sm_90a", 128, 4096, ABI_BF16, {"forward by cuda_hopper", "(1.00x), floor "}},
    {"random(0.02)", "x86-64-v4", 512, 0, ABI_F32, {", diagonal at least "}},
    {"logsparse", "x86-64-amx", 512, 0, ABI_BF16, {"; dq has the same plan\n"}, 1, true},
    {"logsparse", "x86-64-amx", 512, 0, ABI_BF16, {"rows are queries: diagonal\n"}, 12},
    {"dense", "x86-64-v4", 1, 0, ABI_F32, {"diagonal 0.08 us\n"}}, /* no rows after it */
    {"none",
     "x86-64-v4",
     256,
     0,
     ABI_F32,
     {"a head    predicted 1.96 us, ", ", floor 1.96 us (memory)\n    rejected  dense "}},
};

/* A square of the larger number is not what few queries or few keys cost, nor are rows that do not exist visited. */
static void test_lines(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        const struct view_row *row = &lines[k];
        struct mask *m;
        struct plan *p = plan_row(row, &m);
        struct text text = {0};
        plan_print(p, 1, 1, &text);
        for (size_t i = 0; i < 6 && row->has[i]; i++)
            if (!strstr(text_get(&text), row->has[i]))
                fail_msg("%s: no '%s' in\n%s", row->mask, row->has[i], text_get(&text));
        check_rejected(&p->forward.summary[0], row->shared);
        check_rejected(&p->transposed.summary[0], false);
        text_finish(&text);
        plan_destroy(p);
        mask_destroy(m);
    }
}

/* Kernels read the keys that the query sees: the floor is not that of all. They pack no more than these. */
static void test_floor(void **state)
{
    (void)state;
    double floor[2], packing[2];
    for (size_t k = 0; k < 2; k++) {
        const struct view_row row = {k ? "dense" : "window(64)", "x86-64-v4", 1, 4096, ABI_F32};
        struct mask *m;
        struct plan *p = plan_row(&row, &m);
        floor[k] = plan_floor(p, false, 0, 1, 1);
        const double dense = plan_predict_dense(p, true, 0, 1, 1);
        assert_true(dense < 4 * plan_predict(p, true, 0, 1, 1)); /* 171, if it were a square */
        plan_destroy(p);
        mask_destroy(m);
        const struct view_row more = {row.mask, row.target, 64, 4096, ABI_F32};
        p = plan_row(&more, &m);
        packing[k] = plan_predict(p, false, 0, 1, 1);
        plan_destroy(p);
        mask_destroy(m);
    }
    assert_true(packing[0] * 25 < packing[1]); /* 14, if all keys were packed */
    assert_true(floor[0] > 0 && floor[0] * 4096 / 65 < 1.1 * floor[1]);
}

/* 32 columns that lie 128 apart take far more packing than 32 neighbours: whole groups are packed. */
static void test_scattered_packing(void **state)
{
    (void)state;
    double seconds[2];
    for (size_t k = 0; k < 2; k++) {
        const struct view_row row = {k ? "summary(128, 1)" : "columns(3000..3031)", "x86-64-v3",
                                     16, 4096, ABI_F16};
        struct mask *m;
        struct plan *p = plan_row(&row, &m);
        seconds[k] = plan_predict(p, false, 0, 1, 1);
        plan_destroy(p);
        mask_destroy(m);
    }
    assert_true(seconds[0] * 4 < seconds[1]);
}

static double real(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    assert_true(json_is_real(x));
    return json_real_value(x);
}

static void check_entry(const json_t *entry)
{
    static const char *const bounds = "compute memory exp";
    assert_true(json_array_size(json_object_get(entry, "heads")) > 0);
    assert_true(json_array_size(json_object_get(entry, "at")) > 0);
    assert_true(json_string_value(json_object_get(entry, "lowering"))[0]);
    assert_non_null(strstr(bounds, json_string_value(json_object_get(entry, "bound"))));
    double fraction = real(entry, "executed_fraction");
    assert_true(fraction >= 0 && fraction <= 1);
    assert_true(real(entry, "predicted_s") <= real(entry, "dense_predicted_s"));
    assert_true(real(entry, "predicted_s") >= real(entry, "floor_s"));
    size_t k;
    json_t *rejected;
    json_array_foreach(json_object_get(entry, "rejected"), k, rejected)
    {
        assert_true(real(rejected, "predicted_s") > 0);
        if (!strcmp(json_string_value(json_object_get(rejected, "lowering")), "dense"))
            assert_true(fabs(real(rejected, "predicted_s") - real(entry, "dense_predicted_s")) <
                        1e-12);
        assert_string_not_equal(json_string_value(json_object_get(rejected, "lowering")),
                                json_string_value(json_object_get(entry, "lowering")));
    }
}

static void test_json(void **state)
{
    (void)state;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        struct mask *m;
        struct plan *p = plan_gallery(g->name, "x86-64-v4", &m);
        json_t *j = plan_json(p, 3, 2), *masks = json_object_get(j, "masks"), *entry;
        assert_string_equal(json_string_value(json_object_get(j, "target")), "x86-64-v4");
        assert_string_equal(json_string_value(json_object_get(j, "machine")), "x86-avx512");
        assert_int_equal(json_array_size(masks), 2 * p->n_masks);
        size_t k;
        json_array_foreach(masks, k, entry)
        {
            assert_string_equal(json_string_value(json_object_get(entry, "pass")),
                                k % 2 ? "backward" : "forward");
            check_entry(entry);
        }
        json_decref(j);
        plan_destroy(p);
        mask_destroy(m);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden),
                                       cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_floor),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_scattered_packing),
                                       cmocka_unit_test(test_steps)};
    if (argc < 2) {
        fprintf(stderr, "usage: plan_view_test GOLDEN_DIR [--update]\n");
        return 2;
    }
    golden_dir = argv[1];
    golden_update = argc > 2 && !strcmp(argv[2], "--update");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
