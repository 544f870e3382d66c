/* SPDX-License-Identifier: Apache-2.0 */
/* Rates fitted to the kernels that were timed on an H100 against all of these times, with the plans that were timed; rates of
   today's kernels against those; and which family a plan takes by itself (tests/gen/steps/hopper_times_test.c has masks that
   cuda_hopper was timed with). Figures are of tests/results/h100-b84ec2a/timing.txt: 12 heads, backward is `both` less `fwd`. */
#include "gen/family/family.h"
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/gen/h100/rates.h"
#include "tests/support/test.h"
#include <math.h>
#include <string.h>

#define RESIDENT "cuda_resident"
#define TILED    "cuda_tiled"
#define SIMT     "cuda_simt"
#define HOPPER   "cuda_hopper"

#define LIMIT  1.6 /* predicted over measured, or the inverse */
#define NEAR   0.2
#define FASTER 3 /* times that today's kernels may be faster than those that were timed */
#define SLOWER \
    0.93 /* by the static model of an H100 masks of few tiles are up to 3 % slower (model_test.c) */

static const struct measured {
    const char *mask;
    uint32_t n, batch, head_dim;
    enum abi_dtype dtype;
    const char *family;
    double forward, backward; /* milliseconds */
    const char *chosen;       /* the family of both passes of a plan for sm_90a */
} measured[] = {
    {"dense", 128, 512, 64, ABI_BF16, RESIDENT, 0.190, 0.598, RESIDENT},
    {"longformer", 128, 512, 64, ABI_BF16, RESIDENT, 0.214, 0.611, RESIDENT},
    {"star", 128, 512, 64, ABI_BF16, RESIDENT, 0.207, 0.568, RESIDENT},
    {"dam-s-example", 128, 512, 64, ABI_BF16, RESIDENT, 0.217, 0.620, RESIDENT},
    {"blockbert-2", 128, 512, 64, ABI_BF16, RESIDENT, 0.168, 0.446, RESIDENT},
    {"fixed", 128, 512, 64, ABI_BF16, RESIDENT, 0.198, 0.610, RESIDENT},
    {"strided", 128, 512, 64, ABI_BF16, RESIDENT, 0.202, 0.610, RESIDENT},
    {"causal", 128, 512, 64, ABI_BF16, RESIDENT, 0.181, 0.551, RESIDENT},
    {"dense", 512, 128, 64, ABI_BF16, TILED, 0.524, 1.781, HOPPER},
    {"longformer(64,2)", 512, 128, 64, ABI_BF16, TILED, 0.369, 1.150, HOPPER},
    {"star", 512, 128, 64, ABI_BF16, TILED, 0.245, 0.823, HOPPER},
    {"dam-s-example", 512, 128, 64, ABI_BF16, TILED, 0.431, 1.307, HOPPER},
    {"blockbert-2", 512, 128, 64, ABI_BF16, TILED, 0.301, 1.077, HOPPER},
    {"dense", 2048, 32, 64, ABI_BF16, TILED, 1.750, 6.194, HOPPER},
    {"causal", 2048, 32, 64, ABI_BF16, TILED, 1.060, 3.666, HOPPER},
    {"blockbert-2", 2048, 32, 64, ABI_BF16, TILED, 0.944, 3.160, HOPPER},
    {"window(256)", 2048, 32, 64, ABI_BF16, TILED, 0.561, 1.832, HOPPER},
    {"longformer(64,2)", 2048, 32, 64, ABI_BF16, TILED, 0.423, 1.291, HOPPER},
    {"bigbird(1,2,2)", 2048, 32, 64, ABI_BF16, TILED, 0.479, 1.407, TILED},
    {"strided(45)", 2048, 32, 64, ABI_BF16, TILED, 0.693, 2.609, TILED},
    {"logsparse", 2048, 32, 64, ABI_BF16, TILED, 0.612, 1.759, HOPPER},
    {"fixed(45,1)", 2048, 32, 64, ABI_BF16, TILED, 0.287, 2.668, TILED},
    {"star", 2048, 32, 64, ABI_BF16, TILED, 0.264, 0.871, HOPPER},
    {"distance(1,2,4,7,12)|global(0,-1)-diagonal(0)", 2048, 32, 64, ABI_BF16, TILED, 0.331,
     1.126, HOPPER},
    {"dense", 8192, 8, 64, ABI_BF16, TILED, 6.808, 23.304, HOPPER},
    {"star", 8192, 8, 64, ABI_BF16, TILED, 0.279, 0.901, HOPPER},
    {"causal", 8192, 8, 64, ABI_BF16, TILED, 3.493, 13.202, HOPPER},
    {"window(256)", 8192, 8, 64, ABI_BF16, TILED, 0.588, 1.891, HOPPER},
    {"longformer(64,2)", 8192, 8, 64, ABI_BF16, TILED, 0.489, 1.395, HOPPER},
    {"dense", 2048, 16, 128, ABI_BF16, TILED, 1.899, 6.282, HOPPER},
    {"causal", 2048, 16, 128, ABI_BF16, TILED, 1.093, 3.737, HOPPER},
    {"longformer(64,2)", 2048, 16, 128, ABI_BF16, TILED, 0.506, 1.464, HOPPER},
    {"dense", 2048, 8, 64, ABI_F32, SIMT, 8.013, 27.479, SIMT},
    {"longformer(64,2)", 2048, 8, 64, ABI_F32, SIMT, 1.124, 3.074, SIMT},
    {"star", 2048, 8, 64, ABI_F32, SIMT, 0.196, 0.675, SIMT},
};

