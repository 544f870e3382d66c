/* SPDX-License-Identifier: Apache-2.0 */
/* The text view of every gallery mask's plan at length 128 against tests/golden/NAME.plan, for
   machines named in the table. `plan_view_test DIR --update` rewrites the files: read the diff. */
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
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_steps)};
    if (argc < 2) {
        fprintf(stderr, "usage: plan_view_test GOLDEN_DIR [--update]\n");
        return 2;
    }
    golden_dir = argv[1];
    golden_update = argc > 2 && !strcmp(argv[2], "--update");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
