/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of features of the CUDA templates at least once, emulated, against float64, and every third row (with
   --orders each) with equal bits in two orders of threads, as each family in a test of its own: families with their dtypes, what a caller chooses, and what a plan
   turns out to have (a pass of global rows, residue classes merged by row blocks, split rows, ..), which no option asks
   for. Pairs that cannot be are in a table, and one that is there nonetheless is an error too. The full
   product: `covering_cuda_test --full` (weeks: take a slice with --full K/N); --seed S draws other rows;
   --list names each. */
#include "tests/support/covering.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is chosen, then what plans have: a value of TRAIT is one of enum trait. */
enum factor { FAMILY = KERNEL, OTHER = OWN, FACTORS, TRAIT = FACTORS };

enum family { FLOAT, TF32, RESIDENT_BF16, RESIDENT_F16, TILED_BF16, TILED_F16, FAMILIES };
static const char *const family_names[] = {"float",        "tf32",       "resident bf16",
                                           "resident f16", "tiled bf16", "tiled f16"};
static const enum abi_dtype dtypes[] = {ABI_F32, ABI_TF32, ABI_BF16,
                                        ABI_F16, ABI_BF16, ABI_F16};
/* Those that templates are compiled for, and those that are padded to 16 in the same text. */
static const uint32_t dims[] = {32, 64, 80, 96, 128, 256, 16, 40, 72, 200};

static const char *const factor_names[] = {
    "family", "transform", "soft mask", "dropout", "pass", "batch",      "layers",
    "layout", "crop",      "scale",     "dim",     "mask", "other mask", "trait"};

/* Head 1's mask, head 0's is below; on a second layer they are swapped. */
static const char *const others[] = {"window(1)", "blocks(2)", "strided(16)", "dense"};

/* Head 0's mask, its length for the tiled family, where long masks show more, and for the others. */
enum { MANY = 1000 };
static const struct shape {
    const char *mask;
    uint32_t n, few;  /* few 0: tiled kernels alone */
    const char *with; /* not null: head 1's mask here */
} shapes[] = {
    {"window(4)|global(0)-diagonal(0)", 150, 61},
    {"causal", 260, 64},
    {"blocks(2)", 256, 64},
    {"rows(5,40)|columns(7)|distance(2,9)", 141, 45},
    {"stride(8)|diagonal(1)|rows(30)", 141, 60},
    {"strided(16)", 449, 33},
    {"rows(5,1620)|columns(7)|diagonal(0)", 1700, 0},
    {"summary(4, 1) - random(0.15, seed=4) | diagonal(0)", 100, 70},
    {"local(24) & ~window(1) - rows(0)", 97, 3},
    /* from here on for the pinned rows alone */
    {"rows(3)", 256, 0, "dense"},
    {"rows(5)", 1664, 0, "blocks(13)"},
    {"strided(16)", 512, 0, "dense"},
};
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
enum { PINNED = 3 };

/* Rows that show what chance would seldom bring: row blocks of 128 rows beside all else. */
static const struct pairs_row pinned[] = {
    {{[FAMILY] = TILED_BF16, [DROPOUT] = 1, [SCALE] = 1, [DIM] = 4, [MASK] = 1, [OTHER] = 3}},
    {{[FAMILY] = TILED_F16, [PASS] = 1, [DIM] = 5, [MASK] = 2, [OTHER] = 3}},
    {{[FAMILY] = TILED_BF16, [DIM] = 9, [MASK] = 2, [OTHER] = 3}},
    {{[FAMILY] = TILED_F16, [DIM] = 4, [MASK] = COUNT(shapes) - 3}},
    {{[FAMILY] = TILED_BF16, [DIM] = 4, [MASK] = COUNT(shapes) - 2}},
    {{[FAMILY] = TILED_F16, [PASS] = 1, [DIM] = 4, [MASK] = COUNT(shapes) - 1}},
};

enum trait {
    TILES,
    COLUMNS,
    ROWS,
    BLOCKS,
    DIAGONALS,
    CLASSES, /* of strides */
    MERGED,  /* their partial results, by row blocks */
    SPLIT,   /* global rows */
    TALL,    /* row blocks of 128 rows */
    TRAITS
};
static const char *const trait_names[] = {"tiles",          "columns",    "rows",
                                          "blocks",         "diagonals",  "residue classes",
                                          "classes merged", "split rows", "tall row blocks"};

