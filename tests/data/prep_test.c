/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prep as a person runs it; usage: prep_test MASKBERT. What fails prints one line, ends with 2 (3 where the disk
   is full) and leaves nothing behind. */
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char make_files[] =
    "printf '[PAD]\\n[UNK]\\n[CLS]\\n[SEP]\\n[MASK]\\na\\nb\\nc\\n##d\\n.\\n' > vocab.txt;"
    "printf '[PAD]\\n[UNK]\\n[CLS]\\n[SEP]\\na\\n' > nomask.txt; printf '[PAD]\\n[UNK]\\n' > "
    "nocls.txt;"
    "for k in 1 2 3 4 5 6 7 8; do printf 'a b\\nb c a\\nc cd\\na a a b\\n\\n'; done > text.txt;"
    "printf 'a b c\\n' > one.txt; printf 'a b\\nb c\\nc\\n' > single.txt; : > empty.txt; "
    "printf '\\n \\n\\n' > blank.txt;"
    "printf '{\"text\": \"a b\"}\\n{\"text\": 3}\\n' > bad.jsonl;"
    "printf 'A b. B c a. C d.\\n\\nA b c. B.\\n' > split.txt;"
    "head -c 11000000 /dev/zero | tr '\\0' a > line.txt; printf ' b\\n\\na b\\n' >> line.txt;"
    "head -c 500000 /dev/zero | sed 's/\\x00/a b c\\n/g' > big.txt; printf '\\na b c\\n' >> "
    "big.txt;"
    "head -c 100000 /dev/urandom > random.txt; printf 'a\\0b\\0\\n\\0' > wide.txt;"
    "printf 'a b caf\\351\\nb c\\nc a\\n\\na b\\nb\\n' > latin.txt;"
    "printf '{\"text\": \"a b\\\\nb\", \"id\": 18446744073709551615}\\n{\"text\": "
    "\"b\\\\nc\"}\\n' > hash.jsonl;"
    "printf 'not packed' > fake.gz; printf 'not packed' > fake.zst; mkdir there; touch file";

#define GOOD "prep text.txt --vocab vocab.txt -n 16 -o out "

static const struct {
    const char *line, *says;
    int code;
} failures[] = {
    {"prep text.txt --vocab vocab.txt -n 16", "prep: -o DATA is expected", 2},
    {"prep text.txt -n 16 -o out", "prep: --vocab FILE|DIR is expected", 2},
    {"prep text.txt --vocab vocab.txt -o out", "prep: --length in 5..1048576 is expected", 2},
    {"prep text.txt --vocab vocab.txt -n 4 -o out", "prep: --length in 5..1048576 is expected",
     2},
    {"prep text.txt --vocab vocab.txt -n 2000000 -o out",
     "prep: --length in 5..1048576 is expected", 2},
    {"prep text.txt --vocab vocab.txt -n 16 -o there",
     "there: is there already; a new name is expected", 2},
    {"prep text.txt --vocab vocab.txt -n 16 -o file",
     "file: is there already; a new name is expected", 2},
    {"prep text.txt --vocab vocab.txt -n 16 -o file/where", "file: not a directory", 2},
    {"prep text.txt --vocab nowhere -n 16 -o out", "nowhere: No such file or directory", 2},
    {"prep text.txt --vocab there -n 16 -o out", "there: ", 2},
    {"prep text.txt --vocab nocls.txt -n 16 -o out", "nocls.txt: ", 2},
    {"prep text.txt --vocab nomask.txt -n 16 -o out",
     "nomask.txt: has no [MASK], which training needs", 2},
    {"prep nowhere --vocab vocab.txt -n 16 -o out", "nowhere: No such file or directory", 2},
    {"prep text.txt there --vocab vocab.txt -n 16 -o out",
     "there: is a directory, a file is expected", 2},
    {"prep empty.txt --vocab vocab.txt -n 16 -o out", "empty.txt: no text in it", 2},
    {"prep blank.txt empty.txt --vocab vocab.txt -n 16 -o out",
     "blank.txt and the others: no text in it", 2},
    {"prep one.txt --vocab vocab.txt -n 16 --held-out 0 -o out",
     "one document to train on: ", 2},
    {"prep single.txt --vocab vocab.txt -n 16 --held-out 0 -o out",
     "one document to train on: ", 2},
    {"prep bad.jsonl --vocab vocab.txt -n 16 -o out",
     "bad.jsonl:2: an object with a text is expected", 2},
    {"prep random.txt --vocab vocab.txt -n 16 -o out", "random.txt: ", 2},
    {"prep wide.txt --vocab vocab.txt -n 16 -o out",
     "wide.txt: is UTF-16; text in UTF-8 is expected", 2},
    {"prep fake.gz --vocab vocab.txt -n 16 -o out", "fake.gz: ", 2},
    {"prep fake.zst --vocab vocab.txt -n 16 -o out", "fake.zst: ", 2},
    {GOOD "--pairing next", "--pairing next: nsp or full is expected", 2},
    {GOOD "--pairing full --dupe 2", "--dupe: with --pairing full all copies would be equal",
     2},
    {GOOD "--short 1", "--short 1: a share from 0 to below 1 is expected", 2},
    {GOOD "--held-out -0.1", "--held-out -0.1: a share from 0 to below 1 is expected", 2},
    {GOOD "--held-out 0.999999", "--held-out 0.999999 leaves no document to train on: 8 in all",
     2},
    {GOOD "--jobs 100000", "--jobs: '100000' is not a whole number from 1 to 1024", 2},
    {GOOD "--tokenizer-compat x", "--tokenizer-compat x: hf or google is expected", 2},
    {"prep --vocab vocab.txt -n 16 -o out", "TEXT.. is missing", 2},
};

