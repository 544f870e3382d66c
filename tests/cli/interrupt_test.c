/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupted while a compiler runs, maskc ends, and leaves neither its temporary folder nor a
   half-written file. The compiler here is a script that sends the signal to its parent. */
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Which also leaves a file of its own where such files go. */
static void compiler_write(const char *signal)
{
    FILE *f = fopen("compiler.sh", "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\ncase \"$*\" in\n*kernel.so*) kill -%s $PPID; sleep 0.1\n", signal);
    fprintf(f, "    touch $TMPDIR/of-the-compiler ;;\nesac\n");
    fprintf(f, "exec cc \"$@\" -O0\n");
    fclose(f);
    assert_int_equal(chmod("compiler.sh", 0755), 0);
}

static void interrupt(const char *targets, const char *signal, int number)
{
    char line[128];
    snprintf(line, sizeof line, "compile star -n 32 --target %s -o k.mkb", targets);
    compiler_write(signal);
    assert_int_equal(system("rm -rf tmp && mkdir tmp"), 0);
    struct outcome o =
        shell_run("TMPDIR=tmp MASKC_CC=./compiler.sh XDG_CACHE_HOME=$PWD/tmp/cache", line);
    assert_int_equal(o.code, 128 + number);
    outcome_finish(&o);
    char *listing = shell_listing();
    assert_null(strstr(listing, "maskc-"));
    assert_null(strstr(listing, "of-the-compiler"));
    assert_null(strstr(listing, "k.mkb"));
    free(listing);
}

static void test_interrupt(void **state)
{
    (void)state;
    interrupt("cpu", "INT", 2);
    interrupt("cpu", "TERM", 15);
    interrupt("x86-64-v2,x86-64-v3,x86-64-v4", "HUP", 1); /* on several threads */
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupt)};
    if (count != 2)
        return 1;
    /* A shell ignores SIGINT for tests that it runs in the background. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    shell_start(argument[1]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shell_stop();
    return failed;
}