/* clang-format off */
#define BIT(x) (1u << (x))
enum {
    FLOATS = BIT(FLOAT) | BIT(TF32),
    RESIDENT = BIT(RESIDENT_BF16) | BIT(RESIDENT_F16),
    TILED = BIT(TILED_BF16) | BIT(TILED_F16),
};
/* What a plan cannot have together, and why. Factor TRAIT: other traits. */
static const struct never {
    enum trait trait;
    uint32_t factor;
    uint32_t values; /* bits */
    const char *why;
} nevers[] = {
    {COLUMNS, FAMILY, RESIDENT, "heads on chip are tiles alone"},
    {ROWS, FAMILY, RESIDENT, "the same"},
    {BLOCKS, FAMILY, RESIDENT, "the same"},
    {DIAGONALS, FAMILY, RESIDENT | TILED, "half dtypes have no diagonal kernels"},
    {CLASSES, FAMILY, FLOATS | RESIDENT, "only tiled kernels read index lists"},
    {MERGED, FAMILY, FLOATS | RESIDENT, "the same"},
    {SPLIT, FAMILY, FLOATS | RESIDENT, "only tiled kernels split rows"},
    {TALL, FAMILY, FLOATS | RESIDENT, "their row blocks have one height"},
    {DIAGONALS, TRAIT, BIT(CLASSES) | BIT(MERGED) | BIT(SPLIT) | BIT(TALL), "they are of other families"},
    {MERGED, TRANSFORM, BIT(1), "tau is known once all scores of a row are"},
    {SPLIT, TRANSFORM, BIT(1), "the same"},
    {MERGED, DIM, BIT(5) | BIT(9), "above 128 dQ walks twice, its state known before"},
    {SPLIT, DIM, BIT(6), "too little work at this length for a launch more"},
    {TALL, BIAS, BIT(1) | BIT(2), "X of a tall row block takes too many registers"},
    {TALL, DIM, BIT(2) | BIT(3) | BIT(8), "three blocks of 64 rows fit a processor, but one of 128"},
    {SPLIT, OTHER, BIT(1) | BIT(3), "heads as dense as these would take long here"},
};
/* clang-format on */

struct state {
    struct covering covering;
    bool trait[TRAITS][FACTORS + 1][PAIRS_VALUES]; /* seen together; last: with other traits */
    uint32_t runs;
};

/* ---- a row as a kernel ---- */

static bool is_resident(const struct pairs_row *r)
{
    return r->value[FAMILY] == RESIDENT_BF16 || r->value[FAMILY] == RESIDENT_F16;
}

static bool is_tiled(const struct pairs_row *r)
{
    return r->value[FAMILY] >= TILED_BF16;
}

static bool allows(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    if (s->n > MANY && ((r->value[BIAS] && dims[r->value[DIM]] > 32) || r->value[OTHER] % 2))
        return false; /* would take long: X is n x n, and other heads are dense */
    return !(is_resident(r) && r->value[BIAS]) && (is_tiled(r) || s->few);
}

static uint32_t length_of(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    return is_tiled(r) ? s->n : s->few;
}

static struct kernel_request make_request(const struct pairs_row *r)
{
    return covering_request(r, dtypes[r->value[FAMILY]], dims[r->value[DIM]]);
}

static const char *second(const struct pairs_row *r)
{
    const struct shape *s = &shapes[r->value[MASK]];
    return s->with ? s->with : others[r->value[OTHER]];
}

static struct mask *make_mask(const struct pairs_row *r)
{
    return covering_mask(r, shapes[r->value[MASK]].mask, second(r), length_of(r));
}

static struct kernel_case make_case(const struct pairs_row *r, const struct mask *m)
{
    return (struct kernel_case){.mask = shapes[r->value[MASK]].mask,
                                .own = m,
                                .n = m->n,
                                .request = make_request(r),
                                .tiled = is_tiled(r)};
}

static void name_row(const struct pairs_row *r, char *ret, size_t capacity)
{
    const struct kernel_request f = make_request(r);
    char m[120];
    snprintf(m, sizeof m, "%s, %s n=%u", shapes[r->value[MASK]].mask, second(r), length_of(r));
    covering_name(r, &f, family_names[r->value[FAMILY]], m, ret, capacity);
}

/* ---- what the plan has ---- */

