/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of features at least once, on every x86-64 level that runs here, against float64, forward and
   backward: a covering array, drawn greedily. `covering_test --full` runs the full product (days: take
   a slice with --full K/N); --few the first rows; --seed S draws other rows; --list names each. */
#include "tests/support/covering.h"
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum factor { DTYPE = OWN, LENGTH, FACTORS };
enum { MAX_TARGETS = 8, LEVELS = 3, DTYPES = 3, FEW_LAUNCHES = 5, MAX_LAUNCHES = 256 };

static const uint32_t dims[] = {64, 80,  40,
                                16, 136, 256}; /* the first three: gallery_test, by dtype */
static const uint32_t lengths[] = {1, 31, 32, 33, 100, 128};
/* Heads 0 and 1. Empty rows, full row blocks, and everything between. */
static const char *const masks[][2] = {
    {"window(4) | global(0) - diagonal(0)", "causal"},
    {"random(0.05, seed=3)", "dense"},
    {"stride(3) | local(8)", "none"},
    {"rows(0) | columns(0)", "random(0.4, seed=9)"},
    {"local(24) & ~window(1) - rows(0)", "ring | rows(-1)"},
    {"strided(4)", "stride(4) & window(30)"},
    {"summary(5, 1) | window(1)", "summary(4, 1) - random(0.15, seed=4) | diagonal(0)"},
};

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

struct state {
    struct covering covering;
    const struct target *target[MAX_TARGETS];
    struct cache *cache;
    uint64_t runs, wrong;
    uint32_t compiled; /* kernels */
    struct known known;
    char list[64]; /* its name */
};

/* Targets beyond the levels of x86-64 have a matrix unit, which takes bf16: for all else their kernels are those of the
   last level. */
static bool allows(const struct pairs_row *r)
{
    return r->value[KERNEL] < LEVELS || r->value[DTYPE] == ABI_BF16;
}

/* Pairs of such a target and another dtype. */
static uint32_t pairs_excluded(const struct covering *c)
{
    const uint32_t kernels = c->pairs.values[KERNEL];
    return kernels > LEVELS ? (kernels - LEVELS) * (DTYPES - 1) : 0;
}

/* Factors of a launch and a plan. Nearly all time goes to compiling, and with other values of these a kernel need
   not be compiled again. */
static const uint32_t of_launches = 1u << BATCH | 1u << LAYERS | 1u << LAYOUT | 1u << CROP |
                                    1u << SCALE | 1u << MASK | 1u << LENGTH;

static void run_row(void *context, const struct pairs_row *r)
{
    struct state *s = context;
    char name[240], kernel[40], number[40];
    int32_t ragged[COVERING_BATCH];
    const struct target *t = s->target[r->value[KERNEL]];
    const char *const *mask = masks[r->value[MASK]];
    struct kernel_request f =
        covering_request(r, (enum abi_dtype)r->value[DTYPE], dims[r->value[DIM]]);
    struct mask *m = covering_mask(r, mask[0], mask[1], lengths[r->value[LENGTH]]);
    struct maskc_kernel *k = subject_load(m, t, &f, s->cache);
    struct problem p = covering_problem(r, m, &f, ragged);
    if (r->value[BATCH] % 2)
        p.batch = 3; /* an empty sequence, too */
    snprintf(kernel, sizeof kernel, "%s %s", subject_name(t), dtype_name(f.dtype));
    snprintf(number, sizeof number, "mask %u n=%u", r->value[MASK], p.length);
    covering_name(r, &f, kernel, number, name, sizeof name);
    if (s->covering.list)
        print_message("%s\n", name);
    s->wrong += subject_check(k, &p, f.backward, name) > 0;
    s->runs++;
    maskc_kernel_destroy(k);
    mask_destroy(m);
}

/* Where `few` ends: both transforms were there on each target, and all else on some target. */
static bool has_enough(const struct pairs *p)
{
    for (uint32_t t = 0; t < p->values[KERNEL]; t++)
        for (uint32_t x = 0; x < p->values[TRANSFORM]; x++)
            if (!p->seen[KERNEL][t][TRANSFORM][x])
                return false;
    for (uint32_t f = TRANSFORM; f < FACTORS; f++)
        for (uint32_t v = 0; v < p->values[f]; v++) {
            bool any = false;
            for (uint32_t t = 0; t < p->values[KERNEL]; t++)
                any |= p->seen[KERNEL][t][f][v];
            if (!any)
                return false;
        }
    return true;
}

/* A kernel, and all launches of it that have new pairs; returns how many. */
static uint32_t draw_rows(struct state *s, struct pairs_row r,
                          struct pairs_row ret[MAX_LAUNCHES])
{
    const uint32_t most = s->covering.few ? FEW_LAUNCHES : MAX_LAUNCHES;
    uint32_t count = 0;
    do
        ret[count++] = r;
    while (count < most && pairs_turn(&s->covering.pairs, of_launches, &r));
    return count;
}

