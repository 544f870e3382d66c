/* SPDX-License-Identifier: Apache-2.0 */
/* The cache gives back what was put into it or nothing, whatever happened to its files. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/base/cache_folder.h"
#include "runtime/compile/compile.h"
#include "tests/runtime/cache_folder.h"
#include "tests/support/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void what_was_put_comes_back(void **state)
{
    (void)state;
    char *folder = cache_folder_new();
    struct cache *c = cache_open(folder);
    assert_string_equal(cache_directory(c), folder);
    assert_false(cache_content_hit(c, 1));
    cache_content_put(c, 1);
    cache_content_put(c, 2);
    assert_true(cache_content_hit(c, 1));
    assert_true(cache_content_hit(c, 2));
    assert_false(cache_content_hit(c, 3));
    cache_content_put(c, 1); /* again: the same */
    assert_true(cache_content_hit(c, 1));
    assert_int_equal(cache_content_count(c), 2);
    assert_int_equal(cache_clear(c), 2);
    assert_false(cache_content_hit(c, 1));
    cache_close(c);
    cache_folder_remove(folder);
}

/* An entry that was cut, changed or exchanged is a miss, goes away, and can be put again. */
static void damaged_entries_are_misses(void **state)
{
    (void)state;
    char *folder = cache_folder_new();
    struct cache *c = cache_open(folder);
    cache_content_put(c, 0);
    uint32_t count;
    struct cache_entry *list = cache_list(c, &count);
    assert_int_equal(count, 1);
    char *path = cache_folder_path(folder, list[0].name);
    struct file f;
    assert_int_equal(file_open(path, &f, NULL), 0);
    size_t size = f.size;
    uint8_t *bytes = memory_copy(f.bytes, size);
    file_close(&f);
    for (size_t at = 0; at < size; at += 3) {
        bytes[at] ^= 0x10;
        assert_int_equal(file_write(path, bytes, size, NULL), 0);
        assert_false(cache_content_hit(c, 0));
        assert_int_equal(access(path, F_OK), -1);
        bytes[at] ^= 0x10;
    }
    for (size_t cut = 0; cut < size; cut += 13) {
        assert_int_equal(file_write(path, bytes, cut, NULL), 0);
        assert_false(cache_content_hit(c, 0));
    }
    cache_content_put(c, 1);
    struct cache_entry *other = cache_list(c, &count);
    assert_int_equal(count, 1);
    char *other_path = cache_folder_path(folder, other[0].name);
    assert_int_equal(rename(other_path, path), 0); /* sound, but under another key's name */
    assert_false(cache_content_hit(c, 0));
    cache_content_put(c, 0);
    assert_true(cache_content_hit(c, 0));
    free(list);
    free(other);
    free(path);
    free(other_path);
    free(bytes);
    cache_close(c);
    cache_folder_remove(folder);
}

/* Gives entry k of the folder a time of last use. */
static void set_used(struct cache *c, uint32_t k, time_t when)
{
    char name[40];
    struct cache_key key = cache_content_key(k);
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)key.high,
             (unsigned long long)key.low);
    char *path = cache_folder_path(cache_directory(c), name);
    assert_int_equal(
        utimensat(AT_FDCWD, path, (struct timespec[]){{.tv_sec = when}, {.tv_sec = when}}, 0),
        0);
    free(path);
}

static void the_oldest_entries_go_first(void **state)
{
    (void)state;
    char *folder = cache_folder_new();
    setenv("MASKC_CACHE_LIMIT", "4000", 1);
    struct cache *c = cache_open(folder);
    unsetenv("MASKC_CACHE_LIMIT");
    for (uint32_t k = 0; k < 3; k++) { /* about 1050 bytes each with their heads */
        cache_content_put(c, k);
        set_used(c, k, 1000 + (time_t)k);
    }
    assert_int_equal(cache_content_count(c), 3);
    assert_true(cache_content_hit(c, 0)); /* which makes it the newest */
    cache_content_put(c, 3);              /* too much: 1, the oldest, goes */
    assert_true(cache_content_hit(c, 0));
    assert_false(cache_content_hit(c, 1));
    assert_true(cache_content_hit(c, 2));
    assert_true(cache_content_hit(c, 3));
    uint8_t large[5000] = {0};
    /* larger than the limit: not kept */
    cache_put(c, cache_content_key(9), large, sizeof large);
    assert_int_equal(cache_content_count(c), 3);
    cache_close(c);
    cache_folder_remove(folder);
}

