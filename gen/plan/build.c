/* SPDX-License-Identifier: Apache-2.0 */
/* Mask to plan, in each direction: each distinct pattern once, row block by row block (row_blocks.c) or as residue
   classes and the rest (classes.c), whichever is cheaper; heads and layers only share the work lists. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "gen/steps/steps.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_LIMIT = 1 << 30 }; /* entries of a table: indices are 32 bits wide */

int builder_check_capacity(const struct plan_pass *t, struct error *e)
{
    const uint64_t counts[] = {t->n_items, t->n_pieces,  t->n_ranges,  t->n_tiles,
                               t->n_lines, t->n_gathers, t->n_columns, t->n_patterns};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        if (counts[k] > TABLE_LIMIT)
            return error_set(e, ERROR_INPUT,
                             "the plan of this mask needs more than 2^30 table entries; "
                             "use fewer tokens or a mask with more structure");
    return 0;
}

static u32 nanoseconds(double seconds)
{
    double ns = ceil(seconds * 1e9);
    return ns < 1 ? 1 : ns > (double)UINT32_MAX ? UINT32_MAX : (u32)ns;
}

void pass_count(const struct plan *p, struct plan_pass *pass, uint32_t which,
                const struct pattern *pattern)
{
    const struct price *price = &p->price[pass == &p->transposed ? PASS_DKV : PASS_FORWARD];
    struct effort sum = {{0}};
    for (uint64_t k = pass->item_first[which]; k < pass->item_first[which + 1]; k++) {
        struct effort e = item_effort(pass, &pass->items[k]);
        pass->items[k].cost = nanoseconds(price_of(price, &e));
        effort_add(&sum, &e, 1);
    }
    pass->summary[which].effort = sum;
    summary_fill(p, pass, which, pattern);
}

static struct pattern *dense_pattern(uint32_t n, struct request_sides sides)
{
    struct pattern *ret = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        if (i < sides.rows)
            pattern_add(ret, i, 0, sides.columns);
        pattern_row(ret, i);
    }
    return pattern_finish(ret);
}

/* Work of the dense mask, planned. For numbers of queries and keys that differ: few rows or columns are not visited by
   tiles. */
static struct effort plan_dense(const struct plan *p, bool transposed)
{
    struct pattern *all = dense_pattern(p->n, plan_sides(p, transposed));
    struct plan_pass pass = {0};
    struct builder b;
    builder_begin(&b, p, &pass, transposed);
    builder_row_blocks(&b, p, all, false, NULL);
    cuts_build(&b, p, 0);
    struct effort sum = pack_effort(p, plan_sides(p, transposed).columns, pass.uses);
    for (uint64_t k = 0; k < pass.n_items; k++) {
        const struct effort e = item_effort(&pass, &pass.items[k]);
        effort_add(&sum, &e, 1);
    }
    builder_finish(&b);
    tables_finish(&pass);
    pattern_destroy(all);
    return sum;
}

/* Work of every tile, which the builder has added up, with packing. */
static struct effort dense_effort(const struct builder *b, const struct plan *p)
{
    const bool transposed = b->pass == &p->transposed;
    const struct effort packed =
        pack_effort(p, plan_sides(p, transposed).columns, 1u << ABI_TILES);
    struct effort ret = b->dense;
    effort_add(&ret, &packed, 1);
    return p->config.request.keys ? plan_dense(p, transposed) : ret;
}

static int build_pattern(struct builder *b, const struct plan *p, const struct pattern *pattern,
                         uint32_t which, struct error *e)
{
    struct split split;
    memset(&b->alone, 0, sizeof b->alone);
    b->dense = (struct effort){{0}};
    b->pass->item_first[which] = (uint32_t)b->pass->n_items;
    split = (struct split){0};
    if (builder_can(b, CAN_JOIN_NESTED))
        joins_expect(b, p, pattern);
    if (!b->lines_only)
        classes_choose(b, p, pattern, &split);
    b->total = 0;
    b->n_global = b->partial_slots = 0;
    if (split.step)
        builder_note(b, p, pattern);
    int failed = split.step ? classes_build(b, p, &split, e)
                            : builder_row_blocks(b, p, pattern, true, e);
    if (!failed)
        cuts_build(b, p, b->pass->item_first[which]);
    split_finish(&split);
    if (failed)
        return -1;
    b->pass->item_first[which + 1] = (uint32_t)b->pass->n_items;
    tables_splits_first(b->pass, b->pass->item_first[which]);
    b->pass->summary[which].dense = dense_effort(b, p);
    b->pass->alone[which] = b->alone;
    pass_count(p, b->pass, which, pattern);
    return 0;
}

