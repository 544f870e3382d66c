/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing in the CUDA templates is there for nothing, and the emulated tests would notice if it were
   gone: each barrier, each wait for a copy and each test of the mask is taken away in turn, at each
   place where it stands in each family, and at least one of a few small launches must then fail. */
#include "masks/base/memory.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* Text to remove: from `begin` to the end of the statement, or `begin` alone where it is
   replaced by `with`. */
static const struct rule {
    const char *what, *begin, *with;
} rules[] = {
    {"barrier",         "    SYNC();",               NULL},
    {"warp barrier",    "    SYNC_WARP();",          NULL},
    {"wait for copies", "    COPY_ASYNC_WAIT(",      NULL},
    {"mask test",       "if (!sees(",                "if (0 && !sees("},
    {"mask test",       "= sees(",                   "= 1 || sees("},
    {"mask test",       "= resident_sees(",             "= 1 || resident_sees("},
    {"mask test",       "if (!resident_sees(",          "if (0 && !resident_sees("},
    {"mask test",       "bits &= w->plan->patterns", "bits & w->plan->patterns"},
    {"mask test",       "w.row[0] &= shared_get_u32(", "(void)shared_get_u32("},
    {"mask test",       "w = {{bits & ", "w = {{0xffffffffu | "},
};
enum { RULES = sizeof rules / sizeof *rules };

/* Each family, with masks whose plans have, between them, several tiles in a row, lines first, gathers
   and single rows, and head dimensions that bring other lists of steps about. */
