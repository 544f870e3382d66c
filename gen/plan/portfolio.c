/* SPDX-License-Identifier: Apache-2.0 */
/* A portfolio of plans. The builder is greedy: row block by row block, lowering by lowering. Under the prices of another
   machine it makes other choices, and sometimes these are cheaper here as well. So the problem is also planned under
   other rows of the machine table. All plans are priced by the problem's own row, because some of them cost far more.
   The best tables of each direction are chosen separately, or row blocks from several of them (mix.c). */
#include "gen/cost/margins.h"
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLANS_MOST = 12,      /* rows of a kind, and the mixed plan */
    TABLES_MOST = 1 << 24 /* entries: above this, plans side by side would fill the memory */
};

/* All plans of a problem. The first is that of its own prices. */
struct portfolio {
    const struct plan_problem *problem;
    struct plan *plan[PLANS_MOST];
    uint32_t count;
};

static struct plan_pass *pass_at(struct plan *p, bool transposed)
{
    return transposed ? &p->transposed : &p->forward;
}

static uint64_t count_entries(const struct plan_pass *t)
{
    return t->n_items + t->n_pieces + t->n_ranges + t->n_tiles + t->n_lines + t->n_gathers +
           t->n_columns + t->n_patterns * t->block_rows;
}

/* True if plans under other machines' prices are tried: not on GPUs, most of whose prices are estimates. */
static bool worth_trying(const struct plan *own)
{
    return own->can & CAN_PIECES && own->target->kind != TARGET_CUDA &&
           count_entries(&own->forward) + count_entries(&own->transposed) <= TABLES_MOST;
}

static void add_plan(struct portfolio *f, struct plan *p)
{
    f->plan[f->count] = p; /* null: the problem cannot be planned under these prices */
    f->count += p != NULL;
}

/* True if kernels pack nothing: lines and global rows, which cannot be compared row block by row block, are cheapest.
   Little is left to choose then, and no other plan is tried. */
static bool packs_nothing(const struct plan *p)
{
    return !((p->forward.uses | p->transposed.uses) & ABI_PACKED_KINDS);
}

/* True if both rows have rates of 0 for the same work: work that the kernels cannot do. */
static bool lacks_the_same(const struct machine *a, const struct machine *b)
{
    static const enum rate lacking[] = {RATE_LINE_ENTRY, RATE_GATHER};
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t k = 0; k < sizeof lacking / sizeof *lacking; k++)
            if ((a->rate[pass][lacking[k]] > 0) != (b->rate[pass][lacking[k]] > 0))
                return false;
    return true;
}

/* Rows whose prices may choose: of the same kind, for kernels that have the same. */
static bool may_choose(const struct machine *row, const struct machine *own)
{
    return row != own && row->kind == own->kind && lacks_the_same(row, own);
}

/* The plans, of which `own` is the first. */
static void open_portfolio(struct portfolio *f, const struct plan_problem *problem,
                           struct plan *own)
{
    const struct plan_way lines = {problem->machine, own};
    *f = (struct portfolio){problem, {own}, 1};
    if (!worth_trying(own) || packs_nothing(own))
        return;
    if (own->forward.kernels.diagonal_most && !own->forward.halves)
        add_plan(f, plan_of_way(problem, &lines, NULL));
    if (packs_nothing(f->plan[f->count - 1]))
        return;
    for (const struct machine *row = machines; row->name; row++)
        if (may_choose(row, problem->machine) && f->count + 1 < PLANS_MOST)
            add_plan(f, plan_of_way(problem, &(struct plan_way){row, NULL}, NULL));
    add_plan(f, mix_row_blocks(problem, f->plan, f->count, NULL));
}

static void close_portfolio(struct portfolio *f, const struct plan *except)
{
    for (uint32_t k = 0; k < f->count; k++)
        if (f->plan[k] != except)
            plan_destroy(f->plan[k]);
}

/* Passes over the tables of a direction, `first` to `last`. */
struct span {
    int first, last;
};

static struct span passes_of(const struct plan *p, bool transposed)
{
    if (transposed)
        return (struct span){PASS_DKV, PASS_DKV};
    return (struct span){PASS_FORWARD, p->config.request.backward ? PASS_DQ : PASS_FORWARD};
}

