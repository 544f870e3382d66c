/* SPDX-License-Identifier: Apache-2.0 */
/* Do examples of MRQA, SST-1, SemEval, SenTube and SciTail have the texts, labels and places that their files give, and are
   broken rows refused with line and column? */
#include "tests/support/test.h"
/* after cmocka */
#include "masks/base/file.h"
#include "model/data/tasks/dataset.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_text(const char *task, const char *text, const struct dataset_options *how,
                     struct dataset *ret, struct error *e)
{
    const struct data_task *t = data_task_find(task, e);
    struct task_source from = {
        .path = "GOLD", .bytes = (const uint8_t *)text, .size = strlen(text)};
    assert_non_null(t);
    return dataset_read(t, &from, how, ret, e);
}

static struct dataset read_fine(const char *task, const char *text,
                                const struct dataset_options *how)
{
    struct dataset d = {0};
    struct error e = {0};
    if (read_text(task, text, how, &d, &e) < 0)
        fail_msg("%s", e.text);
    return d;
}

struct expected {
    const char *text, *label;
};

static void check_rows(const struct dataset *d, const struct expected *rows, size_t count)
{
    assert_int_equal(d->count, count);
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(d->example[k].text[0], rows[k].text);
        assert_string_equal(d->example[k].label[0], rows[k].label);
        assert_string_equal(d->classes[d->example[k].class_of[0]], rows[k].label);
    }
}

#define ROWS(rows) rows, sizeof(rows) / sizeof *(rows)

/* ---- SST-1 ---- */

static const char trees[] =
    "(3 (2 It) (4 (4 (2 's) (3 good)) (2 .)))\n\n(1 (1 (2 -LRB-) (2 w\\/o)) (2 -RRB-))\r\n";

static void trees_are_sentences(void **state)
{
    (void)state;
    static const struct expected rows[] = {{"It 's good .", "3"}, {"( w/o )", "1"}};
    struct dataset d = read_fine("sst-1", trees, NULL);
    check_rows(&d, ROWS(rows));
    assert_int_equal(d.n_classes, 5);
    assert_int_equal(d.example[1].line, 3);
    dataset_finish(&d);
}

static void trees_are_phrases(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {"It 's good .", "3"}, {"It", "2"},   {"'s good .", "4"}, {"'s good", "4"},
        {"'s", "2"},           {"good", "3"}, {".", "2"},         {"( w/o )", "1"},
        {"( w/o", "1"},        {"(", "2"},    {"w/o", "2"},       {")", "2"}};
    struct dataset d = read_fine("sst-1", trees, &(struct dataset_options){.phrases = true});
    check_rows(&d, ROWS(rows));
    assert_int_equal(d.example[3].column, 15);
    dataset_finish(&d);
}

/* ---- SemEval, SenTube, SciTail ---- */

static void tweets_of_each_year_are_read(void **state)
{
    (void)state;
    static const struct expected rows[] = {{"Gas by \"me\"", "positive"},
                                           {"won", "neutral"},
                                           {"so", "neutral"},
                                           {"bad", "negative"},
                                           {"meh", "neutral"}};
    struct dataset d =
        read_fine("semeval",
                  "1\t7\t\"positive\"\tGas by \"me\"\n2\t7\t\"objective-OR-neutral\"\twon\n"
                  "3\t7\t\"negative\"\tNot Available\n4\t7\tobjective\tso\n"
                  "5\tnegative\tbad\t\n6\tneutral\tmeh\n",
                  NULL);
    check_rows(&d, ROWS(rows));
    assert_int_equal(d.n_skipped, 1);
    assert_string_equal(d.example[2].id, "3");
    dataset_finish(&d);
    d = read_fine("semeval", "NA\t7\tunknwn\tGas\n", NULL);
    assert_false(d.labelled);
    dataset_finish(&d);
}

static void sides_are_files_of_a_folder(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {"bad\tcar", "negative"}, {"ugly", "negative"}, {"nice \"car", "positive"}};
    char folder[] = "/tmp/maskbert-readers-XXXXXX", path[100], line[100];
    const struct data_task *t = data_task_find("sentube", NULL);
    struct dataset d = {0};
    struct error e = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/neg.txt", folder);
    assert_int_equal(file_write(path, "bad\tcar\n\nugly\n", 14, &e), 0);
    assert_int_equal(dataset_load(t, folder, NULL, &d, &e), -1);
    assert_non_null(strstr(e.text, "/pos.txt: No such file"));
    snprintf(path, sizeof path, "%s/pos.txt", folder);
    assert_int_equal(file_write(path, "nice \"car", 9, &e), 0);
    assert_int_equal(dataset_load(t, folder, NULL, &d, &e), 0);
    check_rows(&d, ROWS(rows));
    dataset_finish(&d);
    snprintf(line, sizeof line, "rm -r %s", folder);
    assert_int_equal(system(line), 0);
}