enum { MASKS = 4, DIMS = 2 };
static const struct family {
    const char *name;
    enum abi_dtype dtype;
    bool tiled;
    uint32_t n, dims[DIMS];
    enum abi_bias bias;
    const char *answers; /* for functions whose names begin so it answers, and for no others */
    const char *mask[MASKS];
    uint32_t forward, transposed; /* kinds of pieces that the masks' plans must have */
} families[] = {
    {"float", ABI_F32, false, 70, {64}, ABI_BIAS_NONE, NULL,
     {"dense", "window(1)|rows(3,4)", "distance(1,30)|columns(0)", "random(0.1, seed=4)|rows(5)"},
     1 << ABI_DIAGONAL | 1 << ABI_ROWS, 1 << ABI_DIAGONAL | 1 << ABI_ROWS},
    {"resident", ABI_BF16, false, 70, {64, 256}, ABI_BIAS_NONE, NULL,
     {"dense", "random(0.1, seed=4)|diagonal(0)", "causal", NULL},
     1 << ABI_TILES, 1 << ABI_TILES},
    {"resident long", ABI_BF16, false, 134, {64}, ABI_BIAS_NONE, "resident_long_",
     {"dense", "random(0.1, seed=4)|diagonal(0)", "causal", NULL},
     1 << ABI_TILES, 1 << ABI_TILES},
    {"tiled", ABI_BF16, true, 200, {64, 256}, ABI_BIAS_NONE, NULL,
     {"dense", "window(1)|rows(3)", "random(0.05, seed=4)|rows(5)|columns(9)", "window(1)|columns(3)"},
     1 << ABI_TILES | 1 << ABI_COLUMNS | 1 << ABI_ROWS, 1 << ABI_TILES | 1 << ABI_ROWS},
    {"bias float", ABI_F32, false, 70, {64}, ABI_BIAS_SCALE, "bias_",
     {"window(1)|rows(3,4)", NULL},
     1 << ABI_DIAGONAL | 1 << ABI_ROWS, 1 << ABI_DIAGONAL},
    {"bias tiled", ABI_BF16, true, 150, {64}, ABI_BIAS_ADD, "bias_",
     {"window(1)|rows(3)", "random(0.3, seed=4)", NULL},
     1 << ABI_TILES | 1 << ABI_ROWS, 1 << ABI_TILES},
    {"shared rows", ABI_BF16, true, 449, {64}, ABI_BIAS_NONE, "epilogue_",
     {"strided(16)", NULL},
     ABI_SPLIT, ABI_SPLIT},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* Places that may go unnoticed, by function and the start of their line, and why. */
static const struct spared {
    const char *function, *line, *why;
} spared[] = {
    {"kept_on_lines", "if (!sees(", "saves the draws of entries that have no weight"},
    {"key_place", "= sees(ct, k) ? slot_column(", "keeps an index within the tensor"},
    {"key_ds", "= sees(ct, at->k) ? ds", "the probability beside it is 0 already"},
    {"forward_sparsegen", "= sees(&ct, k) ? sparsegen_p(", "the score in the scratch is -inf already"},
    {"add_kept", "= sees(&seen", "the score in the scratch is -inf already"},
    {"bias_scale", "= sees(", "keeps away from what X holds where the mask is off, which no result tells"},
    {"bias_entries", "= sees(", "the same"},
    {"bias_tile_add", "= sees(", "the same"},
    {"wait_for_own_rows", "    SYNC_WARP();", "on sm_120 alone, which has no room for O beside the columns"},
    {"wait_for_own_rows", "    COPY_ASYNC_WAIT(", "the same"},
};
enum { SPARED = sizeof spared / sizeof *spared };
/* clang-format on */

/* ---- one mutation ---- */

struct mutation {
    const struct rule *rule; /* null: the text as it is */
    uint32_t number;         /* which of its places */
    char function[48];       /* filled: where that is, ... */
    char line[80];           /* ... and what stood there */
};

/* The place of that number in a text, or null. */
static const char *find_place(const char *text, const struct rule *r, uint32_t number)
{
    const char *at = strstr(text, r->begin);
    while (at && number--)
        at = strstr(at + 1, r->begin);
    return at;
}

/* The function that a place is in: the name before the bracket, in the last line before it that
   begins with a letter. */
static void find_function(const char *text, const char *at, char *ret, size_t capacity)
{
    while (at > text && !(at[-1] == '\n' && (*at == 'D' || *at == 'E')))
        at--;
    const char *end = strchr(at, '(');
    if (*at == 'E') {
        at = end + 1;
        end = at + strcspn(at, ",)");
    }
    const char *name = end;
    while (name > at && name[-1] != ' ' && name[-1] != '*')
        name--;
    snprintf(ret, capacity, "%.*s", (int)(end - name), name);
}

static char *mutate(const char *text, void *data)
{
    struct mutation *m = data;
    if (!m->rule)
        return memory_text(text);
    const char *at = find_place(text, m->rule, m->number);
    const char *end = m->rule->with ? at + strlen(m->rule->begin) : strchr(at, ';');
    struct text out = {0};
    text_append(&out, text, (size_t)(at - text));
    text_add(&out, "%s%s", m->rule->with ? m->rule->with : "", end);
    find_function(text, at, m->function, sizeof m->function);
    snprintf(m->line, sizeof m->line, "%.*s", (int)strcspn(at, "\n"), at);
    return text_take(&out);
}

static struct kernel_case case_of(const struct family *f, const char *mask, uint32_t dim,
                                  enum abi_transform transform)
{
    return (struct kernel_case){.mask = mask,
                                .n = f->n,
                                .heads = 2,
                                .request = {.dtype = f->dtype,
                                            .head_dim = dim,
                                            .backward = true,
                                            .bias = f->bias,
                                            .transform = transform,
                                            .lambda = transform ? -4 : 0},
                                .tiled = f->tiled};
}

static struct known known;

/* Whether a family's cases, all of its masks, are known to notice a change or none (0). */
static bool skips(const struct family *f, const struct rule *r, uint32_t number)
{
    char change[96];
    snprintf(change, sizeof change, "%s %u", r ? r->begin : "none", number);
    struct cache_key key = cache_key(change, strlen(change));
    for (uint32_t d = 0; d < DIMS && f->dims[d]; d++)
        for (enum abi_transform t = ABI_SOFTMAX; t <= ABI_SPARSEGEN; t++)
            for (uint32_t k = 0; k < MASKS && f->mask[k]; k++) {
                const struct kernel_case c = case_of(f, f->mask[k], f->dims[d], t);
                key = known_key_join(key, known_text_key(&c));
            }
    return known_skips(&known, key);
}

/* Whether a launch of this kernel fails: the emulation complains, or a result is wrong. */
static bool is_red(const struct kernel_case *c, struct mutation *m)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    struct maskc_kernel *k = fixture_load(c, mutate, m, &e);
    if (!k)
        fail_msg("%s", e.text);
    struct problem p = fixture_problem(k);
    p.batch = 2;
    bool red = check_problem(&(struct check){k, &p, true, 1, c->mask}, &r, &count, &e) < 0;
    for (uint32_t at = 0; at < count; at++)
        red |= !r[at].ok;
    free(r);
    kernel_unload(k);
    return red;
}

