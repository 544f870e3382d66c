/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled kernels of the half dtypes, run on the CPU by the emulation, against the float64
   reference: the gallery, each kind of piece with each feature and each shape of head, a long
   sequence, rows that items share, and equal bits whatever the order of threads and the number of blocks and waves. `tiled_test
   --all` takes the full product; where $MASKC_KNOWN is set, cases of its tiled.txt do not run (known.h), and --update writes it. */
#include "masks/base/memory.h"
#include "masks/language/gallery.h"
#include "runtime/device/device.h"
#include "tests/support/known/known_text.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static bool all; /* the full product */
static struct known known;

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }
#define SPARSEGEN(l) .transform = ABI_SPARSEGEN, .lambda = l

static void see_tiled(const struct artifact *a)
{
    const struct launch_record *l = &a->target[0].launch;
    assert_string_equal(l->forward[0].entry, "attention_forward");
    assert_true(l->block_rows == 64 || l->block_rows == 128);
    if (l->block_rows == 64 || l->n_backward)
        assert_int_equal(l->forward[0].threads, 2 * l->block_rows);
}

/* Null: it ran right before. */
static struct maskc_kernel *may_load(const struct kernel_case *c, const char *what,
                                     void (*see)(const struct artifact *a))
{
    return known_load_text(&known, c, what, see);
}

static void test_gallery(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++, count++) {
        struct kernel_case c = {g->name, 150, 0, FEATURES(ABI_BF16, 64), .tiled = true};
        if (count % 2)
            c.request = (struct kernel_request)FEATURES(ABI_F16, 32, SPARSEGEN(-4));
        struct maskc_kernel *k = may_load(&c, "gallery", see_tiled);
        if (!k)
            continue;
        must_hold_as_planned(k, g->name);
        kernel_unload(k);
    }
    assert_true(count >= 12);
}

/* Masks whose plans have, between them, all kinds of pieces in both directions. */
static const char *const shapes[] = {"local(128)",
                                     "rows(5,40)|columns(7)|window(2)",
                                     "summary(64, 1)|diagonal(0)",
                                     "causal - random(0.15, seed=4)",
                                     "stride(8)|diagonal(1)|rows(30)",
                                     "dam-s-example"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* clang-format off */
static const struct kernel_request feature_cases[] = {
    FEATURES(ABI_BF16,  64, .dropout = true),
    FEATURES(ABI_F16,   80, .dropout = true, SPARSEGEN(-4)),
    FEATURES(ABI_F16,  128, .dropout = true),
    FEATURES(ABI_BF16,  72),
    FEATURES(ABI_BF16,  32, .dropout = true, SPARSEGEN(0.5f)),
    FEATURES(ABI_BF16, 256, .dropout = true),
    FEATURES(ABI_F16,  200, .dropout = true, SPARSEGEN(-1)),
    FEATURES(ABI_F16,   16, .dropout = true),
    FEATURES(ABI_BF16,  40),
    FEATURES(ABI_BF16,  96),
};
/* clang-format on */
enum { FEATURE_CASES = sizeof feature_cases / sizeof *feature_cases };

static uint32_t uses; /* of all feature cases */

static void see_uses(const struct artifact *a)
{
    see_tiled(a);
    uses |= a->plan[0].forward.uses | a->plan[0].transposed.uses;
}

/* Each mask with each feature case, or each case with two masks. */
static void test_features(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < FEATURE_CASES; f++)
        for (uint32_t s = 0; s < SHAPES; s++) {
            struct kernel_case c = {shapes[s], 141, 0, feature_cases[f], .tiled = true};
            if (!all && (s + f) % SHAPES > 1)
                continue;
            struct maskc_kernel *k = may_load(&c, "features", see_uses);
            if (!k)
                continue;
            must_launch(k, 33, shapes[s]);
            kernel_unload(k);
        }
    assert_true(uses & 1u << ABI_TILES && uses & 1u << ABI_BLOCKS && uses & 1u << ABI_ROWS &&
                uses & 1u << ABI_COLUMNS && uses & 1u << ABI_RESIDUE);
    assert_false(uses & 1u << ABI_DIAGONAL);
}

