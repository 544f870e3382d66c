/* SPDX-License-Identifier: Apache-2.0 */
/* The cache gives back what was put into it or nothing, whoever else is at work in the folder and
   whatever happened to its files. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/cache.h"
#include "runtime/compile/compile.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char *new_folder(void)
{
    char *path = memory_text("/tmp/maskc-cache-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static void remove_folder(char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *at; d && (at = readdir(d));)
        unlinkat(dirfd(d), at->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
    free(path);
}

static char *path_in(const char *folder, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    return path;
}

/* Content k of the tests: recognisable, of its own length. */
static size_t content(uint32_t k, uint8_t *ret)
{
    size_t size = 1000 + 37 * (size_t)k;
    for (size_t i = 0; i < size; i++)
        ret[i] = (uint8_t)(i * 7 + k);
    return size;
}

static struct cache_key key_of(uint32_t k)
{
    return cache_key(&k, sizeof k);
}

static void put(struct cache *c, uint32_t k)
{
    uint8_t bytes[8192];
    cache_put(c, key_of(k), bytes, content(k, bytes));
}

/* True for a hit, which must be the right bytes. */
static bool hit(struct cache *c, uint32_t k)
{
    uint8_t expected[8192], *got = NULL;
    uint64_t size = 0;
    if (!cache_get(c, key_of(k), &got, &size))
        return false;
    assert_int_equal(size, content(k, expected));
    assert_memory_equal(got, expected, size);
    free(got);
    return true;
}

static uint32_t entries(struct cache *c)
{
    uint32_t count;
    free(cache_list(c, &count));
    return count;
}

static void what_was_put_comes_back(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct cache *c = cache_open(folder);
    assert_string_equal(cache_directory(c), folder);
    assert_false(hit(c, 1));
    put(c, 1);
    put(c, 2);
    assert_true(hit(c, 1));
    assert_true(hit(c, 2));
    assert_false(hit(c, 3));
    put(c, 1); /* again: the same */
    assert_true(hit(c, 1));
    assert_int_equal(entries(c), 2);
    assert_int_equal(cache_clear(c), 2);
    assert_false(hit(c, 1));
    cache_close(c);
    remove_folder(folder);
}

/* An entry that was cut, changed or exchanged is a miss, goes away, and can be put again. */
static void damaged_entries_are_misses(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct cache *c = cache_open(folder);
    put(c, 0);
    uint32_t count;
    struct cache_entry *list = cache_list(c, &count);
    assert_int_equal(count, 1);
    char *path = path_in(folder, list[0].name);
    struct file f;
    assert_int_equal(file_open(path, &f, NULL), 0);
    size_t size = f.size;
    uint8_t *bytes = memory_copy(f.bytes, size);
    file_close(&f);
    for (size_t at = 0; at < size; at += 3) {
        bytes[at] ^= 0x10;
        assert_int_equal(file_write(path, bytes, size, NULL), 0);
        assert_false(hit(c, 0));
        assert_int_equal(access(path, F_OK), -1);
        bytes[at] ^= 0x10;
    }
    for (size_t cut = 0; cut < size; cut += 13) {
        assert_int_equal(file_write(path, bytes, cut, NULL), 0);
        assert_false(hit(c, 0));
    }
    put(c, 1);
    struct cache_entry *other = cache_list(c, &count);
    assert_int_equal(count, 1);
    char *other_path = path_in(folder, other[0].name);
    assert_int_equal(rename(other_path, path), 0); /* sound, but under another key's name */
    assert_false(hit(c, 0));
    put(c, 0);
    assert_true(hit(c, 0));
    free(list);
    free(other);
    free(path);
    free(other_path);
    free(bytes);
    cache_close(c);
    remove_folder(folder);
}

/* Gives entry k of the folder a time of last use. */
static void set_used(struct cache *c, uint32_t k, time_t when)
{
    char name[40];
    struct cache_key key = key_of(k);
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)key.high,
             (unsigned long long)key.low);
    char *path = path_in(cache_directory(c), name);
    assert_int_equal(
        utimensat(AT_FDCWD, path, (struct timespec[]){{.tv_sec = when}, {.tv_sec = when}}, 0),
        0);
    free(path);
}

static void the_oldest_entries_go_first(void **state)
{
    (void)state;
    char *folder = new_folder();
    setenv("MASKC_CACHE_LIMIT", "4000", 1);
    struct cache *c = cache_open(folder);
    unsetenv("MASKC_CACHE_LIMIT");
    for (uint32_t k = 0; k < 3; k++) { /* about 1050 bytes each with their heads */
        put(c, k);
        set_used(c, k, 1000 + (time_t)k);
    }
    assert_int_equal(entries(c), 3);
    assert_true(hit(c, 0)); /* which makes it the newest */
    put(c, 3);              /* too much: 1, the oldest, goes */
    assert_true(hit(c, 0));
    assert_false(hit(c, 1));
    assert_true(hit(c, 2));
    assert_true(hit(c, 3));
    uint8_t large[5000] = {0};
    cache_put(c, key_of(9), large, sizeof large); /* larger than the limit: not kept */
    assert_int_equal(entries(c), 3);
    cache_close(c);
    remove_folder(folder);
}

