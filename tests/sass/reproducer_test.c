/* SPDX-License-Identifier: Apache-2.0 */
/* The text that ptxas compiles wrong: reproducer.ptx gives the right result at -O0, so the text is right, and a wrong
   one at -O3, unless its flag is set before the loop. Says when a newer ptxas no longer has the fault. */
#include "masks/base/file.h"
#include "masks/base/text.h"
#include "runtime/base/process.h"
#include "runtime/device/cuda_context.h"
#include "tests/support/sass_setup.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TILES = 10, STORED = TILES - 1, ROWS = 64, WHOLE = 32, MASKED = 1000 };

/* Whole tiles before partial ones, partial ones before whole ones, and some of a kind. The last one is loaded only. */
static const uint32_t tiles[TILES] = {5, 32, 32, 3, 32, 7, 8, 32, 32, 32};

/* What the fault makes of it, where `ahead` is 1: a tile is masked where the next one is partial. */
static bool is_result(const uint32_t *out, uint32_t ahead)
{
    for (uint32_t k = 0; k < STORED; k++)
        if (out[k] != tiles[k] + (tiles[k + ahead] == WHOLE ? 0 : MASKED))
            return false;
    return true;
}

/* ---- ptxas ---- */

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

static void must(int result, const struct error *e)
{
    if (result)
        fail_msg("%s", e->text);
}

/* "release 13.0, V13.0.88" */
static void print_version(const char *ptxas)
{
    struct text said = {0};
    struct error e = {0};
    must(process_run((const char *[]){ptxas, "--version", NULL}, &said, &e), &e);
    const char *release = strstr(text_get(&said), "release");
    if (release)
        print_message("ptxas: %.*s\n", (int)strcspn(release, "\n"), release);
    text_finish(&said);
}

/* The reproducer as it is, or with the instruction that mends it. */
static void write_text(const char *path, bool mended)
{
    static const char mark[] = "// mends: ";
    char from[512];
    struct file f = {0};
    struct text t = {0};
    struct error e = {0};
    snprintf(from, sizeof from, "%s/tests/sass/reproducer.ptx", getenv("MASKC_SOURCE"));
    must(file_open(from, &f, &e), &e);
    text_append(&t, (const char *)f.bytes, f.size);
    file_close(&f);
    char *marked = strstr(t.bytes, mark);
    assert_non_null(marked);
    if (mended)
        memset(marked, ' ', strlen(mark));
    must(file_write(path, t.bytes, t.length, &e), &e);
    text_finish(&t);
}

/* The text's machine code in `f`, which is to be closed. */
static void compile(const char *ptxas, bool mended, const char *level, struct file *f)
{
    struct error e = {0};
    struct text said = {0};
    char *folder = folder_temporary(&e), ptx[512], cubin[512];
    assert_non_null(folder);
    snprintf(ptx, sizeof ptx, "%s/reproducer.ptx", folder);
    snprintf(cubin, sizeof cubin, "%s/reproducer.cubin", folder);
    write_text(ptx, mended);
    const char *const command[] = {ptxas, "-arch=sm_80", level, "-o", cubin, ptx, NULL};
    if (process_run(command, &said, &e))
        fail_msg("ptxas: %s%s", e.text, text_get(&said));
    must(file_open(cubin, f, &e), &e);
    folder_remove(folder);
    free(folder);
    text_finish(&said);
}

/* ---- the machine ---- */

struct arguments {
    cu_pointer tiles, out;
    uint32_t n, rows;
};

/* A warp of the kernel in an image; all its lanes do the same. */
static void launch(const uint8_t *image, uint32_t *out)
{
    struct error e_of = {0}, *e = &e_of;
    struct cuda_context c = {0};
    struct cu_module *module;
    struct cu_function *function;
    must(cuda_context_open(&c, 0, e) || cuda_enter(&c, e), e);
    must(CALL(cuModuleLoadDataEx, &module, image, 0, NULL, NULL), e);
    must(CALL(cuModuleGetFunction, &function, module, "mask_partial_tiles"), e);
    void *from = cuda_allocate(&c, sizeof tiles, e), *to = cuda_allocate(&c, sizeof tiles, e);
    must(cuda_send(&c, from, tiles, sizeof tiles, NULL, e), e);
    struct arguments a = {(cu_pointer)(uintptr_t)from, (cu_pointer)(uintptr_t)to, TILES, ROWS};
    void *argument[] = {&a.tiles, &a.out, &a.n, &a.rows};
    must(CALL(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, NULL, argument, NULL), e);
    must(cuda_fetch(&c, out, to, STORED * sizeof *out, NULL, e), e);
    cuda_release(&c, from);
    cuda_release(&c, to);
    must(CALL(cuModuleUnload, module), e);
    cuda_leave();
    cuda_context_close(&c);
}

static void run(const char *ptxas, bool mended, const char *level, uint32_t *out)
{
    struct file cubin = {0};
    compile(ptxas, mended, level, &cubin);
    launch(cubin.bytes, out);
    file_close(&cubin);
}

/* ---- the test ---- */

static void test_ptxas(void **state)
{
    const char *ptxas = find_ptxas();
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ptxas)};
    const char *missing =
        argc > 1 ? setup_machine(argv, argv[1], "sm_80") : "no FOLDER is given";
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    return cmocka_run_group_tests_name("ptxas", tests, NULL, NULL);
}
