/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of features at least once, on every target that runs here, against float64, forward and
   backward: a covering array, drawn greedily. `covering_test --full` runs the full product (days: take
   a slice with --full K/N); --seed S draws other rows. */
#include "masks/base/memory.h"
#include "tests/kernels/subject.h"
#include "tools/check/check.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

enum factor {
    TARGET,
    DTYPE,
    TRANSFORM,
    LENGTHS,
    PACKED,
    DROPOUT,
    SOFT,
    LAYERS,
    DIM,
    LENGTH,
    CROP,
    LAYOUT,
    MASK,
    FACTORS
};
enum { MAX_VALUES = 8, MAX_ROWS = 1000, CANDIDATES = 40, MAX_TARGETS = 8 };

static const uint32_t dims[] = {16, 24, 64, 80, 136, 256};
static const uint32_t lengths[] = {1, 31, 32, 33, 100, 128};
/* Heads 0 and 1; the other layer has them swapped. Empty rows, full strips, and everything between. */
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
    const struct target *target[MAX_TARGETS];
    uint32_t values[FACTORS];
    struct cache *cache;
    uint64_t seed;
    uint32_t part, parts; /* of the full product; 0 parts: the covering array */
};

struct row {
    uint32_t value[FACTORS];
};

/* SplitMix64, so that a seed means the same rows everywhere. */
static uint32_t draw(uint64_t *seed, uint32_t below)
{
    uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) % below);
}

/* ---- the covering array ---- */

struct pairs {
    bool seen[FACTORS][MAX_VALUES][FACTORS][MAX_VALUES];
};

static uint32_t count_new(const struct pairs *p, const struct row *r)
{
    uint32_t count = 0;
    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            count += !p->seen[a][r->value[a]][b][r->value[b]];
    return count;
}

static void mark(struct pairs *p, const struct row *r)
{
    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            p->seen[a][r->value[a]][b][r->value[b]] = true;
}

/* A row by chance that has at least the first unseen pair; false where all are seen. */
static bool draw_row(const struct state *s, const struct pairs *p, uint64_t *seed,
                     struct row *ret)
{
    for (int k = 0; k < FACTORS; k++)
        ret->value[k] = draw(seed, s->values[k]);
    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            for (uint32_t u = 0; u < s->values[a]; u++)
                for (uint32_t v = 0; v < s->values[b]; v++)
                    if (!p->seen[a][u][b][v]) {
                        ret->value[a] = u;
                        ret->value[b] = v;
                        return true;
                    }
    return false;
}

static uint32_t cover(const struct state *s, struct row *rows)
{
    struct pairs *p = memory_new(1, sizeof *p);
    uint64_t seed = s->seed;
    uint32_t count = 0;
    struct row best, r;
    while (count < MAX_ROWS && draw_row(s, p, &seed, &best)) {
        for (int k = 0; k < CANDIDATES; k++) {
            draw_row(s, p, &seed, &r);
            if (count_new(p, &r) > count_new(p, &best))
                best = r;
        }
        mark(p, &best);
        rows[count++] = best;
    }
    free(p);
    return count;
}

/* ---- a row as a problem ---- */

static struct mask *make_mask(const struct row *r, uint32_t n)
{
    const char *const *name = masks[r->value[MASK]];
    uint32_t layers = 1 + r->value[LAYERS];
    struct pattern *given[4];
    for (uint32_t l = 0; l < layers; l++)
        for (uint32_t h = 0; h < 2; h++) {
            struct mask *one = subject_mask(name[h ^ l], n);
            given[2 * l + h] = pattern_copy(one->pattern[0]);
            mask_destroy(one);
        }
    return mask_new(layers, 2, given, "covering");
}

static struct features make_features(const struct row *r)
{
    return (struct features){
        .dtype = (enum abi_dtype)r->value[DTYPE],
        .transform = r->value[TRANSFORM] ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = r->value[TRANSFORM] ? -4 : 0,
        .head_dim = dims[r->value[DIM]],
        .dropout = r->value[DROPOUT] != 0,
        .backward = true,
        .soft = (enum abi_soft)r->value[SOFT],
    };
}

static void name_row(const struct state *s, const struct row *r, char *ret, size_t room)
{
    const struct features f = make_features(r);
    snprintf(ret, room, "%s %s %s D=%u N=%u%s mask %u%s%s%s soft %s layout %u layers %u",
             s->target[r->value[TARGET]]->name, dtype_name(f.dtype),
             f.transform ? "sparsegen" : "softmax", f.head_dim, lengths[r->value[LENGTH]],
             r->value[CROP] ? " cropped" : "", r->value[MASK],
             r->value[LENGTHS] ? " ragged" : "", r->value[PACKED] ? " packed" : "",
             r->value[DROPOUT] ? " dropout" : "", soft_name(f.soft), r->value[LAYOUT],
             1 + r->value[LAYERS]);
}

