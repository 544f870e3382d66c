/* SPDX-License-Identifier: Apache-2.0 */
/* maskc calibrate, and who uses what it stores: in a folder of this test's own, with as few runs as it
   takes; of a GPU with a driver and a compiler that only seem to be ones. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <dlfcn.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[4096];  /* of the stored calibration */
static char fakes[4096]; /* the folder of the driver and the compiler */

/* Checks the machine that plan's output names. */
static void check_machine(const char *options, const char *expected, bool whole)
{
    char line[256];
    snprintf(line, sizeof line, "plan star -n 96 --json %s", options);
    json_t *j = shell_json(line, 0);
    const char *machine = json_string_value(json_object_get(j, "machine"));
    if (whole ? strcmp(machine, expected) != 0 : !strstr(machine, expected))
        fail_msg("%s: made for %s, not %s", line, machine, expected);
    json_decref(j);
}

static void check_failure(const char *line, int code, const char *word)
{
    struct outcome o = shell_run("", line);
    if (o.code != code || !strstr(o.err, word) || strchr(o.err, '\n') != strrchr(o.err, '\n'))
        fail_msg("maskc %s: exit code %d, %s", line, o.code, o.err);
    outcome_finish(&o);
}

static void write_text(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_json(const json_t *j)
{
    char *text = json_dumps(j, 0);
    write_text(text);
    free(text);
}

static void test_calibrate(void **state)
{
    (void)state;
    check_machine("--target x86-64-v2", "x86-sse", true); /* before */
    check_failure("plan star -n 96 --machine calibrated", 2, "maskc calibrate");
    json_t *j = shell_json("calibrate --seconds 0.01 --json", 0);
    snprintf(path, sizeof path, "%s", json_string_value(json_object_get(j, "path")));
    const json_t *peaks = json_object_get(j, "ceilings");
    assert_true(json_number_value(json_object_get(peaks, "flops")) > 1e9);
    assert_true(json_number_value(json_object_get(peaks, "exps")) > 1e8);
    assert_true(json_number_value(json_object_get(peaks, "bytes")) > 1e8);
    assert_int_equal(json_array_size(json_object_get(j, "machines")), 5);
    assert_true(json_array_size(json_object_get(j, "probes")) > 60);
    for (int pass = 0; pass < 3; pass++) {
        static const char *const names[] = {"forward", "dq", "dkv"};
        const json_t *rates =
            json_object_get(json_array_get(json_object_get(j, "machines"), 0), names[pass]);
        assert_true(json_number_value(json_object_get(rates, "loop")) > 0);
        assert_true(json_number_value(json_object_get(rates, "exposed")) > 0);
    }
    json_decref(j);
    assert_non_null(strstr(path, "/maskc/calibration-"));
}

static void test_use(void **state)
{
    (void)state;
    check_machine("", "(calibrated)", false);
    check_machine("--target x86-64-v2", "x86-sse (calibrated)", true);
    check_machine("--dtype bf16 --machine calibrated", "(calibrated)", false);
    check_machine("--machine x86-sse --target x86-64-v2", "x86-sse", true);
    check_machine("--target sm_80", "a100", true);
    shell_says("compile star -n 96 --target x86-64-v2 -o star.mkb", "star.mkb");
    json_t *j = shell_json("info star.mkb --json", 0);
    const json_t *plan = json_array_get(json_object_get(j, "plans"), 0);
    assert_string_equal(json_string_value(json_object_get(plan, "machine")),
                        "x86-sse (calibrated)");
    json_decref(j);
}

/* Another machine's file, under this one's name, is as good as none. */
static void test_strangers(void **state)
{
    (void)state;
    json_t *j = json_load_file(path, 0, NULL);
    json_t *cpu = json_incref(json_object_get(j, "cpu"));
    json_object_set_new(j, "cpu", json_string("another, signature 1; x86-64-v2"));
    write_json(j);
    check_machine("--target x86-64-v2", "x86-sse", true);
    check_failure("plan star -n 96 --machine calibrated", 2, "no calibration");
    json_object_set_new(j, "cpu", cpu);
    write_json(j);
    check_machine("--target x86-64-v2", "x86-sse (calibrated)", true);
    json_decref(j);
}

static void check_damaged(void)
{
    struct outcome o = shell_run("", "plan star -n 96 --json --target x86-64-v2");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, path));
    assert_non_null(strstr(o.err, "ignored"));
    assert_ptr_equal(strchr(o.err, '\n'), strrchr(o.err, '\n'));
    assert_non_null(strstr(o.out, "\"machine\": \"x86-sse\""));
    outcome_finish(&o);
    check_failure("plan star -n 96 --machine calibrated", 2, path);
    o = shell_run("", "plan star -n 96 --machine x86-sse --target x86-64-v2");
    assert_int_equal(o.code, 0);
    assert_int_equal(strlen(o.err), 0);
    outcome_finish(&o);
}

