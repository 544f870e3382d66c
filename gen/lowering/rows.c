/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows: a row that sees far more keys than its neighbours (a global token) leaves its row block and becomes an
   item of its own, one query over ranges of keys. In the row block it would make every tile active for the sake of
   one row. */
#include "gen/lowering/effort.h"

extern const struct lowering lowering_rows;

enum { STANDS_OUT = 2 }; /* a row is tried if it has this many times the keys of the next one */

static void count_row(double keys, double ranges, struct effort *ret)
{
    ret->count[UNIT_ROW] += keys;
    ret->count[UNIT_ROW_RANGE] += ranges > 1 ? ranges - 1 : 0;
}

double row_price(const struct price *p, double keys, double ranges)
{
    struct effort e = {{0}};
    row_count(&e);
    count_row(keys, ranges, &e);
    return price_of(p, &e);
}

void rows_count(const struct row_block *s, uint32_t r, struct effort *ret)
{
    const uint64_t *row = s->pattern->row + block_row(s, r);
    row_count(ret);
    count_row(s->active[r], (double)(row[1] - row[0]), ret);
}

/* Returns the remaining row with the most keys; *keys is their number. */
static uint32_t heaviest(const struct row_block *s, const u32 *own, uint32_t *keys)
{
    uint32_t best = s->rows;
    *keys = 0;
    for (uint32_t r = 0; r < s->rows; r++) {
        if (!(own[r / 32] >> (r % 32) & 1))
            continue;
        if (best == s->rows || s->active[r] > *keys) {
            best = r;
            *keys = s->active[r];
        }
    }
    return best;
}

bool rows_stand_out(const struct row_block *s, u32 *own)
{
    u32 left[ABI_MAX_BLOCK_ROWS / 32];
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        left[w] = s->own[w];
    uint32_t keys, next;
    uint32_t r = heaviest(s, left, &keys);
    for (uint32_t taken = 0; 2 * taken < s->owned && r < s->rows && keys; taken++) {
        left[r / 32] &= ~((u32)1 << (r % 32));
        r = heaviest(s, left, &next);
        if (r == s->rows || (uint64_t)keys >= STANDS_OUT * (uint64_t)next) {
            for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
                own[w] = left[w];
            return true;
        }
        keys = next;
    }
    return false;
}

bool rows_idle(const struct row_block *s, u32 *own)
{
    u32 idle[ABI_MAX_BLOCK_ROWS / 32] = {0};
    uint32_t count = 0;
    for (uint32_t r = 0; r < s->rows; r++) {
        const bool is = row_block_owns(s, r) && !s->active[r];
        idle[r / 32] |= (u32)is << r % 32;
        count += is;
    }
    const bool many = s->rows > 1 && 2 * count >= s->rows;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        own[w] = many ? idle[w] : 0;
    return many;
}

static void count_alone(struct row_block *s, struct effort *ret)
{
    u32 idle[ABI_MAX_BLOCK_ROWS / 32];
    *ret = (struct effort){{0}};
    if (rows_idle(s, idle))
        row_block_count(s->rows, ret);
    for (uint32_t r = 0; r < s->rows; r++)
        if (row_block_owns(s, r) && !(idle[r / 32] >> (r % 32) & 1))
            rows_count(s, r, ret);
}

static bool decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    (void)block_rows;
    if (item->rows != 1 || piece->first > t->n_ranges ||
        piece->count > t->n_ranges - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        struct abi_range range = t->ranges[piece->first + k];
        if (!v->range(v->context, 0, range.begin, range.end))
            return false;
    }
    return true;
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    (void)item;
    count_row((double)ranges_columns(t, piece), piece->count, ret);
}

static void print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    lowering_of(ABI_BLOCKS)->print(t, block_rows, item, piece, out);
}

static bool fits_item(uint32_t can, const struct abi_item *item)
{
    return can & CAN_PIECES && item->step == 1 && item->rows == 1;
}

static void reason(const struct visits *v, double cells, struct text *out)
{
    (void)cells;
    text_add(out, "rows that stand out: %.0f", (double)v->pieces);
}

const struct lowering lowering_rows = {
    .name = "rows",
    .part = "row range",
    .kind = ABI_ROWS,
    .table = TABLE_RANGES,
    .fits_item = fits_item,
    .reason = reason,
    .told = 0,
    .count_alone = count_alone,
    .decode = decode,
    .columns = ranges_columns,
    .count = count,
    .executed = ranges_executed,
    .print = print,
};
