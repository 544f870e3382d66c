/* SPDX-License-Identifier: Apache-2.0 */
/* Interpretation of a MASK argument, and the options that all kinds share. */
#include "masks/write.h"
#include "tests/masks/help.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void options_say_what_they_are_for(void **unused)
{
    (void)unused;
    static const struct {
        struct mask_request request;
        const char *error;
    } bad[] = {
        {{.name = "star"}, "star: the mask has no length of its own, -n N is expected"},
        {{.name = "window(2)"},
         "window(2): the mask has no length of its own, -n N is expected"},
        {{.name = "star", .n = 1048577}, "-n 1048577 is out of range, 1..1048576 is expected"},
        {{.name = "star", .n = 8, .heads = 4097},
         "--heads 4097 is out of range, 1..4096 is expected"},
        {{.name = "star", .n = 8, .has_threshold = true},
         "star: --threshold is for .npy and .safetensors files"},
        {{.name = "star", .n = 8, .has_keep = true},
         "star: --keep is for .npy and .safetensors files"},
        {{.name = "star", .n = 8, .dam = true},
         "star: --dam is for .npy and .safetensors files"},
        {{.name = "star", .n = 8, .tensor = "a"},
         "star: --tensor is for .npy and .safetensors files"},
        {{.name = "star", .n = 8, .layer = 1},
         "star: --layer 1 is out of range, 0..0 is expected"},
        {{.name = "blockbert-2", .n = 8, .heads = 4},
         "blockbert-2: the mask has 12 heads, --heads 4 needs 1 or 4"},
        {{.name = "blockbert-2", .n = 1},
         "blockbert-2.mask:3:20: blocks: 2 is out of range, 1..1 is expected at length 1"},
        {{.name = "no-such.mask"}, "no-such.mask: No such file or directory"},
        {{.name = "no-such.npy"}, "no-such.npy: No such file or directory"},
        {{.name = "no-such.safetensors"}, "no-such.safetensors: No such file or directory"},
        {{.name = "no-such.mkb"}, "no-such.mkb: a kernel file is not expected here"},
        {{.name = "/tmp", .n = 8},
         "/tmp: is a directory, a file is expected, such as /tmp/mask.mask"},
        {{.name = "/dev/null", .n = 8},
         "/dev/null: a mask file ends in .mask, .npy, .npz, .safetensors, .tsv or .mkb"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        refuse(bad[k].request, bad[k].error);
}

static void folders_are_no_files(void **unused)
{
    (void)unused;
    static const char *const names[] = {"d.npy", "d.mask", "d.safetensors"};
    for (int k = 0; k < 3; k++) {
        struct text line = {0};
        const char *path = test_path(names[k]);
        assert_int_equal(mkdir(path, 0777), 0);
        text_add(&line, "%s: is a directory, a file is expected", path);
        refuse((struct mask_request){.name = path}, line.bytes);
        rmdir(path);
        text_finish(&line);
    }
}

static void empty_files_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *error;
    } files[] = {
        {"e.npy", ": not a .npy file that can be read: it does not begin as one"},
        {"e.safetensors", ": 0 bytes, too short for a safetensors file"},
        {"e.mask", ":1:1: the text is empty, an expression is expected"},
    };
    for (int k = 0; k < 3; k++) {
        struct text line = {0};
        const char *path = test_path(files[k].name);
        write_bytes(path, "", 0);
        text_add(&line, "%s%s", path, files[k].error);
        refuse((struct mask_request){.name = path}, line.bytes);
        text_finish(&line);
    }
}

static void length_crops_and_heads_repeat(void **unused)
{
    (void)unused;
    struct error e = {0};
    struct mask *causal = load_text("causal", 9), *five = load_text("causal", 5);
    const char *path = test_path("c.npy");
    assert_int_equal(mask_write_npy(causal, path, &e), 0);
    struct mask *m = load((struct mask_request){.name = path, .n = 5, .heads = 3});
    assert_true(m->n == 5 && m->heads == 3 && m->n_patterns == 1);
    assert_true(pattern_equal(m->pattern[0], five->pattern[0]));
    assert_string_equal(m->source, path);
    mask_destroy(m);
    mask_destroy(five);
    mask_destroy(causal);
}

static void layer_takes_one(void **unused)
{
    (void)unused;
    static const char text[] = "length 6\nheads 2\nlayers 2\nlayer 0: dense\nlayer 1: causal\n"
                               "layer 1 head 1: none\n";
    const char *path = test_path("l.mask");
    write_bytes(path, text, sizeof text - 1);
    struct mask_request r = {.name = path, .layer = 1};
    struct error e = {0};
    struct mask *m = load(r);
    assert_true(m->layers == 1 && m->heads == 2 && m->n_patterns == 2);
    assert_int_equal(mask_pattern(m, 0, 0)->active, 21);
    assert_int_equal(mask_pattern(m, 0, 1)->active, 0);
    mask_destroy(m);
    r.layer = 0; /* not through load(), which takes 0 for all layers */
    m = mask_load(&r, NULL, &e);
    assert_true(m->layers == 1 && m->n_patterns == 1);
    mask_destroy(m);
}

/* A reader that stands for the runtime's. */
static struct mask *read_seven(const char *path, struct error *e)
{
    if (strcmp(path, "seven.mkb")) {
        error_set(e, ERROR_INPUT, "%s: no", path);
        return NULL;
    }
    return load_text("window(1)", 7);
}

static void kernel_files_go_through_the_reader(void **unused)
{
    (void)unused;
    struct error e = {0};
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .name = "seven.mkb", .n = 4, .heads = 2};
    struct mask *m = mask_load(&r, read_seven, &e);
    assert_true(m->n == 4 && m->heads == 2);
    mask_destroy(m);
    r.name = "eight.mkb";
    assert_null(mask_load(&r, read_seven, &e));
    assert_string_equal(e.text, "eight.mkb: no");
}

static void file_without_a_folder_is_beside(void **unused)
{
    (void)unused;
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    struct error e = {0};
    struct mask *causal = load_text("causal", 4);
    assert_int_equal(mask_write_npy(causal, test_path("x.npy"), &e), 0);
    char *folder = memory_text(test_path("x.npy"));
    *strrchr(folder, '/') = 0;
    assert_int_equal(chdir(folder), 0);
    struct mask *m = load_text("file(\"x.npy\")", 4);
    assert_int_equal(chdir(here), 0);
    assert_true(mask_equal(m, causal));
    mask_destroy(m);
    mask_destroy(causal);
    free(folder);
    refuse((struct mask_request){.name = "file(\"y.npy\")", .n = 4},
           "MASK:1:6: file: y.npy: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_say_what_they_are_for),
        cmocka_unit_test(folders_are_no_files),
        cmocka_unit_test(empty_files_are_refused),
        cmocka_unit_test(length_crops_and_heads_repeat),
        cmocka_unit_test(layer_takes_one),
        cmocka_unit_test(kernel_files_go_through_the_reader),
        cmocka_unit_test(file_without_a_folder_is_beside),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
