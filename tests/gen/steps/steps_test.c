/* SPDX-License-Identifier: Apache-2.0 */
/* Are steps the mask, bit for bit, in every kernel shape, judged by plan_check and by a plain decoder? Does plan_check
   refuse damaged ones? Do work lists begin with the longest groups? Seeded by MASKC_TEST_SEED. */
#include "gen/family/cuda_hopper.h"
#include "gen/steps/steps.h"
#include "masks/base/memory.h"
#include "tests/gen/random_mask.h"
#include "tests/gen/steps/h100_plan.h"
#include "tests/gen/steps/plain_steps.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static u32 masks = 48, damaged = 12; /* --few: a quarter */
enum { DAMAGES = 60 };

static struct random start(void)
{
    const char *seed = getenv("MASKC_TEST_SEED");
    struct random r = {seed ? strtoull(seed, NULL, 0) : 20261126};
    print_message("seed %llu\n", (unsigned long long)r.state);
    return r;
}

/* Several lengths beyond those of random_mask(), so that groups have all their row blocks. */
static struct mask *some_mask(struct random *r)
{
    if (random_below(r, 2))
        return random_mask(r);
    struct pattern *given[2];
    const uint32_t n = 200 + random_below(r, 500);
    for (int k = 0; k < 2; k++)
        given[k] = random_pattern(r, n);
    return mask_new(1, 2, given, "random");
}

static struct step_source source_of(struct plan *p, enum machine_pass pass)
{
    return (struct step_source){pass == PASS_DKV ? &p->transposed : &p->forward,
                                p->at,
                                p->n,
                                p->layers,
                                p->heads,
                                p->n_masks};
}

static void force_shape(struct plan *p, enum machine_pass pass, uint32_t which)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    const struct step_source s = source_of(p, pass);
    hopper_shapes(&p->config.request, pass, shape);
    steps_finish(&p->steps[pass]);
    p->config.step_shape[pass] = which;
    steps_build(&s, shape[which], &p->steps[pass]);
}

/* Features that the random plans covered. */
struct seen {
    u32 gathered, in_turn, repeated, global_rows, holes, partial_live;
};

static void note(const struct plan_steps *t, const struct plan_pass *pass, struct seen *seen)
{
    for (u64 k = 0; k < t->n_groups; k++) {
        const struct abi_group *g = &t->groups[k];
        seen->in_turn += g->in_turn;
        seen->holes += group_row_blocks(g) < t->warpgroups;
        seen->global_rows +=
            t->warpgroups > 1 &&
            pass->items[g->item[0] == ABI_NO_ITEM ? g->item[1] : g->item[0]].rows == 1;
    }
    for (u64 k = 0; k < t->n_steps; k++) {
        seen->repeated += t->steps[k].times > 1;
        seen->partial_live += t->steps[k].live[0] != ~0u;
        for (u32 i = 0; i < t->slots; i++)
            seen->gathered += (t->steps[k].column[i] & ABI_GATHERED) != 0;
    }
}

static void check_work(const struct plan *p, const struct plan_steps *t)
{
    for (u32 l = 0; l < p->layers; l++) {
        const u64 first = t->layer_work[l][0], count = t->layer_work[l][1];
        double mean = 0;
        bool giants = true;
        for (u64 k = first; k < first + count; k++)
            mean += t->groups[t->work[k].item].cost / (double)count;
        for (u64 k = first; k < first + count; k++) {
            const bool giant = t->groups[t->work[k].item].cost > 6 * mean;
            assert_true(giants || !giant);
            giants = giant;
        }
    }
}

static void test_random_masks(void **state)
{
    (void)state;
    static const uint32_t dims[] = {16, 64, 72, 128};
    struct random r = start();
    struct seen seen = {0};
    for (u32 k = 0; k < masks; k++) {
        struct mask *m = some_mask(&r);
        struct plan *p = h100_plan(m, dims[k % 4], &family_cuda_hopper);
        for (int pass = 0; pass < PASSES; pass++) {
            const struct step_shape *shape[STEP_SHAPES_MOST];
            const u32 count = hopper_shapes(&p->config.request, (enum machine_pass)pass, shape);
            assert_int_equal(count, dims[k % 4] > 64 ? 1 : pass == PASS_FORWARD ? 3 : 2);
            for (u32 s = 0; s < count; s++) {
                struct error e = {0};
                force_shape(p, (enum machine_pass)pass, s);
                if (plan_check(p, m, &e))
                    fail_msg("mask %u, pass %d, %s: %s", k, pass, shape[s]->name, e.text);
                assert_true(plain_steps_equal(p, (enum machine_pass)pass, m));
                check_work(p, &p->steps[pass]);
                note(&p->steps[pass], source_of(p, (enum machine_pass)pass).pass, &seen);
            }
        }
        plan_destroy(p);
        mask_destroy(m);
    }
    assert_true(seen.gathered && seen.in_turn && seen.repeated && seen.global_rows &&
                seen.holes && seen.partial_live);
}

