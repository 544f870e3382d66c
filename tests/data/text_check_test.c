/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are not UTF-8 are counted as Python's decoder replaces them; other formats are named; Latin-1 is accepted,
   and what is mostly not text is refused. */
#include "masks/base/memory.h"
#include "model/data/text_check.h"
#include "model/data/text_reader.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *line;
    uint64_t replaced, controls; /* bytes */
} lines[] = {
    {"plain ASCII of some length\twith a tab", 0, 0},
    {"caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80 \xef\xbf\xbd", 0, 0},
    {"caf\xe9", 1, 0},
    {"a long line of ASCII before \xe9t\xe9 and after it", 2, 0},
    {"\xe6\x97 \xf0\x9f\x98 \xc3", 6, 0},
    {"\xed\xa0\x80", 3, 0},            /* a surrogate */
    {"\xc0\xaf \xf5\x80", 4, 0},       /* overlong; beyond U+10FFFF */
    {"\x01\x02 \x7f \x1b[0m\f", 0, 3}, /* escape sequences and form feeds are text */
    {"12345678\x01"
     "2345678",
     0, 1},
};

static void bytes_are_counted(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        struct text_check c = {0};
        text_check_line(&c, "", 0);
        text_check_line(&c, lines[k].line, strlen(lines[k].line));
        assert_int_equal(c.replaced, lines[k].replaced);
        assert_int_equal(c.controls, lines[k].controls);
        assert_int_equal(c.first_line, lines[k].replaced ? 2 : 0);
        assert_int_equal(c.bytes, strlen(lines[k].line) + 2);
    }
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *bytes;
    size_t size;
    const char *error; /* null: none */
} heads[] = {
    {BYTES(""), NULL},
    {BYTES("a"), NULL},
    {BYTES("BZhang, PAR1 and PK"), NULL},
    {BYTES("\x1f\x8b\x08\x00"), "x: is gzip; a name that ends in .gz is expected"},
    {BYTES("\x28\xb5\x2f\xfd\x04"), "x: is zstd; a name that ends in .zst is expected"},
    {BYTES("\xfd"
           "7zXZ\x00"),
     "x: is xz; text in UTF-8 is expected"},
    {BYTES("BZh91AY&SY"), "x: is bzip2; text in UTF-8 is expected"},
    {BYTES("%PDF-1.4\n"), "x: is PDF; text in UTF-8 is expected"},
    {BYTES("PK\x03\x04"), "x: is a zip file; text in UTF-8 is expected"},
    {BYTES("\xff\xfe"
           "a\0b\0"),
     "x: is UTF-16; text in UTF-8 is expected"},
    {BYTES("\xfe\xff\0a\0b"), "x: is UTF-16; text in UTF-8 is expected"},
    {BYTES("a\0b\0c\0\n\0"), "x: is UTF-16; text in UTF-8 is expected"},
    {BYTES("\0a\0b\0c\0\n"), "x: is UTF-16; text in UTF-8 is expected"},
    {BYTES("\xff\xfe\0\0a\0\0\0"), "x: is UTF-32; text in UTF-8 is expected"},
};

static void formats_are_named(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        struct error e = {0};
        int r = text_check_head("x", heads[k].bytes, heads[k].size, "a name that ends in ", &e);
        assert_int_equal(r, heads[k].error ? -1 : 0);
        if (heads[k].error)
            assert_string_equal(e.text, heads[k].error);
    }
}

/* Lines of `of` bytes, `bad` of which are `byte`. */
static int end_of(uint8_t byte, size_t bad, size_t of)
{
    struct text_check c = {0};
    struct error e = {0};
    char *line = memory_new(of, 1);
    memset(line, 'a', of);
    for (size_t k = 0; k < bad; k++)
        line[2 * k] = (char)byte;
    text_check_line(&c, line, of);
    free(line);
    return text_check_end(&c, "x", &e);
}

static void most_bytes_must_be_text(void **state)
{
    (void)state;
    assert_int_equal(end_of(0xe9, 250, 1000), 0); /* Latin-1 */
    assert_int_equal(end_of(0xe9, 310, 1000), -1);
    assert_int_equal(end_of(0, 90, 1000), 0);
    assert_int_equal(end_of(0, 110, 1000), -1);
    assert_int_equal(end_of(0xe9, 30, 60), 0); /* too few to judge */
}

static char reported[300];

static void take_report(const char *path, const char *what)
{
    snprintf(reported, sizeof reported, "%s: %s", path + strlen(data_folder) + 1, what);
}

/* Reads all of a file. */
static int read_file(const char *name, struct error *e)
{
    char path[400];
    const char *list = path;
    struct text_block block = {0};
    data_path(path, sizeof path, name);
    struct text_reader *r = text_reader_new(&list, 1, false);
    text_reader_on_report(r, take_report);
    *reported = 0;
    int code;
    do
        code = text_reader_next(r, &block, e);
    while (code == 0 && block.count);
    text_reader_destroy(r);
    text_block_finish(&block);
    return code;
}

static const struct {
    const char *name, *bytes;
    size_t size;
    const char *report, *error;
} files[] = {
    {"l1", BYTES("a\ncaf\xe9 au lait\n\xe9t\xe9\n"),
     "l1: 3 bytes are not UTF-8 and were replaced, the first one in line 2", NULL},
    {"one", BYTES("caf\xe9"),
     "one: 1 byte is not UTF-8 and was replaced, the first one in line 1", NULL},
    {"bom",
     BYTES("\xef\xbb\xbf"
           "a\n"),
     "", NULL},
    {"bom.jsonl", BYTES("\xef\xbb\xbf{\"text\": \"a\"}\n"), "", NULL},
    {"hash.jsonl",
     BYTES("{\"id\": 18446744073709551615, \"score\": NaN, \"x\": [1e999], \"text\": \"a\"}\n"),
     "", NULL},
    {"half.jsonl", BYTES("{\"text\": \"a \\ud83d\"}\n"), "", NULL},
    {"wide.jsonl", BYTES("{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0a\0\"\0}\0"), "",
     "wide.jsonl: is UTF-16; text in UTF-8 is expected"},
    {"l1.jsonl", BYTES("{\"text\": \"a\"}\n{\"text\": \"caf\xe9\"}\n"), "", "l1.jsonl:2: "},
    {"nan.jsonl", BYTES("{\"text\": NaN}\n"), "", "nan.jsonl:1: an object with a text"},
    {"packed", BYTES("\x1f\x8b\x08\x00"), "",
     "packed: is gzip; a name that ends in .gz is expected"},
};

static void files_are_reported_or_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct error e = {0};
        data_write(files[k].name, files[k].bytes, files[k].size);
        int r = read_file(files[k].name, &e);
        assert_string_equal(reported, files[k].report);
        assert_int_equal(r, files[k].error ? -1 : 0);
        if (files[k].error && !strstr(e.text, files[k].error))
            fail_msg("'%s', '%s' is expected", e.text, files[k].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_counted),
        cmocka_unit_test(formats_are_named),
        cmocka_unit_test(most_bytes_must_be_text),
        cmocka_unit_test(files_are_reported_or_refused),
    };
    return cmocka_run_group_tests_name("text_check", tests, data_begin, data_end);
}
