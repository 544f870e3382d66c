/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern row block by row block: the cheapest draft of the row block as a whole, then the same without the rows that
   stand out, as long as that is cheaper; the winner goes to the tables. */
#include "gen/plan/builder.h"
#include <string.h>

static void swap_drafts(struct draft *a, struct draft *b)
{
    struct draft c = *a;
    *a = *b;
    *b = c;
}

/* The loaded row block as an item. Where classes are split its rows are shared with their items, and the kernel for
   diagonals does not take it. */
static struct abi_item item_of(const struct builder *b)
{
    return (struct abi_item){
        .rows = b->row_block->rows, .step = 1, .split = b->split_classes != NULL};
}

static uint32_t bit_of(enum abi_piece_kind kind)
{
    uint32_t k = 0;
    while (lowerings[k]->kind != kind || !lowerings[k]->build)
        k++;
    return (uint32_t)1 << k;
}

/* Prices with lines disabled. */
static struct price price_without_lines(const struct builder *b)
{
    struct price p = b->price;
    p.walk = 0;
    return p;
}

/* Builds a draft with the lowerings of `set` (bits by table row); tiles always close it. */
static void build_draft(struct builder *b, uint32_t set, struct draft *d)
{
    const struct price p = set & bit_of(ABI_DIAGONAL) ? b->price : price_without_lines(b);
    const struct abi_item item = item_of(b);
    row_block_reopen(b->row_block);
    draft_clear(d);
    for (uint32_t k = 0; lowerings[k]; k++)
        if (set >> k & 1)
            lowerings[k]->build(b->row_block, &p, d);
    lowering_tiles.build(b->row_block, &p, d);
    draft_price(d, b->pass, &item, &p);
}

/* Lines for the whole row block, in b->draft[1]; false where some of it is not theirs to take. */
static bool lines_alone_draft(struct builder *b)
{
    struct row_block *s = b->row_block;
    uint32_t diagonal = bit_of(ABI_DIAGONAL);
    if (!b->lines_too || b->price.walk <= 0 || row_block_solid_tiles(s))
        return false;
    const struct effort least = alone_effort(lowering_of(ABI_DIAGONAL), s);
    if (price_of(&b->price, &least) > b->draft[0].cost)
        return false;
    s->lines_alone = true;
    build_draft(b, diagonal, &b->draft[1]);
    s->lines_alone = false;
    return b->draft[1].pieces == 1;
}

/* The lowerings that could take something of the loaded row block, and of these the optional. */
static uint32_t find_set(struct builder *b, uint32_t *ret_optional)
{
    struct price other = price_without_lines(b);
    const struct abi_item item = item_of(b);
    uint32_t set = 0;
    *ret_optional = 0;
    for (uint32_t k = 0; lowerings[k] && builder_can(b, CAN_PIECES); k++) {
        const struct lowering *l = lowerings[k];
        if (!l->applies || !l->fits_item(b->options.can, &item) ||
            !(l->applies(b->row_block, &b->price) || l->applies(b->row_block, &other)))
            continue;
        set |= (uint32_t)1 << k;
        *ret_optional |= (uint32_t)l->optional << k;
    }
    return set;
}

/* The row block's lines, in b->draft[0], whatever they cost. */
static void only_lines_draft(struct builder *b)
{
    b->row_block->lines_alone = true;
    build_draft(b, bit_of(ABI_DIAGONAL), &b->draft[0]);
    b->row_block->lines_alone = false;
    b->others |= b->draft[0].pieces > 1 || (b->draft[0].pieces && !b->draft[0].n_lines);
}

/* True if the draft has no piece of these lowerings and is the same without them. Without lines, others choose by other
   prices. */
static bool is_same_without(const struct draft *d, uint32_t set)
{
    for (uint32_t k = 0; lowerings[k]; k++)
        for (uint32_t i = 0; set >> k & 1 && i < d->pieces; i++)
            if (d->piece[i].kind == (u32)lowerings[k]->kind)
                return false;
    return !(set & bit_of(ABI_DIAGONAL));
}

/* Factor of the price of a draft with so many optional lowerings: each must save LEAST_GAIN. */
static double weight_of(uint32_t some)
{
    return 1 + LEAST_GAIN * __builtin_popcount(some);
}

