/* SPDX-License-Identifier: Apache-2.0 */
/* Bank conflicts of the CUDA templates, as the emulation counts them: an access to shared memory takes no more
   wavefronts than it must, but where the table below says otherwise. `banks_test --list` prints every place of the
   text that was reached. */
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/emulated/launch.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* Functions that may have conflicts: at most so many times the wavefronts that would do, and why. */
static const struct allowed {
    const char *function;
    double most;
    const char *why;
} allowed[] = {
    /* float: rows of D + 4 floats, so that reading columns of a tile has none */
    {"load_row", 2, "two rows of a quarter warp overlap"},
    {"dot_of_line", 2, "the same"},
    {"store_shared", 2, "the same"},
    /* tiled: permuted chunks, so that matrix loads have none */
    {"copy_row_block", 2, "chunks of two rows in a quarter warp where D is no multiple of 64"},
    {"copy_columns", 2, "the same"},
    {"copy_gathered", 2, "the same"},
    {"store_row_block", 2, "the same"},
    {"store_prefetched", 2, "two numbers of a column lie side by side"},
    {"bias_copy", 2, "as copy_row_block"},
    /* tiled, the pass of global rows: rare, and bound by global memory */
    {"store_row", 8, "8 floats a lane"},
};

/* Cases: each family with head dimensions whose rows are 64, 96, 128, 160, 256 and 512 bytes long, the
   last where halves have a text of their own for it. */
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    bool tiled;
    uint32_t n;
    bool once; /* one mask and one transform show all that is its own */
    enum abi_bias bias;
} families[] = {
    {"float", ABI_F32, false, 70, false}, {"tf32", ABI_TF32, false, 70, true},
    {"resident", ABI_BF16, false, 64, false}, {"tiled", ABI_BF16, true, 150, false},
    {"bias float", ABI_F32, false, 70, true, ABI_BIAS_SCALE},
    {"bias tiled", ABI_BF16, true, 150, true, ABI_BIAS_ADD},
};
static const uint32_t dims[] = {32, 48, 64, 80, 128, 256};
static const char *const masks[] = {"dense", "window(2)|rows(5,40)|columns(7)", "random(0.2, seed=4)"};
enum { FAMILIES = sizeof families / sizeof *families, DIMS = sizeof dims / sizeof *dims,
       MASKS = sizeof masks / sizeof *masks };
/* clang-format on */

static const char *const access_names[EMULATION_ACCESSES] = {"read", "write", "matrix load",
                                                             "copy"};
static bool listing;
static struct known known;

static struct kernel_case case_of(const struct family *f, uint32_t dim,
                                  enum abi_transform transform, const char *mask)
{
    return (struct kernel_case){.mask = mask,
                                .n = f->n,
                                .heads = 2,
                                .request = {.dtype = f->dtype,
                                            .transform = transform,
                                            .lambda = transform ? -4 : 0,
                                            .head_dim = dim,
                                            .dropout = true,
                                            .backward = true,
                                            .bias = f->bias},
                                .tiled = f->tiled};
}

static void run(const struct family *f, uint32_t dim, enum abi_transform transform,
                const char *mask)
{
    struct error e = {0};
    const struct kernel_case c = case_of(f, dim, transform, mask);
    struct maskc_kernel *k = fixture_load(&c, NULL, NULL, &e);
    if (!k)
        fail_msg("%s", e.text);
    struct problem p = fixture_problem(k);
    p.dropout = 0.1;
    struct problem_data *d = problem_inputs(&p);
    if (kernel_run_problem(k, &p, d, true, 0, &e) < 0)
        fail_msg("%s: %s", mask, e.text);
    problem_data_destroy(d);
    kernel_unload(k);
}

static double most_of(const char *function)
{
    for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
        if (!strcmp(allowed[k].function, function))
            return allowed[k].most;
    return 1;
}

/* Number of sites with more conflicts than allowed. */
static uint32_t check_sites(const struct family *f, uint32_t dim,
                            const struct emulation_banks *b)
{
    uint32_t wrong = 0;
    for (uint32_t k = 0; k < b->count; k++) {
        const struct emulation_site *s = &b->site[k];
        double wavefronts = (double)s->wavefronts / (double)s->least;
        const bool bad = wavefronts > most_of(s->function) + 1e-9;
        if (listing || bad)
            print_message("%-6s D %3u %-24s line %5d %-11s %2u bytes %8llu requests %.3f\n",
                          f->name, dim, s->function, s->line, access_names[s->access], s->bytes,
                          (unsigned long long)s->requests, wavefronts);
        wrong += bad;
    }
    return wrong;
}

/* Whether all of a family's masks were counted before. */
static bool skips(const struct family *f, uint32_t dim, enum abi_transform t)
{
    struct cache_key key = {0};
    for (uint32_t m = 0; m < (f->once ? 1 : MASKS); m++) {
        const struct kernel_case c = case_of(f, dim, t, masks[m]);
        key = known_key_join(key, known_text_key(&c));
    }
    return known_skips(&known, key);
}

static uint32_t check_family(const struct family *f, uint32_t dim)
{
    uint32_t wrong = 0;
    for (enum abi_transform t = ABI_SOFTMAX; t <= (f->once ? ABI_SOFTMAX : ABI_SPARSEGEN);
         t++) {
        if (skips(f, dim, t))
            continue;
        struct emulation_banks *b = memory_new(1, sizeof *b);
        emulated_count_banks(b);
        for (uint32_t m = 0; m < (f->once ? 1 : MASKS); m++)
            run(f, dim, t, masks[m]);
        emulated_count_banks(NULL);
        assert_int_equal(b->missed, 0);
        assert_true(b->count > 0);
        wrong += check_sites(f, dim, b);
        free(b);
    }
    return wrong;
}

static void test_banks(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t d = 0; d < DIMS; d++)
            if (dims[d] <= 128 || !families[f].once)
                wrong += check_family(&families[f], dims[d]);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    listing = argc > 1 && !strcmp(argv[1], "--list");
    known_start_text(&known, "banks", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_banks)};
    return known_finish(&known, cmocka_run_group_tests_name("banks", tests, NULL, NULL));
}
