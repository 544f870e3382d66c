/* SPDX-License-Identifier: Apache-2.0 */
/* No plan for a GPU is predicted to take longer than every tile of its mask, in a launch that fills the GPU: the gallery, on each
   pair of GPU rows of the machine table. */
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char *const gallery[] = {
    "bigbird",       "blockbert-2",    "blockbert-3", "causal", "dense",
    "longformer",    "longformer-cls", "logsparse",   "star",   "fairseq-fixed",
    "dam-s-example", "fixed",          "strided", /* the last four are planned slowly */
};
enum { MASKS = sizeof gallery / sizeof *gallery, SLOW = 4, LONGEST = 8192, HEADS = 12 };

static const uint32_t lengths[] = {128, 512, 2048, LONGEST};
static const char *const gpus[] = {"sm_80",
                                   "sm_90a"}; /* rows a100 and h100, and theirs with -mma */

/* Sums in another order differ by so much; steps come in whole numbers, of which the dense time takes the mean. */
#define ROUNDING 1e-9
#define STEPS    0.01

struct case_of {
    const char *mask, *gpu;
    uint32_t n;
    enum abi_dtype dtype;
};

static void check_pass(const struct case_of *c, const struct plan *p, bool backward)
{
    const uint32_t batch = plan_full_batch(p);
    const double ours = plan_predict(p, backward, 0, batch, 0),
                 dense = predict_every_tile(p, backward, 0, batch, 0);
    if (ours > dense * (1 + (plan_reads_steps(p) ? STEPS : ROUNDING)))
        fail_msg("%s, n = %u, %s, %s, %s: %.1f us predicted, every tile %.1f", c->mask, c->n,
                 c->gpu, dtype_name(c->dtype), backward ? "backward" : "forward", 1e6 * ours,
                 1e6 * dense);
}

static void check_case(const struct case_of *c)
{
    struct error e = {0};
    const struct mask_request request = {
        .name = c->mask, .n = c->n, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    const struct kernel_request r = {
        .dtype = c->dtype, .head_dim = 64, .length = c->n, .backward = true};
    const struct target *t = target_find(c->gpu, &e);
    struct mask *m = mask_load(&request, NULL, &e);
    struct plan *p =
        m ? plan_build(m, t, &r, machine_find(family_machine(t, &r), &e), NULL, &e) : NULL;
    mask_destroy(m);
    if (!p)
        fail_msg("%s: %s", c->mask, e.text);
    check_pass(c, p, false);
    check_pass(c, p, true);
    plan_destroy(p);
}

static void test_gallery(void **state)
{
    static const enum abi_dtype dtypes[] = {ABI_F32, ABI_BF16};
    const bool all = *state;
    for (size_t gpu = 0; gpu < sizeof gpus / sizeof *gpus; gpu++)
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
            for (size_t k = 0; k < MASKS; k++)
                for (int d = 0; d < 2; d++)
                    if (all || lengths[n] < LONGEST || k < MASKS - SLOW)
                        check_case(
                            &(struct case_of){gallery[k], gpus[gpu], lengths[n], dtypes[d]});
}

/* Every GPU row of the table is some target's here. */
static void test_rows(void **state)
{
    (void)state;
    struct error e = {0};
    for (const struct machine *m = machines; m->name; m++) {
        bool found = m->kind != TARGET_CUDA;
        for (size_t k = 0; k < sizeof gpus / sizeof *gpus; k++) {
            const struct target *t = target_find(gpus[k], &e);
            found |= !strcmp(t->machine, m->name) || !strcmp(t->matrix_machine, m->name);
        }
        if (!found)
            fail_msg("no case for machine %s", m->name);
    }
}

int main(void)
{
    void *all = getenv("MASKC_ALL_CASES"); /* null: fewer at n = 8192 */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gallery, all),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests_name("gpu_dense", tests, NULL, NULL);
}
