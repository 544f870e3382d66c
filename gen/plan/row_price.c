/* SPDX-License-Identifier: Apache-2.0 */
/* Prices one row block at a time, in tables that are emptied for the next one. */
#include "gen/plan/row_price.h"
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One direction. */
struct side {
    struct plan_pass pass;
    struct builder builder;
};

struct row_pricer {
    struct plan *plan; /* of the empty mask: shape, prices and abilities of kernels */
    struct side side[2];
};

static struct mask *empty_mask(uint32_t heads, uint32_t n)
{
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++)
        pattern_row(p, i);
    pattern_finish(p);
    struct pattern **given = memory_new(heads, sizeof *given);
    for (uint32_t h = 0; h < heads; h++)
        given[h] = p;
    struct mask *m = mask_new(1, heads, given, "none");
    free(given);
    return m;
}

struct row_pricer *row_pricer_new(uint32_t heads, const struct target *t,
                                  const struct kernel_request *r, const struct machine *machine,
                                  struct error *e)
{
    const struct kernel_config config = {.request = *r};
    struct mask *none = empty_mask(heads, r->length);
    const struct plan_problem problem = {none, t, &config, machine};
    const struct plan_way way = {machine, NULL};
    struct plan *plan = plan_of_way(&problem, &way, e);
    mask_destroy(none);
    if (!plan)
        return NULL;
    struct row_pricer *x = memory_new(1, sizeof *x);
    x->plan = plan;
    for (int k = 0; k < 2; k++)
        builder_begin(&x->side[k].builder, plan, &x->side[k].pass, k == 1);
    return x;
}

void row_pricer_destroy(struct row_pricer *x)
{
    if (!x)
        return;
    for (int k = 0; k < 2; k++) {
        builder_finish(&x->side[k].builder);
        tables_finish(&x->side[k].pass);
    }
    plan_destroy(x->plan);
    free(x);
}

uint32_t row_pricer_block_rows(const struct row_pricer *x)
{
    return x->plan->block_rows;
}

const struct price *row_pricer_prices(const struct row_pricer *x)
{
    return x->plan->price;
}

static void clear(struct side *s)
{
    struct plan_pass *t = &s->pass;
    if (t->n_patterns)
        memset(s->builder.index.slot, 0,
               s->builder.index.capacity * sizeof *s->builder.index.slot);
    t->n_items = t->n_pieces = t->n_ranges = t->n_tiles = t->n_lines = 0;
    t->n_gathers = t->n_columns = t->n_patterns = 0;
    t->uses = t->max_cols = t->partial_slots = 0;
    s->builder.n_global = s->builder.partial_slots = 0;
    s->builder.total = 0;
}

/* Builds the row block and returns its effort. */
static struct effort build(struct row_pricer *x, struct side *s, const struct pattern *p,
                           uint32_t row0)
{
    struct effort sum = {{0}};
    uint64_t first = s->pass.n_items;
    s->builder.n_global = 0;
    builder_row_block(&s->builder, p, row0, false);
    cuts_build(&s->builder, x->plan, first);
    for (uint64_t k = first; k < s->pass.n_items; k++) {
        struct effort e = item_effort(&s->pass, &s->pass.items[k]);
        effort_add(&sum, &e, 1);
    }
    return sum;
}

/* Effort that the entries add to row blocks of keys (dK and dV), without the fixed work of these row blocks, which other
   entries share. */
static struct effort build_transposed(struct row_pricer *x, const struct pattern *p)
{
    struct pattern *t = pattern_transpose(p, NULL);
    struct effort sum = {{0}};
    for (uint32_t row0 = 0; t && row0 < t->n; row0 += x->plan->block_rows) {
        uint32_t end = row0 + x->plan->block_rows < t->n ? row0 + x->plan->block_rows : t->n;
        if (t->row[row0] == t->row[end])
            continue;
        struct effort e = build(x, &x->side[1], t, row0);
        if (e.count[UNIT_ITEM] > 0) {
            e.count[UNIT_ITEM]--;
            e.count[UNIT_ITEM_ROW] -= end - row0;
        }
        effort_add(&sum, &e, 1);
    }
    pattern_destroy(t);
    return sum;
}

/* True if lines are possible, by the conditions of lines_choose(), and the pattern has few enough
   entries for lines to pay. */
static bool may_be_lines(const struct side *s, const struct pattern *p)
{
    const struct builder *b = &s->builder;
    double all = (double)p->n * b->row_block->block_rows;
    return b->row_block->halves && builder_can(b, CAN_PIECES) &&
           s->pass.kernels.diagonal_most && b->price.walk > 0 &&
           (double)p->active * b->price.walk <= b->price.full * all;
}