static void run_rows(struct state *s, const struct pairs_row *r, uint32_t count)
{
    s->compiled++;
    for (uint32_t k = 0; k < count; k++)
        run_row(s, &r[k]);
}

/* Key of everything that decides these rows' results, except what all rows share. */
static struct cache_key key_of_rows(const struct state *s, const struct pairs_row *rows,
                                    uint32_t count)
{
    const struct target *t = s->target[rows->value[KERNEL]];
    struct cache_key key = {0};
    for (const struct pairs_row *r = rows; r < rows + count; r++) {
        const char *const *mask = masks[r->value[MASK]];
        const struct kernel_request f =
            covering_request(r, (enum abi_dtype)r->value[DTYPE], dims[r->value[DIM]]);
        struct mask *m = covering_mask(r, mask[0], mask[1], lengths[r->value[LENGTH]]);
        key = known_key_join(
            key, known_key_join(known_subject_key(m, t, &f, NULL), cache_key(r, sizeof *r)));
        mask_destroy(m);
    }
    return key;
}

static void run_unknown(struct state *s, const struct pairs_row *rows, uint32_t count)
{
    if (s->covering.few || !known_skips(&s->known, key_of_rows(s, rows, count)))
        run_rows(s, rows, count);
}

/* The kernels of gallery_test, which need not be compiled again for it. */
static void run_kernels_of_gallery(struct state *s)
{
    const uint32_t *values = s->covering.pairs.values;
    struct pairs_row r = {.value = {[DROPOUT] = 1}}, rows[MAX_LAUNCHES];
    for (r.value[KERNEL] = 0; r.value[KERNEL] < values[KERNEL]; r.value[KERNEL]++)
        for (r.value[DTYPE] = 0; r.value[DTYPE] < values[DTYPE]; r.value[DTYPE]++)
            if (allows(&r)) {
                r.value[DIM] = r.value[DTYPE];
                pairs_take(&s->covering.pairs, &r);
                run_unknown(s, rows, draw_rows(s, r, rows));
            }
}

static void test_pairs(void **state)
{
    struct state *s = *state;
    struct pairs_row r, rows[MAX_LAUNCHES];
    if (!s->covering.few)
        run_kernels_of_gallery(s);
    while (!(s->covering.few && has_enough(&s->covering.pairs)) &&
           pairs_next(&s->covering.pairs, &r)) {
        run_unknown(s, rows, draw_rows(s, r, rows));
    }
    print_message("seed %llu: %u kernels, %llu rows, %u pairs\n",
                  (unsigned long long)s->covering.seed, s->compiled,
                  (unsigned long long)s->runs, pairs_seen(&s->covering.pairs));
    assert_int_equal(s->wrong, 0);
    if (s->covering.few)
        assert_true(has_enough(&s->covering.pairs));
    else
        assert_int_equal(pairs_seen(&s->covering.pairs),
                         pairs_of(&s->covering.pairs) - pairs_excluded(&s->covering));
}

static void test_full(void **state)
{
    struct state *s = *state;
    covering_full(&s->covering, s, run_row);
    assert_int_equal(s->wrong, 0);
}

static void set_up(struct state *s)
{
    const struct target *list[MAX_TARGETS];
    uint32_t *values = s->covering.pairs.values, count = subject_targets(list, MAX_TARGETS);
    s->cache = subject_start();
    covering_start(&s->covering, FACTORS);
    values[KERNEL] = 0;
    for (uint32_t t = 0; t < count; t++) /* CUDA: covering_cuda_test */
        if (list[t]->kind == TARGET_CPU)
            s->target[values[KERNEL]++] = list[t];
    values[DTYPE] = DTYPES;
    s->covering.pairs.allows = allows;
    values[DIM] = COUNT(dims);
    values[LENGTH] = COUNT(lengths);
    values[MASK] = COUNT(masks);
}

/* A list for each last target, with which the array differs. */
static void start_known(struct state *s)
{
    snprintf(s->list, sizeof s->list, "covering_%s",
             s->target[s->covering.pairs.values[KERNEL] - 1]->name);
    known_start_subject(&s->known, s->list, "tests/kernels/cpu/covering_test.c",
                        s->covering.update);
}

int main(int argc, char **argv)
{
    static struct state s;
    int code = covering_options(&s.covering, "covering_test", argc, argv);
    if (code)
        return code;
    const struct CMUnitTest pairs[] = {cmocka_unit_test_prestate(test_pairs, &s)};
    const struct CMUnitTest full[] = {cmocka_unit_test_prestate(test_full, &s)};
    set_up(&s);
    start_known(&s);
    int failed = s.covering.parts
                     ? cmocka_run_group_tests_name("full product", full, NULL, NULL)
                     : cmocka_run_group_tests_name("covering", pairs, NULL, NULL);
    subject_finish(s.cache);
    return s.covering.few ? failed : known_finish(&s.known, failed);
}
