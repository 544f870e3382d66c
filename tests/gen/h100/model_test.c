/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of today's kernels are those fitted to the kernels that were timed, scaled by what the static model of an H100 says of
   both (tools/sass --model h100). Predictions with either set, of the plan whose machine code was counted, are held against it. */
#include "gen/family/family.h"
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/gen/h100/rates.h"
#include "tests/support/test.h"
#include <math.h>

#define LIMIT \
    0.05 /* relative error of the quotient of both predictions, against the model's quotient */
#define TIME_LIMIT \
    0.35 /* of milliseconds; the model itself is up to 0.26 off what was measured */

/* Milliseconds by the model: 65536 tokens x 12 heads, D = 64, bf16, counted from one head, without the balance of the launch.
   Before: templates of revision 6df14a3c, the last one before the changes. */
static const struct modelled {
    const char *mask;
    uint32_t n;
    double before[PASSES], now[PASSES];
} modelled[] = {
    {"dense", 512, {.488, .747, .846}, {.412, .617, .726}},
    {"causal", 512, {.326, .500, .531}, {.289, .426, .474}},
    {"window(256)", 2048, {.516, .776, .872}, {.444, .655, .758}},
    {"longformer(64,2)", 2048, {.371, .567, .541}, {.358, .512, .517}},
    {"star", 2048, {.232, .384, .342}, {.218, .320, .328}},
};
enum { MODELLED = sizeof modelled / sizeof *modelled, HEADS = 12, TOKENS = 65536 };