/* Names and sizes of all that is there, to a file beside the working folder. */
static void list_files(const char *name)
{
    char line[200];
    snprintf(line, sizeof line,
             "find . -mindepth 1 ! -name pipe -printf '%%p %%s %%T@\\n' | sort > ../%s", name);
    assert_int_equal(system(line), 0);
}

static bool nothing_changed(void)
{
    list_files("after");
    return system("cmp -s ../before ../after") == 0;
}

static void bad_input_is_one_line_and_leaves_nothing(void **state)
{
    (void)state;
    list_files("before");
    for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
        struct outcome o = shell_run(NULL, failures[k].line);
        const char *newline = strchr(o.err, '\n');
        if (o.code != failures[k].code || !strstr(o.err, failures[k].says) || *o.out)
            fail_msg("maskbert %s: code %d, '%s'; %d, '%s' is expected", failures[k].line,
                     o.code, o.err, failures[k].code, failures[k].says);
        if (!strstr(failures[k].says, "is missing") &&
            !strstr(failures[k].says, "whole number")) /* usage: a line on --help follows */
            assert_true(newline && !newline[1]);
        assert_true(nothing_changed());
        outcome_finish(&o);
    }
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    list_files("before");
    struct outcome o =
        shell_run("ulimit -f 1000;",
                  "prep big.txt --vocab vocab.txt -n 16 -o out --pairing full --held-out 0");
    assert_int_equal(o.code, 3);
    assert_non_null(strstr(o.err, "cannot be written: File too large"));
    assert_true(nothing_changed());
    outcome_finish(&o);
}

/* The text is a pipe; the signal comes in the middle of it. */
static const char interrupted[] = "\"$MASKC\" prep pipe --vocab vocab.txt -n 16 -o out & p=$!;"
                                  "{ cat line.txt; sleep 0.2; kill -%s $p; cat line.txt "
                                  "line.txt line.txt; } >pipe 2>/dev/null;"
                                  "wait $p";

