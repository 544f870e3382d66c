/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of callers that know another version than the library: see runtime/API.md. */
#include "runtime/api/api.h"
#include "tests/runtime/paper.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Three versions of a struct; the library's is the second. */
struct first {
    size_t struct_size;
    uint64_t a;
};
struct ours {
    size_t struct_size;
    uint64_t a, b;
};
struct newer {
    size_t struct_size;
    uint64_t a, b, c;
};

static const struct api_struct type = {"thing", sizeof(struct first), sizeof(struct ours)};

static void structs_of_other_versions_are_taken(void **unused)
{
    (void)unused;
    const struct ours zero = {.a = 1, .b = 2}, whole = {sizeof whole, 1, 2};
    const struct first old = {sizeof old, 1};
    const struct newer later = {.struct_size = sizeof later, .a = 1, .b = 2};
    struct ours got;
    assert_int_equal(api_take(&type, &zero, &got, NULL), 0);
    assert_int_equal(got.a, 1);
    assert_int_equal(got.b, 0); /* beyond the first version */
    assert_int_equal(api_take(&type, &whole, &got, NULL), 0);
    assert_int_equal(got.b, 2);
    assert_int_equal(api_take(&type, &old, &got, NULL), 0);
    assert_int_equal(got.a, 1);
    assert_int_equal(got.b, 0);
    assert_int_equal(api_take(&type, &later, &got, NULL), 0);
    assert_int_equal(got.b, 2);
}

static void what_is_not_known_is_refused(void **unused)
{
    (void)unused;
    const struct newer later = {.struct_size = sizeof later, .c = 1};
    struct ours got = {.a = 7};
    struct error e = {0};
    assert_int_equal(api_take(&type, &later, &got, &e), -1);
    assert_non_null(strstr(e.text, "does not know"));
    for (size_t size = 1; size < sizeof(struct first); size++) {
        const struct ours o = {.struct_size = size};
        assert_int_equal(api_take(&type, &o, &got, &e), -1);
        assert_non_null(strstr(e.text, "of no version"));
    }
    const struct ours large = {.struct_size = SIZE_MAX};
    assert_int_equal(api_take(&type, &large, &got, &e), -1);
    assert_int_equal(got.a, 7); /* untouched */
}

static void no_more_is_given_than_the_caller_has(void **unused)
{
    (void)unused;
    const struct ours full = {0, 1, 2};
    struct newer zero = {.b = 8, .c = 9}, old = {sizeof(struct first), 0, 8, 9},
                 later = {.struct_size = sizeof later, .c = 9},
                 small = {.struct_size = 1, .a = 7};
    api_give(&type, &full, &zero);
    assert_int_equal(zero.struct_size, sizeof(struct first));
    assert_int_equal(zero.a, 1);
    assert_int_equal(zero.b, 8);
    api_give(&type, &full, &old);
    assert_int_equal(old.a, 1);
    assert_int_equal(old.b, 8);
    api_give(&type, &full, &later);
    assert_int_equal(later.struct_size, sizeof full);
    assert_int_equal(later.b, 2);
    assert_int_equal(later.c, 9);
    api_give(&type, &full, &small);
    assert_int_equal(small.a, 7);
}

/* Through the public functions. */
static void functions_look_at_the_size(void **unused)
{
    (void)unused;
    struct maskc_options options = {.struct_size = 8};
    struct maskc_bytes bytes = {0};
    struct maskc_error error;
    assert_int_equal(maskc_compile("star", &options, &bytes, &error), MASKC_BAD_INPUT);
    assert_string_equal(error.text, "options: struct_size 8 is of no version");
    struct paper *b = paper_new(true);
    b->launch.struct_size = 8;
    assert_true(maskc_workspace_bytes(&b->kernel, &b->launch) == UINT64_MAX);
    assert_int_equal(maskc_run(&b->kernel, &b->launch, &error), MASKC_BAD_INPUT);
    assert_string_equal(error.text, "launch: struct_size 8 is of no version");
    b->launch.struct_size = sizeof b->launch;
    assert_true(maskc_workspace_bytes(&b->kernel, &b->launch) < UINT64_MAX);
    paper_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_of_other_versions_are_taken),
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(no_more_is_given_than_the_caller_has),
        cmocka_unit_test(functions_look_at_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
