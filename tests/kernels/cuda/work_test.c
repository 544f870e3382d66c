/* SPDX-License-Identifier: Apache-2.0 */
/* Wasted work does not show in results: a kernel that multiplies fragments in which no row sees a column, or
   loads columns that nobody needs, is right but slow. The test removes the checks that skip work, one at a
   time; the emulation's counts must then differ from the plan's. tiled_test and resident_test count over the
   gallery. The entries that the planner prices are compared with the live fragments here, too. */
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "masks/language/gallery.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* Texts that occur once in a family, each with an equivalent that omits nothing. */
static const struct edit {
    const char *what, *from, *to;
    bool tiled;
    enum abi_transform transform;
} edits[] = {
    {"the text as it is",       "", "", true, ABI_SOFTMAX},
    {"the text as it is",       "", "", true, ABI_SPARSEGEN},
    {"the text as it is",       "", "", false, ABI_SOFTMAX},
    {"which columns are seen", "return warp_or(w->row[0] | w->row[1]) | second << 32;", "return ALL_LIVE;", true, ABI_SOFTMAX},
    {"scores of one",           "        if (has_fragment(live_any(live), f))\n            add_fragment(s, a, at, f, step, live);\n",
                                "        add_fragment(s, a, at, f, step, ALL_LIVE);\n", true, ABI_SOFTMAX},
    {"scores of two",           "            if (!has_fragment(live_of(live, 0), f))\n                continue;\n", "", true, ABI_SPARSEGEN},
    {"sums of one",             "        struct frag_a a[ROW_TILES];\n        if (!has_pair(live_any(live), pair))\n            continue;\n",
                                "        struct frag_a a[ROW_TILES];\n        live = ALL_LIVE;\n", true, ABI_SOFTMAX},
    {"sums of two",             "        struct frag_a x[ROW_TILES], y[ROW_TILES];\n        if (!has_pair(live_any(live), pair))\n            continue;\n",
                                "        struct frag_a x[ROW_TILES], y[ROW_TILES];\n        live = ALL_LIVE;\n", true, ABI_SOFTMAX},
    {"columns of one operand",  "        if (s->use >> which & 1)\n            copy_columns(", "        copy_columns(", true, ABI_SPARSEGEN},
    {"resident scores",            "        if (t->any >> 16 * half & 0xffffu)\n", "", false, ABI_SOFTMAX},
    {"resident sums",              "        if (!(lives >> half & 1))\n            continue;\n", "", false, ABI_SOFTMAX},
    {"resident sums by key",       "        if (row_blocks & MINE)\n", "", false, ABI_SOFTMAX},
    {"resident dQ",                "            if (!(ds->lives >> k & 1))\n                continue;\n            else if (", "            if (", false, ABI_SOFTMAX},
};
enum { AS_IT_IS = 3, EDITS = sizeof edits / sizeof *edits };
/* clang-format on */

static char *replace_once(const char *text, void *data)
{
    const struct edit *e = data;
    const char *at = strstr(text, e->from);
    struct text out = {0};
    if (!at || (*e->from && strstr(at + 1, e->from)))
        fail_msg("%s: the text has no such place, or several", e->what);
    text_append(&out, text, (size_t)(at - text));
    text_add(&out, "%s%s", e->to, at + strlen(e->from));
    return text_take(&out);
}

/* Tiles of which parts are empty, and columns that are gathered. */
static struct kernel_case case_of(const struct edit *e)
{
    return (struct kernel_case){.mask = "window(2)|columns(70)|distance(40)",
                                .n = 128,
                                .heads = 1,
                                .request = {.dtype = ABI_BF16,
                                            .head_dim = 32,
                                            .backward = true,
                                            .transform = e->transform,
                                            .lambda = e->transform ? -4 : 0},
                                .tiled = e->tiled};
}

static void test_lost_skips_show(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < EDITS; k++) {
        struct edit edit = edits[k];
        const struct kernel_case c = case_of(&edit);
        struct error e = {0};
        char why[200];
        struct maskc_kernel *kernel = fixture_load(&c, replace_once, &edit, &e);
        if (!kernel)
            fail_msg("%s", e.text);
        struct problem p = fixture_problem(kernel);
        struct emulation_work done;
        emulated_count_work(&done);
        must_hold(kernel, &p, edit.what); /* right all the same */
        emulated_count_work(NULL);
        if (work_is_planned(kernel, &p, &done, why, sizeof why) != (k < AS_IT_IS))
            fail_msg("%s: %s", edit.what, why);
        kernel_unload(kernel);
    }
}

/* ---- what a price is for ---- */

static double priced_entries(const struct plan *p, const struct plan_pass *t)
{
    double sum = 0;
    for (uint32_t h = 0; h < p->heads; h++) {
        const double *count = t->summary[p->at[h]].effort.count;
        sum += count[UNIT_FULL] + count[UNIT_PARTIAL];
    }
    return sum;
}

/* The planner's count of entries is that of the fragments that kernels multiply. */
static void test_prices_are_for_this_work(void **state)
{
    (void)state;
    struct error e = {0};
    const struct target *t = target_find("sm_80", &e);
    const struct kernel_request f = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};
    uint32_t count = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++, count++) {
        struct mask_request request = {.name = g->name, .n = 400, MASK_REQUEST_DEFAULTS};
        struct mask *m = mask_load(&request, NULL, &e);
        struct plan *p =
            m ? plan_build(m, t, &f, machine_find(family_machine(t, &f), &e), NULL, &e) : NULL;
        if (!p)
            fail_msg("%s: %s", g->name, e.text);
        for (int k = 0; k < 2; k++)
            if (priced_entries(p, k ? &p->transposed : &p->forward) !=
                16 * 8 * (double)planned_fragments(p, k))
                fail_msg("%s: %g entries have a price, %llu fragments are live", g->name,
                         priced_entries(p, k ? &p->transposed : &p->forward),
                         (unsigned long long)planned_fragments(p, k));
        plan_destroy(p);
        mask_destroy(m);
    }
    assert_true(count >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_skips_show),
        cmocka_unit_test(test_prices_are_for_this_work),
    };
    return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}
