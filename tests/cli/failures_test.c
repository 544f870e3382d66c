/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input of every kind: the exit code, one line that says what is wrong, and no trace left behind. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bad {
    const char *line; /* after "maskc" */
    int code;
    const char *says; /* part of what stderr's first line says */
    const char *prefix;
};

#define NO_COMPILER "PATH=/proc/nonexistent MASKC_CC= XDG_CACHE_HOME=/proc/nonexistent/cache"
/* clang-format off */
static const struct bad bad[] = {
    /* usage */
    {"fry", 2, "'fry' is not a command"},
    {"help fry", 2, "'fry' is not a command"},
    {"plan dense -n 8 --threads 1025", 2, "'1025' is not a whole number from 1 to 1024"},
    {"plan dense -n 8 --heads 0", 2, "'0' is not a whole number from 1 to 4096"},
    {"plan dense -n 8 --kv-heads 4097", 2, "'4097' is not a whole number from 1 to 4096"},
    {"plan dense -n 8 --kv-length 1048577", 2, "'1048577' is not a whole number from 1 to 1048576"},
    {"info square.npy", 2, "square.npy: not a kernel file (.mkb): `maskc compile` makes one"},
    {"verify two.safetensors", 2, "two.safetensors: not a kernel file (.mkb)"},
    {"show", 2, "MASK is missing"},
    {"show dense -n 8 --sideways", 2, "unrecognized option"},
    {"show dense dense -n 8", 2, "unexpected argument"},
    {"show dense -n x", 2, "'x' is not a length"},
    {"show dense -n 0", 2, "'0' is not a length"},
    {"show dense -n 8,16", 2, "one length is expected"},
    {"show dense -n 2000000", 2, "is not a length"},
    {"compile dense -n 8 --head-dim 1e3 -o x.mkb", 2, "not a whole number"},
    {"compile dense -n 8", 2, "-o FILE.mkb"},
    {"compile dense -n 8 -o x.bin", 2, "-o FILE.mkb"},
    {"emit dense -n 8", 2, "-o DIR"},
    {"bench dense -n 8 --clock sun", 2, "wall or cpu is expected"},
    {"bench dense -n 8 --clock cpu", 2, "--threads 1 is expected"},
    {"bench dense -n 8 --clock cpu --threads 2", 2, "--threads 1 is expected"},
    {"cache fill", 2, "neither list nor clear"},
    /* masks */
    {"show dense", 2, "-n"},
    {"show 'windo(3)' -n 16", 2, "windo"},
    {"show 'window(3' -n 16", 2, ")"},
    {"show 'diagonal(16)' -n 16", 2, "16"},
    {"show 'distance(40)' -n 16", 2, "40"},
    {"show 'stride(0)' -n 16", 2, "stride"},
    {"show nothere.mask", 2, "nothere.mask"},
    {"show uneven.mask", 2, "1"},
    {"show outside.mask", 2, "3"},
    {"show blockbert-2 -n 16 --heads 5", 2, "heads"},
    {"show two.mask --layer 3", 2, "layer"},
    {"show square.npy -n 64", 2, "64"},
    {"show good.mkb -n 64", 2, "64"},
    {"show oblong.npy", 2, "oblong.npy"},
    {"show flat.npy", 2, "flat.npy"},
    {"show big-endian.npy --threshold 0", 2, "big-endian.npy"},
    {"show huge.npy", 2, "huge.npy"},
    {"show short.npy", 2, "short.npy"},
    {"show noise.npy", 2, "noise.npy"},
    {"show float.npy", 2, "--threshold"},
    {"show nan.npy --threshold 0", 2, "nan.npy"},
    {"show nan.npy --keep 10", 2, "nan.npy"},
    {"show float.npy --keep 101", 2, "keep"},
    {"show additive.npy", 2, "--threshold"},
    {"show folder.npy", 2, "folder.npy"},
    {"show overlap.safetensors", 2, "overlap.safetensors"},
    {"show short.safetensors", 2, "short.safetensors"},
    {"show two.safetensors", 2, "--tensor"},
    {"show two.safetensors --tensor c", 2, "c"},
    {"make dense -n 8", 2, "-o"},
    {"make 'random(0.5)' -n 512 -o x.mask", 2, ".npy"},
    /* kernels */
    {"compile dense -n 8 --head-dim 20 -o x.mkb", 2, "multiple of 8"},
    {"compile dense -n 8 --family cuda_hoper -o x.mkb", 2, "known are cpu_matrix"},
    {"compile dense -n 8 --target sm_80 --family cuda_tiled -o x.mkb", 2, "it takes bf16 and f16"},
    {"bench dense -n 8 --dtype f32 --family cuda_simt", 2, "it takes f32 and tf32 on CUDA"},
    {"compile dense -n 8 --head-dim 8 -o x.mkb", 2, "16"},
    {"compile dense -n 8 --transform sparsegen=1 -o x.mkb", 2, "lambda"},
    {"compile dense -n 8 --transform sparsegen=nan -o x.mkb", 2, "lambda"},
    {"compile dense -n 8 --transform hardmax -o x.mkb", 2, "hardmax"},
    {"compile dense -n 8 --soft lightly -o x.mkb", 2, "lightly"},
    {"compile dense -n 8 --dtype int8 -o x.mkb", 2, "int8"},
    {"compile dense -n 8 --target sm_11 -o x.mkb", 2, "sm_11"},
    {"compile dense -n 8 --target cpu, -o x.mkb", 2, "target"},
    {"compile dense -n 8 --machine abacus -o x.mkb", 2, "abacus"},
    {"compile dense -n 8 -o /proc/nonexistent/x.mkb", 2, "/proc/nonexistent/x.mkb"},
    {"compile dense -n 8 -o folder.mkb", 2, "folder.mkb"},
    {"plan dense -n 8 --target sm_11", 2, "sm_11"},
    {"plan dense -n 8 --machine h100", 2, "machine 'h100' suits none of the targets"},
    {"snap float.npy --budget .5 -o x.npy --machine h100", 2, "machine 'h100' suits none of the targets"},
    {"order dense -n 8 -o x.npy --machine h100", 2, "machine 'h100' suits none of the targets"},
    {"emit dense -n 8 -o new --target sm_80 --machine x86-avx2", 2, "machine 'x86-avx2' suits none of the targets"},
    {"plan dense -n 8 --target cpu,sm_80", 2, "--target cpu,sm_80: one target is expected, not 2"},
    {"snap float.npy --budget .5 -o x.npy --target cpu,sm_80", 2, "one target is expected, not 2"},
    {"order dense -n 8 -o x.npy --target cpu,sm_80", 2, "one target is expected, not 2"},
    {"order dense -n 8 -o x.npy --method rcm --coordinates gone.npy", 2, "--coordinates goes with --method curve or best"},
    {"order dense -n 8 -o x.npy --method bisection --coordinates gone.npy", 2, "--coordinates goes with --method curve or best"},
    {"emit dense -n 8 -o new --target cpu,sm_80", 2, "one target is expected, not 2"},
    {"emit dense -n 8 -o new --target cuda", 2, "one target is expected, not 3", "CUDA_VISIBLE_DEVICES="},
    {"info good.mkb --layer 0", 2, "--layer goes with --head"},
    {"info good.mkb --layer 0 --json", 2, "--layer goes with --head"},
    {"info good.mkb --layer 1 --head 0", 2, "--layer 1 is out of range, 0..0 is expected"},
    /* kernel files */
    {"info nothere.mkb", 2, "nothere.mkb"},
    {"info q.npy", 2, "q.npy"},
    {"info folder.mkb", 2, "folder.mkb"},
    {"verify cut.mkb", 2, "cut.mkb"},
    {"verify half.mkb", 2, "half.mkb"},
    {"run longer.mkb --query q.npy --key q.npy --value q.npy -o r", 2, "longer.mkb"},
    {"info version.mkb", 2, "version"},
    {"show cut.mkb", 2, "cut.mkb"},
    {"verify good.mkb --device abacus", 2, "abacus"},
    {"bench good.mkb -n 16", 2, "good.mkb"},
    {"bench good.mkb --hops 2", 2, "a kernel file is compiled"},
    {"bench good.mkb --layer 1", 2, "good.mkb: --layer 1 is out of range, 0..0 is expected"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --layer 1 -o r", 2, "good.mkb: --layer 1 is out of range"},
    {"bench good.mkb --align end", 2, "a kernel file is compiled"},
    {"bench dense -n 8 --pass sideways", 2, "sideways"},
    {"bench dense -n 8 --dtype f32,int8", 2, "int8"},
    {"bench dense -n 8 --plot x.jpg", 2, "x.jpg: a figure is .pdf, .svg or .png"},
    {"bench dense -n 8 --seconds -1", 2, "above 0"},
    {"calibrate --seconds -1", 2, "--seconds -1: a time above 0"},
    {"calibrate --seconds 0", 2, "--seconds 0: a time above 0"},
    {"bench dense -n 8 --dropout 1", 2, "0 <= P < 1"},
    {"bench dense -n 8 --clock sun", 2, "wall or cpu is expected"},
    {"bench good.mkb --dropout 0.1", 2, "compiled without"},
    /* run */
    {"run good.mkb -o r", 2, "--query"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --samples q.npy -o r", 2, "rank 1"},
    {"run good.mkb --query nothere.npy --key q.npy --value q.npy -o r", 2, "nothere.npy"},
    {"run good.mkb --query packed.npy --key q.npy --value q.npy -o r", 2, "packed.npy"},
    {"run good.mkb --query q.npy --key wide.npy --value q.npy -o r", 2, "wide.npy"},
    {"run good.mkb --query wide.npy --key q.npy --value q.npy -o r", 2,
     "[B, N, H, D] is expected"},
    {"run good.mkb --query long.npy --key q.npy --value q.npy -o r", 2, "long.npy"},
    {"run good.mkb --query length.npy --key q.npy --value q.npy -o r", 2, "length.npy: f16, f32 or f64 is expected"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths bad-length.npy -o r", 2, "bad-length.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths negative-length.npy -o r", 2, "negative-length.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths two-lengths.npy -o r", 2, "two-lengths.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths q.npy -o r", 2, "q.npy"},
    {"run good.mkb --query packed.npy --key packed.npy --value packed.npy --offsets backwards.npy -o r", 2, "backwards.npy"},
    {"run good.mkb --query packed.npy --key packed.npy --value packed.npy --offsets short-offsets.npy -o r", 2, "short-offsets.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths length.npy --offsets offsets.npy -o r", 2, "not both"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --dropout 0.1 -o r", 2, "dropout"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --dropout 1 -o r", 2, "dropout"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --layer 1 -o r", 2, "layer"},
    {"run forward.mkb --query q.npy --key q.npy --value q.npy --grad q.npy -o r", 2, "forward-only"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --soft soft.npy -o r", 2, "without a soft mask"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy -o r", 2, "--soft X.npy is needed"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft q.npy -o r", 2, "[1, 32, 32]"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft square.npy -o r", 2, "square.npy"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft nothere.npy -o r", 2, "nothere.npy"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft soft.npy --diagonals -o r", 2, "--grad"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy -o q.npy", 2, "q.npy"},
    {"devices", 2, "MASKC_MAX_CPU=avx2: expected x86-64-v2", "MASKC_MAX_CPU=avx2"},
    {"show star -n 8", 2, "MASKC_MAX_CPU=x86-64-v5", "MASKC_MAX_CPU=x86-64-v5"},
    /* this machine cannot */
    {"verify good.mkb", 3, "MASKC_MAX_CPU is x86-64-v2", "MASKC_MAX_CPU=x86-64-v2"},
    {"compile star -n 24 -o x.mkb", 2, "MASKC_TEMPLATES=/proc/nonexistent: a folder is expected", "MASKC_TEMPLATES=/proc/nonexistent"},
    {"compile star -n 24 -o x.mkb", 3, "install", NO_COMPILER},
    {"compile star -n 24 --target sm_80 -o x.mkb", 3, "NVRTC", "MASKC_NVRTC=/proc/nonexistent XDG_CACHE_HOME=/proc/nonexistent/cache"},
};
/* clang-format on */

/* False, and why it is printed, where the line does not fail as it should. */
static bool fails_well(const struct bad *b)
{
    char *before = shell_listing();
    struct outcome o = shell_run(b->prefix, b->line);
    char *after = shell_listing(), *said = strstr(o.err, b->says);
    const char *wrong = o.code != b->code                     ? "another exit code"
                        : strncmp(o.err, "maskc", 5)          ? "no 'maskc:'"
                        : !said || strchr(o.err, '\n') < said ? "another text"
                        : *o.out                              ? "something on stdout"
                        : strcmp(before, after)               ? "something left behind"
                                                              : NULL;
    if (wrong)
        print_error("maskc %s\n  wants %d '%s', got %d %s\n  %s: %s\n", b->line, b->code,
                    b->says, o.code, o.err, wrong, o.out);
    outcome_finish(&o);
    free(before);
    free(after);
    return !wrong;
}

static void test_bad_input(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        wrong += !fails_well(&bad[k]);
    assert_int_equal(wrong, 0);
}

static void test_flipped_kernels(void **state)
{
    (void)state;
    for (int k = 0; k < FIXTURE_FLIPS; k++) {
        char line[64], says[32];
        snprintf(line, sizeof line, "verify flipped-%d.mkb", k);
        snprintf(says, sizeof says, "flipped-%d.mkb", k);
        assert_true(fails_well(&(struct bad){line, 2, says, NULL}));
    }
}

/* A GPU may be here; where none is, asking for one is exit code 3. */
static void test_no_gpu(void **state)
{
    (void)state;
    struct outcome o = shell_run(NULL, "devices");
    bool none = strstr(o.out, "cuda       not here") != NULL;
    assert_int_equal(o.code, 0);
    outcome_finish(&o);
    if (none)
        assert_true(
            fails_well(&(struct bad){"verify good.mkb --device cuda", 3, "cuda", NULL}));
}

/* `devices` has the line `says` where the compiler's version is `compiler`. */
static void devices_say(const char *compiler, const char *prefix, const char *says)
{
    char all[400];
    snprintf(all, sizeof all,
             "printf '#!/bin/sh\necho \"%s\"\n' >../cc; chmod +x ../cc; %s MASKC_CC=../cc",
             compiler, prefix);
    struct outcome o = shell_run(all, "devices");
    if (o.code || !strstr(o.out, says))
        fail_msg("%s: '%s' is not in %s%s", all, says, o.out, o.err);
    outcome_finish(&o);
}

static void test_devices(void **state)
{
    (void)state;
    const char *none = "XDG_CACHE_HOME=/proc/nonexistent";
    devices_say("gcc (GCC) 14.2.1 20240910", none, "compiler   gcc 14.2.1\n");
    devices_say("cc (Debian 12.2.0-14+deb12u1) 12.2.0", none, "compiler   gcc 12.2.0\n");
    devices_say("Debian clang version 14.0.6",
                "mkdir -p ../c/maskc; chmod o+w ../c/maskc; XDG_CACHE_HOME=$PWD/../c",
                "cache      not used: every user may write to /");
    shell_says("devices", "cache      /");
}

static void test_full_disk(void **state)
{
    (void)state;
    char *before = shell_files();
    struct outcome o = shell_run("ulimit -f 8;", "emit star -n 24 -o new/folder");
    char *after = shell_files();
    assert_int_equal(o.code, 3);
    assert_string_equal(
        o.err, "maskc: new/folder/cpu/attention.c: cannot be written: File too large\n");
    assert_string_equal(before, after);
    outcome_finish(&o);
    free(before);
    free(after);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),       cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_devices),         cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_flipped_kernels),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: failures_test MASKC\n");
        return 2;
    }
    shell_start(argv[1]);
    shell_compile_fast();
    int failed = cmocka_run_group_tests_name("failures", tests, fixtures_set_up, NULL);
    shell_stop();
    return failed;
}