/* Eight processes put, read, damage and clear the same few keys: no read is ever wrong. */
static void processes_share_a_folder(void **state)
{
    (void)state;
    enum { PROCESSES = 8, ROUNDS = 150, KEYS = 5 };
    char *folder = new_folder();
    pid_t child[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        if (child[p] == 0) {
            struct cache *c = cache_open(folder);
            int hits = 0;
            for (uint32_t r = 0; r < ROUNDS; r++) {
                uint32_t k = (r * 7 + (uint32_t)p) % KEYS;
                if (hit(c, k))
                    hits++;
                else
                    put(c, k);
                if (p == 0 && r % 20 == 19)
                    cache_clear(c);
            }
            _exit(hits > 0 ? 0 : 1);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(child[p], &status, 0), child[p]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    struct cache *c = cache_open(folder);
    assert_true(entries(c) <= KEYS);
    cache_close(c);
    remove_folder(folder);
}

/* No folder, one that cannot be made, one that everybody may write to: valid, never a hit. */
static void a_cache_without_a_folder_is_empty(void **state)
{
    (void)state;
    char *folder = new_folder(), *file = path_in(folder, "file"),
         *below = path_in(file, "below");
    assert_int_equal(file_write(file, "x", 1, NULL), 0);
    const char *const places[] = {"", file, below, "/proc/none"};
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        struct cache *c = cache_open(places[k]);
        put(c, 1);
        assert_false(hit(c, 1));
        assert_int_equal(entries(c), 0);
        cache_close(c);
    }
    put(NULL, 1);
    assert_false(hit(NULL, 1));
    assert_int_equal(chmod(folder, 0777), 0);
    struct cache *c = cache_open(folder);
    put(c, 1);
    assert_false(hit(c, 1));
    cache_close(c);
    free(file);
    free(below);
    remove_folder(folder);
}

static void the_folder_is_where_xdg_says(void **state)
{
    (void)state;
    static const struct {
        const char *xdg, *home, *expected;
    } cases[] = {
        {"/tmp/x", "/tmp/h", "/tmp/x/maskc"},
        {NULL, "/tmp/h", "/tmp/h/.cache/maskc"},
        {"relative", "/tmp/h", "/tmp/h/.cache/maskc"},
        {NULL, NULL, ""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cases[k].xdg ? setenv("XDG_CACHE_HOME", cases[k].xdg, 1) : unsetenv("XDG_CACHE_HOME");
        cases[k].home ? setenv("HOME", cases[k].home, 1) : unsetenv("HOME");
        struct cache *c = cache_open(NULL);
        assert_string_equal(cache_directory(c), cases[k].expected);
        cache_close(c);
    }
}

/* ---- threads ---- */

enum { MAKERS = 4, KEYS = 3 };

struct makers {
    struct cache *cache;
    atomic_uint made[KEYS], at_work[KEYS];
};

/* Makes what is not there, slowly; alone with its key. */
static void *make_all(void *context)
{
    struct makers *m = context;
    for (uint32_t k = 0; k < KEYS; k++) {
        uint8_t *bytes = NULL;
        uint64_t size;
        cache_begin(m->cache, key_of(k));
        bool alone = atomic_fetch_add(&m->at_work[k], 1) == 0;
        if (!alone || !cache_get(m->cache, key_of(k), &bytes, &size)) {
            atomic_fetch_add(&m->made[k], 1);
            usleep(20000);
            put(m->cache, k);
        }
        free(bytes);
        atomic_fetch_sub(&m->at_work[k], 1);
        cache_end(m->cache, key_of(k));
    }
    return NULL;
}

static void one_thread_makes_an_entry(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct makers m = {.cache = cache_open(folder)};
    pthread_t thread[MAKERS];
    for (int k = 0; k < MAKERS; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, make_all, &m), 0);
    for (int k = 0; k < MAKERS; k++)
        pthread_join(thread[k], NULL);
    for (uint32_t k = 0; k < KEYS; k++) {
        assert_int_equal(m.made[k], 1);
        assert_true(hit(m.cache, k));
    }
    cache_close(m.cache);
    remove_folder(folder);
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
    char *folder = new_folder();
    struct cache *c = cache_open(folder);
    compile_for("x86-64-v4", c);
    compile_for("x86-64-bf16", c);
    compile_for("x86-64-amx", c);
    assert_int_equal(entries(c), 1);
    compile_for("x86-64-v3", c);
    assert_int_equal(entries(c), 2);
    cache_close(c);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_comes_back),
        cmocka_unit_test(damaged_entries_are_misses),
        cmocka_unit_test(the_oldest_entries_go_first),
        cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(a_cache_without_a_folder_is_empty),
        cmocka_unit_test(the_folder_is_where_xdg_says),
        cmocka_unit_test(one_thread_makes_an_entry),
        cmocka_unit_test(levels_of_one_architecture_share_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
