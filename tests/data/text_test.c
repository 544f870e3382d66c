/* SPDX-License-Identifier: Apache-2.0 */
/* Are documents and sentences those that a file shows, plain, as JSONL, packed by gzip or zstd? Are damaged files
   refused with their line? Where do sentences end? */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/data/sentences.h"
#include "model/data/stream.h"
#include "model/data/text_reader.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sentences with '|' between them and '#' before each document; or the error without the folder. */
static char *read_all(const char *const *name, uint32_t count, bool split)
{
    char path[4][256];
    const char *list[4];
    struct text out = {0};
    struct text_block b = {0};
    struct error e = {0};
    for (uint32_t k = 0; k < count; k++) {
        data_path(path[k], sizeof path[k], name[k]);
        list[k] = path[k];
    }
    struct text_reader *r = text_reader_new(list, count, split);
    int result;
    while ((result = text_reader_next(r, &b, &e)) == 0 && b.count)
        for (uint32_t k = 0; k < b.count; k++) {
            text_add(&out, "%s", b.sentence[k].opens ? "#" : "|");
            text_append(&out, b.bytes + b.sentence[k].begin, b.sentence[k].size);
        }
    if (result < 0) {
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_memory_equal(e.text, data_folder, strlen(data_folder));
        text_finish(&out);
        text_add(&out, "%s", e.text + strlen(data_folder) + 1);
    }
    text_reader_destroy(r);
    text_block_finish(&b);
    return out.bytes ? text_take(&out) : memory_text("");
}

static void must_read(const char *name, const char *bytes, size_t size, bool split,
                      const char *expected)
{
    data_write(name, bytes, size);
    char *seen = read_all(&name, 1, split);
    assert_string_equal(seen, expected);
    free(seen);
}

static const struct {
    const char *name, *bytes, *expected;
    bool split;
} files[] = {
    {"plain", "one\ntwo\n\nthree\n", "#one|two#three", false},
    {"blanks", "\n\n  one \t\n \t\n\r\n two\r\n\n\n", "#one#two", false},
    {"no newline at the end", "one\n\ntwo", "#one#two", false},
    {"empty", "", "", false},
    {"not UTF-8", "\xfe\xe9 one\n", "#\xfe\xe9 one", false},
    {"split", "One is here. Two is there.\nThree.\n\nFour? Five!",
     "#One is here.|Two is there.|Three.#Four?|Five!", true},
    {"a.jsonl", "{\"text\": \"one\\ntwo\"}\n\n{\"id\": 3, \"text\": \"three\\n\\nfour\"}",
     "#one|two#three|four", false},
    {"split.jsonl",
     "{\"text\": \"One is. Two is.\"}\n{\"text\": \"\"}\n{\"text\": \"\\u00c4 is. \\u0000 "
     "\"}\n",
     "#One is.|Two is.#\xc3\x84 is. ", true},
    {"bad.jsonl", "{\"text\": \"one\"}\n{\"text\": 3}\n",
     "bad.jsonl:2: an object with a text is expected: {\"text\": \"...\"}", false},
    {"list.jsonl", "[\"text\"]\n",
     "list.jsonl:1: an object with a text is expected: {\"text\": \"...\"}", false},
    {"cut.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"tw", "cut.jsonl:3: unexpected newline",
     false},
};

static void files_are_read_as_they_show(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        if (!strcmp(files[k].name, "cut.jsonl")) {
            data_write(files[k].name, files[k].bytes, strlen(files[k].bytes));
            char *seen = read_all(&files[k].name, 1, false);
            assert_memory_equal(seen, "cut.jsonl:3: ", 13);
            free(seen);
        } else
            must_read(files[k].name, files[k].bytes, strlen(files[k].bytes), files[k].split,
                      files[k].expected);
    }
}

static void a_file_ends_its_document(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y.jsonl", "x"};
    data_write("x", "one\n", 4);
    data_write("y.jsonl", "{\"text\":\"two\"}", 14);
    char *seen = read_all(names, 3, false);
    assert_string_equal(seen, "#one#two#one");
    free(seen);
    static const char *const missing[] = {"x", "nowhere"};
    seen = read_all(missing, 2, false);
    assert_string_equal(seen, "nowhere: No such file or directory");
    free(seen);
}

