/* SPDX-License-Identifier: Apache-2.0 */
/* file_write replaces files whole, and leaves alone what is no file: a link stays a link, a pipe gets the bytes, a
   directory or a full device is an error. */
#include "masks/base/file.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void enter_folder(void)
{
    char folder[] = "/tmp/maskc-file-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
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
    write_text("plain", "one");
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_pipe),
                                       cmocka_unit_test(test_device_and_folder)};
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