static void set_rate(json_t *j, json_t *value)
{
    json_t *row = json_array_get(json_object_get(j, "machines"), 0);
    json_object_set_new(json_object_get(row, "dq"), "line", value);
}

static void test_damage(void **state)
{
    (void)state;
    json_t *whole = json_load_file(path, 0, NULL), *j = json_deep_copy(whole);
    const char *const texts[] = {"", "{", "[]", "{\"calibration\": 1}", "\xff\xfe"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        write_text(texts[k]);
        check_damaged();
    }
    json_t *const values[] = {json_real(-1e-9), json_real(3), json_string("fast"), json_null()};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        set_rate(j, values[k]);
        write_json(j);
        check_damaged();
    }
    json_decref(j);
    j = json_deep_copy(whole);
    json_object_set_new(json_array_get(json_object_get(j, "machines"), 0), "machine",
                        json_string("a100"));
    write_json(j);
    check_damaged();
    json_decref(j);
    j = json_deep_copy(whole);
    json_object_set_new(j, "calibration", json_integer(99));
    write_json(j);
    check_damaged();
    json_decref(j);
    write_json(whole);
    check_machine("--target x86-64-v2", "x86-sse (calibrated)", true);
    json_decref(whole);
}

static void test_refused(void **state)
{
    (void)state;
    check_failure("calibrate --device emulated", 2, "--device emulated");
    check_failure("calibrate --device gpu", 2, "unknown device");
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        check_failure("calibrate --device cuda", 3, "no NVIDIA driver");
    struct outcome o =
        shell_run("XDG_CACHE_HOME=/proc/nonexistent", "calibrate --seconds 0.01");
    assert_int_equal(o.code, 2);
    assert_int_equal(strlen(o.out), 0);
    outcome_finish(&o);
}

/* ---- a GPU ---- */

/* One that takes PTX, which nobody reads. */
static void begin_gpu(void)
{
    char compiler[sizeof fakes + 32];
    snprintf(compiler, sizeof compiler, "%s/libnvrtc.so", fakes);
    setenv("LD_LIBRARY_PATH", fakes, 1);
    setenv("MASKC_NVRTC", compiler, 1);
    setenv("MASKC_TEST_CAPABILITY", "110", 1);
}

static void end_gpu(void)
{
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("MASKC_NVRTC");
    unsetenv("MASKC_TEST_CAPABILITY");
}

static const char *text_of(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static void check_probe(const json_t *probe)
{
    assert_non_null(text_of(probe, "machine"));
    assert_non_null(text_of(probe, "probe"));
    assert_non_null(text_of(probe, "lowering"));
    assert_non_null(text_of(probe, "pass"));
    assert_true(json_number_value(json_object_get(probe, "measured_s")) > 0);
    assert_true(json_number_value(json_object_get(probe, "fitted_s")) > 0);
}

static void test_gpu(void **state)
{
    begin_gpu();
    check_machine("--target cuda", "a100", true); /* before */
    check_failure("plan star -n 96 --target cuda --machine calibrated", 2,
                  "maskc calibrate --device cuda");
    check_failure("calibrate --device cuda --soft bias", 2, "--soft");
    check_failure("calibrate --device cuda:2", 3, "no cuda:2");
    json_t *j = shell_json("calibrate --device cuda --seconds 0.01 --json", 0);
    const json_t *list = json_object_get(j, "machines");
    snprintf(path, sizeof path, "%s", text_of(j, "path"));
    assert_string_equal(text_of(j, "gpu"), "Fake 0, compute capability 11.0; compute_80");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_of(json_array_get(list, 0), "machine"), "a100");
    assert_string_equal(text_of(json_array_get(list, 1), "machine"), "a100-mma");
    list = json_object_get(j, "probes");
    assert_true(json_array_size(list) > 150);
    for (size_t k = 0; k < json_array_size(list); k++)
        check_probe(json_array_get(list, k));
    json_decref(j);
    if (*state) /* every level */
        shell_says("calibrate --device cuda --seconds 0.01 --table",
                   "{\"a100-mma\", TARGET_CUDA, ");
    end_gpu();
}

