/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose row blocks come from several plans of the same problem: of each row block the visit that is cheapest,
   its single rows included. A pattern with items over more than one row block is taken as a whole. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* The items of one pattern in one plan's tables, by row block. */
struct source {
    const struct plan_pass *pass;
    uint32_t *first; /* [row blocks + 1]: where a row block's begin in `item` */
    uint32_t *item;  /* [items of the pattern]: their places in the pass's table */
    double *seconds; /* [row blocks] of all passes over these tables */
    double total;    /* of the pattern */
    bool separable;  /* row blocks may be taken one by one */
};

/* Input and result of mixing: one direction of several plans. */
struct mixing {
    const struct plan *plan; /* the first: prices */
    bool transposed;
    uint32_t row_blocks, count; /* of sources */
    struct source *source;
    struct plan_pass *ret;
    struct pattern_index index;
};

static uint32_t row_block_of(const struct mixing *x, const struct abi_item *item)
{
    return item->row0 / x->plan->block_rows;
}

/* Seconds of an item, in all passes over its tables. */
static double item_seconds(const struct mixing *x, const struct plan_pass *t,
                           const struct abi_item *item)
{
    struct effort e = item_effort(t, item);
    if (x->transposed)
        return price_of(&x->plan->price[PASS_DKV], &e);
    return price_of(&x->plan->price[PASS_FORWARD], &e) +
           (x->plan->config.request.backward ? price_of(&x->plan->price[PASS_DQ], &e) : 0);
}

static bool is_separable(const struct abi_item *item)
{
    return item->step == 1 && !item->split && !item->partial_slots && !item_merges(item);
}

static void count_items(const struct mixing *x, uint32_t which, struct source *s)
{
    const struct plan_pass *t = s->pass;
    s->separable = true;
    for (uint32_t k = t->item_first[which]; k < t->item_first[which + 1]; k++) {
        const uint32_t at = row_block_of(x, &t->items[k]);
        const double seconds = item_seconds(x, t, &t->items[k]);
        s->first[at + 1]++;
        s->seconds[at] += seconds;
        s->total += seconds;
        s->separable = s->separable && is_separable(&t->items[k]);
    }
    for (uint32_t b = 0; b < x->row_blocks; b++)
        s->first[b + 1] += s->first[b];
}

static void open_source(const struct mixing *x, const struct plan_pass *t, uint32_t which,
                        struct source *s)
{
    const uint32_t begin = t->item_first[which], end = t->item_first[which + 1];
    *s = (struct source){.pass = t,
                         .first = memory_new(x->row_blocks + 1, sizeof *s->first),
                         .item = memory_new(end - begin + 1, sizeof *s->item),
                         .seconds = memory_new(x->row_blocks, sizeof *s->seconds)};
    count_items(x, which, s);
    uint32_t *next = memory_copy(s->first, (x->row_blocks + 1) * sizeof *next);
    for (uint32_t k = begin; k < end; k++)
        s->item[next[row_block_of(x, &t->items[k])]++] = k;
    free(next);
}

static void close_source(struct source *s)
{
    free(s->first);
    free(s->item);
    free(s->seconds);
}

/* The source whose row block b is cheapest; whole patterns stand apart. The first wins ties. */
static const struct source *cheapest_block(const struct mixing *x, uint32_t b)
{
    const struct source *best = NULL;
    for (uint32_t k = 0; k < x->count; k++) {
        const struct source *s = &x->source[k];
        if (s->separable && (!best || s->seconds[b] < best->seconds[b]))
            best = s;
    }
    return best;
}

/* The cheapest source that is taken whole or not at all, or null. A source alone keeps the order of its items. */
static const struct source *cheapest_whole(const struct mixing *x)
{
    const struct source *best = NULL;
    for (uint32_t k = 0; k < x->count; k++)
        if ((!x->source[k].separable || x->count == 1) &&
            (!best || x->source[k].total < best->total))
            best = &x->source[k];
    return best;
}

static double mixed_seconds(const struct mixing *x)
{
    double sum = 0;
    for (uint32_t b = 0; b < x->row_blocks; b++) {
        const struct source *s = cheapest_block(x, b);
        sum += s ? s->seconds[b] : INFINITY;
    }
    return sum;
}