/* A long global row is cut into parts: groups of their own, beside the row that merges them. */
static void test_parts(void **state)
{
    (void)state;
    struct error e = {0};
    struct pattern *p = pattern_new(4096);
    for (u32 i = 0; i < 4096; i++) {
        pattern_add(p, i, i == 70 ? 3 : i, i == 70 ? 4090 : i + 1);
        pattern_row(p, i);
    }
    p = pattern_finish(p);
    struct mask *m = mask_new(1, 1, &p, "one row");
    struct plan *plan = h100_plan(m, 64, &family_cuda_hopper);
    u32 parts = 0;
    assert_true(plan->config.cut_rows);
    for (u64 k = 0; k < plan->steps[PASS_DQ].n_groups; k++)
        parts += plan->forward.items[plan->steps[PASS_DQ].groups[k].item[0]].split;
    assert_true(parts > 1);
    assert_int_equal(plan_check(plan, m, &e), 0);
    assert_true(plain_steps_equal(plan, PASS_DQ, m));
    plan_destroy(plan);
    mask_destroy(m);
}

/* ---- damage ---- */

struct table {
    void *rows;
    u64 count;
    size_t size;
};

static void damage(struct random *r, struct plan *p, const struct mask *m, u32 *hits)
{
    const enum machine_pass pass = (enum machine_pass)random_below(r, PASSES);
    struct plan_steps *t = &p->steps[pass];
    const struct table table[] = {{t->groups, t->n_groups, sizeof *t->groups},
                                  {t->steps, t->n_steps, sizeof *t->steps},
                                  {t->group_first, p->n_masks + 1, sizeof *t->group_first}};
    const u32 which = random_below(r, 3);
    if (!table[which].count)
        return;
    uint8_t *at = (uint8_t *)table[which].rows +
                  random_below(r, (u32)table[which].count) * table[which].size +
                  random_below(r, (u32)table[which].size);
    const uint8_t bit = (uint8_t)(1u << random_below(r, 8));
    struct error e = {0};
    *at ^= bit;
    if (!plain_steps_equal(p, pass, m)) {
        hits[which]++;
        if (!plan_check(p, m, &e))
            fail_msg("table %u of pass %d: damage that plan_check does not see", which, pass);
        assert_int_equal(e.kind, ERROR_FALSE);
    }
    *at ^= bit;
}

static void test_damage(void **state)
{
    (void)state;
    struct random r = start();
    u32 hits[3] = {0};
    for (u32 k = 0; k < damaged; k++) {
        struct error e = {0};
        struct mask *m = some_mask(&r);
        struct plan *p = h100_plan(m, 64, &family_cuda_hopper);
        for (u32 d = 0; d < DAMAGES; d++)
            damage(&r, p, m, hits);
        assert_int_equal(plan_check(p, m, &e), 0);
        plan_destroy(p);
        mask_destroy(m);
    }
    print_message("%u, %u and %u damages are seen\n", hits[0], hits[1], hits[2]);
    assert_true(hits[0] > damaged && hits[1] > damaged && hits[2] > 0);
}

static void test_damaged_work(void **state)
{
    (void)state;
    struct random r = start();
    struct error e = {0};
    struct pattern *given[2] = {random_pattern(&r, 500), random_pattern(&r, 500)};
    struct mask *m = mask_new(1, 2, given, "random");
    struct plan *p = h100_plan(m, 64, &family_cuda_hopper);
    struct plan_steps *t = &p->steps[PASS_DQ];
    const struct abi_work kept = t->work[1];
    t->work[1] = t->work[0];
    assert_int_not_equal(plan_check(p, m, &e), 0);
    t->work[1] = (struct abi_work){2, 0};
    assert_int_not_equal(plan_check(p, m, &e), 0);
    t->work[1] = kept;
    t->layer_work[0][1]--;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    t->layer_work[0][1]++;
    p->config.step_shape[PASS_DQ] ^= 1;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    p->config.step_shape[PASS_DQ] ^= 1;
    assert_int_equal(plan_check(p, m, &e), 0);
    plan_destroy(p);
    mask_destroy(m);
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        masks /= 4, damaged /= 4;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_masks),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damaged_work),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
