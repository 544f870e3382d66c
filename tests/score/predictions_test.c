/* SPDX-License-Identifier: Apache-2.0 */
/* Does what predictions_save() writes read back equal and score the same, in each form, and is what a form cannot hold
   refused without a file? */
#include "tests/support/test.h"
/* after cmocka */
#include "masks/base/file.h"
#include "model/evaluate/evaluate.h"
#include "model/score/score.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/maskbert-predictions-XXXXXX";
static char path[256];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct dataset read_gold(const char *task, const char *gold)
{
    struct dataset d = {0};
    struct error e = {0};
    struct task_source from = {
        .path = "GOLD", .bytes = (const uint8_t *)gold, .size = strlen(gold)};
    const struct data_task *t = data_task_find(task, &e);
    if (!t || dataset_read(t, &from, NULL, &d, &e) < 0)
        fail_msg("%s", e.text);
    return d;
}

/* Parts are separated by spaces, predictions by bars. */
static struct predictions fill(const struct dataset *d, const char *texts)
{
    struct predictions p;
    char *copy = strdup(texts), *rest = copy;
    predictions_begin(&p, d);
    for (size_t k = 0; k < d->count; k++) {
        const char *part[8];
        uint32_t parts = 0;
        char *one = strsep(&rest, "|");
        assert_non_null(one);
        if (d->task->format == TASK_WORDS)
            while (one)
                part[parts++] = strsep(&one, " ");
        else
            part[parts++] = one;
        predictions_set(&p, k, part, parts);
    }
    assert_null(rest);
    free(copy);
    return p;
}

static void check_equal(const struct dataset *d, const struct predictions *a,
                        const struct predictions *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t k = 0; k < d->count; k++) {
        assert_int_equal(a->of[k].parts, b->of[k].parts);
        for (uint32_t j = 0; j < a->of[k].parts; j++)
            assert_string_equal(a->of[k].part[j], b->of[k].part[j]);
    }
}

static void check_same_scores(const struct dataset *d, const struct predictions *a,
                              const struct predictions *b)
{
    struct score of_a[SCORES], of_b[SCORES];
    int n = score_predictions(d, a, of_a);
    assert_true(n > 0);
    assert_int_equal(score_predictions(d, b, of_b), n);
    for (int k = 0; k < n; k++)
        assert_true(of_a[k].value == of_b[k].value ||
                    (isnan(of_a[k].value) && isnan(of_b[k].value)));
}

#define SQUAD(id, text)                                                          \
    "{\"id\": \"" id "\", \"question\": \"q\", \"answers\": [{\"text\": \"" text \
    "\", \"answer_start\": 0}]}"
#define MNLI "sentence1\tsentence2\tgold_label\n"

static const struct {
    const char *task, *gold, *name, *predictions;
    const char *begins; /* the file */
} cases[] = {
    {"sst-2", "sentence\tlabel\na\t1\nb\t0\n", "a.jsonl", "1|1",
     "{\"id\":0,\"prediction\":\"1\"}\n"},
    {"sst-2", "sentence\tlabel\na\t1\nb\t0\n", "a.tsv", "1|1",
     "index\tprediction\n0\t1\n1\t1\n"},
    {"mnli", MNLI "a\tb\t-\na\tb\tneutral\na\tb\tentailment\n", "b.tsv",
     "neutral|contradiction", "index\tprediction\n1\tneutral\n2\tcontradiction\n"},
    {"rte", "sentence1\tsentence2\tlabel\na\tb\tentailment\n", "c.tsv", "not_entailment",
     "index\tprediction\n0\tnot_entailment\n"},
    {"sts-b", "sentence1\tsentence2\tscore\na\tb\t1\na\tb\t2\na\tb\t4\n", "d", "0.1|-3|1e+300",
     "{\"id\":0,\"prediction\":0.1"},
    {"sts-b", "sentence1\tsentence2\tscore\na\tb\t1\na\tb\t2\n", "d.tsv", "3.25|-0.0",
     "index\tprediction\n0\t3.25\n"},
    {"text", "text\tlabel\nx\tblue\ny\tred\n", "e.jsonl", "gr\xc3\xbcn \"\\|red",
     "{\"id\":0,\"prediction\":\"gr\xc3\xbcn \\\"\\\\\"}"},
    {"tokens", "a\tO\nb\tB\n\nc\tO\n", "f.jsonl", "O O|B",
     "{\"id\":0,\"prediction\":[\"O\",\"O\"]}\n{\"id\":1"},
    {"squad2",
     "{\"data\": [{\"paragraphs\": [{\"context\": \"x y\", \"qas\": [" SQUAD(
         "q1", "x") "," SQUAD("q2", "y") "]}]}]}",
     "g.json", "x\tz|", "{\n \"q1\": \"x\\tz\",\n \"q2\": \"\"\n}\n"},
};

