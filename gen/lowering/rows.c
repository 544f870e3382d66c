/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows: a row that sees far more keys than its neighbours (a global token) leaves its row block and becomes an
   item of its own, one query over ranges of keys. In the row block it would make every tile active for the sake of
   one row. */
#include "gen/lowering/lowering.h"

extern const struct lowering lowering_rows;

enum { STANDS_OUT = 2 }; /* times the keys of the next row, to be worth trying */

double rows_price(const struct price *p, const struct row_block *s, uint32_t r)
{
    const uint64_t *row = s->pattern->row + block_row(s, r);
    double more = row[1] > row[0] ? (double)(row[1] - row[0] - 1) : 0;
    return p->row_item + more * p->row_range + (double)s->active[r] * p->row;
}

/* The most loaded row that is left, and its keys. */
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

static double cost(struct row_block *s, const struct price *p)
{
    double sum = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        sum += row_block_owns(s, r) ? rows_price(p, s, r) : 0;
    return sum;
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
    ret->count[UNIT_ROW] += (double)ranges_columns(t, piece);
    ret->count[UNIT_ROW_RANGE] += piece->count - 1;
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
    .cost = cost,
    .decode = decode,
    .columns = ranges_columns,
    .count = count,
    .executed = ranges_executed,
    .print = print,
};