/* Many stages, and keys for several steps of the row pass. */
static void test_long(void **state)
{
    (void)state;
    static const char *const masks[] = {"longformer(20, 2)", "star", "fixed(32, 1)"};
    for (uint32_t k = 0; k < 3; k++) {
        struct kernel_case c = {masks[k], 1024, 1, FEATURES(ABI_BF16, 64), .tiled = true};
        struct maskc_kernel *kernel = may_load(&c, "long", see_tiled);
        if (!kernel)
            continue;
        must_hold_as_planned(kernel, masks[k]);
        kernel_unload(kernel);
    }
}

static void see_tall(const struct artifact *a)
{
    see_tiled(a);
    assert_int_equal(a->target[0].launch.block_rows, 128);
}

/* Warps of 32 rows. */
static void see_wide(const struct artifact *a)
{
    see_tall(a);
    assert_int_equal(a->target[0].launch.forward[0].threads, 128);
}

static void see_low(const struct artifact *a)
{
    see_tiled(a);
    assert_int_equal(a->target[0].launch.block_rows, 64);
}

/* Row blocks of 128 rows, where they are less work and no fewer warps fit. */
static void test_tall_row_blocks(void **state)
{
    (void)state;
    static const struct kernel_case cases[] = {
        {"causal", 300, 1, FEATURES(ABI_BF16, 128, .dropout = true), .tiled = true},
        {"dense", 257, 1, FEATURES(ABI_F16, 104, SPARSEGEN(-4)), .tiled = true},
    };
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maskc_kernel *k = may_load(&cases[c], "tall", see_tall);
        if (!k)
            continue;
        struct problem p = fixture_problem(k);
        must_hold_as_planned(k, cases[c].mask);
        if (c == 0)
            must_repeat(k, &p, 2);
        kernel_unload(k);
    }
    static const struct kernel_case wide[] = {
        {"rows(3)|causal", 500, 1, {.dtype = ABI_BF16, .head_dim = 64}, .tiled = true},
        {"causal", 333, 1, {.dtype = ABI_F16, .head_dim = 40}, .tiled = true},
        {"dense", 640, 1, {.dtype = ABI_BF16, .head_dim = 32}, .tiled = true},
    };
    for (uint32_t c = 0; c < sizeof wide / sizeof *wide; c++) {
        struct maskc_kernel *k = may_load(&wide[c], "wide", see_wide);
        if (!k)
            continue;
        struct problem p = fixture_problem(k);
        must_hold_as_planned(k, wide[c].mask);
        must_repeat(k, &p, 2);
        kernel_unload(k);
    }
    /* No space for two operands of 128 rows there; too many registers. */
    static const struct kernel_case low[] = {
        {"causal", 300, 1, FEATURES(ABI_BF16, 128), .tiled = true, .target = "sm_86"},
        {"causal", 300, 1, FEATURES(ABI_BF16, 64), .tiled = true},
    };
    for (uint32_t c = 0; c < sizeof low / sizeof *low; c++) {
        struct maskc_kernel *k = may_load(&low[c], "low", see_low);
        if (k)
            kernel_unload(k);
    }
}

static void test_order_of_threads(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < 2; f++) {
        const struct kernel_case c = {shapes[1], 141, 2, feature_cases[f], .tiled = true};
        struct maskc_kernel *k = may_load(&c, "order", see_tiled);
        if (!k)
            continue;
        struct problem p = fixture_problem(k);
        must_repeat(k, &p, 3);
        kernel_unload(k);
    }
}

/* ---- rows that items share ---- */

/* Classes of strides before row blocks, the last row by itself; and rows long enough to be cut. */
static const struct kernel_case shared_cases[] = {
    {"strided(16)", 449, 1, FEATURES(ABI_BF16, 64, .dropout = true), .tiled = true},
    {"strided(20) | columns(3)", 513, 2, FEATURES(ABI_F16, 72), .tiled = true},
    {"strided(25)", 500, 1, FEATURES(ABI_BF16, 128), .tiled = true},
    {"rows(5,2047) | columns(7) | diagonal(0)", 2100, 1, FEATURES(ABI_F16, 32, .dropout = true),
     .tiled = true},
    {"global(1) | diagonal(0)", 2113, 1, FEATURES(ABI_BF16, 256), .tiled = true},
};
enum { SHARED_CASES = sizeof shared_cases / sizeof *shared_cases };

static void see_shared(const struct artifact *a)
{
    const struct artifact_plan *p = &a->plan[0];
    see_tiled(a);
    assert_true(p->forward.uses & ABI_SPLIT && p->transposed.uses & ABI_SPLIT);
    assert_true(p->forward.layer_work[0][2] && p->transposed.layer_work[0][2]);
}

