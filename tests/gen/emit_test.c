/* SPDX-License-Identifier: Apache-2.0 */
/* Emission: the generated headers against tests/golden/NAME.kernel_config.h (`emit_test DIR --update`
   rewrites them: read the diff), the files of a source, and the folder in MASKC_TEMPLATES. */
#include "gen/emit/emit.h"
#include "gen/family/family.h"
#include "masks/base/file.h"
#include "tests/gen/golden.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the standard ones */
#include <cmocka.h>

static const char *golden_dir;
extern const struct kernel_family family_cuda_hopper;

static const struct {
    const char *name, *target;
    struct kernel_config config;
} row[] = {
    {"cpu-v4-f32", "x86-64-v4", {{.head_dim = 64, .backward = true}}},
    {"cpu-amx-bf16", "x86-64-amx", {{.dtype = ABI_BF16, .head_dim = 80, .backward = true}}},
    {"cpu-bf16", "x86-64-bf16", {{.dtype = ABI_BF16, .head_dim = 80, .backward = true}}},
    {"cpu-v2-bf16-sparsegen",
     "x86-64-v2",
     {{.dtype = ABI_BF16, .transform = ABI_SPARSEGEN, .head_dim = 80, .dropout = true}}},
    {"cuda-sm_80-bf16-sparsegen",
     "sm_80",
     {{.dtype = ABI_BF16, .transform = ABI_SPARSEGEN, .head_dim = 80, .backward = true}}},
    {"cuda-sm_90a-hopper-narrow",
     "sm_90a",
     {{.dtype = ABI_BF16, .head_dim = 64, .backward = true},
      .step_shape = {2, 1, 1},
      .forward = &family_cuda_hopper,
      .backward = &family_cuda_hopper}},
};

static void test_golden(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char path[4096];
        struct error e;
        struct text text = {0};
        emit_config_header(target_find(row[k].target, &e), &row[k].config, &text);
        snprintf(path, sizeof path, "%s/%s.kernel_config.h", golden_dir, row[k].name);
        golden_compare(path, &text);
        text_finish(&text);
    }
}

/* Those that stand beside the CUDA templates, one for each family. */
static const struct {
    const char *file;
    struct kernel_config config;
    const char *target; /* null: sm_80 */
} written[] = {
    {"simt/kernel_config_default.h", {{.head_dim = 64, .dropout = true, .backward = true}}},
    {"tiled/kernel_config_default.h",
     {{.dtype = ABI_BF16, .head_dim = 64, .dropout = true, .backward = true}}},
    {"resident/kernel_config_default.h",
     {{.dtype = ABI_BF16, .head_dim = 64, .dropout = true, .backward = true, .length = 128}}},
    {"hopper/kernel_config_default.h",
     {{.dtype = ABI_BF16, .head_dim = 64, .backward = true},
      .forward = &family_cuda_hopper,
      .backward = &family_cuda_hopper},
     "sm_90a"},
};

/* Every "    NAME = VALUE," of a header stands in the other; returns how many there are. */
static uint32_t find_numbers(const char *in, const char *other, const char *name)
{
    uint32_t count = 0;
    for (const char *at = strstr(in, "\n    "); at; at = strstr(at + 1, "\n    ")) {
        char line[128];
        const char *end = strchr(at, ',');
        assert_non_null(end);
        snprintf(line, sizeof line, "%.*s,", (int)(end - at), at);
        if (!strstr(other, line))
            fail_msg("%s:%s is in one header alone", name, line);
        count++;
    }
    return count;
}

static void test_written_by_hand(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        char path[4096];
        struct error e;
        struct text emitted = {0}, hand = {0};
        struct file file;
        snprintf(path, sizeof path, "%s/../../templates/cuda/%s", golden_dir, written[k].file);
        if (file_open(path, &file, &e))
            fail_msg("%s", e.text);
        text_append(&hand, (const char *)file.bytes, file.size);
        file_close(&file);
        emit_config_header(target_find(written[k].target ? written[k].target : "sm_80", &e),
                           &written[k].config, &emitted);
        uint32_t count = find_numbers(text_get(&emitted), text_get(&hand), written[k].file);
        assert_int_equal(find_numbers(text_get(&hand), text_get(&emitted), written[k].file),
                         count);
        assert_true(count >= 11);
        text_finish(&emitted);
        text_finish(&hand);
    }
}

static const char *text_of(const struct source *s, const char *name)
{
    for (uint32_t k = 0; k < s->n_files; k++)
        if (!strcmp(s->files[k].name, name))
            return s->files[k].text;
    return NULL;
}

