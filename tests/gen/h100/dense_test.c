/* SPDX-License-Identifier: Apache-2.0 */
/* No plan for a GPU is predicted to take longer than every tile of its mask, in a launch that fills the GPU: the gallery, on each
   pair of GPU rows of the machine table. */
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const gallery[] = {
    "bigbird",    "blockbert-2",    "blockbert-3", "causal",  "dense",
    "longformer", "longformer-cls", "logsparse",   "star",    "fairseq-fixed",
    "sink",       "dam-s-example",  "fixed",       "strided", /* the last four are planned slowly */
};
enum { MASKS = sizeof gallery / sizeof *gallery, SLOW = 4, LONGEST = 8192, HEADS = 12 };

static const uint32_t lengths[] = {128, 512, 2048, LONGEST};
/* Rows of the table: `machine` for f32, and with MATRIX for half types. Where all others are scaled alike, fewer lengths. */
#define MATRIX "-mma"
static const struct {
    const char *target, *machine;
    uint32_t longest;
} gpus[] = {{"sm_80", "a100", LONGEST}, {"sm_90a", "h100", LONGEST}, {"sm_86", "rtx3090", 2048},
            {"sm_89", "rtx4090", 512},  {"sm_89", "l4", 2048},       {"sm_100a", "b200", 2048},
            {"sm_120", "rtx5090", 2048}};
enum { GPUS = sizeof gpus / sizeof *gpus };

/* Sums in another order differ by so much; steps come in whole numbers, of which the dense time takes the mean. */
#define ROUNDING 1e-9
#define STEPS    0.01

struct case_of {
    const char *mask, *target, *machine;
    uint32_t n;
    enum abi_dtype dtype;
};

static void check_pass(const struct case_of *c, const struct plan *p, bool backward)
{
    const uint32_t batch = plan_full_batch(p);
    const double ours = plan_predict(p, backward, 0, batch, 0),
                 floor = plan_floor(p, backward, 0, batch, 0), /* every tile keeps to it too */
        dense = fmax(predict_every_tile(p, backward, 0, batch, 0), floor);
    if (ours > dense * (1 + (plan_reads_steps(p) ? STEPS : ROUNDING)))
        fail_msg("%s, n = %u, %s, %s, %s: %.1f us predicted, every tile %.1f", c->mask, c->n,
                 c->machine, dtype_name(c->dtype), backward ? "backward" : "forward",
                 1e6 * ours, 1e6 * dense);
}

static void check_case(const struct case_of *c)
{
    struct error e = {0};
    const struct mask_request request = {
        .name = c->mask, .n = c->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct kernel_request r = {
        .dtype = c->dtype, .head_dim = 64, .length = c->n, .backward = true};
    char row[32];
    snprintf(row, sizeof row, "%s%s", c->machine, c->dtype == ABI_F32 ? "" : MATRIX);
    struct mask *m = mask_load(&request, NULL, &e);
    struct plan *p =
        m ? plan_build(m, target_find(c->target, &e), &r, machine_find(row, &e), NULL, &e)
          : NULL;
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", c->mask, e.text);
    check_pass(c, p, false);
    check_pass(c, p, true);
    plan_destroy(p);
}

static void check_gpu(size_t gpu, bool all)
{
    static const enum abi_dtype dtypes[] = {ABI_F32, ABI_BF16};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        const uint32_t length = lengths[n];
        if (!all && length > gpus[gpu].longest)
            continue;
        const size_t masks = all || length < gpus[gpu].longest ? MASKS : MASKS - SLOW;
        for (size_t k = 0; k < masks; k++)
            for (int d = 0; d < 2; d++)
                check_case(&(struct case_of){gallery[k], gpus[gpu].target, gpus[gpu].machine,
                                             length, dtypes[d]});
    }
}

static void test_gallery(void **state)
{
    for (size_t gpu = 0; gpu < GPUS; gpu++)
        check_gpu(gpu, *state);
}

/* Every GPU row of the table is one of these. */
static void test_rows(void **state)
{
    (void)state;
    for (const struct machine *m = machines; m->name; m++) {
        bool found = m->kind != TARGET_CUDA;
        for (size_t k = 0; k < GPUS; k++) {
            const size_t length = strlen(gpus[k].machine);
            found |= !strncmp(m->name, gpus[k].machine, length) &&
                     (!m->name[length] || !strcmp(m->name + length, MATRIX));
        }
        if (!found)
            fail_msg("no case for machine %s", m->name);
    }
}

int main(void)
{
    void *all = getenv("MASKC_ALL_CASES"); /* null: fewer of the longest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gallery, all),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests_name("gpu_dense", tests, NULL, NULL);
}