static bool is_lines(const struct side *s)
{
    return !s->builder.others && !(s->pass.uses & ABI_PACKED_KINDS);
}

double row_pricer_price(struct row_pricer *x, const struct row_query *q)
{
    const struct price *price = x->plan->price;
    bool training = q->training && x->plan->config.request.backward;
    for (int k = 0; k <= training; k++) {
        if (q->lines && !may_be_lines(&x->side[k], q->pattern))
            return INFINITY;
        clear(&x->side[k]);
        x->side[k].builder.lines_only = q->lines;
        x->side[k].builder.others = false;
    }
    struct effort e = build(x, &x->side[0], q->pattern, q->row0);
    double seconds = price_of(&price[PASS_FORWARD], &e);
    if (training) {
        struct effort t = build_transposed(x, q->pattern);
        seconds += price_of(&price[PASS_DQ], &e) + price_of(&price[PASS_DKV], &t);
    }
    if (q->lines && !(is_lines(&x->side[0]) && (!training || is_lines(&x->side[1]))))
        return INFINITY;
    return seconds;
}

double row_pricer_pack(const struct row_pricer *x, bool training)
{
    double sum = 0;
    for (int k = 0; k < PASSES; k++) {
        struct effort e =
            pack_effort(x->plan, packed_mean(x->plan, k == PASS_DKV), (uint32_t)1 << ABI_TILES);
        if (k == PASS_FORWARD || training)
            sum += price_of(&x->plan->price[k], &e);
    }
    return sum;
}

/* Receiver of decoded entries, widened to whole halves of tiles and to gathered columns. */
struct painter {
    const struct row_pricer *x;
    uint64_t *words;
    size_t stride;
};

static void paint(const struct painter *p, uint32_t r, uint32_t begin, uint32_t end)
{
    uint32_t n = p->x->plan->n;
    for (uint32_t j = begin; j < end && j < n; j++)
        p->words[r * p->stride + j / 64] |= (uint64_t)1 << (j % 64);
}

/* Columns of the tile that some row sees, widened to those that kernels compute together. */
static u32 widen(const struct plan_pass *t, const u32 *word, uint32_t rows)
{
    u32 any = word ? 0 : ~(u32)0;
    for (uint32_t r = 0; word && r < rows; r++)
        any |= word[r];
    uint32_t step = t->fragments ? 8 : t->halves ? 16 : 32;
    for (uint32_t c = 0; c < 32; c += step) {
        u32 part = (u32)((((uint64_t)1 << step) - 1) << c);
        any |= any & part ? part : 0;
    }
    return any;
}

static void paint_columns(const struct painter *p, const struct abi_item *item, uint32_t row,
                          uint32_t col0, u32 columns)
{
    for (uint32_t r = 0; r < item->rows; r++)
        for (uint32_t c = 0; item_owns(item, r) && c < 32; c++)
            if (columns >> c & 1)
                paint(p, row + r, col0 + c, col0 + c + 1);
}

static void paint_tiles(const struct painter *p, const struct abi_item *item, uint32_t row,
                        const struct abi_piece *piece)
{
    const struct plan_pass *t = &p->x->side[0].pass;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        paint_columns(p, item, row, t->tiles[k].col0,
                      widen(t, pass_pattern(t, t->tiles[k].pattern), item->rows));
}

static void paint_gathers(const struct painter *p, const struct abi_item *item, uint32_t row,
                          const struct abi_piece *piece)
{
    const struct plan_pass *t = &p->x->side[0].pass;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        for (u32 c = 0; c < t->gathers[k].count; c++)
            for (uint32_t r = 0; r < item->rows; r++) {
                uint32_t j = t->columns[t->gathers[k].first + c];
                if (item_owns(item, r))
                    paint(p, row + r, j, j + 1);
            }
}

void row_pricer_executed(const struct row_pricer *x, uint64_t *words)
{
    const struct plan_pass *t = &x->side[0].pass;
    const struct painter p = {x, words, (x->plan->n + 63) / 64};
    for (uint64_t k = 0; k < t->n_items; k++) {
        const struct abi_item *item = &t->items[k];
        uint32_t row = item->row0 % x->plan->block_rows;
        if (item->rows == 1 || item->step != 1)
            continue;
        for (u32 q = item->piece; q < item->piece + item->pieces; q++) {
            if (t->pieces[q].kind == ABI_TILES)
                paint_tiles(&p, item, row, &t->pieces[q]);
            if (t->pieces[q].kind == ABI_COLUMNS)
                paint_gathers(&p, item, row, &t->pieces[q]);
        }
    }
}