/* The cheapest draft with some of the optional lowerings and all others of the set, in b->draft[0]. */
static void choose_optional(struct builder *b, uint32_t set, uint32_t optional)
{
    uint32_t some = optional, chosen = optional;
    build_draft(b, set, &b->draft[0]);
    while (some) {
        some = (some - 1) & optional;
        if (!(some & ~chosen) && is_same_without(&b->draft[0], chosen & ~some)) {
            chosen = some;
            continue;
        }
        build_draft(b, (set & ~optional) | some, &b->draft[1]);
        if (b->draft[1].cost * weight_of(some) > b->draft[0].cost * weight_of(chosen))
            continue;
        chosen = some;
        swap_drafts(&b->draft[0], &b->draft[1]);
    }
}

/* The cheapest draft of the loaded row block, in b->draft[0]. */
static void best_draft(struct builder *b)
{
    uint32_t optional;
    draft_clear(&b->draft[0]);
    if (!b->row_block->owned)
        return;
    if (b->lines_only) {
        only_lines_draft(b);
        return;
    }
    row_block_reopen(b->row_block);
    const uint32_t set = find_set(b, &optional);
    choose_optional(b, set, optional);
    if (builder_can(b, CAN_PIECES) && lines_alone_draft(b) &&
        b->draft[1].cost < b->draft[0].cost * (1 - LEAST_GAIN))
        swap_drafts(&b->draft[0], &b->draft[1]);
}

/* Notes the cost of the row block by each lowering used by itself. */
static void note_alone(struct builder *b)
{
    const struct effort dense = alone_effort(&lowering_dense, b->row_block);
    row_block_reopen(b->row_block);
    effort_add(&b->dense, &dense, 1);
    for (uint32_t k = 0; lowerings[k]; k++) {
        if (!lowerings[k]->count_alone)
            continue;
        const struct effort e = alone_effort(lowerings[k], b->row_block);
        b->alone.seconds[k] += price_of(&b->report, &e);
        b->alone.uses[k] = 1u << lowerings[k]->kind;
        b->alone.applied[k] |=
            !lowerings[k]->applies || lowerings[k]->applies(b->row_block, &b->price);
    }
}

/* Seconds of a row that is expected to be joined with others; 0 for all others. */
static double joined_price(const struct builder *b, uint32_t row)
{
    return b->joined && !b->split_classes ? b->joined[row] : 0;
}

/* Rows of the loaded row block that are not in `own`, one by one. */
static double price_of_rows_without(const struct builder *b, const u32 *own)
{
    struct effort e = {{0}};
    double joined = 0;
    for (uint32_t r = 0; r < b->row_block->rows; r++) {
        if (own[r / 32] >> (r % 32) & 1)
            continue;
        const double here = joined_price(b, block_row(b->row_block, r));
        joined += here;
        if (here <= 0)
            rows_count(b->row_block, r, &e);
    }
    return price_of(&b->price, &e) + joined;
}

/* Tiles alone for the loaded row block. */
static double price_of_tiles(struct builder *b)
{
    build_draft(b, 0, &b->draft[1]);
    return b->draft[1].cost;
}

/* The price of an item of the rows that stay together even if all others leave (rows_idle); 0: none. */
static double find_idle(const struct builder *b, u32 *idle)
{
    struct effort e = {{0}};
    if (rows_idle(b->row_block, idle))
        row_block_count(b->row_block->rows, &e);
    return price_of(&b->price, &e);
}

/* The rows of the loaded row block that are not in `own`, one by one, as they are weighed against tiles. */
static double weighed_rows_without(const struct builder *b, const u32 *own)
{
    struct effort one_range = {{0}}, scattered = {{0}};
    for (uint32_t r = 0; r < b->row_block->rows; r++) {
        if (own[r / 32] >> (r % 32) & 1)
            continue;
        const uint64_t *row = b->row_block->pattern->row + block_row(b->row_block, r);
        rows_count(b->row_block, r, row[1] > row[0] + 1 ? &scattered : &one_range);
    }
    return price_of(&b->price, &one_range) +
           price_of(&b->price, &scattered) * SCATTERED_ROW_WEIGHT;
}

static bool is_split(const struct builder *b, uint32_t row)
{
    return b->split_classes && b->split_classes->row[row] < b->split_classes->row[row + 1];
}