static void copy_item(struct mixing *x, const struct source *s, uint32_t item)
{
    if (s->pass->gathers_kept > x->ret->gathers_kept)
        x->ret->gathers_kept = s->pass->gathers_kept;
    tables_copy_item(x->ret, &x->index, s->pass, &s->pass->items[item]);
}

static void mix_pattern(struct mixing *x, uint32_t which)
{
    const struct source *whole = cheapest_whole(x);
    if (whole && whole->total <= mixed_seconds(x)) {
        for (uint32_t k = whole->pass->item_first[which];
             k < whole->pass->item_first[which + 1]; k++)
            copy_item(x, whole, k);
        return;
    }
    for (uint32_t b = 0; b < x->row_blocks; b++) {
        const struct source *s = cheapest_block(x, b);
        for (uint32_t k = s->first[b]; k < s->first[b + 1]; k++)
            copy_item(x, s, s->item[k]);
    }
}

/* Tables with what all have in common, and no item. */
static void begin_tables(const struct plan *p, const struct plan_pass *like,
                         struct plan_pass *ret)
{
    *ret = (struct plan_pass){.block_rows = like->block_rows,
                              .fragments = like->fragments,
                              .halves = like->halves,
                              .kernels = like->kernels,
                              .prices = PLAN_MIXED};
    ret->item_first = memory_new((size_t)p->n_masks + 1, sizeof *ret->item_first);
    ret->summary = memory_new(p->n_masks, sizeof *ret->summary);
    ret->alone = memory_copy(like->alone, p->n_masks * sizeof *ret->alone);
    for (uint32_t k = 0; k < p->n_masks; k++)
        ret->summary[k].dense = like->summary[k].dense;
}

static int count_pattern(struct mixing *x, uint32_t which, const struct pattern *pattern,
                         struct error *e)
{
    struct pattern *transpose = x->transposed ? pattern_transpose(pattern, e) : NULL;
    if (x->transposed && !transpose)
        return -1;
    pass_count(x->plan, x->ret, which, transpose ? transpose : pattern);
    pattern_destroy(transpose);
    return 0;
}

static int mix_pass(const struct plan_problem *problem, struct plan *const *plan,
                    uint32_t count, bool transposed, struct plan *ret, struct error *e)
{
    struct mixing x = {.plan = ret, .transposed = transposed, .count = count};
    int failed = 0;
    x.row_blocks = (ret->n + ret->block_rows - 1) / ret->block_rows;
    x.source = memory_new(count, sizeof *x.source);
    x.ret = transposed ? &ret->transposed : &ret->forward;
    begin_tables(ret, transposed ? &plan[0]->transposed : &plan[0]->forward, x.ret);
    for (uint32_t which = 0; which < ret->n_masks && !failed; which++) {
        for (uint32_t k = 0; k < count; k++)
            open_source(&x, transposed ? &plan[k]->transposed : &plan[k]->forward, which,
                        &x.source[k]);
        mix_pattern(&x, which);
        for (uint32_t k = 0; k < count; k++)
            close_source(&x.source[k]);
        x.ret->item_first[which + 1] = (uint32_t)x.ret->n_items;
        failed = builder_check_capacity(x.ret, e) ||
                 count_pattern(&x, which, problem->mask->pattern[which], e);
    }
    if (!failed)
        pass_finish(ret, x.ret);
    free(x.source);
    free(x.index.slot);
    return failed;
}

struct plan *mix_row_blocks(const struct plan_problem *problem, struct plan *const *plan,
                            uint32_t count, struct error *e)
{
    struct plan *ret = memory_new(1, sizeof *ret);
    *ret = *plan[0];
    ret->at = memory_copy(ret->at, (size_t)ret->layers * ret->heads * sizeof *ret->at);
    ret->packed = memory_copy(ret->packed, 2 * (size_t)ret->n_masks * sizeof *ret->packed);
    ret->forward = ret->transposed = (struct plan_pass){0};
    int failed = mix_pass(problem, plan, count, false, ret, e);
    if (!failed && ret->config.request.backward)
        failed = mix_pass(problem, plan, count, true, ret, e);
    if (!failed)
        return ret;
    plan_destroy(ret);
    return NULL;
}
