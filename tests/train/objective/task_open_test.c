/* SPDX-License-Identifier: Apache-2.0 */
/* Does each task open from its own files as samples with the head, the labels and the numbers of samples that it has? SST-1 trains
   on phrases and is judged on sentences. And the dropout before the head of a run. */
#include "masks/base/file.h"
#include "model/data/tasks/table.h"
#include "model/objective/tasks/tasks.h"
#include "model/train/run/run_model.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED(question, answers)                                                           \
    "{\"data\": [{\"paragraphs\": [{\"context\": \"aa ab ac\", \"qas\": [{\"id\": \"q\", " \
    "\"question\": \"" question "\", \"answers\": [" answers "]}]}]}]}"
#define SQUAD(answers) ASKED("ad", answers)
#define EIGHT          "ad ad ad ad ad ad ad ad "
#define SWAG           "sent1,sent2,ending0,ending1,ending2,ending3,label\naa,ab,ac,ad,ae,af,2\n"
#define MRQA                                                                                  \
    "{\"header\": {}}\n{\"context\": \"aa ab ac\", \"qas\": [{\"qid\": \"q\", \"question\": " \
    "\"ad\", "                                                                                \
    "\"answers\": [\"ab\"], \"detected_answers\": [{\"char_spans\": [[3, 4]]}]}]}\n"
#define PAIRS "sentence1\tsentence2\t"

