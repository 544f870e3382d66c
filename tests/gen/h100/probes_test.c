/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration's probes of a GPU tell its rates apart: rates that are made up are found again from the times that they predict.
   Probes of one head dimension could not separate the rates of an entry, of a product and of a loaded column. */
#include "gen/cost/fit.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include "tools/maskc/calibrate/probe_table.h"
#include <math.h>

enum { HEADS = 12, HEAD_DIM = 64, TOKENS = 16384 };

static struct plan *plan_of(const struct probe *probe, const struct machine *row)
{
    struct error e = {0};
    const struct plan_options plain = {.plain = true, .by_rates = true};
    const struct machine m = probe_machine(row, probe->favour);
    const struct mask_request request = {
        .name = probe->mask, .n = probe->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct kernel_request r = {.dtype = ABI_BF16,
                                     .head_dim = probe->head_dim ? probe->head_dim : HEAD_DIM,
                                     .length = probe->n,
                                     .backward = true};
    struct mask *mask = mask_load(&request, NULL, &e);
    struct plan *p =
        mask ? plan_build(mask, target_find("sm_90a", &e), &r, &m, &plain, &e) : NULL;
    mask_destroy(mask);
    if (!p)
        fail_msg("%s: %s", probe->mask, e.text);
    p->machine = row; /* m is gone with this function */
    return p;
}

/* Rates up to twice more or less than the row's. */
static void make_rates(const double from[RATES], uint32_t seed, double ret[RATES])
{
    for (int k = 0; k < RATES; k++) {
        seed = seed * 1664525 + 1013904223;
        ret[k] = from[k] * pow(2, 2 * (seed >> 8) / (double)(1 << 24) - 1);
    }
}

static void check_rate(enum machine_pass pass, enum rate k, const double made[RATES],
                       const double found[RATES])
{
    const double tolerance = 0.15;
    if (fabs(found[k] / made[k] - 1) > tolerance)
        fail_msg("%s, %s: %g made up, %g found", pass_names[pass], rate_names[k], made[k],
                 found[k]);
}

static void test_recovery(void **state)
{
    (void)state;
    static const enum rate told[] = {RATE_TILE_FLOP,    RATE_TILE_ENTRY, RATE_TILE_MASK,
                                     RATE_GATHER,       RATE_ROW_ITEM,   RATE_ITEM,
                                     RATE_ITEM_ELEMENT, RATE_PARTIAL};
    const struct machine *row = machine_find("h100-mma", NULL);
    static struct fit_row rows[PASSES][PROBES_MOST];
    uint32_t count;
    const struct probe *probe = probe_table(TARGET_CUDA, false, false, &count);
    for (uint32_t k = 0; k < count; k++) {
        struct plan *p = plan_of(&probe[k], row);
        const uint32_t batch = probe[k].single ? 1 : TOKENS / probe[k].n;
        for (int pass = 0; pass < PASSES; pass++)
            probe_gpu_terms(p, (enum machine_pass)pass, batch, rows[pass][k].term);
        plan_destroy(p);
    }
    for (int pass = 0; pass < PASSES; pass++) {
        double made[RATES], found[RATES];
        make_rates(row->rate[pass], 7 + (uint32_t)pass, made);
        for (uint32_t k = 0; k < count; k++)
            rows[pass][k].seconds = fit_seconds(&rows[pass][k], made);
        fit_rates(rows[pass], count, row->rate[pass], found);
        for (size_t k = 0; k < sizeof told / sizeof *told; k++)
            check_rate((enum machine_pass)pass, told[k], made, found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recovery)};
    return cmocka_run_group_tests_name("gpu_probes", tests, NULL, NULL);
}
