/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses among whole plans. First between row blocks of 64 rows and of 128, if kernels can compute these: the columns
   that a block copies to its shared memory then serve twice as many rows. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
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

/* True if the tall plan does less work, visits no extra entries and is not predicted to be slower. */
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

struct plan *plan_of_heights(const struct plan_problem *problem, struct error *e)
{
    struct kernel_config high = *problem->config;
    struct plan_problem other = *problem;
    high.tall = true;
    other.config = &high;
    const struct plan_way way = {problem->machine, NULL};
    struct plan *p = plan_of_way(problem, &way, e);
    if (!p || !(p->can & CAN_TALL))
        return p;
    struct plan *tall = plan_of_way(&other, &way, e);
    const bool better = tall && is_better(tall, p);
    plan_destroy(better ? p : tall);
    return better ? tall : p;
}

struct plan *plan_build(const struct mask *m, const struct target *t,
                        const struct kernel_request *r, const struct machine *machine,
                        const struct plan_options *o, struct error *e)
{
    static const struct plan_options cheapest;
    struct kernel_config config = {.request = *r};
    o = o ? o : &cheapest;
    const struct plan_problem problem = {m, t, &config, machine, .by_rates = o->by_rates};
    struct plan *p = families_choose(&problem, o->family, &config, e);
    if (p && !o->plain)
        p = portfolio_build(&problem, p, o);
#ifndef NDEBUG
    if (p && plan_check(p, m, e)) {
        plan_destroy(p);
        p = NULL;
    }
#endif
    return p;
}

uint32_t plan_choices(const struct mask *m, const struct target *t,
                      const struct kernel_request *r, const struct machine *machine,
                      const struct kernel_family *family, struct plan_choice *ret,
                      uint32_t most, struct error *e)
{
    struct kernel_config config = {.request = *r};
    const struct plan_problem problem = {m, t, &config, machine};
    struct plan *p = families_choose(&problem, family, &config, e);
    return p ? portfolio_choices(&problem, p, ret, most) : 0;
}

/* Describes the tables except their items, from the builder's data. Kernels keep as many gathers as the item with the
   most of them has. */
static void describe_tables(const struct plan *p, const struct plan_pass *from,
                            struct plan_pass *ret)
{
    *ret = *from;
    ret->block_rows = p->block_rows;
    ret->kernels = family_item_kernels(p->target, &p->config);
    ret->halves = p->can & SKIPS_HALVES;
    ret->fragments = p->can & SKIPS_FRAGMENTS;
    ret->summary = memory_new(p->n_masks, sizeof *ret->summary);
    ret->alone = memory_new(p->n_masks, sizeof *ret->alone);
    for (uint64_t k = 0; k < ret->n_pieces && p->can & CAN_KEEP_GATHERS; k++)
        if (ret->pieces[k].kind == ABI_COLUMNS && ret->pieces[k].count > ret->gathers_kept)
            ret->gathers_kept = ret->pieces[k].count;
}

struct plan *plan_of_tables(const struct mask *m, const struct target *t,
                            const struct kernel_config *c, const struct machine *machine,
                            const struct plan_pass *forward, const struct plan_pass *transposed,
                            struct error *e)
{
    struct kernel_config config = {
        .request = c->request, .forward = c->forward, .backward = c->backward};
    const struct plan_problem problem = {m, t, &config, machine};
    config.tall = family_shape(t, &config).block_rows < forward->block_rows;
    struct plan *shell = plan_empty(&problem, e), *ret = NULL;
    if (!shell)
        return NULL;
    describe_tables(shell, forward, &shell->forward);
    describe_tables(shell, transposed, &shell->transposed);
    ret = mix_row_blocks(&problem, &shell, 1, e);
    if (ret) {
        plan_note_config(ret, &config);
        plan_add_steps(ret);
    }
    struct plan_pass *const pass[] = {&shell->forward, &shell->transposed};
    for (int k = 0; k < 2; k++) {
        free(pass[k]->summary);
        free(pass[k]->alone);
        *pass[k] = (struct plan_pass){0}; /* the tables are the caller's */
    }
    plan_destroy(shell);
    return ret;
}

/* True if both targets have the same plan for the config. */
static bool suit(const struct target *a, const struct target *b, const struct kernel_config *c)
{
    const uint32_t asked = CAN_PIECES | CAN_TALL;
    const struct item_kernels x = family_item_kernels(a, c), y = family_item_kernels(b, c);
    return !memcmp(&x, &y, sizeof x) &&
           family_shape(a, c).block_rows == family_shape(b, c).block_rows &&
           (family_can(a, c) & asked) == (family_can(b, c) & asked);
}

bool plan_suits(const struct plan *p, const struct target *t, const struct kernel_request *r,
                const struct kernel_family *asked)
{
    struct kernel_config ours[PAIRS_MOST], theirs[PAIRS_MOST];
    const struct kernel_config config = {.request = *r};
    const struct plan_problem here = {.target = p->target, .config = &config},
                              there = {.target = t, .config = &config};
    const uint32_t count = families_list(&here, asked, ours);
    if (p->target->kind != t->kind || count != families_list(&there, asked, theirs))
        return false;
    for (uint32_t k = 0; k < count; k++)
        if (ours[k].forward != theirs[k].forward || ours[k].backward != theirs[k].backward ||
            !suit(p->target, t, &ours[k]))
            return false;
    return true;
}
