/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/table.h"
#include "masks/base/text.h"
#include <string.h>

#define BINARY   \
    {            \
        "0", "1" \
    }
#define ENTAILMENT                     \
    {                                  \
        "entailment", "not_entailment" \
    }

static const struct task_columns cola_columns = {
    {3}, 1}; /* source, label, the author's label, sentence */
static const struct task_columns scitail_columns = {{0, 1}, 2};

/* clang-format off */
const struct data_task data_tasks[] = {
    {"cola", TASK_GLUE, METRIC_MATTHEWS, {"sentence"}, "label", BINARY, {"unacceptable", "acceptable"}, .headless = &cola_columns},
    {"sst-2", TASK_GLUE, METRIC_ACCURACY, {"sentence"}, "label", BINARY, {"negative", "positive"}},
    {"mrpc", TASK_GLUE, METRIC_ACCURACY | METRIC_F1, {"#1 String", "#2 String"}, "Quality", BINARY, {"not_equivalent", "equivalent"}},
    {"qqp", TASK_GLUE, METRIC_ACCURACY | METRIC_F1, {"question1", "question2"}, "is_duplicate", BINARY, {"not_duplicate", "duplicate"}, .skips = true},
    {"sts-b", TASK_GLUE, METRIC_CORRELATION, {"sentence1", "sentence2"}, "score", .numbers = true},
    {"mnli", TASK_GLUE, METRIC_ACCURACY, {"sentence1", "sentence2"}, "gold_label", {"entailment", "neutral", "contradiction"}, .skips = true},
    {"qnli", TASK_GLUE, METRIC_ACCURACY, {"question", "sentence"}, "label", ENTAILMENT},
    {"rte", TASK_GLUE, METRIC_ACCURACY, {"sentence1", "sentence2"}, "label", ENTAILMENT},
    {"wnli", TASK_GLUE, METRIC_ACCURACY, {"sentence1", "sentence2"}, "label", BINARY, {"not_entailment", "entailment"}},
    {"squad1", TASK_ANSWERS, METRIC_ANSWERS},
    {"squad2", TASK_ANSWERS, METRIC_ANSWERS, .unanswerable = true},
    {"mrqa", TASK_ANSWERS, METRIC_ANSWERS, .lines = true},
    {"swag", TASK_ENDINGS, METRIC_ACCURACY, .label = "label", .classes = {"0", "1", "2", "3"}},
    {"sst-1", TASK_TREES, METRIC_ACCURACY, .classes = {"0", "1", "2", "3", "4"}},
    {"semeval", TASK_TWEETS, METRIC_ACCURACY, .classes = {"negative", "neutral", "positive"}},
    {"sentube", TASK_SIDES, METRIC_ACCURACY, .classes = {"negative", "positive"}},
    {"scitail", TASK_GLUE, METRIC_ACCURACY, {"premise", "hypothesis"}, "label", {"entails", "neutral"}, .headless = &scitail_columns},
    {"text", TASK_PLAIN, METRIC_ACCURACY | METRIC_MATTHEWS, {"text"}, "label"},
    {"pair", TASK_PLAIN, METRIC_ACCURACY | METRIC_MATTHEWS, {"text", "text2"}, "label"},
    {"tokens", TASK_WORDS, METRIC_ACCURACY},
    {0},
};
/* clang-format on */

const struct data_task *data_task_find(const char *name, struct error *e)
{
    struct text all = {0};
    for (const struct data_task *t = data_tasks; t->name; t++) {
        if (!strcmp(t->name, name)) {
            text_finish(&all);
            return t;
        }
        text_add(&all, "%s%s", all.length ? " " : "", t->name);
    }
    error_set(e, ERROR_INPUT, "task \"%.60s\": one of %s is expected", name, text_get(&all));
    text_finish(&all);
    return NULL;
}
