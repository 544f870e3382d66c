/* SPDX-License-Identifier: Apache-2.0 */
/* Do the rates of an H100 reproduce the times that they are fitted to, with the kernel family that was timed? And which family does a
   plan take by itself (tests/gen/steps/hopper_times_test.c has masks that cuda_hopper was timed with)? Figures are of
   tests/results/h100-b84ec2a/timing.txt: 12 heads, backward is `both` less `fwd`. */
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <math.h>
#include <string.h>

#define RESIDENT "cuda_resident"
#define TILED    "cuda_tiled"
#define SIMT     "cuda_simt"
#define HOPPER   "cuda_hopper"

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
    {"longformer(64,2)", 8192, 8, 64, ABI_BF16, TILED, 0.489, 1.395, HOPPER},
    {"dense", 2048, 16, 128, ABI_BF16, TILED, 1.899, 6.282, HOPPER},
    {"causal", 2048, 16, 128, ABI_BF16, TILED, 1.093, 3.737, HOPPER},
    {"longformer(64,2)", 2048, 16, 128, ABI_BF16, TILED, 0.506, 1.464, HOPPER},
    {"dense", 2048, 8, 64, ABI_F32, SIMT, 8.013, 27.479, SIMT},
    {"star", 2048, 8, 64, ABI_F32, SIMT, 0.196, 0.675, SIMT},
};

/* `family`: null for the one that the plan chooses. */
static struct plan *plan_for(const struct measured *x, const char *family, bool backward)
{
    struct error e = {0};
    const struct plan_options o = {.family = family ? family_find(family, &e) : NULL};
    const struct mask_request request = {
        .name = x->mask, .n = x->n, .heads = 12, MASK_REQUEST_DEFAULTS};
    const struct kernel_request r = {
        .dtype = x->dtype, .head_dim = x->head_dim, .length = x->n, .backward = backward};
    const struct target *t = target_find("sm_90a", &e);
    struct mask *m = mask_load(&request, NULL, &e);
    struct plan *p =
        m ? plan_build(m, t, &r, machine_find(family_machine(t, &r), &e), &o, &e) : NULL;
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", x->mask, e.text);
    return p;
}

static void check_time(const struct measured *x, bool backward, double predicted, double time)
{
    const double tolerance = 0.22;
    if (!(fabs(predicted / time - 1) <= tolerance))
        fail_msg("%s, n = %u, D = %u, %s: %.3f ms predicted, %.3f measured", x->mask, x->n,
                 x->head_dim, backward ? "backward" : "forward", predicted, time);
}

static void test_times(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof measured / sizeof *measured; k++) {
        const struct measured *x = &measured[k];
        struct plan *p = plan_for(x, x->family, true);
        check_time(x, false, 1e3 * plan_predict(p, false, 0, x->batch, 0), x->forward);
        check_time(x, true, 1e3 * plan_predict(p, true, 0, x->batch, 0), x->backward);
        plan_destroy(p);
    }
}

/* cuda_hopper was timed with dense, causal, windows, longformer, blocks of 256, tiles and gathered columns (hopper_times_test.c):
   its steps' clocks predict the others here. */
static void test_families(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof measured / sizeof *measured; k++) {
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
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_few_in_flight),
    };
    return cmocka_run_group_tests_name("h100_times", tests, NULL, NULL);
}
