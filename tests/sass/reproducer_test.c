/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that ptxas compiles wrong: reproducer.ptx gives the right result at -O0, so the text is right, and a wrong
   one at -O3. Says when a newer ptxas no longer has the fault. */
#include "templates/abi.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int reproducer_abi = 5;

static const struct sass_case window = {
    {"window(100)"}, 1100, {.dtype = ABI_BF16, .head_dim = 32}};
static const char *source_folder;
static struct cache *cache;

static const char *find_ptxas(void)
{
    static char path[512];
    const char *const home = getenv("CUDA_HOME"), *const places[] = {home ? home
                                                                          : "/usr/local/cuda",
                                                                     "/usr/local/cuda"};
    for (size_t k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/bin/ptxas", places[k]);
        if (!access(path, X_OK))
            return path;
    }
    return NULL;
}

/* The last line of `ptxas --version` but one: "Cuda compilation tools, release 13.0, V13.0.88". */
static void print_version(const char *ptxas)
{
    char command[600], line[200];
    snprintf(command, sizeof command, "'%s' --version", ptxas);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "release"))
            print_message("ptxas: %s", line);
    if (f)
        pclose(f);
}

/* The largest error of O and LSE over what is allowed, as ptxas compiles the kernel at a level. */
static double error_at(const char *ptxas, int level)
{
    char cubin[] = "/tmp/maskc-reproducer-XXXXXX", command[1200];
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    double worst = 0;
    const int file = mkstemp(cubin);
    assert_true(file >= 0);
    close(file);
    snprintf(command, sizeof command,
             "'%s' -arch=sm_80 -O%d -o %s '%s/tests/sass/reproducer.ptx'", ptxas, level, cubin,
             source_folder);
    assert_int_equal(system(command), 0);
    setenv("MASKC_SASS_REPLACE", cubin, 1);
    struct maskc_kernel *k = setup_load(&window, "sm_80", cache);
    unsetenv("MASKC_SASS_REPLACE");
    unlink(cubin);
    const struct problem p = fixture_problem(k);
    if (check_problem(&(struct check){k, &p, false, 0, "window"}, &r, &count, &e) < 0)
        fail_msg("-O%d: %s", level, e.text);
    for (uint32_t x = 0; x < count; x++)
        worst = r[x].error / r[x].tolerance > worst ? r[x].error / r[x].tolerance : worst;
    free(r);
    kernel_unload(k);
    return worst;
}

static void test_ptxas(void **state)
{
    const char *ptxas = find_ptxas();
    (void)state;
    if (!ptxas || (int)ABI_VERSION != reproducer_abi) {
        print_message("skipped: %s\n", ptxas ? "the reproducer is of another ABI" : "no ptxas");
        skip();
    }
    print_version(ptxas);
    const double plain = error_at(ptxas, 0), optimised = error_at(ptxas, 3);
    print_message("error over what is allowed: %.2g at -O0, %.2g at -O3\n", plain, optimised);
    assert_true(plain <= 1);
    if (optimised <= 1)
        print_message("this ptxas no longer has the fault: see words_are_whole in "
                      "templates/cuda/tiled/stream.h\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ptxas)};
    const char *missing =
        argc > 1 ? setup_machine(argv, argv[1], "sm_80") : "no FOLDER is given";
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    source_folder = getenv("MASKC_SOURCE");
    cache = subject_start();
    const int r = cmocka_run_group_tests_name("ptxas", tests, NULL, NULL);
    subject_finish(cache);
    return r;
}
