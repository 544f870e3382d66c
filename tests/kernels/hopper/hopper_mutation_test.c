/* SPDX-License-Identifier: Apache-2.0 */
/* Each fault of kernel_faults.h, in the text of cuda_hopper's kernels, makes a launch fail in the emulation, or gives wrong
   results. Faults of $MASKC_KNOWN/hopper_mutation.txt are skipped (known.h); --update writes it. */
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/kernels/hopper/kernel_faults.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { FAULTS = sizeof kernel_faults / sizeof *kernel_faults, ORDERS = 3 };

/* clang-format off */
#define BF16(dim) {.dtype = ABI_BF16, .head_dim = dim, .backward = true}
#define HOPPER(name) .target = "sm_90a", .tiled = true, .family = "cuda_hopper", .shape = name
static const struct kernel_case subjects[SUBJECTS] = {
    [WIDE] = {"causal", 400, 1, BF16(64), HOPPER("wide")},
    [NARROW] = {"random(0.05, seed=4)|window(40)", 150, 1, BF16(64), HOPPER("narrow")},
    [SCATTERED] = {"diagonal(0)|rows(5,140,277,350)|columns(9,150)", 360, 1, BF16(64), HOPPER("four")},
    [DEEP] = {"causal", 200, 1, BF16(128), HOPPER("deep")},
    [CUT] = {"rows(5,1620)|columns(7)|diagonal(0)", 1700, 1, BF16(64), HOPPER("narrow")},
};
/* clang-format on */

static struct known known;

/* The first place of the text in the function, which is defined once. Null: there is none. */
static const char *find_place(const char *text, const struct kernel_fault *f)
{
    char name[64];
    snprintf(name, sizeof name, " %s(", f->function);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const char *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        if (strncmp(line, "DEVICE", strlen("DEVICE")))
            continue;
        const char *place = strstr(at, f->find), *end = strstr(at, "\n}\n");
        return place && end && place < end ? place : NULL;
    }
    return NULL;
}

static char *break_text(const char *text, void *data)
{
    const struct kernel_fault *f = data;
    const char *at = find_place(text, f);
    if (!at)
        fail_msg("%s: no place for %s", f->function, f->find);
    struct text out = {0};
    text_append(&out, text, (size_t)(at - text));
    text_add(&out, "%s%s", f->replace, at + strlen(f->find));
    return text_take(&out);
}

/* True if a launch fails or a result is wrong, the threads in the seed's order. */
static bool fails(const struct maskc_kernel *k, const struct problem *p, uint64_t seed)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    emulated_set_seed(seed);
    bool red = check_problem(&(struct check){k, p, true, 1, "fault"}, &r, &count, &e) < 0;
    emulated_set_seed(0);
    for (uint32_t at = 0; at < count; at++)
        red |= !r[at].ok;
    free(r);
    return red;
}

/* A whole sequence and a shorter one; long ones by a sample of rows. */
static bool is_red(enum subject subject, const struct kernel_fault *f)
{
    struct error e = {0};
    static uint8_t sample[2048];
    const struct kernel_case *c = &subjects[subject];
    const int32_t n = (int32_t)c->n, lengths[] = {n, n / 2 + 3};
    struct maskc_kernel *k = fixture_load(c, f ? break_text : NULL, (void *)(uintptr_t)f, &e);
    if (!k)
        fail_msg("%s", e.text);
    struct problem p = fixture_problem(k);
    p.batch = subject == CUT ? 1 : 2;
    p.lengths = lengths;
    for (uint32_t i = 0; i < p.length; i++)
        sample[i] = i % 30 == 5 || i == 1620;
    p.sample = subject == CUT ? sample : NULL;
    bool red = false;
    for (uint64_t seed = 0; seed < ORDERS && !red; seed++)
        red = fails(k, &p, seed);
    kernel_unload(k);
    return red;
}

static bool skips(enum subject subject, const struct kernel_fault *f)
{
    struct cache_key key = known_text_key(&subjects[subject]);
    if (f)
        key = known_key_join(key, cache_key(f->function, strlen(f->function)));
    if (f)
        key = known_key_join(key, cache_key(f->find, strlen(f->find)));
    return known_skips(&known, key);
}

static void unchanged_kernels_are_right(void **state)
{
    (void)state;
    for (enum subject s = 0; s < SUBJECTS; s++)
        if (!skips(s, NULL) && is_red(s, NULL))
            fail_msg("%s: red as it is", subjects[s].mask);
}

static void faults_are_noticed(void **state)
{
    (void)state;
    uint32_t unnoticed = 0;
    for (uint32_t k = 0; k < FAULTS; k++) {
        const struct kernel_fault *f = &kernel_faults[k];
        if (skips(f->subject, f) || is_red(f->subject, f))
            continue;
        print_error("%s: without %s nothing fails\n", f->function, f->find);
        unnoticed++;
    }
    assert_true(FAULTS >= 50);
    assert_int_equal(unnoticed, 0);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"tests/kernels/hopper/hopper_mutation_test.c",
                                        "tests/kernels/hopper/kernel_faults.h",
                                        "runtime/emulated/*.[ch]",
                                        "runtime/device/emulated/*.[ch]",
                                        "tests/support/plan_shape.c",
                                        NULL};
    known_start_files(&known, "hopper_mutation", files,
                      argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_kernels_are_right),
        cmocka_unit_test(faults_are_noticed),
    };
    return known_finish(
        &known, cmocka_run_group_tests_name("faults of cuda_hopper", tests, NULL, NULL));
}