/* Calibrated rates of a GPU serve its own target alone, and only on a machine with that GPU; those of the CPU stay in use. */
static void test_gpu_use(void **state)
{
    (void)state;
    check_machine("--target compute_80", "a100", true);
    begin_gpu();
    check_machine("--target cuda", "a100 (calibrated)", true);
    check_machine("--target compute_80 --machine calibrated", "a100 (calibrated)", true);
    check_machine("--target cuda --dtype bf16", "a100-mma (calibrated)", true);
    check_machine("--target cuda --machine a100", "a100", true);
    check_machine("--target sm_80", "a100", true);
    check_machine("--target x86-64-v2", "x86-sse (calibrated)", true);
    shell_says("compile star -n 96 --target cuda -o gpu.mkb", "gpu.mkb");
    json_t *j = shell_json("bench gpu.mkb --seconds 0.01 --json", 0);
    assert_string_equal(text_of(json_array_get(json_object_get(j, "results"), 0), "machine"),
                        "a100 (calibrated)");
    json_decref(j);
    setenv("MASKC_TEST_CAPABILITY", "120", 1); /* another GPU */
    check_machine("--target cuda", "rtx5090", true);
    end_gpu();
}

static void test_gpu_damage(void **state)
{
    (void)state;
    begin_gpu();
    write_text("{");
    check_failure("plan star -n 96 --target cuda --machine calibrated", 2, path);
    struct outcome o = shell_run("", "plan star -n 96 --target cuda");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, path));
    assert_non_null(strstr(o.err, "ignored"));
    assert_non_null(strstr(o.out, " on a100:"));
    outcome_finish(&o);
    check_machine("--target x86-64-v2", "x86-sse (calibrated)", true);
    end_gpu();
}

/* `devices` has the line `says` where the driver is in this folder and all that `prepare` makes is in the toolkit's. */
static void check_nvrtc(const char *prepare, const char *driver, const char *says)
{
    char line[512];
    snprintf(line, sizeof line,
             "mkdir -p ../cuda/lib64; %s CUDA_HOME=$PWD/../cuda LD_LIBRARY_PATH=\"%s\"",
             prepare, driver);
    struct outcome o = shell_must(line, "devices");
    assert_non_null(strstr(o.out, says));
    outcome_finish(&o);
}

static void test_nvrtc_suits_the_driver(void **state)
{
    (void)state;
    setenv("FAKES", fakes, 1);
    check_nvrtc("ln -s \"$FAKES\"/libnvrtc.so ../cuda/lib64/libnvrtc.so.13;",
                "$FAKES/old_driver", "nvrtc      13.0"); /* no other is there for CUDA 11 */
    check_nvrtc("ln -s \"$FAKES\"/old_driver/libnvrtc.so.11 ../cuda/lib64;",
                "$FAKES/old_driver", "nvrtc      11.0");
    check_nvrtc("", "$FAKES", "nvrtc      13.0");
}

/* Copies compiled kernels from the folder that the builds share, or back to it. The folder may be empty. */
static void copy_kernels(const char *line)
{
    if (system(line))
        fputs("kernels are compiled anew\n", stderr);
}

int main(int argc, char **argv)
{
    void *every_level = getenv("MASKC_ALL_CASES"); /* tools/test --long; null: fewer */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibrate),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_prestate(test_gpu, every_level),
        cmocka_unit_test(test_gpu_use),
        cmocka_unit_test(test_gpu_damage),
        cmocka_unit_test(test_nvrtc_suits_the_driver),
    };
    if (argc < 4 || !realpath(argv[2], fakes))
        return fputs(
                   "usage: calibrate_test MASKC FAKES KERNELS: the folders of the fake "
                   "libcuda.so.1 and libnvrtc.so, and of kernels that a test before compiled\n",
                   stderr),
               2;
    shell_start(argv[1]);
    shell_compile_at("-O1"); /* at -O0 the probes run for longer than that saves */
    setenv("KERNELS", argv[3], 1);
    copy_kernels(
        "mkdir -p \"$KERNELS\" ../cache/maskc && cp \"$KERNELS\"/* ../cache/maskc 2>/dev/null");
    if (!every_level) /* fewer to compile for */
        setenv("MASKC_MAX_CPU", "x86-64-v3", 1);
    int code = cmocka_run_group_tests(tests, NULL, NULL);
    copy_kernels("rm -f ../cache/maskc/calibration-* && cp ../cache/maskc/* \"$KERNELS\"");
    shell_stop();
    return code;
}