static void long_lines_are_read_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"long", "long.jsonl"};
    size_t size = 5 << 19; /* some reads */
    for (int json = 0; json < 2; json++) {
        char *bytes = memory_new(size + 32, 1);
        size_t begin = (size_t)sprintf(bytes, "%s", json ? "{\"text\":\"" : "");
        memset(bytes + begin, 'a', size);
        strcpy(bytes + begin + size, json ? "\"}\nx" : "\nb\n");
        data_write(names[json], bytes, strlen(bytes));
        char *seen = read_all(&names[json], 1, true);
        if (json) /* the second line is none; the block before it was handed on */
            assert_memory_equal(seen, "long.jsonl:2: ", 14);
        else
            assert_int_equal(strlen(seen), size + 3);
        free(seen);
        free(bytes);
    }
}

static int shell(const char *format, const char *name)
{
    char line[600];
    snprintf(line, sizeof line, "cd %s && ", data_folder);
    snprintf(line + strlen(line), sizeof line - strlen(line), format, name, name,
             name); /* NOLINT */
    return system(line);
}

static void must_end(const char *name, const char *expected)
{
    char *seen = read_all(&name, 1, false);
    if (!strstr(seen, expected))
        fail_msg("%s: '%.200s', '%s' is expected in it", name, seen, expected);
    free(seen);
}

/* Much comes out of the last bytes of a file, a little at a time. */
static void pack_flat(const char *pack, const char *suffix)
{
    char name[40], line[200];
    size_t size = 9 << 19;
    char *bytes = memory_new(size, 1);
    memset(bytes, 'a', size);
    data_write("big", bytes, size);
    free(bytes);
    snprintf(name, sizeof name, "flat%s", suffix);
    snprintf(line, sizeof line, "%s > %%s", pack);
    assert_int_equal(shell(line, name), 0);
    data_path(line, sizeof line, name);
    struct error e = {0};
    struct byte_stream *s = stream_open(line, &e);
    assert_non_null(s);
    size_t seen = 0;
    int64_t got;
    char part[1000];
    while ((got = stream_read(s, part, sizeof part, &e)) > 0)
        seen += (size_t)got;
    stream_close(s);
    assert_int_equal(got, 0);
    assert_int_equal(seen, size);
}

/* The same as the plain file, also as two packed files one behind the other; cut and damaged ones are refused. */
static void packed(const char *name, const char *pack, const char *pack_unsummed)
{
    char cut[40], bent[40], twice[40], fake[40], line[200];
    const char *suffix = strrchr(name, '.');
    data_write_text("big", 6000, 5);
    static const char *const plain = "big";
    snprintf(line, sizeof line, "%s > %%s", pack);
    if (shell("command -v gzip >/dev/null && command -v zstd >/dev/null%.0s%.0s", "")) {
        print_message("gzip or zstd is not here\n");
        skip();
    }
    assert_int_equal(shell(line, name), 0);
    char *expected = read_all(&plain, 1, false), *seen = read_all(&name, 1, false);
    if (strstr(seen, "was built without")) {
        free(expected);
        free(seen);
        skip();
    }
    assert_true(strlen(expected) > 1 << 20);
    assert_string_equal(seen, expected);
    free(seen);
    snprintf(twice, sizeof twice, "twice%s", suffix);
    snprintf(cut, sizeof cut, "cut%s", suffix);
    snprintf(bent, sizeof bent, "bent%s", suffix);
    snprintf(fake, sizeof fake, "fake%s", suffix);
    snprintf(line, sizeof line, "cat %s %s > %s && head -c -9 %s > %s && cp %s %s", name, name,
             twice, name, cut, name, bent);
    assert_int_equal(shell("%s", line), 0);
    const char *list = twice;
    seen = read_all(&list, 1, false);
    assert_int_equal(strlen(seen), 2 * strlen(expected));
    free(seen);
    free(expected);
    pack_flat(pack_unsummed, suffix);
    must_end(cut, "ends too early");
    snprintf(line, sizeof line,
             "printf zzzzzzzz | dd of=%s bs=1 seek=60000 conv=notrunc status=none && cp big %s",
             bent, fake);
    assert_int_equal(shell("%s", line), 0);
    must_end(bent, "damaged");
    must_end(fake, "damaged");
    snprintf(line, sizeof line, "empty%s", suffix);
    data_write(line, "", 0);
    must_end(line, "ends too early");
}

