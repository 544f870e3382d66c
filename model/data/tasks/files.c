/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/files.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDERS = 4, NAMES = 4 };

struct layout {
    const char *task;
    const char *folder[FOLDERS]; /* beside the task's own name */
    const char *name[TASK_PARTS][NAMES];
};

/* clang-format off */
#define PARTS(ending) {{"train" ending}, {"dev" ending}, {0}, {"test" ending}, {0}}
#define SQUAD(version) \
    {{"train.json", "train-" version ".json"}, {"dev.json", "dev-" version ".json"}, {0}, {"test.json", "test-" version ".json"}, {0}}
#define PLAIN \
    {{"train.tsv", "train.jsonl", "train.txt"}, {"dev.tsv", "dev.jsonl", "dev.txt"}, {0}, {"test.tsv", "test.jsonl", "test.txt"}, {0}}

static const struct layout layouts[] = {
    {"cola", {"CoLA"}, PARTS(".tsv")},
    {"sst-2", {"SST-2"}, PARTS(".tsv")},
    {"mrpc", {"MRPC"}, PARTS(".tsv")},
    {"qqp", {"QQP"}, PARTS(".tsv")},
    {"sts-b", {"STS-B"}, PARTS(".tsv")},
    {"mnli", {"MNLI"}, {{"train.tsv"}, {"dev_matched.tsv", "dev.tsv"}, {"dev_mismatched.tsv"},
                        {"test_matched.tsv", "test.tsv"}, {"test_mismatched.tsv"}}},
    {"qnli", {"QNLI"}, PARTS(".tsv")},
    {"rte", {"RTE"}, PARTS(".tsv")},
    {"wnli", {"WNLI"}, PARTS(".tsv")},
    {"squad1", {"SQuAD", "squad", "v1.1"}, SQUAD("v1.1")},
    {"squad2", {"SQuAD", "squad", "v2.0"}, SQUAD("v2.0")},
    {"mrqa", {"MRQA", "MrQA"}, PARTS(".jsonl")},
    {"sst-1", {"SST-1", "trees"}, PARTS(".txt")},
    {"semeval", {"SemEval"}, PARTS(".tsv")},
    {"sentube", {"SenTube", "auto", "tablets"}, PARTS("")},
    {"scitail", {"SciTail", "tsv_format", "SciTailV1.1/tsv_format"},
     {{"train.tsv", "scitail_1.0_train.tsv"}, {"dev.tsv", "scitail_1.0_dev.tsv"}, {0}, {"test.tsv", "scitail_1.0_test.tsv"}, {0}}},
    {"swag", {"SWAG"}, {{"train.csv"}, {"val.csv", "dev.csv"}, {0}, {"test.csv"}, {0}}},
    {"text", {0}, PLAIN},
    {"pair", {0}, PLAIN},
    {"tokens", {0}, {{"train.tsv", "train.txt", "train.conll"}, {"dev.tsv", "dev.txt", "dev.conll"}, {0},
                     {"test.tsv", "test.txt", "test.conll"}, {0}}},
    {NULL, {0}, {{0}}},
};
/* clang-format on */

static const struct layout *layout_of(const struct data_task *t)
{
    size_t k = 0;
    while (layouts[k].task && strcmp(layouts[k].task, t->name) != 0)
        k++;
    return &layouts[k];
}

struct search {
    struct text tried; /* names, for messages */
    char *found, *second;
    struct stat at;
};

/* True if a file is there. Two names of one file, as on a file system without case, are one. */
static bool try_path(struct search *s, const char *path)
{
    struct stat at;
    if (s->second || stat(path, &at) < 0)
        return false;
    if (!s->found) {
        s->found = memory_text(path);
        s->at = at;
    } else if (at.st_ino != s->at.st_ino || at.st_dev != s->at.st_dev) {
        s->second = memory_text(path);
    }
    return true;
}

/* Tries a name, then its packed forms; the first that is there counts. */
static void try_forms(struct search *s, const struct data_task *t, const char *root,
                      const char *name)
{
    static const char *const packed[] = {"", ".gz", ".zst"};
    const size_t forms = t->format == TASK_SIDES ? 1 : sizeof packed / sizeof *packed;
    bool there = false;
    text_add(&s->tried, "%s%s", s->tried.length ? ", " : "", name);
    for (size_t k = 0; k < forms && !there; k++) {
        struct text path = {0};
        text_add(&path, "%s/%s%s", root, name, packed[k]);
        there = try_path(s, text_get(&path));
        text_finish(&path);
    }
}

/* A null folder: the root itself. */
static void try_folder(struct search *s, const struct data_task *t, const char *root,
                       const char *folder, const char *const name[NAMES])
{
    for (size_t k = 0; k < NAMES && name[k]; k++) {
        struct text path = {0};
        text_add(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name[k]);
        try_forms(s, t, root, text_get(&path));
        text_finish(&path);
    }
}

static void try_all(struct search *s, const struct data_task *t, const char *root,
                    enum task_part part)
{
    const struct layout *l = layout_of(t);
    const char *const *name = l->name[part];
    try_folder(s, t, root, NULL, name);
    try_folder(s, t, root, t->name, name);
    for (size_t k = 0; k < FOLDERS && l->folder[k]; k++)
        try_folder(s, t, root, l->folder[k], name);
}

static int check_found(const struct search *s, const struct data_task *t, const char *folder,
                       enum task_part part, bool optional, struct error *e)
{
    static const char *const parts[] = {"training", "dev", "mismatched dev", "test",
                                        "mismatched test"};
    struct stat at;
    if (s->second)
        return error_set(e, ERROR_INPUT, "%s and %s: two %s files of %s; one is expected",
                         s->found, s->second, parts[part], t->name);
    if (s->found || (optional && stat(folder, &at) == 0 && S_ISDIR(at.st_mode)))
        return 0;
    if (stat(folder, &at) < 0)
        return error_set(e, ERROR_INPUT, "%s: %s", folder, strerror(errno));
    const char *packed = t->format == TASK_SIDES ? "" : ", or such a name with .gz or .zst";
    if (!S_ISDIR(at.st_mode))
        return error_set(e, ERROR_INPUT, "%s: is a file, a folder with %s is expected", folder,
                         text_get(&s->tried));
    if (!s->tried.length)
        return error_set(e, ERROR_INPUT, "%s has no %s file", t->name, parts[part]);
    return error_set(e, ERROR_INPUT, "%s: no %s file of %s; one of %s%s is expected", folder,
                     parts[part], t->name, text_get(&s->tried), packed);
}

char *task_file(const struct data_task *t, const char *folder, enum task_part part,
                bool optional, struct error *e)
{
    struct search s = {{0}, NULL, NULL, {0}};
    try_all(&s, t, folder, part);
    bool fine = check_found(&s, t, folder, part, optional, e) == 0;
    text_finish(&s.tried);
    free(s.second);
    if (fine)
        return s.found;
    free(s.found);
    return NULL;
}