static void emit_rows_without(struct builder *b, const struct pattern *p, const u32 *own)
{
    for (uint32_t r = 0; r < b->row_block->rows; r++)
        if (!(own[r / 32] >> (r % 32) & 1))
            cuts_add_row(b, p, block_row(b->row_block, r));
}

/* True unless a row outside `own` is split and global rows cannot merge. */
static bool may_leave(const struct builder *b, const u32 *own)
{
    for (uint32_t r = 0;
         b->split_classes && builder_can(b, MERGES_LAST) && r < b->row_block->rows; r++)
        if (!(own[r / 32] >> (r % 32) & 1) && is_split(b, block_row(b->row_block, r)))
            return false;
    return true;
}

/* Moves rows that stand out into items of their own while that is cheaper; `own` becomes the rows
   that stay, and the draft for them is b->draft[2]. Returns the price of all. */
static double peel_rows(struct builder *b, const struct pattern *p, uint32_t row0, u32 *own)
{
    struct row_block *s = b->row_block;
    u32 fewer[ABI_MAX_BLOCK_ROWS / 32];
    best_draft(b);
    swap_drafts(&b->draft[0], &b->draft[2]);
    double best = b->draft[2].cost;
    while (builder_can(b, CAN_PIECES) && rows_stand_out(s, fewer) && may_leave(b, fewer)) {
        row_block_load(s, p, row0, fewer);
        best_draft(b);
        double total = b->draft[0].cost + price_of_rows_without(b, fewer);
        if (total > best * (1 - LEAST_ROWS_GAIN))
            break;
        best = total;
        memcpy(own, fewer, sizeof fewer);
        swap_drafts(&b->draft[0], &b->draft[2]);
    }
    return best;
}

static void count_gathered(struct builder *b, const struct draft *d)
{
    for (uint64_t k = 0; k < d->n_columns; k++)
        b->gathered[d->columns[k]]++;
}

void builder_row_block(struct builder *b, const struct pattern *p, uint32_t row0, bool note)
{
    static const u32 none[ABI_MAX_BLOCK_ROWS / 32];
    struct row_block *s = b->row_block;
    u32 own[ABI_MAX_BLOCK_ROWS / 32], idle[ABI_MAX_BLOCK_ROWS / 32];
    row_block_load(s, p, row0, NULL);
    if (note)
        note_alone(b);
    memcpy(own, s->own, sizeof own);
    const double together = find_idle(b, idle);
    const bool worth = weighed_rows_without(b, idle) + together < price_of_tiles(b);
    double best = peel_rows(b, p, row0, own);
    double alone = price_of_rows_without(b, idle) + together;
    if (builder_can(b, CAN_PIECES) && (s->rows == 1 /* always the row pass */ ||
                                       (worth && alone < best && may_leave(b, idle)))) {
        memcpy(own, idle, sizeof own);
        best = alone;
        draft_clear(&b->draft[2]);
    }
    b->total += best;
    for (uint32_t k = 0; k < b->draft[2].pieces && memcmp(own, none, sizeof own); k++)
        b->uses |= 1u << b->draft[2].piece[k].kind;
    if (b->gathered && memcmp(own, none, sizeof own))
        count_gathered(b, &b->draft[2]);
    if (b->dry)
        return;
    emit_rows_without(b, p, own);
    memcpy(s->own, own, sizeof own);
    if (memcmp(own, none, sizeof own))
        tables_add_row_block(b->pass, &b->index, s, &b->draft[2]);
}

int builder_row_blocks(struct builder *b, const struct plan *p, const struct pattern *pattern,
                       bool note, struct error *e)
{
    shared_choose(b, p, pattern);
    for (uint32_t row0 = 0; row0 < b->row_block->all_rows; row0 += p->block_rows) {
        builder_row_block(b, pattern, row0, note);
        if (builder_check_capacity(b->pass, e))
            return -1;
        if (b->dry && b->total > b->most)
            break;
    }
    return 0;
}

void builder_note(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    for (uint32_t row0 = 0; row0 < b->row_block->all_rows; row0 += p->block_rows) {
        row_block_load(b->row_block, pattern, row0, NULL);
        note_alone(b);
    }
}
