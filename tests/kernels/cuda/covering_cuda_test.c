/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of features of the CUDA templates at least once, emulated, against float64, and every third row (with
   --orders each) with equal bits in two orders of threads: families with their dtypes, what a caller chooses
   (cuda_rows.c), and what a plan turns out to have (a pass of global rows, residue classes merged by row blocks, split
   rows, ..), which no option asks for. Pairs that cannot be are in a table (cuda_traits.c), and one that is there
   nonetheless is an error too. The full product: `covering_cuda_test --full` (weeks: take a slice with --full K/N);
   --seed S draws other rows; --list names each. */
#include "runtime/device/emulated/emulated.h"
#include "tests/kernels/cuda/cuda_traits.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <string.h>

static const char *const factor_names[] = {
    "family", "transform", "soft mask", "dropout", "pass",       "batch", "layers", "layout",
    "crop",   "scale",     "dim",       "mask",    "other mask", "keys",  "trait"};

struct state {
    struct covering covering;
    bool trait[TRAITS][FACTORS + 1][PAIRS_VALUES]; /* seen together; last: with other traits */
    uint32_t runs;
    struct known known;
};

/* ---- running a row ---- */

/* The traits of a row's plan with each value and with each other. */
static void mark_traits(struct state *s, const struct pairs_row *r, const bool *has)
{
    for (uint32_t t = 0; t < TRAITS; t++) {
        for (uint32_t f = 0; has[t] && f < FACTORS; f++)
            s->trait[t][f][r->value[f]] = true;
        for (uint32_t u = 0; has[t] && u < TRAITS; u++)
            s->trait[t][TRAIT][u] |= has[u];
    }
}

static void check_family(const struct pairs_row *r, const struct launch_record *l)
{
    const char *begin = cuda_row_is_resident(r) ? "attention_resident_" : "attention_";
    assert_memory_equal(l->forward[0].entry, begin, strlen(begin));
    assert_int_equal(!strncmp(l->forward[0].entry, "attention_resident_", 19),
                     cuda_row_is_resident(r));
    assert_true(!l->n_backward || !strncmp(l->backward[0].entry, "attention_resident_", 19) ==
                                      cuda_row_is_resident(r));
}

/* Its threads in the seed's order, and some rows in another. */
static void check_row(const struct state *s, const struct pairs_row *r, struct maskc_kernel *k,
                      uint32_t seed, const char *name)
{
    int32_t lengths[COVERING_BATCH];
    check_family(r, &k->artifact->target[0].launch);
    struct problem p = covering_problem(r, k->artifact->mask, &k->artifact->request, lengths);
    emulated_set_seed(seed);
    must_hold(k, &p, name);
    emulated_set_seed(0);
    if (k->artifact->mask->n < MANY &&
        (s->covering.orders || seed % 3 == 1)) /* longer ones: tiled_test */
        must_repeat(k, &p, 1);
    kernel_unload(k);
}

static void run_row(void *context, const struct pairs_row *r)
{
    struct state *s = context;
    char name[240], what[280];
    bool has[TRAITS];
    struct kernel_request f;
    struct mask *m = cuda_row_mask(r, &f);
    const struct kernel_case c = cuda_row_case(r, m, &f);
    const uint32_t seed = 1 + s->runs++;
    cuda_row_name(r, name, sizeof name);
    if (s->covering.list)
        print_message("%s\n", name);
    snprintf(what, sizeof what, "%s, seed %u%s", name, seed,
             s->covering.orders ? ", orders" : "");
    struct maskc_kernel *k = known_load_text(&s->known, &c, what, NULL);
    if (k)
        check_row(s, r, k, seed, name);
    mask_destroy(m);
    cuda_traits_find(r, has);
    mark_traits(s, r, has);
}

/* ---- pairs with what plans have ---- */

static uint32_t values_of(const struct state *s, uint32_t f)
{
    return f == TRAIT ? TRAITS : s->covering.pairs.values[f];
}

/* Whether a row has the value, which may be a trait, or all values. */
static bool has_value(const struct pairs_row *r, const bool *has, uint32_t f, uint32_t v)
{
    return f == TRAIT ? has[v] : r->value[f] == v;
}

/* Whether the trait was seen at all. */
static bool was_seen(const struct state *s, uint32_t t)
{
    return s->trait[t][TRAIT][t];
}

/* Runs the first row by chance that has the trait and the value, if there is one. */
static void look_for(struct state *s, uint32_t t, uint32_t f, uint32_t v)
{
    enum { TRIES = 20000, MOST = 1500 }; /* draws, plans made */
    bool has[TRAITS];
    struct pairs_row r;
    for (int k = 0, tried = 0; k < TRIES && tried < MOST && !s->trait[t][f][v]; k++) {
        uint32_t mask = pairs_draw(&s->covering.pairs, s->covering.pairs.values[MASK]);
        if (was_seen(s, t) && !s->trait[t][MASK][mask])
            continue; /* others are known to show it */
        if (!pairs_row_with(&s->covering.pairs, MASK, mask, f == TRAIT ? MASK : f,
                            f == TRAIT ? mask : v, &r))
            continue;
        cuda_traits_find(&r, has);
        tried++;
        if (has[t] && has_value(&r, has, f, v))
            run_row(s, &r);
    }
}

static void test_pairs(void **state)
{
    struct state *s = *state;
    struct pairs_row r;
    uint32_t wrong = 0, asked = 0, never = 0;
    for (uint32_t k = 0; k < cuda_n_pinned_rows; k++)
        run_row(s, &cuda_pinned_rows[k]);
    while (pairs_next(&s->covering.pairs, &r))
        run_row(s, &r);
    const uint32_t chosen = s->runs;
    for (uint32_t t = 0; t < TRAITS; t++)
        for (uint32_t f = 0; f <= TRAIT; f++)
            for (uint32_t v = 0; f != MASK && v < values_of(s, f); v++) {
                const char *why = cuda_never_why(t, f, v);
                if (!why)
                    look_for(s, t, f, v);
                asked += !why;
                never += why != NULL;
                if (s->trait[t][f][v] == (why != NULL)) {
                    print_error("%s with %s %u is %s%s\n", cuda_trait_names[t], factor_names[f],
                                v, why ? "there, but " : "nowhere", why ? why : "");
                    wrong++;
                }
            }
    print_message(
        "seed %llu: %u rows, %u pairs that are chosen; %u more rows, %u pairs with what a "
        "plan has, %u that cannot be\n",
        (unsigned long long)s->covering.seed, chosen, pairs_seen(&s->covering.pairs),
        s->runs - chosen, asked, never);
    assert_int_equal(wrong, 0);
}

static void test_full(void **state)
{
    struct state *s = *state;
    covering_full(&s->covering, s, run_row);
}

int main(int argc, char **argv)
{
    static struct state s;
    int code = covering_options(&s.covering, "covering_cuda_test", argc, argv);
    if (code)
        return code;
    cuda_rows_start(&s.covering);
    known_start_text(&s.known, "covering_cuda", s.covering.update);
    const struct CMUnitTest pairs[] = {cmocka_unit_test_prestate(test_pairs, &s)};
    const struct CMUnitTest full[] = {cmocka_unit_test_prestate(test_full, &s)};
    if (s.covering.parts)
        return cmocka_run_group_tests_name("full product on CUDA", full, NULL, NULL);
    return known_finish(&s.known,
                        cmocka_run_group_tests_name("covering on CUDA", pairs, NULL, NULL));
}