static void scitail_has_no_header(void **state)
{
    (void)state;
    static const struct expected rows[] = {{"\"Facts:", "entails"}, {"b", "neutral"}};
    struct dataset d = read_fine("scitail", "\"Facts:\tIt is.\tentails\nb\tc\tneutral\n", NULL);
    check_rows(&d, ROWS(rows));
    assert_string_equal(d.example[0].text[1], "It is.");
    dataset_finish(&d);
}

static void numbers_may_be_asked_for(void **state)
{
    (void)state;
    static const char rows[] = "text\tlabel\nx\t3\ny\t-1\n",
                      broken[] = "text\tlabel\nx\t3\ny\tred\n";
    const struct dataset_options how = {.numbers = true};
    struct error e = {0};
    struct dataset d = read_fine("text", rows, NULL);
    assert_false(d.numbers);
    dataset_finish(&d);
    d = read_fine("text", rows, &how);
    assert_true(d.numbers && d.example[1].value == -1);
    dataset_finish(&d);
    assert_int_equal(read_text("text", broken, &how, &d, &e), -1);
    assert_string_equal(e.text, "GOLD:3:3: label \"red\": a number is expected");
}

/* Bytes that are not UTF-8 are counted; a file of another format is refused by its name. */
static void other_bytes_are_noticed(void **state)
{
    (void)state;
    static const char rows[] = "text\tlabel\nx\tred\ncaf\xe9 \xe8\tblue\n\xe9\tred\n",
                      utf16[] = "\xff\xfet";
    struct error e = {0};
    struct dataset d = read_fine("text", rows, NULL);
    assert_int_equal(d.check.replaced, 3);
    assert_int_equal(d.check.first_line, 3);
    dataset_finish(&d);
    assert_int_equal(read_text("text", utf16, NULL, &d, &e), -1);
    assert_string_equal(e.text, "GOLD: is UTF-16; text in UTF-8 is expected");
}

/* ---- MRQA ---- */

#define HEADER "{\"header\": {\"dataset\": \"x\", \"mrqa_split\": \"dev\"}}\n"

static void answers_are_cut_out_of_the_context(void **state)
{
    (void)state;
    struct dataset d = read_fine(
        "mrqa",
        HEADER "{\"context\": \"42 \\u00e9\\ud83d\\ude00t 42\", \"context_tokens\": [[\"42\", "
               "0], [\"\\u00e9\\ud83d\\ude00t\", 3], [\"42\", 7]], \"qas\": ["
               "{\"qid\": \"a\", \"question\": \"how?\", \"answers\": [\"Forty\", \"42\"], "
               "\"detected_answers\": ["
               "{\"text\": \"42\", \"char_spans\": [[0, 1], [7, 8]]}, {\"text\": \"T\", "
               "\"char_spans\": [[4, 5]]}]},"
               "{\"qid\": \"b\", \"question\": \"who?\", \"answers\": [\"x\"], "
               "\"detected_answers\": [{\"token_spans\": [[1, 2]]}]},"
               "{\"qid\": \"c\", \"question\": \"no?\", \"answers\": [\"y\"]}]}\n" HEADER,
        NULL);
    assert_int_equal(d.count, 3);
    const struct task_example *x = d.example;
    assert_int_equal(x[0].answers, 3);
    static const char *const answer[] = {"42", "42", "\xf0\x9f\x98\x80t"};
    static const uint32_t at[] = {0, 7, 4};
    for (uint32_t k = 0; k < 3; k++) {
        assert_string_equal(x[0].answer[k], answer[k]);
        assert_int_equal(x[0].answer_at[k], at[k]);
    }
    assert_int_equal(x[0].golds, 2);
    assert_string_equal(x[0].gold[0], "Forty");
    assert_string_equal(x[1].answer[0], "\xc3\xa9\xf0\x9f\x98\x80t 42");
    assert_int_equal(x[1].answer_at[0], 3);
    assert_int_equal(x[2].answers, 0);
    assert_string_equal(x[2].text[0], "no?");
    dataset_finish(&d);
}

/* ---- what is broken ---- */

#define MRQA(answer)                                                                           \
    "\n{\"context\": \"abc\", \"context_tokens\": [[\"abc\", 0]], \"qas\": [{\"qid\": \"a\", " \
    "\"question\": \"q\", \"answers\": [\"x\"], \"detected_answers\": [" answer "]}]}"

#define QUESTION "{\"context\": \"abc\", \"qas\": [{\"qid\": \"b\", \"question\": \"q\"}"
#define QA       "{\"id\": \"b\", \"question\": \"q\""
#define SQUAD(list) \
    "{\"data\": [{\"paragraphs\": [{\"context\": \"abc\", \"qas\": [" list "]}]}]}"