static const struct {
    const char *task, *ending, *text; /* of train and dev */
    const struct objective *natural;
    uint32_t labels, train, dev; /* samples */
} cases[] = {
    {"cola", ".tsv", "s\t1\t\taa ab\ns\t0\t*\tac\n", &objective_classify, 2, 2, 2},
    {"sst-2", ".tsv", "sentence\tlabel\naa\t1\n", &objective_classify, 2, 1, 1},
    {"mrpc", ".tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\taa\tab\n",
     &objective_classify, 2, 1, 1},
    {"qqp", ".tsv",
     "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n7\t1\t2\taa\tab\t1\n8\tbroken\n",
     &objective_classify, 2, 1, 1},
    {"sts-b", ".tsv", PAIRS "score\naa\tab\t2.5\n", &objective_regress, 1, 1, 1},
    {"mnli", ".tsv", PAIRS "gold_label\naa\tab\tneutral\n", &objective_classify, 3, 1, 1},
    {"qnli", ".tsv", "question\tsentence\tlabel\naa\tab\tentailment\n", &objective_classify, 2,
     1, 1},
    {"rte", ".tsv", PAIRS "label\naa\tab\tentailment\n", &objective_classify, 2, 1, 1},
    {"wnli", ".tsv", PAIRS "label\naa\tab\t1\n", &objective_classify, 2, 1, 1},
    {"squad1", ".json", SQUAD("{\"text\": \"ab\", \"answer_start\": 3}"), &objective_span, 0, 1,
     1},
    {"squad2", ".json", SQUAD(""), &objective_span, 0, 1, 1},
    {"mrqa", ".jsonl", MRQA, &objective_span, 0, 1, 1},
    {"swag", ".csv", SWAG, &objective_choose, 4, 1, 1},
    {"sst-1", ".txt", "(3 (2 aa) (4 ab))\n(0 ac)\n", &objective_classify, 5, 4, 2},
    {"semeval", ".tsv", "1\t2\t\"objective\"\taa\n1\t2\t\"positive\"\tNot Available\n",
     &objective_classify, 3, 1, 1},
    {"sentube", "/neg.txt", "aa\nab\n", &objective_classify, 2, 3, 3},
    {"scitail", ".tsv", "aa\tab\tentails\n", &objective_classify, 2, 1, 1},
    {"text", ".tsv", "text\tlabel\naa\tred\nab\tblue\n", &objective_classify, 2, 2, 2},
    {"pair", ".jsonl", "{\"text\": \"aa\", \"text2\": \"ab\", \"label\": 0.5}\n",
     &objective_regress, 1, 1, 1},
    {"tokens", ".conll", "aa\tO\nab\tB\n", &objective_tokens, 2, 1, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static void write_file(const char *task, const char *name, const char *text)
{
    char path[256];
    struct error e = {0};
    data_path(path, sizeof path, task);
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(file_make_directory(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
}

static void write_both(size_t k)
{
    static const char *const parts[] = {"train", "dev"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", parts[i], cases[k].ending);
        write_file(cases[k].task, name, cases[k].text);
        snprintf(name, sizeof name, "%s/pos.txt", parts[i]);
        if (!strcmp(cases[k].task, "sentube"))
            write_file(cases[k].task, name, "ac\n");
    }
}

static struct objective_data *open_length(size_t k, const struct tokenizer *t,
                                          const struct objective_data *like, uint32_t longest)
{
    char path[256];
    struct error e = {0};
    data_path(path, sizeof path, cases[k].task);
    struct objective_data *d = cases[k].natural->open(
        &(struct objective_source){.path = path,
                                   .held_out = like != NULL,
                                   .task = data_task_find(cases[k].task, &e),
                                   .tokenizer = t,
                                   .longest = longest,
                                   .like = like},
        &e);
    if (!d)
        fail_msg("%s", e.text);
    return d;
}

static struct objective_data *open_part(size_t k, const struct tokenizer *t,
                                        const struct objective_data *like)
{
    return open_length(k, t, like, 64);
}

static void every_task_opens(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    size_t tasks = 0;
    for (const struct data_task *x = data_tasks; x->name; x++)
        tasks++;
    assert_int_equal(tasks, CASES);
    for (size_t k = 0; k < CASES; k++) {
        write_both(k);
        struct objective_data *train = open_part(k, t, NULL), *dev = open_part(k, t, train);
        assert_ptr_equal(train->natural, cases[k].natural);
        assert_int_equal(train->labels, cases[k].labels);
        assert_int_equal(train->count, cases[k].train);
        assert_int_equal(dev->count, cases[k].dev);
        cases[k].natural->close(dev);
        cases[k].natural->close(train);
    }
    tokenizer_destroy(t);
}

/* Labels that are names in the training file are names in the dev file, where each of them could be a number. */
static void numbers_may_be_names(void **state)
{
    (void)state;
    const size_t k = CASES - 3;
    struct tokenizer *t = data_tokenizer();
    assert_string_equal(cases[k].task, "text");
    write_file("text", "train.tsv", "text\tlabel\naa\t1.5\nab\tnone\n");
    write_file("text", "dev.tsv", "text\tlabel\nab\t1.5\n");
    struct objective_data *train = open_part(k, t, NULL), *dev = open_part(k, t, train);
    assert_ptr_equal(train->natural, &objective_classify);
    assert_ptr_equal(dev->natural, &objective_classify);
    assert_int_equal(dev->labels, 2);
    objective_classify.close(dev);
    objective_classify.close(train);
    tokenizer_destroy(t);
}

/* A question has 64 tokens at most, as in BERT's run_squad.py, and with [CLS] and [SEP] half of the window. The passage has three. */
static void long_questions_are_cut(void **state)
{
    (void)state;
    size_t k = 0;
    while (strcmp(cases[k].task, "squad2"))
        k++;
    struct tokenizer *t = data_tokenizer();
    write_file("squad2", "train.json",
               ASKED(EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT, ""));
    static const uint32_t longest[] = {256, 100}, tokens[] = {1 + 64 + 1 + 3 + 1, 50 + 3 + 1};
    for (int i = 0; i < 2; i++) {
        struct objective_data *train = open_length(k, t, NULL, longest[i]);
        assert_int_equal(train->count, 1);
        assert_int_equal(train->tokens, tokens[i]);
        objective_span.close(train);
    }
    tokenizer_destroy(t);
}

/* RobertaForMultipleChoice ignores classifier_dropout, whatever class the model has before the run. */
static void dropout_before_the_head(void **state)
{
    (void)state;
    static const char *const classes[] = {"RobertaModel", "RobertaForSequenceClassification",
                                          "RobertaForMultipleChoice"};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        struct model_config c;
        struct error e = {0};
        struct run_options o = {.hidden_dropout = 0.1, .objective = &objective_choose};
        double found;
        json_t *json = json_pack(
            "{s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:f}", "model_type", "roberta",
            "architectures", classes[k], "vocab_size", 9, "hidden_size", 8, "num_hidden_layers",
            1, "num_attention_heads", 1, "intermediate_size", 8, "classifier_dropout", 0.3);
        assert_int_equal(config_parse(json, &c, &e), 0);
        assert_int_equal(run_model_head_dropout(&o, &c, &found, &e), 0);
        assert_true(found == 0.1);
        o.objective = &objective_classify;
        assert_int_equal(run_model_head_dropout(&o, &c, &found, &e), 0);
        assert_true(found == 0.3);
        config_finish(&c);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_opens), cmocka_unit_test(numbers_may_be_names),
        cmocka_unit_test(long_questions_are_cut), cmocka_unit_test(dropout_before_the_head)};
    return cmocka_run_group_tests_name("train/task_open", tests, data_begin, data_end);
}