static uint32_t run_row(const struct state *s, const struct row *r)
{
    char name[160];
    uint32_t n = lengths[r->value[LENGTH]];
    const int32_t ragged[3] = {(int32_t)n, 0, (int32_t)(n + 1) / 2};
    const int32_t whole[3] = {(int32_t)n, (int32_t)n, (int32_t)n};
    struct features f = make_features(r);
    struct mask *m = make_mask(r, n + (r->value[CROP] ? 17 : 0));
    struct maskc_kernel *k = subject_load(m, s->target[r->value[TARGET]], &f, s->cache);
    struct problem p = {
        .mask = m,
        .layer = r->value[LAYERS],
        .batch = r->value[LENGTHS] ? 3 : 2,
        .length = n,
        .head_dim = f.head_dim,
        .lengths = r->value[LENGTHS]  ? ragged
                   : r->value[PACKED] ? whole
                                      : NULL,
        .packed = r->value[PACKED] != 0,
        .dtype = f.dtype,
        .transform = f.transform,
        .lambda = (double)f.lambda,
        .dropout = r->value[DROPOUT] ? 0.2 : 0,
        .soft = f.soft,
        .seed = UINT64_C(0x0123456789abcdef),
        .layout = r->value[LAYOUT],
        .random_seed = s->seed,
    };
    name_row(s, r, name, sizeof name);
    uint32_t wrong = subject_judge(k, &p, true, name);
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return wrong;
}

/* ---- the tests ---- */

static void test_pairs(void **state)
{
    const struct state *s = *state;
    struct row *rows = memory_new(MAX_ROWS, sizeof *rows);
    uint32_t count = cover(s, rows), wrong = 0;
    print_message("seed %llu: %u rows cover every pair\n", (unsigned long long)s->seed, count);
    for (uint32_t k = 0; k < count; k++)
        wrong += run_row(s, &rows[k]) > 0;
    free(rows);
    if (wrong)
        fail_msg("%u of %u rows are wrong", wrong, count);
}

/* Rows numbered in a mixed radix; every `parts`-th belongs to this part. Neighbours differ in what
   needs no new compilation, so the last factors turn fastest. */
static void test_full(void **state)
{
    const struct state *s = *state;
    uint64_t count = 1, done = 0, wrong = 0;
    for (int k = 0; k < FACTORS; k++)
        count *= s->values[k];
    for (uint64_t at = count * s->part / s->parts; at < count * (s->part + 1) / s->parts;
         at++) {
        struct row r;
        uint64_t rest = at;
        for (int k = FACTORS; k-- > 0; rest /= s->values[k])
            r.value[k] = (uint32_t)(rest % s->values[k]);
        wrong += run_row(s, &r) > 0;
        if (++done % 1000 == 0)
            print_message("%llu rows, %llu wrong\n", (unsigned long long)done,
                          (unsigned long long)wrong);
    }
    if (wrong)
        fail_msg("%llu of %llu rows are wrong", (unsigned long long)wrong,
                 (unsigned long long)done);
}

static void set_up(struct state *s)
{
    s->cache = subject_start();
    s->values[TARGET] = subject_targets(s->target, MAX_TARGETS);
    for (int k = DTYPE; k < FACTORS; k++)
        s->values[k] = 2;
    s->values[DTYPE] = s->values[SOFT] = 3;
    s->values[DIM] = COUNT(dims);
    s->values[LENGTH] = COUNT(lengths);
    s->values[LAYOUT] = 3;
    s->values[MASK] = COUNT(masks);
}

int main(int argc, char **argv)
{
    struct state s = {.seed = 1};
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], "--seed") && k + 1 < argc)
            s.seed = strtoull(argv[++k], NULL, 10);
        else if (!strcmp(argv[k], "--full")) {
            s.parts = 1;
            if (k + 1 < argc && sscanf(argv[k + 1], "%u/%u", &s.part, &s.parts) == 2)
                k++;
        } else
            return fprintf(stderr, "usage: covering_test [--seed S] [--full [K/N]]\n"), 2;
    if (s.parts ? s.part >= s.parts : s.part)
        return fprintf(stderr, "--full K/N: 0 <= K < N is expected\n"), 2;
    const struct CMUnitTest pairs[] = {cmocka_unit_test_prestate(test_pairs, &s)};
    const struct CMUnitTest full[] = {cmocka_unit_test_prestate(test_full, &s)};
    set_up(&s);
    int failed = s.parts ? cmocka_run_group_tests_name("full product", full, NULL, NULL)
                         : cmocka_run_group_tests_name("covering", pairs, NULL, NULL);
    subject_finish(s.cache);
    return failed;
}
