/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several whole plans is taken: row blocks of 64 rows, or of 128 where kernels can do these and they are
   less work, since what a block brings to its shared memory then serves twice as many rows. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include <string.h>

/* Work of all heads and layers of a pass, and the entries that are visited. */
struct amount {
    double seconds, executed;
};

static struct amount add_up(const struct plan *p, const struct plan_pass *t,
                            enum machine_pass pass)
{
    struct amount sum = {0, 0};
    double workers = predict_workers(p, 0);
    for (uint64_t k = 0; k < (uint64_t)p->layers * p->heads; k++) {
        const struct plan_summary *s = &t->summary[p->at[k]];
        sum.seconds += price_of(&p->price[pass], &s->effort) / workers;
        sum.executed += s->executed_fraction;
    }
    return sum;
}

/* Is tall worth having in the place of p: less work, none visited in vain, and not later? */
static bool is_better(const struct plan *tall, const struct plan *p)
{
    double work = 0, before = 0;
    for (int k = 0; k < PASSES && (k == PASS_FORWARD || p->config.request.backward); k++) {
        const bool transposed = k == PASS_DKV;
        struct amount a =
            add_up(tall, transposed ? &tall->transposed : &tall->forward, (enum machine_pass)k);
        struct amount b =
            add_up(p, transposed ? &p->transposed : &p->forward, (enum machine_pass)k);
        if (a.executed > b.executed)
            return false;
        work += a.seconds;
        before += b.seconds;
    }
    for (int backward = 0; backward <= p->config.request.backward; backward++)
        if (plan_predict(tall, backward, 0, 1, 0) > plan_predict(p, backward, 0, 1, 0))
            return false;
    return work < before * (1 - LEAST_GAIN);
}

struct plan *plan_build(const struct mask *m, const struct target *t,
                        const struct kernel_request *r, const struct machine *machine,
                        struct error *e)
{
    const struct kernel_config low = {.request = *r}, high = {.request = *r, .tall = true};
    struct plan *p = plan_make(m, t, &low, machine, e);
    if (!p || !(p->can & CAN_TALL))
        return p;
    struct plan *tall = plan_make(m, t, &high, machine, e);
    bool better = tall && is_better(tall, p);
    plan_destroy(better ? p : tall);
    return better ? tall : p;
}

bool plan_suits(const struct plan *p, const struct target *t, const struct kernel_request *r)
{
    const uint32_t asked = CAN_PIECES | CAN_TALL;
    const struct kernel_config low = {.request = *r};
    const struct item_kernels ours = family_item_kernels(p->target, r),
                              asked_for = family_item_kernels(t, r);
    return !memcmp(&ours, &asked_for, sizeof ours) &&
           family_shape(p->target, &low).block_rows == family_shape(t, &low).block_rows &&
           (family_can(p->target, r) & asked) == (family_can(t, r) & asked) &&
           p->target->kind == t->kind;
}
