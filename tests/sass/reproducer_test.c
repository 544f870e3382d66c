/* SPDX-License-Identifier: Apache-2.0 */
/* The text that ptxas compiles wrong: reproducer.ptx gives the right result at -O0, so the text is right, and a wrong
   one at -O3, unless its flag is set before the loop. Says when a newer ptxas no longer has the fault. */
#include "masks/base/text.h"
#include "runtime/base/process.h"
#include "tests/sass/hopper/code.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <string.h>

enum { TILES = 10, STORED = TILES - 1, ROWS = 64, WHOLE = 32, MASKED = 1000 };

/* Whole tiles before partial ones, partial ones before whole ones, and some of a kind. The last one is loaded only. */
static const uint32_t tiles[TILES] = {5, 32, 32, 3, 32, 7, 8, 32, 32, 32};

/* Result with the fault where `ahead` is 1: a tile is masked where the next one is partial. */
static bool is_result(const uint32_t *out, uint32_t ahead)
{
    for (uint32_t k = 0; k < STORED; k++)
        if (out[k] != tiles[k] + (tiles[k + ahead] == WHOLE ? 0 : MASKED))
            return false;
    return true;
}

static void print_version(const char *ptxas)
{
    struct text said = {0};
    struct error e = {0};
    if (process_run((const char *[]){ptxas, "--version", NULL}, &said, &e))
        fail_msg("%s", e.text);
    const char *release = strstr(text_get(&said), "release");
    if (release)
        print_message("ptxas: %.*s\n", (int)strcspn(release, "\n"), release);
    text_finish(&said);
}

/* A warp of the kernel; all its lanes do the same. */
static void run(const char *ptxas, bool mended, const char *level, uint32_t *out)
{
    struct code c;
    const uint32_t zeros[STORED] = {0};
    uint32_t n = TILES, rows = ROWS;
    code_open_ptx(&c, ptxas, &(struct ptx){"reproducer.ptx", "sm_80", level, mended});
    void *from = code_put(&c, tiles, sizeof tiles), *to = code_put(&c, zeros, sizeof zeros);
    if (code_run(&c, 1, 32, 0, (void *[]){&from, &to, &n, &rows}))
        fail_msg("%s", c.why);
    memcpy(out, to, sizeof zeros);
    code_close(&c);
}

/* ---- the test ---- */

static void test_ptxas(void **state)
{
    const char *ptxas = code_find_ptxas();
    uint32_t out[STORED];
    (void)state;
    if (!ptxas) {
        print_message("skipped: no ptxas\n");
        skip();
    }
    print_version(ptxas);
    for (int mended = 0; mended < 2; mended++) {
        run(ptxas, mended, "-O0", out);
        assert_true(is_result(out, 0));
    }
    run(ptxas, true, "-O3", out);
    assert_true(is_result(out, 0));
    run(ptxas, false, "-O3", out);
    if (is_result(out, 0))
        print_message("this ptxas no longer has the fault: see words_are_whole in "
                      "templates/cuda/tiled/stream.h\n");
    else
        print_message("-O3 masks a tile where the next one is partial: the known fault\n");
    assert_true(is_result(out, 0) || is_result(out, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ptxas)};
    const char *missing = setup_missing();
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    return cmocka_run_group_tests_name("ptxas", tests, NULL, NULL);
}
