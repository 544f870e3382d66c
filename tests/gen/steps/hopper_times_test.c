/* SPDX-License-Identifier: Apache-2.0 */
/* Do the clocks of steps reproduce the times of prototypes on an H100? Does a plan take the kernel that measured fastest? */
#include "gen/family/cuda_hopper.h"
#include "gen/plan/internal.h"
#include "tests/gen/steps/h100_plan.h"
#include "tests/gen/steps/measured_masks.h"
#include "tests/support/test.h"
#include <math.h>
#include <string.h>

#define TOLERANCE       0.13
#define MEAN_TOLERANCE  0.06 /* root mean square */
#define SHAPE_TOLERANCE 0.05 /* runs of one kernel differ by 3 % */

/* Milliseconds of each pass by shape, in the order of gen/family/cuda_hopper.c: 12 heads, bf16, 65536 tokens at D = 64, half of
   these at D = 128. 0: not measured. */
static const struct timed {
    const char *name;
    bool (*has)(u32 i, u32 j);
    u32 n, head_dim;
    double time[PASSES][STEP_SHAPES_MOST];
    double tiled;  /* forward by cuda_tiled; 0: not measured */
    double better; /* share of the time that a plan may save */
    bool by_tiled; /* cuda_tiled is predicted to be faster */
} timed[] = {
    {"dense", is_dense, 2048, 64, {{.806, .960, 1.003}, {.980}, {1.404}}, 1.750},
    {"dense", is_dense, 8192, 64, {{3.278}}, 6.808},
    {"causal", is_causal, 2048, 64, {{.505}}, 1.060},
    {"causal", is_causal, 8192, 64, {{1.656}, {2.055}}, 3.493},
    {"window 64", is_window_64, 8192, 64, {{.205, .194, .188}, {.279, .255}, {0, .346}}, 0},
    {"window 256",
     is_window_256,
     8192,
     64,
     {{.334, .283, .324}, {.393, .382}, {0, .456}},
     .588},
    {"blocks", is_blocks_256, 8192, 64, {{.176, .155, .163}, {.229, .238}, {0, .231}}, 0},
    {"tiles", is_scattered, 8192, 64, {{0, 0, .552}, {0, .661}, {0, 1.491}}, 0},
    {"columns", is_gathered, 8192, 64, {{.414}}, 0, .by_tiled = true},
    {"dense", is_dense, 2048, 128, {{.653}, {.940}, {1.357}}, 1.899},
    {"causal", is_causal, 8192, 128, {{1.277}, {1.965}}, 0},
    /* Plans are better than those of the prototypes: global rows are cut, and tiles that the same row blocks need come together. */
    {"longformer",
     is_longformer,
     8192,
     64,
     {{.287, .325, .266}, {.343, .346}, {0, .374}},
     .489,
     .better = 0.15},
    {"tiles", is_scattered, 8192, 64, {{.975, .983}, {1.050}, {0}}, 0, .better = .3},
};

/* `family`: null for the one that the plan chooses. */
/* Milliseconds of the pass by a shape. */
static double predict(struct plan *p, enum machine_pass pass, u32 which)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    const struct step_source s = {pass == PASS_DKV ? &p->transposed : &p->forward,
                                  p->at,
                                  p->n,
                                  p->layers,
                                  p->heads,
                                  p->n_masks};
    hopper_shapes(&p->config.request, pass, shape);
    steps_finish(&p->steps[pass]);
    p->config.step_shape[pass] = which;
    steps_build(&s, shape[which], &p->steps[pass]);
    return 1e3 *
           predict_steps(p, pass, 0, (p->config.request.head_dim > 64 ? 32768 : 65536) / p->n);
}

static void check_time(const struct timed *x, enum machine_pass pass, const char *shape,
                       double time, double predicted)
{
    if (predicted < time * (1 - TOLERANCE - x->better) || predicted > time * (1 + TOLERANCE))
        fail_msg("%s, n = %u, D = %u, %s, %s: %.3f ms predicted, %.3f measured", x->name, x->n,
                 x->head_dim, pass_names[pass], shape, predicted, time);
}

/* Returns the sum of the squares of errors of a mask whose plan is as that of the prototype. */
static double check_times(const struct timed *x, struct plan *p, u32 *count)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    double squares = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        hopper_shapes(&p->config.request, (enum machine_pass)pass, shape);
        for (u32 s = 0; s < STEP_SHAPES_MOST; s++) {
            const double time = x->time[pass][s];
            if (time <= 0)
                continue;
            const double predicted = predict(p, (enum machine_pass)pass, s);
            check_time(x, (enum machine_pass)pass, shape[s]->name, time, predicted);
            squares += x->better > 0 ? 0 : pow(predicted / time - 1, 2);
            *count += x->better <= 0;
        }
    }
    return squares;
}

static void test_times(void **state)
{
    (void)state;
    double squares = 0;
    u32 count = 0;
    for (size_t k = 0; k < sizeof timed / sizeof *timed; k++) {
        struct mask *m = measured_mask(timed[k].n, timed[k].has);
        struct plan *p = h100_plan(m, timed[k].head_dim, &family_cuda_hopper);
        squares += check_times(&timed[k], p, &count);
        plan_destroy(p);
        mask_destroy(m);
    }
    print_message("root mean square %.1f %% of %u\n", 100 * sqrt(squares / count), count);
    assert_true(sqrt(squares / count) < MEAN_TOLERANCE);
}

/* Among the timed shapes, the plan's is slower than the fastest by no more than the bound. */
static void check_shape(const struct timed *x, const struct plan *p, enum machine_pass pass)
{
    const double *time = x->time[pass], ours = time[p->config.step_shape[pass]];
    for (u32 s = 0; s < STEP_SHAPES_MOST; s++)
        if (time[s] > 0 && ours > 0 && ours > time[s] * (1 + SHAPE_TOLERANCE))
            fail_msg("%s, n = %u, %s: %s takes %.3f ms, another %.3f", x->name, x->n,
                     pass_names[pass], hopper_shape(&p->config, pass)->name, ours, time[s]);
}

/* The best time of prototypes is half of that of cuda_tiled, where both were measured. */
static void test_choice(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof timed / sizeof *timed; k++) {
        struct mask *m = measured_mask(timed[k].n, timed[k].has);
        struct plan *p = h100_plan(m, timed[k].head_dim, NULL);
        const struct kernel_family *f = p->config.forward;
        assert_ptr_equal(f, p->config.backward);
        if ((f != &family_cuda_hopper) != timed[k].by_tiled)
            fail_msg("%s, n = %u: by %s", timed[k].name, timed[k].n, f->name);
        for (int pass = 0; pass < PASSES && !timed[k].by_tiled; pass++)
            check_shape(&timed[k], p, (enum machine_pass)pass);
        plan_destroy(p);
        mask_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests_name("hopper_times", tests, NULL, NULL);
}