static void test_files(void **state)
{
    (void)state;
    const struct kernel_config f = {.request = {.head_dim = 64, .backward = true}};
    struct error e;
    struct source *cpu = emit_source(target_find("x86-64-v3", &e), &f);
    struct source *cuda = emit_source(target_find("sm_80", &e), &f);
    assert_string_equal(cpu->files[0].name, "cpu/attention.c");
    assert_string_equal(cuda->files[0].name, "cuda/kernels.cu");
    assert_int_equal(cpu->n_units, 0);
    assert_int_equal(cuda->n_units, 3);
    for (uint32_t k = 1; k <= cuda->n_units; k++)
        assert_non_null(strstr(cuda->files[0].text, cuda->files[k].name));
    assert_ptr_equal(text_of(cpu, "kernel_config.h"), cpu->config_header);
    assert_non_null(text_of(cpu, "abi.h"));
    assert_non_null(text_of(cuda, "philox.h"));
    assert_null(text_of(cpu, "cuda/common/device.h"));
    assert_null(text_of(cuda, "cpu/vector.h"));
    assert_non_null(text_of(cuda, "cuda/simt/walk.h"));
    assert_null(text_of(cuda, "cuda/tiled/walk.h"));
    assert_null(text_of(cpu, "cpu/kernel_config_default.h"));
    assert_int_equal(cpu->launch.n_forward, 2);
    assert_int_equal(cpu->launch.n_backward, 4);
    source_destroy(cpu);
    source_destroy(cuda);
}

static void check_equal(const struct source *a, const struct source *b)
{
    assert_int_equal(a->n_files, b->n_files);
    for (uint32_t k = 0; k < a->n_files; k++) {
        assert_string_equal(a->files[k].name, b->files[k].name);
        assert_string_equal(a->files[k].text, b->files[k].text);
    }
    assert_ptr_equal(text_of(a, "kernel_config.h"), a->config_header);
    assert_memory_equal(&a->launch, &b->launch, sizeof a->launch);
}

/* A source for few gathered columns becomes the one for many, and the first one again. */
static void another_config_makes_its_own_source(void **state)
{
    (void)state;
    struct error e;
    const struct target *amx = target_find("x86-64-amx", &e);
    struct kernel_config few = {
        .request = {.dtype = ABI_BF16, .head_dim = 64, .backward = true}, .gathers_kept = 8};
    struct kernel_config many = few;
    many.gathers_kept = GATHERS_KEPT_MOST;
    struct source *s = emit_source(amx, &few), *first = emit_source(amx, &few),
                  *other = emit_source(amx, &many);
    assert_string_not_equal(first->config_header, other->config_header);
    assert_true(first->launch.scratch_fixed != other->launch.scratch_fixed);
    source_configure(s, amx, &many);
    check_equal(s, other);
    source_configure(s, amx, &few);
    check_equal(s, first);
    source_destroy(s);
    source_destroy(first);
    source_destroy(other);
}

/* The folder goes in the teardown, which a failed test reaches as well. */
static int make_folder(void **state)
{
    static char folder[32];
    strcpy(folder, "/tmp/maskc-emit-XXXXXX");
    *state = folder;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[64];
    unsetenv("MASKC_TEMPLATES");
    snprintf(path, sizeof path, "%s/abi.h", (const char *)*state);
    unlink(path);
    return rmdir(*state);
}

static void test_override(void **state)
{
    const char *folder = *state;
    char path[64];
    struct error e;
    snprintf(path, sizeof path, "%s/abi.h", folder);
    assert_int_equal(file_write(path, "/* mine */\n", 11, &e), 0);
    setenv("MASKC_TEMPLATES", path, 1);
    assert_int_equal(emit_check_templates(&e), -1); /* a file */
    setenv("MASKC_TEMPLATES", folder, 1);
    assert_int_equal(emit_check_templates(&e), 0);
    struct source *s = emit_source(target_find("x86-64-v3", &e),
                                   &(struct kernel_config){.request = {.head_dim = 64}});
    unsetenv("MASKC_TEMPLATES");
    assert_string_equal(text_of(s, "abi.h"), "/* mine */\n");
    assert_true(strlen(text_of(s, "philox.h")) > 100); /* not in the folder: as built in */
    source_destroy(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_written_by_hand),
        cmocka_unit_test(test_files), cmocka_unit_test(another_config_makes_its_own_source),
        cmocka_unit_test_setup_teardown(test_override, make_folder, remove_folder)};
    if (argc < 2) {
        fprintf(stderr, "usage: emit_test GOLDEN_DIR [--update]\n");
        return 2;
    }
    golden_dir = argv[1];
    golden_update = argc > 2 && !strcmp(argv[2], "--update");
    return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