static void see_cut(const struct artifact *a)
{
    see_shared(a);
    assert_int_not_equal(a->plan[0].forward.partial_slots, 0);
}

static void see_whole(const struct artifact *a)
{
    see_shared(a);
    assert_int_equal(a->plan[0].forward.partial_slots, 0);
}

static void test_shared_rows(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < SHARED_CASES; c++) {
        const bool whole = strstr(shared_cases[c].mask, "strided");
        struct maskc_kernel *k = may_load(&shared_cases[c], c == 0 ? "launches" : "shared",
                                          whole ? see_whole : see_cut);
        if (!k)
            continue;
        struct problem problem = fixture_problem(k);
        if (c == 0 || all)
            must_launch(k, 33, shared_cases[c].mask);
        else
            must_hold_as_planned(k, shared_cases[c].mask);
        if (c % 3 == 0)
            must_repeat(k, &problem, 2);
        kernel_unload(k);
    }
}

/* Edits that drop the part of a result that other warps or blocks left: a text, and its replacement. (The last
   correction of dQ is not among them: it is too small to be missed.) */
struct edit {
    const char *from, *to;
};

static char *replace(const char *text, void *data)
{
    const struct edit *e = data;
    struct text out = {0};
    assert_non_null(strstr(text, e->from));
    for (const char *at; (at = strstr(text, e->from)); text = at + strlen(e->from)) {
        text_append(&out, text, (size_t)(at - text));
        text_add(&out, "%s", e->to);
    }
    text_add(&out, "%s", text);
    return text_take(&out);
}

/* Runs the case with the edited text and fails if its results are right. */
static void must_be_wrong(const struct kernel_case *c, struct edit edit)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    struct maskc_kernel *k = fixture_load(c, replace, &edit, &e);
    if (!k)
        fail_msg("%s", e.text);
    struct problem p = fixture_problem(k);
    bool red = check_problem(&(struct check){k, &p, true, 1, c->mask}, &r, &count, &e) < 0;
    for (uint32_t at = 0; at < count; at++)
        red |= !r[at].ok;
    if (!red)
        fail_msg("without '%s' nothing is wrong", edit.from);
    free(r);
    kernel_unload(k);
}

static void test_what_is_left_counts(void **state)
{
    (void)state;
    static const struct edit edits[] = {
        {"sums_merge_partial(o, k, from, 0, own, theirs);", ";"},
        {"state->row_max[k] = row_max;", ";"},
        {"stored.y * theirs", "0"},
        {"x[k] += own.x - delta_correction * next.x;", ";"},
        {"e->sum * PARTIAL_WIDTH + 8 * chunk", "8 * chunk"},
        {"*d_q = *p_k;", ";"},
    };
    struct kernel_case c = shared_cases[0];
    c.request.dropout = false;
    for (uint32_t k = 0; k < sizeof edits / sizeof *edits; k++)
        must_be_wrong(&c, edits[k]);
}

static void see_waves(const struct artifact *a)
{
    bool needed[2];
    see_tiled(a);
    waves_needed(a, &a->target[0], needed);
    assert_true(needed[0] && needed[1] && a->target[0].launch.forward[0].waves > 1);
}

/* Works that differ in cost, handed out in waves: each exactly once, with equal bits. */
static void test_waves(void **state)
{
    (void)state;
    const struct kernel_case c = {"causal", 640, 2, FEATURES(ABI_BF16, 32), .tiled = true};
    struct maskc_kernel *k = may_load(&c, "waves", see_waves);
    if (k) {
        struct problem p = fixture_problem(k);
        must_hold_as_planned(k, c.mask);
        must_repeat(k, &p, 3);
        kernel_unload(k);
    }
    must_be_wrong(&c, (struct edit){"next < WAVES ? works", "next < WAVES ? works - 1"});
}

int main(int argc, char **argv)
{
    all = argc > 1 && !strcmp(argv[1], "--all");
    known_start_text(&known, "tiled", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_tall_row_blocks),
        cmocka_unit_test(test_order_of_threads),
        cmocka_unit_test(test_shared_rows),
        cmocka_unit_test(test_what_is_left_counts),
        cmocka_unit_test(test_waves),
    };
    return known_finish(&known, cmocka_run_group_tests_name("tiled", tests, NULL, NULL));
}