void builder_finish(struct builder *b)
{
    for (uint32_t k = 0; k < 3; k++)
        draft_finish(&b->draft[k]);
    free(b->global_rows);
    free(b->index.slot);
    free(b->place);
    free(b->joined);
    row_block_destroy(b->row_block);
}

/* A launch that merges split items is one more for each pass over these tables. */
static struct planner_options make_options(const struct plan *p, uint32_t passes)
{
    struct planner_options o = {.can = p->can};
    if (p->can & MERGES_LAST)
        o.merge_launch = passes * MERGE_LAUNCH * p->machine->launch;
    return o;
}

/* To be called when all items exist: some kernels need what other items pack. */
static void name_kernels(struct plan_pass *t)
{
    for (uint64_t k = 0; k < t->n_items; k++)
        t->items[k].kernel = item_kernel(&t->kernels, t, &t->items[k]);
}

/* Price for choosing the tables of a direction: the sum over all passes that use them. */
static struct price choice_price(const struct plan *p, const struct machine *prices,
                                 bool transposed)
{
    const struct price_shape shape = family_price_shape(p->target, &p->config, p->n, p->heads);
    const bool both = !transposed && p->config.request.backward; /* forward and dQ */
    struct price ret = family_price(prices, transposed ? PASS_DKV : PASS_FORWARD, shape);
    return both ? price_add(ret, family_price(prices, PASS_DQ, shape)) : ret;
}

void pass_finish(const struct plan *p, struct plan_pass *pass)
{
    name_kernels(pass);
    work_build(p, pass);
}

/* True if lines should compute every row block; always false under other machines' prices (expensive, and `than` has
   already been compared). */
static bool choose_lines(struct builder *b, const struct plan *p, const struct mask *m,
                         const struct plan_way *way)
{
    if (way->prices != p->machine)
        return false;
    return way->than ? lines_beat(b, p, m, way->than) : lines_choose(b, p, m);
}

void builder_begin(struct builder *b, const struct plan *p, struct plan_pass *pass,
                   bool transposed)
{
    const bool both = !transposed && p->config.request.backward; /* forward and dQ */
    const struct request_sides sides = plan_sides(p, transposed);
    *b = (struct builder){.options = make_options(p, both ? 2 : 1),
                          .pass = pass,
                          .report = p->price[transposed ? PASS_DKV : PASS_FORWARD],
                          .price = choice_price(p, p->machine, transposed),
                          .lines_too = p->can & SKIPS_HALVES,
                          .most = INFINITY,
                          .place = memory_new(p->n, sizeof *b->place)};
    if (!transposed && builder_can(b, JOINS_KEYS_ALONE))
        b->options.can &= ~(uint32_t)CAN_JOIN_ROWS;
    b->row_block = row_block_new(sides.rows, sides.columns, p->block_rows);
    pass->block_rows = p->block_rows;
    pass->kernels = family_item_kernels(p->target, &p->config);
    pass->halves = b->row_block->halves = builder_can(b, SKIPS_HALVES);
    pass->fragments = b->row_block->fragments = builder_can(b, SKIPS_FRAGMENTS);
}

/* The pattern as the pass sees it: null with *e set. */
static struct pattern *pattern_of(const struct plan_problem *problem, bool transposed,
                                  uint32_t which, struct error *e)
{
    struct pattern *own = problem->mask->pattern[which];
    if (!transposed)
        return own;
    if (!problem->transposes)
        return pattern_transpose(own, e);
    if (!problem->transposes[which])
        problem->transposes[which] = pattern_transpose(own, e);
    return problem->transposes[which];
}