static void what_is_saved_reads_back(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct error e = {0};
        struct dataset d = read_gold(cases[k].task, cases[k].gold);
        struct predictions p = fill(&d, cases[k].predictions), read;
        struct file f;
        if (predictions_save(in_folder(cases[k].name), &d, &p, NULL, &e) < 0 ||
            file_open(path, &f, &e) < 0 || predictions_load(&d, path, &read, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(f.size >= strlen(cases[k].begins));
        assert_memory_equal(f.bytes, cases[k].begins, strlen(cases[k].begins));
        check_equal(&d, &p, &read);
        check_same_scores(&d, &p, &read);
        file_close(&f);
        predictions_finish(&read);
        predictions_finish(&p);
        dataset_finish(&d);
    }
}

static void check_scores(const char *task, const char *gold, const char *texts,
                         const struct prediction_scores *of, const char *expected)
{
    struct error e = {0};
    struct dataset d = read_gold(task, gold);
    struct predictions p = fill(&d, texts), read;
    struct file f;
    if (predictions_save(in_folder("scores.jsonl"), &d, &p, of, &e) < 0 ||
        file_open(path, &f, &e) < 0 || predictions_load(&d, path, &read, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f.size, strlen(expected));
    assert_memory_equal(f.bytes, expected, f.size);
    check_equal(&d, &p, &read);
    file_close(&f);
    predictions_finish(&read);
    predictions_finish(&p);
    dataset_finish(&d);
}

static void scores_stand_beside_predictions(void **state)
{
    (void)state;
    const double value[] = {.25, .75, .5, .5};
    const struct prediction_scores classes[] = {{value, 2}, {NULL, 0}},
                                   one[] = {{value, 1}, {value + 1, 1}}, words[] = {{value, 4}};
    check_scores("sst-2", "sentence\tlabel\na\t1\nb\t0\n", "1|0", classes,
                 "{\"id\":0,\"prediction\":\"1\",\"probabilities\":[0.25,0.75]}\n"
                 "{\"id\":1,\"prediction\":\"0\"}\n");
    check_scores("sts-b", "sentence1\tsentence2\tscore\na\tb\t1\na\tb\t2\n", "0.25|0.75", one,
                 "{\"id\":0,\"prediction\":0.25,\"score\":0.25}\n"
                 "{\"id\":1,\"prediction\":0.75,\"score\":0.75}\n");
    check_scores(
        "tokens", "a\tO\nb\tB\n", "B O", words,
        "{\"id\":0,\"prediction\":[\"B\",\"O\"],\"probabilities\":[[0.25,0.75],[0.5,0.5]]}\n");
}

static const struct {
    const char *task, *gold, *name, *predictions, *message;
    double score;
} bad[] = {
    {"text", "text\tlabel\nx\tblue\n", "no.tsv", "a\tb",
     "no.tsv: id \"0\": its prediction has a tab", 0},
    {"text", "text\tlabel\nx\tblue\n", "no.jsonl", "\xff",
     "no.jsonl: id \"0\": its prediction is not UTF-8", 0},
    {"text", "text\tlabel\nx\tblue\n", "no.jsonl", "blue",
     "no.jsonl: id \"0\": its score or a probability is not finite", INFINITY},
    {"tokens", "a\tO\n", "no.tsv", "O", "no.tsv: predictions of tokens are JSON", 0},
    {"squad1",
     "{\"data\": [{\"paragraphs\": [{\"context\": \"x y\", \"qas\": [" SQUAD(
         "q", "x") "," SQUAD("q", "y") "]}]}]}",
     "no.json", "x|y", "no.json: id \"q\": it stands twice in the data", 0},
};

static void what_a_form_cannot_hold_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct error e = {0};
        struct dataset d = read_gold(bad[k].task, bad[k].gold);
        struct predictions p = fill(&d, bad[k].predictions);
        const struct prediction_scores of[2] = {{&bad[k].score, 1}, {&bad[k].score, 1}};
        assert_int_equal(predictions_save(in_folder(bad[k].name), &d, &p, of, &e), -1);
        if (!strstr(e.text, bad[k].message))
            fail_msg("%s", e.text);
        assert_int_equal(access(path, F_OK), -1);
        predictions_finish(&p);
        dataset_finish(&d);
    }
}

static void missing_predictions_are_refused(void **state)
{
    (void)state;
    struct error e = {0};
    struct predictions p;
    struct dataset d = read_gold("sst-2", "sentence\tlabel\na\t1\nb\t0\n");
    const char *part = "1";
    predictions_begin(&p, &d);
    predictions_set(&p, 0, &part, 1);
    assert_int_equal(predictions_save(in_folder("no.jsonl"), &d, &p, NULL, &e), -1);
    assert_non_null(strstr(e.text, "id \"1\": there is no prediction"));
    predictions_finish(&p);
    dataset_finish(&d);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

/* The score of no answer is above the best answer's by a number that f32 does not hold. With this threshold, which `eval` calls
   the best, `eval` and `answer` give the answer; with a lower one neither does. */
static void a_threshold_is_compared_exactly(void **state)
{
    (void)state;
    struct dataset d = read_gold(
        "squad2", "{\"data\": [{\"paragraphs\": [{\"context\": \"x y\", \"qas\": [" SQUAD(
                      "q", "x") "]}]}]}");
    struct task_span best = {0, 1, -0x1.8p-24f, 1};
    uint32_t count = 1;
    float no_answer = 1;
    const struct evaluated v = {
        .spans = {
            .texts = 1, .top = 1, .span = &best, .count = &count, .no_answer = &no_answer}};
    const double lead = task_no_answer_lead(&v.spans, 0);
    assert_true(lead == 1 + 0x1.8p-24);
    for (int below = 0; below < 2; below++) {
        const double threshold = below ? nextafter(lead, 0) : lead;
        struct predictions p;
        evaluated_answers(&d, &v, threshold, &p);
        assert_string_equal(p.of[0].part[0], below ? "" : "x");
        assert_int_equal(task_is_withheld(&v.spans, 0, threshold), below);
        predictions_finish(&p);
    }
    dataset_finish(&d);
}

static int end(void **state)
{
    (void)state;
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_reads_back),
        cmocka_unit_test(scores_stand_beside_predictions),
        cmocka_unit_test(what_a_form_cannot_hold_is_refused),
        cmocka_unit_test(missing_predictions_are_refused),
        cmocka_unit_test(a_threshold_is_compared_exactly),
    };
    return cmocka_run_group_tests_name("score/predictions", tests, begin, end);
}
