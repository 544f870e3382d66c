/* SPDX-License-Identifier: Apache-2.0 */
/* file_write replaces files whole, and leaves alone what is no file: a link stays a link, a pipe gets the bytes, a
   directory or a full device is an error. A folder's files appear together or not at all. */
#include "masks/base/file.h"
#include "masks/base/folder.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The umask cannot be read without changing it, and another thread may create a file in between. */
mode_t umask(mode_t mask)
{
    fail_msg("umask(0%o): the process's own stays as it is", mask);
    return mask;
}

static void enter_folder(void)
{
    char folder[] = "/tmp/maskc-file-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("work", 0700), 0);
    assert_int_equal(chdir("work"), 0);
}

static void must_hold(const char *path, const char *text)
{
    struct file f;
    struct error e = {0};
    assert_int_equal(file_open(path, &f, &e), 0);
    assert_int_equal(f.size, strlen(text));
    assert_memory_equal(f.bytes, text, f.size);
    file_close(&f);
}

static void write_text(const char *path, const char *text)
{
    struct error e = {0};
    if (file_write(path, text, strlen(text), &e) < 0)
        fail_msg("%s", e.text);
}

static void test_files(void **state)
{
    struct stat s;
    (void)state;
    enter_folder();
    syscall(SYS_umask, 027);
    write_text("plain", "one");
    assert_int_equal(stat("plain", &s), 0);
    assert_int_equal(s.st_mode & 0777, 0640);
    write_text("plain", "another");
    must_hold("plain", "another");
    assert_int_equal(symlink("plain", "link"), 0);
    write_text("link", "through");
    must_hold("plain", "through");
    assert_int_equal(lstat("link", &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(system("test $(ls | wc -l) = 2"), 0); /* nothing was left aside */
}

static void test_pipe(void **state)
{
    struct stat s;
    (void)state;
    enter_folder();
    assert_int_equal(mkfifo("pipe", 0600), 0);
    FILE *reader = popen("cat pipe > got", "r");
    assert_non_null(reader);
    write_text("pipe", "bytes");
    assert_int_equal(pclose(reader), 0);
    must_hold("got", "bytes");
    assert_int_equal(stat("pipe", &s), 0);
    assert_true(S_ISFIFO(s.st_mode));
}

static void test_device_and_folder(void **state)
{
    struct error e = {0};
    struct stat s;
    (void)state;
    enter_folder();
    assert_int_equal(file_write("/dev/full", "x", 1, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_int_equal(stat("/dev/full", &s), 0);
    assert_true(S_ISCHR(s.st_mode));
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(file_write("folder", "x", 1, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
}

/* Writes inner/new and both; succeeds if `result` is 0. */
static int write_folder(const char *path, int result, struct error *e)
{
    struct folder f;
    char name[128];
    if (folder_begin(path, &f, e) < 0)
        return -1;
    snprintf(name, sizeof name, "%s/inner", f.aside);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(name, sizeof name, "%s/inner/new", f.aside);
    write_text(name, "new");
    snprintf(name, sizeof name, "%s/both", f.aside);
    write_text(name, "new");
    if (result < 0)
        error_set(e, ERROR_UNAVAILABLE, "%s: cannot be written", name);
    return folder_end(&f, result, e);
}

static void must_list(const char *files)
{
    assert_int_equal(
        system("find . -mindepth 1 ! -type d -o -empty | sort | tr '\\n' ' ' >../listing"), 0);
    must_hold("../listing", files);
}

static void test_new_folder(void **state)
{
    struct error e = {0};
    struct stat s;
    (void)state;
    enter_folder();
    syscall(SYS_umask, 027);
    assert_int_equal(write_folder("a/b/c//", -1, &e), -1);
    assert_string_equal(e.text, "a/b/c/both: cannot be written");
    must_list("");
    assert_int_equal(write_folder("a/b/c//", 0, &e), 0);
    must_list("./a/b/c/both ./a/b/c/inner/new ");
    assert_int_equal(stat("a/b/c", &s), 0);
    assert_int_equal(s.st_mode & 0777, 0750);
}

static void test_folder_that_exists(void **state)
{
    struct error e = {0};
    (void)state;
    enter_folder();
    assert_int_equal(system("mkdir -p old/inner; ln -s old link"), 0);
    write_text("old/both", "old");
    write_text("old/inner/stays", "old");
    assert_int_equal(write_folder("link", -1, &e), -1);
    assert_string_equal(e.text, "link/both: cannot be written");
    must_hold("old/both", "old");
    must_list("./link ./old/both ./old/inner/stays ");
    assert_int_equal(write_folder("link", 0, &e), 0);
    must_hold("old/both", "new");
    must_list("./link ./old/both ./old/inner/new ./old/inner/stays ");
    assert_int_equal(write_folder("old/both", 0, &e), -1);
    assert_string_equal(e.text, "old/both: not a directory");
    assert_int_equal(e.kind, ERROR_INPUT);
    must_hold("old/both", "new");
}

/* old/both is a folder: nothing is moved, not even what would fit. */
static void test_folder_in_a_files_place(void **state)
{
    struct error e = {0};
    (void)state;
    enter_folder();
    assert_int_equal(system("mkdir -p old/both"), 0);
    write_text("old/both/stays", "old");
    assert_int_equal(write_folder("old", 0, &e), -1);
    assert_string_equal(e.text, "old: cannot be written: Is a directory");
    must_list("./old/both/stays ");
}

static volatile sig_atomic_t ended;

static void note(int number)
{
    (void)number;
    ended = 1;
}

static void test_signals_wait(void **state)
{
    struct folder f;
    struct error e = {0};
    (void)state;
    enter_folder();
    signal(SIGTERM, note);
    assert_int_equal(folder_begin("new", &f, &e), 0);
    raise(SIGTERM);
    assert_false(ended);
    assert_int_equal(folder_end(&f, 0, &e), 0);
    assert_true(ended);
    assert_int_equal(access("new", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_pipe),
                                       cmocka_unit_test(test_device_and_folder),
                                       cmocka_unit_test(test_new_folder),
                                       cmocka_unit_test(test_folder_that_exists),
                                       cmocka_unit_test(test_folder_in_a_files_place),
                                       cmocka_unit_test(test_signals_wait)};
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