/* By cuda_tiled, with tables that the fitted rates choose. */
static struct plan *counted_plan(const struct modelled *x, const struct machine *machine)
{
    struct error e = {0};
    const struct kernel_family *family = family_find("cuda_tiled", &e);
    const struct mask_request request = {
        .name = x->mask, .n = x->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct kernel_config c = {
        .request = {.dtype = ABI_BF16, .head_dim = 64, .length = x->n, .backward = true},
        .forward = family,
        .backward = family};
    const struct plan_way way = {.prices = &h100_fitted[H100_MMA]};
    struct mask *m = mask_load(&request, NULL, &e);
    const struct plan_problem problem = {
        .mask = m, .target = target_find("sm_90a", &e), .config = &c, .machine = machine};
    struct plan *p = m ? plan_of_way(&problem, &way, &e) : NULL;
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", x->mask, e.text);
    return p;
}

static void check_pass(const struct modelled *x, enum machine_pass pass,
                       const struct plan *then, const struct plan *now)
{
    const uint32_t batch = TOKENS / x->n;
    const double before = 1e3 * predict_pass(then, pass, 0, batch, 0),
                 after = 1e3 * predict_pass(now, pass, 0, batch, 0),
                 quotient = after / before / (x->now[pass] / x->before[pass]),
                 time = after / x->now[pass];
    print_message(
        "%-17s %-8s %.3f ms, the model %.3f; before %.3f, %.3f; quotient off by %+.0f %%\n",
        x->mask, pass_names[pass], after, x->now[pass], before, x->before[pass],
        100 * (quotient - 1));
    if (fabs(quotient - 1) > LIMIT || fabs(time - 1) > TIME_LIMIT)
        fail_msg("%s, %s: %.3f ms predicted, %.3f before; the model has %.3f and %.3f", x->mask,
                 pass_names[pass], after, before, x->now[pass], x->before[pass]);
}

static void test_model(void **state)
{
    (void)state;
    struct error e = {0};
    for (size_t k = 0; k < MODELLED; k++) {
        struct plan *then = counted_plan(&modelled[k], &h100_fitted[H100_MMA]),
                    *now = counted_plan(&modelled[k], machine_find("h100-mma", &e));
        for (int pass = 0; pass < PASSES; pass++)
            check_pass(&modelled[k], (enum machine_pass)pass, then, now);
        plan_destroy(then);
        plan_destroy(now);
    }
}

/* cuda_resident at n = 128, all heads counted: milliseconds of the forward and of the backward kernel. Before: revision
   fde4e2a0, whose kernels are those that were timed (.190 and .598 ms, dense) but for the order of some copies. */
static const struct resident_times {
    const char *mask;
    double before[2], now[2];
} resident_times[] = {
    {"dense", {.180, .439}, {.170, .348}},      {"causal", {.171, .417}, {.163, .338}},
    {"star", {.178, .427}, {.165, .330}},       {"dam-s-example", {.197, .482}, {.178, .364}},
    {"longformer", {.181, .441}, {.169, .345}}, {"strided", {.184, .457}, {.176, .360}},
};

static double seconds_of(const struct plan *p, int backward)
{
    return backward ? predict_pass(p, PASS_DQ, 0, 512, 0) + predict_pass(p, PASS_DKV, 0, 512, 0)
                    : predict_pass(p, PASS_FORWARD, 0, 512, 0);
}

static void check_resident(const struct resident_times *x, const struct plan *then,
                           const struct plan *now)
{
    static const char *const names[] = {"forward", "backward"};
    for (int k = 0; k < 2; k++) {
        const double before = seconds_of(then, k), after = seconds_of(now, k),
                     quotient = after / before / (x->now[k] / x->before[k]);
        print_message("resident %-13s %-8s %.3f ms, before %.3f; quotient off by %+.1f %%\n",
                      x->mask, names[k], 1e3 * after, 1e3 * before, 100 * (quotient - 1));
        if (fabs(quotient - 1) > LIMIT)
            fail_msg("%s, %s: %.3f ms predicted, %.3f before; the model has %.3f and %.3f",
                     x->mask, names[k], 1e3 * after, 1e3 * before, x->now[k], x->before[k]);
    }
}

/* Its rates are stated over those of cuda_tiled, which changed too. */
static void test_resident(void **state)
{
    (void)state;
    struct error e = {0};
    const struct kernel_family *family = family_find("cuda_resident", &e);
    const struct plan_options o = {.plain = true, .by_rates = true, .family = family};
    const struct kernel_request r = {
        .dtype = ABI_BF16, .head_dim = 64, .length = 128, .backward = true};
    for (size_t k = 0; k < sizeof resident_times / sizeof *resident_times; k++) {
        const struct mask_request request = {
            .name = resident_times[k].mask, .n = 128, .heads = HEADS, MASK_REQUEST_DEFAULTS};
        struct mask *m = mask_load(&request, NULL, &e);
        const struct target *t = target_find("sm_90a", &e);
        struct plan *then = plan_build(m, t, &r, &h100_fitted[H100_MMA], &o, &e),
                    *now = plan_build(m, t, &r, machine_find("h100-mma", &e), &o, &e);
        assert_true(then && now);
        check_resident(&resident_times[k], then, now);
        plan_destroy(then);
        plan_destroy(now);
        mask_destroy(m);
    }
}

#define FAMILIES_LIMIT 0.1 /* relative error of the quotient of both families */

/* Longer heads, dense: milliseconds of cuda_resident and of cuda_tiled. That one is planned where it is
   cheaper by more than the model's error. */
static const struct longer {
    uint32_t n;
    int backward;
    double resident, tiled;
} longer[] = {
    {256, 0, .275, .264},
    {390, 0, .656, .396},
    {192, 1, .599, .699},
    {200, 1, 1.045, .877},
};

static double seconds_by(const char *name, const struct longer *x, struct error *e)
{
    const struct mask_request request = {
        .name = "dense", .n = x->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct plan_options o = {
        .plain = true, .by_rates = true, .family = name ? family_find(name, e) : NULL};
    const struct kernel_request r = {
        .dtype = ABI_BF16, .head_dim = 64, .length = x->n, .backward = true};
    struct mask *m = mask_load(&request, NULL, e);
    struct plan *p =
        plan_build(m, target_find("sm_90a", e), &r, machine_find("h100-mma", e), &o, e);
    if (!p)
        fail_msg("%s", e->text);
    const double seconds = plan_predict(p, x->backward, 0, TOKENS / x->n, 0);
    if (!name && x->resident > (1 + FAMILIES_LIMIT) * x->tiled)
        assert_string_equal((x->backward ? p->config.backward : p->config.forward)->name,
                            "cuda_tiled");
    plan_destroy(p);
    mask_destroy(m);
    return seconds;
}

static void test_longer_heads(void **state)
{
    (void)state;
    struct error e = {0};
    for (size_t k = 0; k < sizeof longer / sizeof *longer; k++) {
        const struct longer *x = &longer[k];
        const double quotient = seconds_by("cuda_resident", x, &e) /
                                seconds_by("cuda_tiled", x, &e) / (x->resident / x->tiled);
        print_message("dense n = %u: quotient of the families off by %+.1f %%\n", x->n,
                      100 * (quotient - 1));
        assert_true(fabs(quotient - 1) < FAMILIES_LIMIT);
        seconds_by(NULL, x, &e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model),
                                       cmocka_unit_test(test_resident),
                                       cmocka_unit_test(test_longer_heads)};
    return cmocka_run_group_tests_name("h100_model", tests, NULL, NULL);
}