/* Seconds of these passes over all layers. */
static double sum_seconds(const struct plan *p, bool transposed)
{
    const struct span s = passes_of(p, transposed);
    double sum = 0;
    for (uint32_t layer = 0; layer < p->layers; layer++)
        for (int k = s.first; k <= s.last; k++)
            sum += predict_pass(p, (enum machine_pass)k, layer, 1, 1);
    return sum;
}

/* True if no pass over any layer is slower than with `own`, for any usual number of threads. */
static bool never_slower(const struct plan *p, const struct plan *own, bool transposed)
{
    static const uint32_t threads[] = {1, 2, 4, 8};
    const struct span s = passes_of(p, transposed);
    for (uint32_t layer = 0; layer < p->layers; layer++)
        for (int k = s.first; k <= s.last; k++)
            for (uint32_t t = 0; t < sizeof threads / sizeof *threads; t++)
                if (predict_pass(p, (enum machine_pass)k, layer, 1, threads[t]) >
                    predict_pass(own, (enum machine_pass)k, layer, 1, threads[t]))
                    return false;
    return true;
}

/* The row whose prices chose; for a machine outside the table, such as a calibrated one, "the table" is the row of its
   name. The machine's own prices choose twice. */
static const char *name_of(const struct portfolio *f, uint32_t k, bool transposed)
{
    const struct plan_pass *t = pass_at(f->plan[k], transposed);
    if (k && t->prices == f->problem->machine->name)
        return PLAN_LINES;
    return k && !strcmp(t->prices, f->problem->machine->name) ? "the table" : t->prices;
}

/* Ranges of single rows in a direction, beyond the first of each, over all layers. */
static double row_ranges(struct plan *p, bool transposed)
{
    const struct plan_pass *t = pass_at(p, transposed);
    double sum = 0;
    for (uint64_t k = 0; k < (uint64_t)p->layers * p->heads; k++)
        sum += t->summary[p->at[k]].effort.count[UNIT_ROW_RANGE];
    return sum;
}

/* Factor of the seconds of plan k. More scattered rows than the first plan has are weighed as in builder_row_block. */
static double weight_of(const struct portfolio *f, uint32_t k, bool transposed)
{
    return row_ranges(f->plan[k], transposed) > row_ranges(f->plan[0], transposed)
               ? SCATTERED_ROW_WEIGHT
               : 1;
}

/* The plan whose tables of a direction are cheapest; `wanted`, where there are such. */
static uint32_t choose(const struct portfolio *f, const char *wanted, bool transposed)
{
    double best = sum_seconds(f->plan[0], transposed);
    uint32_t ret = 0;
    for (uint32_t k = 0; k < f->count; k++)
        if (wanted && !strcmp(name_of(f, k, transposed), wanted))
            return k;
    for (uint32_t k = 1; k < f->count; k++) {
        double seconds = sum_seconds(f->plan[k], transposed) * weight_of(f, k, transposed);
        if (seconds >= best * (1 - LEAST_GAIN) ||
            !never_slower(f->plan[k], f->plan[0], transposed))
            continue;
        best = seconds;
        ret = k;
    }
    return ret;
}

/* "588 us" */
static void add_time(double seconds, struct text *out)
{
    text_add(out, seconds < 1e-3 ? "%.4g us" : "%.4g ms",
             seconds < 1e-3 ? 1e6 * seconds : 1e3 * seconds);
}

/* Says who chose: a head's time with these tables, against that with those of its own prices. */
static void tell_reason(const struct plan_summary *own, const char *name,
                        struct plan_summary *ret)
{
    struct text out = {0};
    if (ret->predicted == own->predicted)
        return;
    text_add(&out, "%s; ", ret->reason);
    if (ret->predicted > own->predicted) {
        text_add(&out, "measured faster with prices of %s than predicted", name);
        snprintf(ret->reason, sizeof ret->reason, "%s", text_get(&out));
        text_finish(&out);
        return;
    }
    if (!strcmp(name, PLAN_MIXED))
        text_add(&out, "row blocks planned with several machines' prices are cheaper here: ");
    else if (!strcmp(name, PLAN_LINES))
        text_add(&out, "whole row blocks computed as lines are cheaper here: ");
    else
        text_add(&out, "the plan made with the prices of %s is cheaper here: ", name);
    add_time(ret->predicted, &out);
    text_add(&out, " against ");
    add_time(own->predicted, &out);
    snprintf(ret->reason, sizeof ret->reason, "%s", text_get(&out));
    text_finish(&out);
}