static const struct {
    const char *task, *text, *message;
} broken[] = {
    {"sst-1", "(3 (2 a) (2 b)", "GOLD:1:15: ) is expected"},
    {"sst-1", "\n(5 a)", "GOLD:2:2: a label from 0 to 4"},
    {"sst-1", "(3 a) b", "GOLD:1:7: the end of the line"},
    {"sst-1", "(3 a b)", "GOLD:1:6: ) is expected, or a phrase"},
    {"sst-1", "(3 a (2 b))", "GOLD:1:6: ) is expected, or a phrase"},
    {"sst-1", "(3 (2 b) a)", "GOLD:1:10: ) is expected, or a phrase"},
    {"sst-1", "(3 (2 b) (2 ))", "GOLD:1:13: a word or a phrase in parentheses"},
    {"sst-1", "(3 )", "GOLD:1:4: a word or a phrase in parentheses"},
    {"sst-1", "3 a", "GOLD:1:1: ( is expected"},
    {"semeval", "1\t2\tpositive\tx\n1\tgood\tx\n",
     "GOLD:2:3: label \"good\": negative, neutral or positive"},
    {"semeval", "1\tpositive\n", "GOLD:1:3: the last of 2 columns; 3 or 4"},
    {"semeval", "1\tpositive\tx\n2\tunknwn\ty\n", "GOLD:2:3: some rows have a label"},
    {"sentube", "x\n", "GOLD: a folder with neg.txt and pos.txt"},
    {"scitail", "a\tb\tentails\na\tb\tyes\n",
     "GOLD:2:5: label \"yes\": one of entails, neutral"},
    {"scitail", "a\tb\n", "GOLD:1:3: the last of 2 columns; 3 are expected"},
    {"text", "text\tlabel\na\tbar\nc\tcaf\xe9\n", "GOLD:3:3: the label is not UTF-8"},
    {"pair", "label\ttext\ttext2\n\xf0\x9f\tb\tc\n", "GOLD:2:1: the label is not UTF-8"},
    {"tokens", "a\tO\n\nb\tx\tL\xed\xa0\x80\n", "GOLD:3:5: the label is not UTF-8"},
    {"mrqa", MRQA("{\"char_spans\": [[1, 3]]}"), "GOLD:2:1: qas[0]: a span beyond the context"},
    {"mrqa", MRQA("{\"char_spans\": [[2, 1]]}"),
     "GOLD:2:1: qas[0]: a span of two whole numbers"},
    {"mrqa", MRQA("{\"token_spans\": [[0, 1]]}"),
     "GOLD:2:1: qas[0]: a span beyond \"context_tokens\""},
    {"mrqa", MRQA("{\"text\": \"a\"}"),
     "GOLD:2:1: qas[0]: \"detected_answers\": a list \"char_spans\""},
    {"mrqa", "{\"context\": \"abc\"}", "GOLD:1:1: a text \"context\" and a list \"qas\""},
    {"mrqa", "{\"context\": \"abc\", \"qas\": [{\"qid\": \"\", \"question\": \"x\"}]}",
     "GOLD:1:1: qas[0]: a \"qid\" and a \"question\""},
    {"mrqa",
     "{\"context\": \"abc\", \"qas\": [{\"qid\": \"q\", \"question\": \"x\", \"answers\": "
     "[]}]}",
     "GOLD:1:1: qas[0]: \"answers\""},
    {"mrqa", HEADER "{\"context\": }", "GOLD:2:"},
    {"mrqa", MRQA("") "\n" QUESTION "]}",
     "GOLD:3:1: qas[0]: some questions have \"answers\" and some none"},
    {"mrqa", QUESTION "]}" MRQA(""), "GOLD:2:1: qas[0]: some questions have"},
    {"squad2", SQUAD(QA ", \"answers\": []}, " QA "}"),
     "GOLD: data[0].paragraphs[0].qas[1]: some questions have"},
    {"squad1", SQUAD(QA "}, " QA ", \"answers\": [{\"text\": \"b\"}]}"),
     "GOLD: data[0].paragraphs[0].qas[1]: some questions have"},
    {"text", "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": 1}\n",
     "GOLD:2:1: some lines have a \"label\" and some none"},
    {"text", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\"}\n",
     "GOLD:2:1: some lines have a \"label\""},
    {"mrqa", HEADER, "GOLD:1:1: no example"},
};

static void broken_rows_are_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        struct dataset d;
        struct error e = {0};
        assert_int_equal(read_text(broken[k].task, broken[k].text, NULL, &d, &e), -1);
        if (strncmp(e.text, broken[k].message, strlen(broken[k].message)) != 0)
            fail_msg("%zu: %s", k, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_sentences),
        cmocka_unit_test(trees_are_phrases),
        cmocka_unit_test(tweets_of_each_year_are_read),
        cmocka_unit_test(sides_are_files_of_a_folder),
        cmocka_unit_test(scitail_has_no_header),
        cmocka_unit_test(numbers_may_be_asked_for),
        cmocka_unit_test(other_bytes_are_noticed),
        cmocka_unit_test(answers_are_cut_out_of_the_context),
        cmocka_unit_test(broken_rows_are_refused),
    };
    return cmocka_run_group_tests_name("score/readers", tests, NULL, NULL);
}
