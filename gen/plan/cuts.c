/* SPDX-License-Identifier: Apache-2.0 */
/* Long global rows would be the last items to end. They are cut into parts, one for each block, if that is predicted to
   end sooner, including the second launch, which merges the parts. These items come after all others. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"

/* About the number of keys of a part. */
enum { KEYS_OF_PART = 512, MOST_PARTS = 64 };

static uint32_t parts_of(const struct pattern *p, uint32_t row)
{
    uint32_t parts = pattern_row_active(p, row) / KEYS_OF_PART;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

void cuts_add_row(struct builder *b, const struct pattern *p, uint32_t row)
{
    if ((builder_can(b, CAN_CUT_ROWS) && parts_of(p, row) >= 2) ||
        (builder_can(b, CAN_JOIN_ROWS | CAN_JOIN_NESTED) && !b->split_classes))
        *MEMORY_PUSH(b->global_rows, b->n_global, b->global_capacity) =
            (struct global_row){p, row};
    else
        tables_add_row(b->pass, p, row);
}

/* Seconds of the longest global row, of its longest part, and of the longest of the items from `first` on. */
struct longest {
    double row, part, item;
};

static struct longest find_longest(const struct builder *b, uint64_t first)
{
    struct longest l = {0, 0, 0};
    for (uint64_t k = 0; k < b->n_global; k++) {
        struct global_row r = b->global_rows[k];
        double keys = pattern_row_active(r.pattern, r.row);
        uint32_t parts = parts_of(r.pattern, r.row);
        double row = row_price(&b->price, keys, 1);
        double part = parts > 1 ? row_price(&b->price, keys / parts, 1) : row;
        l.row = row > l.row ? row : l.row;
        l.part = part > l.part ? part : l.part;
    }
    for (; first < b->pass->n_items; first++) {
        struct effort e = item_effort(b->pass, &b->pass->items[first]);
        double price = price_of(&b->price, &e);
        l.item = price > l.item ? price : l.item;
    }
    return l;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* True if cutting items pays for one sequence, assuming that its heads are alike. */
static bool is_worth_it(const struct builder *b, const struct plan *p, uint64_t first)
{
    struct longest l = find_longest(b, first);
    double even = larger(b->total * p->heads / predict_workers(p, 0), l.item);
    bool any_split = false;
    for (uint64_t k = first; k < b->pass->n_items; k++)
        any_split |= b->pass->items[k].split;
    double join = row_price(&b->price, 0, 0) + (any_split ? 0 : b->options.merge_launch);
    return larger(l.part, even) + join < larger(l.row, even) * (1 - LEAST_CUT_GAIN);
}

void cuts_build(struct builder *b, const struct plan *p, uint64_t first)
{
    if (builder_can(b, CAN_JOIN_ROWS))
        joins_build(b, p);
    if (builder_can(b, CAN_JOIN_NESTED))
        joins_build_nested(b, p);
    bool cut = builder_can(b, CAN_CUT_ROWS) && b->n_global && is_worth_it(b, p, first);
    for (uint64_t k = 0; k < b->n_global; k++) {
        struct global_row r = b->global_rows[k];
        uint32_t parts = parts_of(r.pattern, r.row);
        if (!cut || parts < 2) {
            tables_add_row(b->pass, r.pattern, r.row);
            continue;
        }
        tables_add_parts(b->pass, r.pattern, r.row, parts, b->partial_slots);
        b->partial_slots += parts;
    }
}