static bool any_red(const struct family *f, struct mutation *m)
{
    for (uint32_t d = 0; d < DIMS && f->dims[d]; d++)
        for (enum abi_transform t = ABI_SOFTMAX; t <= ABI_SPARSEGEN; t++)
            for (uint32_t k = 0; k < MASKS && f->mask[k]; k++) {
                struct kernel_case c = case_of(f, f->mask[k], f->dims[d], t);
                if (is_red(&c, m))
                    return true;
            }
    return false;
}

static bool is_spared(const struct mutation *m)
{
    for (uint32_t k = 0; k < SPARED; k++)
        if (!strcmp(m->function, spared[k].function) &&
            !strncmp(m->line, spared[k].line, strlen(spared[k].line)))
            return true;
    return false;
}

/* ---- all of them ---- */

/* Number of places where the rule's text occurs in the family's kernels. */
static char *count_places(const char *text, void *data)
{
    struct mutation *m = data;
    m->number = 0;
    while (find_place(text, m->rule, m->number))
        m->number++;
    return memory_text(text);
}

static uint32_t places_of(const struct family *f, const struct rule *rule)
{
    struct kernel_case c = case_of(f, f->mask[0], f->dims[0], ABI_SOFTMAX);
    struct mutation m = {.rule = rule};
    uint64_t size;
    free(fixture_file(&c, count_places, &m, &size));
    return m.number;
}

static void test_green(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < FAMILIES; f++)
        if (!skips(&families[f], NULL, 0) && any_red(&families[f], &(struct mutation){0}))
            fail_msg("%s: red as it is", families[f].name);
}

/* Whether a place is for this family to notice; fills where it is. */
static bool is_asked(const struct family *f, struct mutation *m)
{
    struct kernel_case c = case_of(f, f->mask[0], f->dims[0], ABI_SOFTMAX);
    uint64_t size;
    free(fixture_file(&c, mutate, m, &size));
    for (uint32_t k = 0; k < FAMILIES; k++) {
        const char *theirs = families[k].answers;
        if (theirs && !strncmp(m->function, theirs, strlen(theirs)))
            return f->answers && !strcmp(f->answers, theirs);
    }
    return !f->answers;
}

static void check_rule(const struct family *f, const struct rule *r, uint32_t *places,
                       uint32_t *unnoticed)
{
    const uint32_t count = places_of(f, r);
    for (uint32_t k = 0; k < count; k++) {
        struct mutation m = {.rule = r, .number = k};
        if (!is_asked(f, &m))
            continue;
        ++*places;
        if (is_spared(&m) || skips(f, r, k) || any_red(f, &m))
            continue;
        print_error("%s: in %s a %s can go and nothing notices: %s\n", f->name, m.function,
                    r->what, m.line);
        ++*unnoticed;
    }
}

static void test_each_place(void **state)
{
    (void)state;
    uint32_t unnoticed = 0;
    for (uint32_t f = 0; f < FAMILIES; f++) {
        uint32_t barriers = 0, waits = 0, tests = 0;
        for (uint32_t r = 0; r < RULES; r++)
            check_rule(&families[f], &rules[r],
                       r < 2   ? &barriers
                       : r < 3 ? &waits
                               : &tests,
                       &unnoticed);
        const bool shared = families[f].forward & ABI_SPLIT;
        assert_true(barriers >= (shared ? 2 : 3));
        assert_true(shared || tests >= 1);
        assert_true(shared || waits >= 1 || families[f].dtype == ABI_F32);
    }
    assert_int_equal(unnoticed, 0);
}

/* Otherwise a place could be needless for these masks alone. */
static void test_masks_use_all_code(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < FAMILIES; f++) {
        uint32_t forward = 0, transposed = 0;
        for (uint32_t m = 0; m < MASKS && families[f].mask[m]; m++) {
            struct kernel_case c =
                case_of(&families[f], families[f].mask[m], families[f].dims[0], ABI_SOFTMAX);
            struct error e = {0};
            struct maskc_kernel *k = fixture_load(&c, NULL, NULL, &e);
            if (!k)
                fail_msg("%s", e.text);
            forward |= k->artifact->plan[0].forward.uses;
            transposed |= k->artifact->plan[0].transposed.uses;
            kernel_unload(k);
        }
        assert_int_equal(forward & families[f].forward, families[f].forward);
        assert_int_equal(transposed & families[f].transposed, families[f].transposed);
    }
}

int main(int argc, char **argv)
{
    known_start_text(&known, "emulated_mutation", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_use_all_code),
        cmocka_unit_test(test_green),
        cmocka_unit_test(test_each_place),
    };
    return known_finish(&known,
                        cmocka_run_group_tests_name("emulated mutation", tests, NULL, NULL));
}
