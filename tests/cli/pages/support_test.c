/* SPDX-License-Identifier: Apache-2.0 */
/* maskc support: each cell is what `plan` does with the same request; gen/SUPPORT.md has the table that it prints. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void page_has_the_table(void **state)
{
    size_t size;
    char *page = (char *)fixture_read(*state, &size);
    struct outcome o = shell_must("", "support --markdown");
    if (!strstr(page, o.out))
        fail_msg("%s differs from the output of `maskc support --markdown`; paste:\n%s",
                 (char *)*state, o.out);
    outcome_finish(&o);
    free(page);
}

static void lines_have_100_columns(void **state)
{
    (void)state;
    struct outcome o = shell_must("", "support");
    uint32_t lines = 0;
    for (char *rest = o.out, *line; (line = strsep(&rest, "\n")); lines++)
        if (strlen(line) > 100)
            fail_msg("%zu columns: %s", strlen(line), line);
    assert_true(lines > 20);
    outcome_finish(&o);
}

static void must_say(const char *line, const struct outcome *o, const char *says)
{
    if (!strstr(o->err, says))
        fail_msg("maskc %s: '%s' is expected: %s", line, says, o->err);
}

/* True if the plan has this family in the pass. refusal: what it says if there is no plan. */
static bool plan_has(const char *line, const char *pass, const char *family,
                     const char *refusal)
{
    struct outcome o = shell_run("", line);
    bool found = false;
    if (o.code == 2) {
        must_say(line, &o, refusal);
        outcome_finish(&o);
        return false;
    }
    json_t *plan = json_loads(o.out, 0, NULL), *mask;
    size_t k;
    if (!plan)
        fail_msg("maskc %s: exit code %d, %s", line, o.code, o.err);
    json_array_foreach(json_object_get(plan, "masks"), k, mask)
    {
        const char *of = json_string_value(json_object_get(mask, "pass"));
        const char *by = json_string_value(json_object_get(mask, "family"));
        found = found || (!strcmp(of, pass) && !strcmp(by, family));
    }
    json_decref(plan);
    outcome_finish(&o);
    return found;
}

static void check_pass(const char *line, const char *passes, const char *pass,
                       const char *family, const char *refusal)
{
    if (strcmp(passes, "both") && strcmp(passes, pass))
        return;
    if (plan_has(line, pass, family, refusal ? refusal : "") != !refusal)
        fail_msg("maskc %s: %s %s %s, support says otherwise", line, pass,
                 refusal ? "is by" : "is not by", family);
}

static uint32_t check_cell(const char *target, const char *dtype, const char *family,
                           const char *passes, json_t *cell)
{
    char line[256];
    const char *options = json_string_value(json_object_get(cell, "options"));
    const char *status = json_string_value(json_object_get(cell, "status"));
    const char *refusal = !strcmp(status, "refused") ? " is not supported\n"
                          : !strcmp(status, "other") ? " takes no pass of this for target "
                                                     : NULL;
    snprintf(line, sizeof line, "plan dense --target %s --dtype %s %s --family %s --json",
             target, dtype, options, family);
    check_pass(line, passes, "forward", family, refusal);
    check_pass(line, passes, "backward", family, refusal);
    return refusal != NULL;
}

/* A type that the target refuses altogether. */
static void check_refused_type(const char *target, const char *dtype)
{
    char line[128], says[64];
    snprintf(line, sizeof line, "plan dense -n 128 --target %s --dtype %s", target, dtype);
    snprintf(says, sizeof says, " for target %s\n", target);
    struct outcome o = shell_run("", line);
    assert_int_equal(o.code, 2);
    must_say(line, &o, says);
    outcome_finish(&o);
}

static const char *last_of(json_t *row, const char *name)
{
    json_t *list = json_object_get(row, name);
    return json_string_value(json_array_get(list, json_array_size(list) - 1));
}

static void check_row(json_t *row, uint32_t *cells, uint32_t *refused)
{
    const char *family = json_string_value(json_object_get(row, "family"));
    const char *dtype = last_of(row, "dtypes"), *target = last_of(row, "targets"), *name;
    json_t *cell;
    if (!family) {
        check_refused_type(target, dtype);
        ++*refused;
        return;
    }
    json_object_foreach(json_object_get(row, "features"), name, cell)
    {
        *refused += check_cell(target, dtype, family,
                               json_string_value(json_object_get(row, "pass")), cell);
        ++*cells;
    }
}

/* Each row by its last target and its last type. */
static void cells_are_what_plan_does(void **state)
{
    (void)state;
    json_t *all = shell_json("support --json", 0), *row;
    uint32_t cells = 0, refused = 0;
    size_t k;
    json_array_foreach(json_object_get(all, "support"), k, row)
        check_row(row, &cells, &refused);
    assert_true(cells > 100);
    assert_true(refused > 20);
    json_decref(all);
}

/* The words of the table: at least one row of each, and H100 rows for sm_90a only. */
static void statuses_are_all_there(void **state)
{
    (void)state;
    shell_says("support", "cuda_hopper   bf16, f16 both     emulated sm_90a\n");
    shell_says("support", "cuda_tiled    bf16, f16 both     run      sm_90a\n");
    shell_says("support", "cpu_vector    f32, f16  both     run      x86-64-v2, ");
    shell_says("support", "none          tf32      both     refused  x86-64-v2, ");
}

int main(int argc, char **argv)
{
    assert_int_equal(argc, 3);
    shell_start(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(page_has_the_table, argv[2]),
        cmocka_unit_test(lines_have_100_columns),
        cmocka_unit_test(cells_are_what_plan_does),
        cmocka_unit_test(statuses_are_all_there),
    };
    const int failed = cmocka_run_group_tests_name("cli/support", tests, NULL, NULL);
    shell_stop();
    return failed;
}