static int build_pass(struct plan *p, struct plan_pass *pass,
                      const struct plan_problem *problem, const struct plan_way *way,
                      struct error *e)
{
    const bool transposed = pass == &p->transposed;
    const struct mask *m = problem->mask;
    struct builder b;
    int failed = 0;
    builder_begin(&b, p, pass, transposed);
    b.price = choice_price(p, way->prices, transposed);
    pass->item_first = memory_new((size_t)m->n_patterns + 1, sizeof *pass->item_first);
    pass->summary = memory_new(m->n_patterns, sizeof *pass->summary);
    pass->alone = memory_new(m->n_patterns, sizeof *pass->alone);
    pass->prices = way->prices->name;
    b.lines_too |= way->than || way->prices != p->machine;
    pass->lines_only = b.lines_only = choose_lines(&b, p, m, way);
    for (uint32_t k = 0; k < m->n_patterns && !failed; k++) {
        struct pattern *pattern = pattern_of(problem, transposed, k, e);
        failed = pattern ? build_pattern(&b, p, pattern, k, e) : -1;
        if (transposed && !problem->transposes)
            pattern_destroy(pattern);
    }
    builder_finish(&b);
    if (failed)
        return failed;
    pass_finish(p, pass);
    return 0;
}

/* True if the item is a global row or a part of one. */
static bool is_global(const struct plan_pass *t, const struct abi_item *item)
{
    return item->partial_slots || (item->pieces && t->pieces[item->piece].kind == ABI_ROWS);
}

/* Sets the config's features that kernels of the plan need. */
static void note_config(struct plan *p, const struct plan_pass *t)
{
    enum { STEP = 8 }; /* not a text for each mask */
    if (t->gathers_kept > GATHERS_KEPT && t->gathers_kept > p->config.gathers_kept)
        p->config.gathers_kept = (t->gathers_kept + STEP - 1) / STEP * STEP;
    for (uint64_t k = 0; k < t->n_items; k++) {
        p->config.global_rows |= is_global(t, &t->items[k]);
        p->config.cut_rows |= t->items[k].partial_slots > 0;
        p->config.shared_rows |= t->items[k].split && !t->items[k].partial_slots;
    }
}

void plan_note_config(struct plan *p, const struct kernel_config *c)
{
    p->config = *c;
    note_config(p, &p->forward);
    note_config(p, &p->transposed);
}

struct plan *plan_empty(const struct plan_problem *problem, struct error *e)
{
    const struct mask *m = problem->mask;
    const struct target *t = problem->target;
    const struct kernel_config *c = problem->config;
    const struct machine *machine = problem->machine;
    if (machine->kind != t->kind) {
        error_set(e, ERROR_INPUT, "machine %s does not run code for target %s", machine->name,
                  t->name);
        return NULL;
    }
    struct plan *p = memory_new(1, sizeof *p);
    *p = (struct plan){
        .n = m->n,
        .heads = m->heads,
        .layers = m->layers,
        .n_masks = m->n_patterns,
        .at = memory_copy(m->at, (size_t)m->layers * m->heads * sizeof *m->at),
        .block_rows = family_shape(t, c).block_rows,
        .can = family_can(t, c) & ~problem->without,
        .target = t,
        .machine = machine,
        .config = *c,
    };
    const struct price_shape shape = family_price_shape(t, &p->config, p->n, p->heads);
    for (int k = 0; k < PASSES; k++) {
        p->price[k] = family_price(machine, (enum machine_pass)k, shape);
        p->in_flight[k] = family_in_flight(machine, (enum machine_pass)k, shape);
    }
    count_packed(p, m);
    return p;
}

struct plan *plan_of_way(const struct plan_problem *problem, const struct plan_way *way,
                         struct error *e)
{
    struct plan *p = plan_empty(problem, e);
    if (!p)
        return NULL;
    int failed = build_pass(p, &p->forward, problem, way, e);
    if (!failed && p->config.request.backward)
        failed = build_pass(p, &p->transposed, problem, way, e);
    plan_note_config(p, problem->config);
    if (!failed)
        return p;
    plan_destroy(p);
    return NULL;
}

void plan_destroy(struct plan *p)
{
    if (!p)
        return;
    tables_finish(&p->forward);
    tables_finish(&p->transposed);
    for (int k = 0; k < PASSES; k++)
        steps_finish(&p->steps[k]);
    free(p->at);
    free(p->packed);
    free(p);
}