static void gzip_is_unpacked(void **state)
{
    (void)state;
    packed("big.gz", "gzip -1 -c big", "gzip -c big");
}

static void zstd_is_unpacked(void **state)
{
    (void)state;
    packed("big.zst", "zstd -q -c big", "zstd -q --no-check -c big");
}

static const char *const paragraphs[][5] = {
    {"One. Two.", "One.", "Two."},
    {"Mr. Smith and Dr. J. Jones met. They left.", "Mr. Smith and Dr. J. Jones met.",
     "They left."},
    {"See Fig. 3 and No. 5. He said no. Then he left.", "See Fig. 3 and No. 5.", "He said no.",
     "Then he left."},
    {"1. Introduction begins. 2. It ends.", "1. Introduction begins.", "2. It ends."},
    {"Use e.g. Perl, i.e. a language. Fine.", "Use e.g. Perl, i.e. a language.", "Fine."},
    {"It is 3.14 or so. e.g. this stays", "It is 3.14 or so. e.g. this stays"},
    {"\"Stop!\" He stopped. (Why?) Nobody knows.", "\"Stop!\"", "He stopped.", "(Why?)",
     "Nobody knows."},
    {"So did I. Then we left.", "So did I.", "Then we left."},
    {"Wait... What? yes. No... it goes on.", "Wait...", "What? yes.", "No... it goes on."},
    {"Er sagte \xe2\x80\x9cJa.\xe2\x80\x9d \xc3\x84pfel sind gut.",
     "Er sagte \xe2\x80\x9cJa.\xe2\x80\x9d", "\xc3\x84pfel sind gut."},
    {"\xe6\x97\xa5\xe3\x80\x82\xe6\x97\xa5", "\xe6\x97\xa5\xe3\x80\x82", "\xe6\x97\xa5"},
    {"   no end at all  ", "no end at all"},
};

static void take_sentence(void *context, const char *sentence, size_t size)
{
    struct text *t = context;
    text_append(t, sentence, size);
    text_append(t, "\n", 1);
}

static void sentences_end_where_a_reader_ends_them(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof paragraphs / sizeof *paragraphs; k++) {
        struct text seen = {0}, expected = {0};
        sentences_split(paragraphs[k][0], strlen(paragraphs[k][0]), take_sentence, &seen);
        for (int j = 1; j < 5 && paragraphs[k][j]; j++)
            text_add(&expected, "%s\n", paragraphs[k][j]);
        assert_string_equal(text_get(&seen), text_get(&expected));
        text_finish(&seen);
        text_finish(&expected);
    }
}

/* Nothing is read twice: a quarter of a megabyte of full stops, quotes and blanks take no longer than others. */
static void splitting_is_linear(void **state)
{
    (void)state;
    static const char *const patterns[] = {".", ". ", ".\"", " ", "a.", "((((. ", "A. ", "1. "};
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        struct text t = {0}, out = {0};
        while (t.length < 1 << 18)
            text_add(&t, "%s", patterns[k]);
        sentences_split(text_get(&t), t.length, take_sentence, &out);
        text_finish(&t);
        text_finish(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_as_they_show),
        cmocka_unit_test(a_file_ends_its_document),
        cmocka_unit_test(long_lines_are_read_whole),
        cmocka_unit_test(gzip_is_unpacked),
        cmocka_unit_test(zstd_is_unpacked),
        cmocka_unit_test(sentences_end_where_a_reader_ends_them),
        cmocka_unit_test(splitting_is_linear),
    };
    return cmocka_run_group_tests_name("text", tests, data_begin, data_end);
}