enum { MEASURED = sizeof measured / sizeof *measured };

static struct mask *mask_of(const struct measured *x)
{
    struct error e = {0};
    const struct mask_request request = {
        .name = x->mask, .n = x->n, .heads = 12, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    if (!m)
        fail_msg("%s: %s", x->mask, e.text);
    return m;
}

static struct kernel_request request_of(const struct measured *x, bool backward)
{
    return (struct kernel_request){
        .dtype = x->dtype, .head_dim = x->head_dim, .length = x->n, .backward = backward};
}

/* `family`: null for the one that the plan chooses. */
static struct plan *plan_for(const struct measured *x, const char *family, bool backward)
{
    struct error e = {0};
    const struct plan_options o = {.family = family ? family_find(family, &e) : NULL};
    const struct kernel_request r = request_of(x, backward);
    const struct target *t = target_find("sm_90a", &e);
    struct mask *m = mask_of(x);
    struct plan *p = plan_build(m, t, &r, machine_find(family_machine(t, &r), &e), &o, &e);
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", x->mask, e.text);
    return p;
}

/* The plan that was timed, priced by `machine`. */
static struct plan *timed_plan(const struct measured *x, const struct machine *machine)
{
    struct error e = {0};
    const struct kernel_family *family = family_find(x->family, &e);
    const struct kernel_config c = {.request = request_of(x, true),
                                    .forward = family,
                                    .backward = family,
                                    .tall = x->head_dim == 128};
    struct mask *m = mask_of(x);
    const struct plan_problem problem = {.mask = m,
                                         .target = target_find("sm_90a", &e),
                                         .config = &c,
                                         .machine = machine,
                                         .without = CAN_JOIN_NESTED};
    const struct plan_way way = {.prices =
                                     &h100_chose[x->dtype == ABI_F32 ? H100_F32 : H100_MMA]};
    struct plan *p = plan_of_way(&problem, &way, &e);
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", x->mask, e.text);
    return p;
}

static double milliseconds(const struct measured *x, const struct plan *p, bool backward)
{
    return 1e3 * plan_predict(p, backward, 0, x->batch, 0);
}

/* True if the prediction is near the time. */
static bool check_time(const struct measured *x, const struct plan *p, bool backward)
{
    const double time = backward ? x->backward : x->forward;
    const double ratio = milliseconds(x, p, backward) / time;
    if (ratio > LIMIT || ratio < 1 / LIMIT)
        fail_msg("%s, n = %u, D = %u, %s: %.3f ms predicted, %.3f measured", x->mask, x->n,
                 x->head_dim, backward ? "backward" : "forward", ratio * time, time);
    return fabs(ratio - 1) <= NEAR;
}

static void test_times(void **state)
{
    (void)state;
    int near = 0;
    for (size_t k = 0; k < MEASURED; k++) {
        const struct measured *x = &measured[k];
        struct plan *p = timed_plan(x, &h100_fitted[x->dtype == ABI_F32 ? H100_F32 : H100_MMA]);
        near += check_time(x, p, false) + check_time(x, p, true);
        plan_destroy(p);
    }
    print_message("%d of %d within %.0f %%\n", near, 2 * (int)MEASURED, 100 * NEAR);
    assert_true(3 * near >= 2 * 2 * (int)MEASURED);
}

/* Kernels have become faster since, or are nearly as fast. */
static void test_current(void **state)
{
    (void)state;
    struct error e = {0};
    for (size_t k = 0; k < MEASURED; k++) {
        const struct measured *x = &measured[k];
        const struct machine *before = &h100_fitted[x->dtype == ABI_F32 ? H100_F32 : H100_MMA];
        struct plan *then = timed_plan(x, before),
                    *now = timed_plan(x, machine_find(before->name, &e));
        for (int backward = 0; backward <= 1; backward++) {
            const double ratio =
                milliseconds(x, then, backward) / milliseconds(x, now, backward);
            if (ratio < SLOWER || ratio > FASTER)
                fail_msg("%s, n = %u, D = %u, %s: %.2f times as fast as the kernel that was "
                         "timed",
                         x->mask, x->n, x->head_dim, backward ? "backward" : "forward", ratio);
        }
        plan_destroy(then);
        plan_destroy(now);
    }
}

/* cuda_hopper was timed with dense, causal, windows, longformer, blocks of 256, tiles and gathered columns (hopper_times_test.c):
   its steps' clocks predict the others here. */
static void test_families(void **state)
{
    (void)state;
    for (size_t k = 0; k < MEASURED; k++) {
        const struct measured *x = &measured[k];
        for (int backward = 0; backward <= 1; backward++) {
            struct plan *p = plan_for(x, NULL, backward);
            for (int pass = 0; pass <= backward; pass++)
                if (strcmp(family_of(p->target, &p->config, (enum family_pass)pass)->name,
                           x->chosen))
                    fail_msg("%s, n = %u, D = %u: not by %s", x->mask, x->n, x->head_dim,
                             x->chosen);
            plan_destroy(p);
        }
    }
}

/* Row blocks in flight are those of the launch bounds, on 132 processors. */
static void test_in_flight(void **state)
{
    (void)state;
    static const struct measured plans[] = {{"dense", 2048, 1, 64, ABI_BF16},
                                            {"dense", 2048, 1, 128, ABI_BF16}};
    static const uint32_t blocks[2][PASSES] = {{4, 3, 3}, {1, 1, 1}}; /* tall at D = 128 */
    for (int k = 0; k < 2; k++) {
        struct plan *p = plan_for(&plans[k], TILED, true);
        for (int pass = 0; pass < PASSES; pass++)
            assert_int_equal(p->in_flight[pass], 132 * blocks[k][pass]);
        plan_destroy(p);
    }
}

/* With three quarters of the row blocks in flight, each takes three quarters of the time. */
static void test_few_in_flight(void **state)
{
    (void)state;
    struct plan *p = plan_for(&(struct measured){"dense", 2048, 1, 64, ABI_BF16}, TILED, true);
    const double even =
        plan_spread(p, PASS_DQ, 0, 132, 0); /* 128 row blocks for each in flight */
    assert_true(fabs(even * p->machine->workers - 1) < 1e-6);
    p->in_flight[PASS_DQ] = p->machine->workers;
    const double one = plan_spread(p, PASS_DQ, 0, 1, 0);
    p->in_flight[PASS_DQ] = p->machine->workers * 3 / 4;
    assert_true(fabs(plan_spread(p, PASS_DQ, 0, 1, 0) / one - 0.75) < 1e-6);
    plan_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),         cmocka_unit_test(test_current),
        cmocka_unit_test(test_families),      cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_few_in_flight),
    };
    return cmocka_run_group_tests_name("h100_times", tests, NULL, NULL);
}