/* No folder, one that cannot be made, one that everybody may write to: valid, never a hit. */
static void a_cache_without_a_folder_is_empty(void **state)
{
    (void)state;
    char *folder = cache_folder_new(), *file = cache_folder_path(folder, "file"),
         *below = cache_folder_path(file, "below");
    assert_int_equal(file_write(file, "x", 1, NULL), 0);
    const char *const places[] = {"", file, below, "/proc/none"};
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        struct cache *c = cache_open(places[k]);
        cache_content_put(c, 1);
        assert_false(cache_content_hit(c, 1));
        assert_int_equal(cache_content_count(c), 0);
        cache_close(c);
    }
    cache_content_put(NULL, 1);
    assert_false(cache_content_hit(NULL, 1));
    assert_int_equal(chmod(folder, 0777), 0);
    struct cache *c = cache_open(folder);
    cache_content_put(c, 1);
    assert_false(cache_content_hit(c, 1));
    cache_close(c);
    free(file);
    free(below);
    cache_folder_remove(folder);
}

static void the_folder_is_where_xdg_says(void **state)
{
    (void)state;
    char *folder = cache_folder_new(), *x = cache_folder_path(folder, "x"),
         *h = cache_folder_path(folder, "h"), *in_x = cache_folder_path(x, "maskc"),
         *in_h = cache_folder_path(h, ".cache/maskc");
    const struct {
        const char *xdg, *home, *expected;
    } cases[] = {{x, h, in_x}, {NULL, h, in_h}, {"relative", h, in_h}, {NULL, NULL, ""}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cases[k].xdg ? setenv("XDG_CACHE_HOME", cases[k].xdg, 1) : unsetenv("XDG_CACHE_HOME");
        cases[k].home ? setenv("HOME", cases[k].home, 1) : unsetenv("HOME");
        struct cache *c = cache_open(NULL);
        assert_string_equal(cache_directory(c), cases[k].expected);
        cache_close(c);
    }
    char *const paths[] = {x, h, in_x, in_h};
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++)
        free(paths[k]);
    cache_folder_remove(folder);
}

/* Runs in a process of a user who may read the folder, but not write to it. Returns its exit code: 0 if both functions say so. */
static int as_a_reader(const char *folder)
{
    struct error e = {0};
    char *missing = cache_folder_path(folder, "more/maskc");
    if (geteuid() == 0 && setuid(65534) < 0)
        return 1;
    if (cache_folder_trusted(folder, &e) < 0 || cache_folder_writable(folder, &e) == 0)
        return 2;
    const bool named =
        strstr(e.text, ": Permission denied") && !strncmp(e.text, folder, strlen(folder));
    return !named || cache_folder_writable(missing, &e) == 0;
}

static void a_folder_that_cannot_serve_is_named(void **state)
{
    (void)state;
    struct error e = {0};
    char *folder = cache_folder_new(), *missing = cache_folder_path(folder, "more/maskc");
    assert_int_equal(cache_folder_trusted(missing, &e), 0);
    assert_int_equal(cache_folder_writable(missing, &e), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    const pid_t reader = fork();
    if (!reader)
        _exit(as_a_reader(folder));
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(cache_folder_trusted(folder, &e), -1);
        assert_non_null(strstr(e.text, " is owned by user 65534, maskc runs as 0"));
    }
    free(missing);
    assert_int_equal(chmod(folder, 0755), 0);
    cache_folder_remove(folder);
}

/* ---- compiled code ---- */

static void compile_for(const char *target, struct cache *c)
{
    const struct kernel_config f = {.request = {.head_dim = 16}};
    struct error e = {0};
    struct binary b;
    const struct target *t = target_find(target, &e);
    struct source *s = emit_source(t, &f);
    if (compile_source(s, t, c, &b, &e))
        fail_msg("%s", e.text);
    binary_finish(&b);
    source_destroy(s);
}

/* In floats a level with a matrix unit has the text and the flags of the one without. */
static void levels_of_one_architecture_share_code(void **state)
{
    (void)state;
    char *folder = cache_folder_new();
    struct cache *c = cache_open(folder);
    compile_for("x86-64-v4", c);
    compile_for("x86-64-bf16", c);
    compile_for("x86-64-amx", c);
    assert_int_equal(cache_content_count(c), 1);
    compile_for("x86-64-v3", c);
    assert_int_equal(cache_content_count(c), 2);
    cache_close(c);
    cache_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_comes_back),
        cmocka_unit_test(damaged_entries_are_misses),
        cmocka_unit_test(the_oldest_entries_go_first),
        cmocka_unit_test(a_cache_without_a_folder_is_empty),
        cmocka_unit_test(the_folder_is_where_xdg_says),
        cmocka_unit_test(a_folder_that_cannot_serve_is_named),
        cmocka_unit_test(levels_of_one_architecture_share_code),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
