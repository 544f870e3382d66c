/* SPDX-License-Identifier: Apache-2.0 */
/* Are a task's files found under the names that its authors gave them, in a folder and one level below, and is a second
   candidate refused? */
#include "masks/base/file.h"
#include "model/data/tasks/files.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 512 };

static void path_of(char ret[PATH], const char *folder, const char *name)
{
    char inside[PATH];
    snprintf(inside, sizeof inside, "%s/%s", folder, name);
    data_path(ret, PATH, inside);
}

/* An empty file in a folder of its own, which is made. */
static void put(const char *folder, const char *name)
{
    char path[PATH], *slash;
    struct error e = {0};
    path_of(path, folder, name);
    slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(file_make_directory(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, "", 0, &e), 0);
}

static char *find(const char *task, const char *folder, enum task_part part, bool optional,
                  struct error *e)
{
    char root[PATH];
    const struct data_task *t = data_task_find(task, e);
    assert_non_null(t);
    data_path(root, sizeof root, folder);
    return task_file(t, root, part, optional, e);
}

static void check_found(const char *task, const char *folder, enum task_part part,
                        const char *name)
{
    char expected[PATH];
    struct error e = {0};
    char *path = find(task, folder, part, false, &e);
    path_of(expected, folder, name);
    assert_non_null(path);
    assert_string_equal(path, expected);
    free(path);
}

static void check_refused(const char *task, const char *folder, enum task_part part,
                          const char *message)
{
    struct error e = {0};
    assert_null(find(task, folder, part, false, &e));
    if (!strstr(e.text, message))
        fail_msg("%s", e.text);
}

static const struct {
    const char *task;
    enum task_part part;
    const char *name;
} names[] = {
    {"cola", TASK_TRAIN, "CoLA/train.tsv"},
    {"sst-2", TASK_DEV, "SST-2/dev.tsv"},
    {"mnli", TASK_DEV, "MNLI/dev_matched.tsv"},
    {"mnli", TASK_DEV_2, "MNLI/dev_mismatched.tsv"},
    {"mnli", TASK_TEST, "MNLI/test_matched.tsv"},
    {"mnli", TASK_TEST_2, "test_mismatched.tsv"},
    {"wnli", TASK_TEST, "wnli/test.tsv"},
    {"squad1", TASK_TRAIN, "train-v1.1.json"},
    {"squad2", TASK_DEV, "squad2/dev.json"},
    {"swag", TASK_DEV, "val.csv"},
    {"text", TASK_TRAIN, "train.jsonl"},
    {"pair", TASK_DEV, "dev.txt"},
    {"tokens", TASK_TEST, "test.conll"},
    {"text", TASK_TRAIN, "train.tsv.gz"},
    {"pair", TASK_DEV, "pair/dev.jsonl.zst"},
    {"mnli", TASK_DEV_2, "MNLI/dev_mismatched.tsv.gz"},
    {"mrqa", TASK_TEST, "test.jsonl.gz"},
};

static void names_of_the_authors_are_found(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char folder[32];
        snprintf(folder, sizeof folder, "names-%zu", k);
        put(folder, names[k].name);
        check_found(names[k].task, folder, names[k].part, names[k].name);
    }
}

/* Both versions of SQuAD, and GLUE, share a folder. */
static void tasks_share_a_folder(void **state)
{
    (void)state;
    put("shared", "dev-v1.1.json");
    put("shared", "dev-v2.0.json");
    put("shared", "RTE/dev.tsv");
    put("shared", "CoLA/dev.tsv");
    check_found("squad1", "shared", TASK_DEV, "dev-v1.1.json");
    check_found("squad2", "shared", TASK_DEV, "dev-v2.0.json");
    check_found("rte", "shared", TASK_DEV, "RTE/dev.tsv");
    check_found("cola", "shared", TASK_DEV, "CoLA/dev.tsv");
}

static void two_candidates_are_refused(void **state)
{
    (void)state;
    put("two", "train.tsv");
    put("two", "train.jsonl");
    check_refused("text", "two", TASK_TRAIN,
                  "train.jsonl: two training files of text; one is expected");
    put("levels", "dev.tsv");
    put("levels", "QQP/dev.tsv");
    check_refused("qqp", "levels", TASK_DEV, "QQP/dev.tsv: two dev files of qqp");
}

/* The plain file is taken before its packed forms. Files of another name, packed or not, make a second candidate. */
static void plain_files_count_before_packed_ones(void **state)
{
    (void)state;
    put("packed", "train.tsv.zst");
    put("packed", "train.tsv.gz");
    check_found("text", "packed", TASK_TRAIN, "train.tsv.gz");
    put("packed", "train.tsv");
    check_found("text", "packed", TASK_TRAIN, "train.tsv");
    put("packed", "train.jsonl.gz");
    check_refused("text", "packed", TASK_TRAIN, "train.jsonl.gz: two training files of text");
    put("sides", "train.gz");
    check_refused("sentube", "sides", TASK_TRAIN, "no training file of sentube");
}

static void links_to_one_file_are_one(void **state)
{
    char path[PATH];
    (void)state;
    put("links", "train-v2.0.json");
    path_of(path, "links", "train.json");
    assert_int_equal(symlink("train-v2.0.json", path), 0);
    check_found("squad2", "links", TASK_TRAIN, "train.json");
}

static void missing_files_are_named(void **state)
{
    struct error e = {0};
    (void)state;
    put("missing", "CoLA/train.tsv");
    check_refused("cola", "missing", TASK_DEV,
                  "missing: no dev file of cola; one of dev.tsv, cola/dev.tsv, CoLA/dev.tsv, "
                  "or such a name with .gz or .zst is expected");
    assert_null(find("cola", "missing", TASK_TEST, true, &e));
    assert_int_equal(e.kind, ERROR_NONE);
    check_refused("cola", "missing", TASK_DEV_2, "cola has no mismatched dev file");
    assert_null(find("cola", "missing", TASK_DEV_2, true, &e));
    assert_int_equal(e.kind, ERROR_NONE);
    assert_null(find("cola", "nowhere", TASK_TEST, true, &e));
    assert_non_null(strstr(e.text, "nowhere: No such file or directory"));
    check_refused("cola", "missing/CoLA/train.tsv", TASK_TRAIN,
                  "train.tsv: is a file, a folder");
}

static void every_task_has_names(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct data_task *t = data_tasks; t->name; t++, count++) {
        char own[64];
        struct error e = {0};
        snprintf(own, sizeof own, ", %s/train", t->name);
        assert_null(find(t->name, ".", TASK_TRAIN, false, &e));
        assert_non_null(strstr(e.text, own));
    }
    assert_true(count > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_authors_are_found),
        cmocka_unit_test(tasks_share_a_folder),
        cmocka_unit_test(two_candidates_are_refused),
        cmocka_unit_test(plain_files_count_before_packed_ones),
        cmocka_unit_test(links_to_one_file_are_one),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(every_task_has_names),
    };
    return cmocka_run_group_tests_name("data/task_files", tests, data_begin, data_end);
}