static void add_traits(const struct plan_pass *p, bool *has)
{
    static const struct {
        uint32_t kind;
        enum trait trait;
    } kinds[] = {{ABI_TILES, TILES},   {ABI_COLUMNS, COLUMNS},    {ABI_ROWS, ROWS},
                 {ABI_BLOCKS, BLOCKS}, {ABI_DIAGONAL, DIAGONALS}, {ABI_RESIDUE, CLASSES}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        has[kinds[k].trait] |= (p->uses >> kinds[k].kind & 1) != 0;
    has[SPLIT] |= p->partial_slots != 0;
    for (uint64_t k = 0; k < p->n_items; k++)
        for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
            has[MERGED] |= p->items[k].merge[w] && !p->items[k].partial_slots;
}

/* Of the plan that a row's kernel will have. */
static void find_traits(const struct pairs_row *r, bool *has)
{
    struct error e = {0};
    struct mask *m = make_mask(r);
    const struct target *t = target_find("sm_80", &e);
    struct kernel_request f = make_request(r);
    f.length = is_tiled(r) ? 0 : m->n;
    struct plan *p = plan_build(m, t, &f, machine_find(family_machine(t, &f), &e), &e);
    if (!p)
        fail_msg("%s", e.text);
    memset(has, 0, TRAITS * sizeof *has);
    add_traits(&p->forward, has);
    if (f.backward)
        add_traits(&p->transposed, has);
    has[TALL] = p->block_rows == 128;
    plan_destroy(p);
    mask_destroy(m);
}

/* Its traits with each value and with each other. */
static void mark_traits(struct state *s, const struct pairs_row *r, const bool *has)
{
    for (uint32_t t = 0; t < TRAITS; t++) {
        for (uint32_t f = 0; has[t] && f < FACTORS; f++)
            s->trait[t][f][r->value[f]] = true;
        for (uint32_t u = 0; has[t] && u < TRAITS; u++)
            s->trait[t][TRAIT][u] |= has[u];
    }
}

/* ---- running a row ---- */

static void check_family(const struct pairs_row *r, const struct launch_record *l)
{
    const char *begin = is_resident(r) ? "attention_short_" : "attention_";
    assert_memory_equal(l->forward[0].entry, begin, strlen(begin));
    assert_int_equal(!strncmp(l->forward[0].entry, "attention_short_", 16), is_resident(r));
    assert_true(!l->n_backward ||
                !strncmp(l->backward[0].entry, "attention_short_", 16) == is_resident(r));
}

static void run_row(void *context, const struct pairs_row *r)
{
    struct state *s = context;
    char name[240];
    bool has[TRAITS];
    int32_t lengths[3];
    struct mask *m = make_mask(r);
    const struct kernel_case c = make_case(r, m);
    struct maskc_kernel *k = must_load_text(&c);
    check_family(r, &k->artifact->target[0].launch);
    struct problem p = covering_problem(r, k->artifact->mask, &c.request, lengths);
    name_row(r, name, sizeof name);
    if (s->covering.list)
        print_message("%s\n", name);
    emulated_set_seed(1 + s->runs++);
    must_hold(k, &p, name);
    emulated_set_seed(0);
    if (m->n < MANY && (s->covering.orders || s->runs % 3 == 1)) /* longer ones: tiled_test */
        must_repeat(k, &p, 1);
    kernel_unload(k);
    mask_destroy(m);
    find_traits(r, has);
    mark_traits(s, r, has);
}

/* ---- pairs with what plans have ---- */

static const char *never_why(uint32_t t, uint32_t f, uint32_t v)
{
    for (size_t k = 0; k < sizeof nevers / sizeof *nevers; k++) {
        const struct never *x = &nevers[k];
        bool same = x->trait == t && x->factor == f && x->values & BIT(v);
        if (same || (f == TRAIT && x->factor == f && x->trait == v && x->values & BIT(t)))
            return x->why;
    }
    return NULL;
}

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
        find_traits(&r, has);
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
    for (uint32_t k = 0; k < COUNT(pinned); k++)
        run_row(s, &pinned[k]);
    while (pairs_next(&s->covering.pairs, &r))
        run_row(s, &r);
    const uint32_t chosen = s->runs;
    for (uint32_t t = 0; t < TRAITS; t++)
        for (uint32_t f = 0; f <= TRAIT; f++)
            for (uint32_t v = 0; f != MASK && v < values_of(s, f); v++) {
                const char *why = never_why(t, f, v);
                if (!why)
                    look_for(s, t, f, v);
                asked += !why;
                never += why != NULL;
                if (s->trait[t][f][v] == (why != NULL)) {
                    print_error("%s with %s %u is %s%s\n", trait_names[t], factor_names[f], v,
                                why ? "there, but " : "nowhere", why ? why : "");
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

static void set_up(struct state *s)
{
    uint32_t *values = s->covering.pairs.values;
    covering_start(&s->covering, FACTORS);
    s->covering.pairs.allows = allows;
    values[FAMILY] = FAMILIES;
    values[DIM] = COUNT(dims);
    values[MASK] = COUNT(shapes) - PINNED;
    values[OTHER] = COUNT(others);
}

int main(int argc, char **argv)
{
    struct state s = {.runs = 0};
    int code = covering_options(&s.covering, "covering_cuda_test", argc, argv);
    if (code)
        return code;
    set_up(&s);
    const struct CMUnitTest pairs[] = {cmocka_unit_test_prestate(test_pairs, &s)};
    const struct CMUnitTest full[] = {cmocka_unit_test_prestate(test_full, &s)};
    return s.covering.parts
               ? cmocka_run_group_tests_name("full product on CUDA", full, NULL, NULL)
               : cmocka_run_group_tests_name("covering on CUDA", pairs, NULL, NULL);
}
