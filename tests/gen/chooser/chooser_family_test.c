/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel family does a plan take? The cheapest by price, the one that is asked for where it takes a pass, and the losers are told. */
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <string.h>

static const struct kernel_request bf16 = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};

static struct mask *load(const char *name, uint32_t n)
{
    struct error e = {0};
    struct mask *m = mask_load(
        &(struct mask_request){.name = name, .n = n, MASK_REQUEST_DEFAULTS}, NULL, &e);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

static struct plan *build(const struct mask *m, struct kernel_request r, const char *family,
                          struct error *e)
{
    const struct target *t = target_find("sm_90a", e);
    const struct plan_options o = {.family = family ? family_find(family, e) : NULL};
    r.length = m->n;
    struct plan *p = plan_build(m, t, &r, machine_find(family_machine(t, &r), e), &o, e);
    if (p && plan_check(p, m, e))
        fail_msg("%s", e->text);
    return p;
}

static double seconds_of(const struct plan *p)
{
    return plan_predict(p, false, 0, 256, 1) + plan_predict(p, true, 0, 256, 1);
}

/* Above n = 128 the resident kernels hold a part of a row's scores at a time, and cuda_tiled is faster. */
static const struct choice {
    const char *mask;
    uint32_t n;
    const char *forward, *backward;
} choices[] = {
    {"dense", 128, "cuda_resident", "cuda_resident"},
    {"strided", 128, "cuda_resident", "cuda_resident"},
    {"strided", 390, "cuda_tiled", "cuda_tiled"},
    {"dense", 390, "cuda_tiled", "cuda_tiled"},
    {"dense", 1000, "cuda_hopper", "cuda_hopper"},
    {"strided(45)", 2048, "cuda_tiled", "cuda_tiled"},
};

static void test_cheapest(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        struct error e = {0};
        struct mask *m = load(choices[k].mask, choices[k].n);
        struct plan *p = build(m, bf16, NULL, &e);
        assert_non_null(p);
        assert_string_equal(p->config.forward->name, choices[k].forward);
        assert_string_equal(p->config.backward->name, choices[k].backward);
        plan_destroy(p);
        mask_destroy(m);
    }
}

/* A calibration fits rates: kernels that read steps have none, and are in no pair with others. */
static void test_by_rates(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = load("dense", 1000);
    const struct target *t = target_find("sm_90a", &e);
    struct kernel_request r = bf16;
    const struct plan_options o = {.by_rates = true};
    r.length = m->n;
    struct plan *p = plan_build(m, t, &r, machine_find("h100-mma", &e), &o, &e);
    assert_string_equal(p->config.forward->name, "cuda_tiled");
    assert_string_equal(p->config.backward->name, "cuda_tiled");
    assert_false(p->forward.summary[0].n_rejected && p->forward.summary[0].rejected[0].family);
    plan_destroy(p);
    mask_destroy(m);
}

/* cuda_hopper goes with no other family, though row blocks have the same height. */
static void test_alone(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_config config = {.request = bf16}, list[PAIRS_MOST];
    config.request.length = 2048;
    const struct plan_problem problem = {.target = target_find("sm_90a", &e),
                                         .config = &config};
    const uint32_t count = families_list(&problem, NULL, list);
    uint32_t both = 0;
    for (uint32_t k = 0; k < count; k++) {
        assert_true(list[k].forward->alone == list[k].backward->alone);
        both += list[k].forward->alone;
    }
    assert_int_equal(both, 1);
    assert_int_equal(count, 2);
}

static const struct plan_rejected *find_rejected(const struct plan_summary *s,
                                                 const char *family)
{
    for (uint32_t k = 0; k < s->n_rejected; k++)
        if (s->rejected[k].family && !strcmp(s->rejected[k].family->name, family))
            return &s->rejected[k];
    return NULL;
}

/* The predicted cost of the losing family equals the cost of its own plan. */
static void test_losers(void **state)
{
    (void)state;
    static const char *const families[] = {"cuda_resident", "cuda_tiled"};
    struct error e = {0};
    struct mask *m = load("strided", 390);
    struct plan *won = build(m, bf16, NULL, &e), *lost = build(m, bf16, families[0], &e),
                *same = build(m, bf16, families[1], &e);
    assert_true(won && lost && same);
    const struct plan_rejected *r = find_rejected(&won->forward.summary[0], families[0]);
    assert_non_null(r);
    assert_true(r->predicted == lost->forward.summary[0].predicted);
    assert_string_equal(r->lowering, lost->forward.summary[0].lowering);
    assert_null(find_rejected(&lost->forward.summary[0], families[1]));
    assert_true(seconds_of(won) < seconds_of(lost) && seconds_of(won) == seconds_of(same));
    plan_destroy(won);
    plan_destroy(lost);
    plan_destroy(same);
    mask_destroy(m);
}

static uint32_t count_rejected(const struct plan_summary *s, const char *family)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < s->n_rejected; k++)
        count += s->rejected[k].family && !strcmp(s->rejected[k].family->name, family);
    return count;
}

/* At n = 128 the tiled family is in several pairs that lose. */
static void test_loser_is_told_once(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = load("dense", 128);
    struct plan *p = build(m, bf16, NULL, &e);
    assert_non_null(p);
    assert_int_equal(count_rejected(&p->forward.summary[0], "cuda_tiled"), 1);
    assert_int_equal(count_rejected(&p->transposed.summary[0], "cuda_tiled"), 1);
    plan_destroy(p);
    mask_destroy(m);
}

/* Asked for, a family has the passes that it takes; the backward pass of n = 390 is not among them. */
static void test_asked(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = load("strided", 390);
    struct plan *p = build(m, bf16, "cuda_resident", &e);
    assert_string_equal(p->config.forward->name, "cuda_resident");
    assert_string_equal(p->config.backward->name, "cuda_tiled");
    plan_destroy(p);
    assert_null(build(m, bf16, "cuda_simt", &e));
    assert_non_null(strstr(e.text, "cuda_simt"));
    assert_non_null(strstr(e.text, "f32 and tf32"));
    assert_null(strchr(e.text, '\n'));
    assert_null(family_find("cuda_hoper", &e));
    assert_non_null(strstr(e.text, "cuda_tiled"));
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_rates),           cmocka_unit_test(test_alone),
        cmocka_unit_test(test_cheapest),           cmocka_unit_test(test_losers),
        cmocka_unit_test(test_loser_is_told_once), cmocka_unit_test(test_asked)};
    return cmocka_run_group_tests_name("chooser of families", tests, NULL, NULL);
}