/* *state: one signal alone */
static void an_interrupted_prep_leaves_nothing(void **state)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"TERM", SIGTERM}, {"HUP", SIGHUP}};
    assert_int_equal(system("mkfifo pipe"), 0);
    list_files("before");
    for (size_t k = 0; k < (*state ? 1 : sizeof signals / sizeof *signals); k++) {
        char line[600];
        snprintf(line, sizeof line, interrupted,
                 signals[k].name); /* NOLINT: a constant format */
        int status = system(line);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signals[k].number);
        assert_true(nothing_changed());
    }
    assert_int_equal(system("rm pipe"), 0);
}

static double number(const json_t *j, const char *key)
{
    const json_t *value = json_object_get(j, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void statistics_are_those_of_the_text(void **state)
{
    (void)state;
    json_t *j = shell_json(GOOD "--held-out 0 --dupe 2 --stats --json", 0);
    const json_t *train = json_object_get(j, "train"),
                 *held_out = json_object_get(j, "held_out");
    /* 8 documents: a b | b c a | c c ##d | a a a b: 5 a, 3 b, 3 c, 1 ##d in each */
    double p[] = {5 / 12., 3 / 12., 3 / 12., 1 / 12.}, entropy = 0;
    for (int k = 0; k < 4; k++)
        entropy -= p[k] * log(p[k]);
    assert_true(number(train, "documents") == 8 && number(train, "sentences") == 32);
    assert_true(number(train, "tokens") == 96 && number(j, "unknown") == 0);
    assert_true(fabs(number(train, "entropy") - entropy) < 1e-12);
    assert_true(number(train, "longest_sentence") == 4 && number(train, "shards") == 1);
    assert_true(number(train, "samples") >= 16 && number(held_out, "documents") == 0);
    double all = 0;
    for (size_t k = 0; k < 8; k++)
        all += json_number_value(json_array_get(json_object_get(train, "lengths"), k));
    assert_true(all == number(train, "samples"));
    json_decref(j);
    assert_int_equal(system("rm -r out"), 0);
    struct outcome o = shell_run(NULL, GOOD "--stats");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "unigram entropy of the training tokens: "));
    assert_non_null(strstr(o.out, "random next sentences: "));
    outcome_finish(&o);
    assert_int_equal(system("rm -r out"), 0);
}

static void other_texts_are_taken(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "prep line.txt --vocab vocab.txt -n 16 --held-out 0 -o out", /* 11 MB on one line */
        "prep split.txt --split --vocab vocab.txt -n 16 --held-out 0 -o out",
        "prep one.txt --vocab vocab.txt -n 16 --held-out 0 --pairing full -o out",
        "prep one.txt single.txt --vocab vocab.txt -n 5 --held-out 0 -o out",
        "prep hash.jsonl --vocab vocab.txt -n 16 --held-out 0 -o out",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        struct outcome o = shell_run(NULL, lines[k]);
        if (o.code)
            fail_msg("maskbert %s: %d: %s", lines[k], o.code, o.err);
        outcome_finish(&o);
        assert_int_equal(
            system("test -s out/train-00000.tokens && test -s out/train.samples && rm -r out"),
            0);
    }
}

static void replaced_bytes_are_reported(void **state)
{
    (void)state;
    struct outcome o =
        shell_run(NULL, "prep latin.txt --vocab vocab.txt -n 16 --held-out 0 -o out");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "maskbert: latin.txt: 1 byte is not UTF-8 and was replaced, the "
                               "first one in line 1\n");
    outcome_finish(&o);
    assert_int_equal(system("rm -r out"), 0);
}

int main(int count, char **argument)
{
    if (count < 2) {
        fprintf(stderr, "usage: prep_test MASKBERT [--few]\n");
        return 2;
    }
    void *few = count > 2 ? argument[2] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_input_is_one_line_and_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test_prestate(an_interrupted_prep_leaves_nothing, few),
        cmocka_unit_test(statistics_are_those_of_the_text),
        cmocka_unit_test(other_texts_are_taken),
        cmocka_unit_test(replaced_bytes_are_reported),
    };
    shell_start(argument[1]);
    if (system(make_files))
        return 1;
    int failed = cmocka_run_group_tests_name("prep", tests, NULL, NULL);
    shell_stop();
    return failed;
}
