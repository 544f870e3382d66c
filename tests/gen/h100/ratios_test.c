/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of GPUs that were not measured are the H100's by the ratios stated here, and lead to no prediction faster than the GPU. */
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>

/* Seconds over the H100's: a clock, an FMA of a processor, a product of its matrix unit, a byte of its share of the memory. */
static const struct gpu {
    const char *name, *target;
    uint32_t processors;
    double clock, fma, product, bytes;
} gpus[] = {
    {"a100", "sm_80", 108, 1.30, 2.59, 1.72, 1.72},
    {"rtx3090", "sm_86", 82, 1.08, 1.08, 5.73, 2.23},
    {"rtx4090", "sm_89", 128, 0.726, 0.725, 3.84, 3.22},
    {"l4", "sm_89", 58, 0.897, 0.896, 2.38, 4.91},
    {"rtx5090", "sm_120", 170, 0.760, 0.759, 4.03, 2.41},
    {"b200", "sm_100a", 148, 0.931, 0.930, 0.931, 0.470},
};
enum { GPUS = sizeof gpus / sizeof *gpus };
#define ROUNDED 0.01

static const struct machine *row_of(const char *name, bool matrix)
{
    char full[32];
    struct error e = {0};
    snprintf(full, sizeof full, "%s%s", name, matrix ? "-mma" : "");
    const struct machine *m = machine_find(full, &e);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

static double ratio_of(const struct gpu *g, enum rate k, bool matrix)
{
    switch (k) {
    case RATE_TILE_FLOP:
    case RATE_BIAS_FLOP:
        return matrix ? g->product : g->fma;
    case RATE_LINE_FLOP:
    case RATE_ROW_FLOP: /* a global row is multiplied by FMA */
        return matrix ? g->clock : g->fma;
    case RATE_STREAM:
    case RATE_EXPOSED:
    case RATE_PARTIAL:
        return g->bytes;
    default:
        return g->clock;
    }
}

static void check_row(const struct gpu *g, bool matrix)
{
    const struct machine *m = row_of(g->name, matrix), *h100 = row_of("h100", matrix);
    assert_int_equal(m->processors, g->processors);
    assert_int_equal(m->workers * h100->processors, h100->workers * g->processors);
    int rates = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++) {
            const double from = h100->rate[pass][k] * ratio_of(g, (enum rate)k, matrix);
            rates += from > 0;
            if (fabs(m->rate[pass][k] - from) > ROUNDED * from)
                fail_msg("%s, %s, %s: %g, not %g", m->name, pass_names[pass], rate_names[k],
                         m->rate[pass][k], from);
        }
    assert_true(rates > 3 * 10);
}

static void test_ratios(void **state)
{
    (void)state;
    for (int k = 0; k < GPUS; k++) {
        check_row(&gpus[k], false);
        check_row(&gpus[k], true);
    }
}

/* Seconds of a dense forward pass over those that its products take at the vendor's peak. */
static double over_peak(const struct gpu *g, bool matrix)
{
    enum { LENGTH = 2048, HEADS = 12, DIM = 64, BATCH = 8 };
    struct error e = {0};
    const struct mask_request request = {
        .name = "dense", .n = LENGTH, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct kernel_request r = {
        .dtype = matrix ? ABI_BF16 : ABI_F32, .head_dim = DIM, .length = LENGTH};
    struct mask *mask = mask_load(&request, NULL, &e);
    struct plan *p = mask ? plan_build(mask, target_find(g->target, &e), &r,
                                       row_of(g->name, matrix), NULL, &e)
                          : NULL;
    if (!p)
        fail_msg("%s: %s", g->name, e.text);
    const double seconds = plan_predict(p, false, 0, BATCH, 0),
                 least = 4.0 * DIM * LENGTH * LENGTH * HEADS * BATCH / p->machine->flops;
    plan_destroy(p);
    mask_destroy(mask);
    return seconds / least;
}

/* FlashAttention-2 reaches 60 to 85 % of the peak of mma.sync. Kernels in f32 are bound by shared memory. */
static void test_peaks(void **state)
{
    (void)state;
    for (int k = 0; k < GPUS; k++)
        for (int matrix = 0; matrix <= 1; matrix++) {
            const double times = over_peak(&gpus[k], matrix);
            print_message("%s, %s: %.0f %% of the peak\n", gpus[k].name,
                          matrix ? "bf16" : "f32", 100 / times);
            if (!(times > 1.05 && times < 6))
                fail_msg("%s: dense takes %.2f times as long as at the peak", gpus[k].name,
                         times);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ratios),
                                       cmocka_unit_test(test_peaks)};
    return cmocka_run_group_tests_name("gpu_ratios", tests, NULL, NULL);
}
