/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of known cases: what is not listed runs, as does one case in sixteen; a list is written where nothing failed; what is changed, in a
   case or in what all have in common, is not known. */
#include "tests/support/known/known.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CASES = 20 };

static struct known list;

static struct cache_key key_of(uint32_t number)
{
    return cache_key(&number, sizeof number);
}

/* Asks for CASES cases from `first` on; how many need not run. */
static uint32_t count_skips(uint32_t common, uint32_t first, bool update, int failed)
{
    uint32_t count = 0;
    known_start(&list, "toy", key_of(common), update);
    for (uint32_t k = 0; k < CASES; k++)
        count += known_skips(&list, key_of(first + k));
    assert_int_equal(known_finish(&list, failed), failed);
    return count;
}

static void test_list(void **state)
{
    (void)state;
    const uint32_t most = CASES - 2;                  /* the cases 0 and 16 run */
    assert_int_equal(count_skips(1, 0, false, 0), 0); /* no list */
    assert_int_equal(count_skips(1, 0, true, 1), 0);  /* failed: not written */
    assert_int_equal(count_skips(1, 0, false, 0), 0);
    assert_int_equal(count_skips(1, 0, true, 0), 0);
    assert_int_equal(count_skips(1, 0, false, 0), most);
    assert_int_equal(count_skips(1, 14, false, 0), 5); /* six of them listed */
    assert_int_equal(count_skips(2, 0, false, 0), 0);
    unsetenv("MASKC_KNOWN");
    assert_int_equal(count_skips(1, 0, false, 0), 0);
}

static void test_files(void **state)
{
    (void)state;
    const char *const one[] = {"one.*", NULL}, *const both[] = {"one.*", "two.c", NULL};
    const struct cache_key before = known_key_of_files(one), two = known_key_of_files(both);
    assert_int_not_equal(before.low, two.low);
    assert_int_equal(before.low, known_key_of_files(one).low);
    FILE *f = fopen("one.h", "a");
    assert_non_null(f);
    assert_true(fputs("int more;\n", f) >= 0 && fclose(f) == 0);
    assert_int_not_equal(before.low, known_key_of_files(one).low);
}

int main(void)
{
    char folder[] = "/tmp/maskc-known-XXXXXX", line[64];
    if (!mkdtemp(folder) || chdir(folder) ||
        system("echo 'int one;' >one.h; echo 'int two;' >two.c"))
        return 1;
    setenv("MASKC_KNOWN", folder, 1);
    setenv("MASKC_SOURCE", folder, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list),
                                       cmocka_unit_test(test_files)};
    const int failed = cmocka_run_group_tests_name("known", tests, NULL, NULL);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return failed + (system(line) != 0);
}