/* Gives the first plan the tables of plan k, and that the first one's. */
static void take_tables(struct portfolio *f, uint32_t k, bool transposed)
{
    struct plan_pass *own = pass_at(f->plan[0], transposed),
                     *other = pass_at(f->plan[k], transposed), swap = *own;
    if (!k)
        return;
    for (uint32_t which = 0; which < f->plan[0]->n_masks; which++)
        tell_reason(&own->summary[which], name_of(f, k, transposed), &other->summary[which]);
    other->prices = name_of(f, k, transposed);
    *own = *other;
    *other = swap;
}

struct plan *portfolio_build(const struct plan_problem *problem, struct plan *own,
                             const struct plan_options *o)
{
    struct portfolio f;
    open_portfolio(&f, problem, own);
    const uint32_t forward = choose(&f, o->forward, false);
    const uint32_t transposed =
        own->config.request.backward ? choose(&f, o->transposed, true) : 0;
    take_tables(&f, forward, false);
    take_tables(&f, transposed, true);
    plan_note_config(own, problem->config);
    close_portfolio(&f, own);
    return own;
}

/* ---- for those who measure ---- */

static bool same_tables(const struct plan_pass *a, const struct plan_pass *b)
{
    return a->n_items == b->n_items && a->n_pieces == b->n_pieces &&
           a->n_ranges == b->n_ranges && a->n_tiles == b->n_tiles && a->n_lines == b->n_lines &&
           a->n_gathers == b->n_gathers && a->n_columns == b->n_columns &&
           !memcmp(a->items, b->items, a->n_items * sizeof *a->items);
}

/* True if no earlier plan has the same tables. */
static bool is_new(const struct portfolio *f, uint32_t k, bool transposed)
{
    for (uint32_t before = 0; before < k; before++)
        if (same_tables(pass_at(f->plan[before], transposed), pass_at(f->plan[k], transposed)))
            return false;
    return true;
}

static int cheapest_first(const void *a, const void *b)
{
    double x = ((const struct plan_choice *)a)->seconds,
           y = ((const struct plan_choice *)b)->seconds;
    return (x > y) - (x < y);
}

/* All pairs of tables that differ, in ret[PLANS_MOST * PLANS_MOST]. */
static uint32_t list_pairs(const struct portfolio *f, struct plan_choice *ret)
{
    const bool backward = f->plan[0]->config.request.backward;
    uint32_t count = 0;
    for (uint32_t k = 0; k < f->count; k++)
        for (uint32_t t = 0; is_new(f, k, false) && t < (backward ? f->count : 1); t++) {
            if (backward && !is_new(f, t, true))
                continue;
            struct plan_choice *c = &ret[count++];
            c->seconds =
                sum_seconds(f->plan[k], false) + (backward ? sum_seconds(f->plan[t], true) : 0);
            snprintf(c->forward, sizeof c->forward, "%s", name_of(f, k, false));
            snprintf(c->transposed, sizeof c->transposed, "%s",
                     backward ? name_of(f, t, true) : "");
        }
    qsort(ret, count, sizeof *ret, cheapest_first);
    return count;
}

uint32_t portfolio_choices(const struct plan_problem *problem, struct plan *own,
                           struct plan_choice *ret, uint32_t most)
{
    struct plan_choice all[PLANS_MOST * PLANS_MOST];
    struct portfolio f;
    open_portfolio(&f, problem, own);
    uint32_t count = list_pairs(&f, all);
    count = count < most ? count : most;
    memcpy(ret, all, count * sizeof *ret);
    close_portfolio(&f, NULL);
    return count;
}
