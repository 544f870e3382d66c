/* SPDX-License-Identifier: Apache-2.0 */
/* Residue classes: rows row0, row0 + step, .. of a mask with strides see the same columns, those of
   their class. Brought together, rows and columns through index lists, they are tiles, where strips
   of neighbours see each such column by one row alone. The planner makes these items
   (gen/plan/build.c); what else their rows see is left to items of neighbours, which resume. Softmax
   on CPU targets: elsewhere items do not leave partial results. */
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

extern const struct lowering lowering_residue;

bool residue_applies(const struct target *t, const struct features *f)
{
    return t->kind == TARGET_CPU && f->transform == ABI_SOFTMAX && f->soft == ABI_SOFT_NONE;
}

double residue_resume_price(const struct price *p)
{
    return RESUME_OUTPUTS * p->item_row;
}

/* The columns that some row sees, ascending; place[column] is 1 + where it stands. */
static uint32_t list_columns(const struct pattern *p, const struct abi_item *item,
                             struct draft *d, uint32_t *place)
{
    uint32_t low = p->n, high = 0, count = 0;
    for (uint32_t r = 0; r < item->rows; r++) {
        uint32_t row = item->row0 + item->step * r;
        for (uint64_t k = p->row[row]; item_owns(item, r) && k < p->row[row + 1]; k++)
            for (uint32_t j = p->run[k].begin; j < p->run[k].end; j++) {
                place[j] = 1;
                low = j < low ? j : low;
                high = j + 1 > high ? j + 1 : high;
            }
    }
    for (uint32_t j = low; j < high; j += item->step)
        if (place[j]) {
            *MEMORY_PUSH(d->columns, d->n_columns, d->columns_room) = j;
            place[j] = ++count;
        }
    return count;
}

/* The bits of a group's columns; returns whether every owned row has all. */
static bool fill_pattern(const struct pattern *p, const struct abi_item *item,
                         const uint32_t *place, uint32_t group, uint32_t count, u32 *word)
{
    uint32_t first = group * ABI_TILE_COLS;
    u32 all = ~(u32)0 >> (ABI_TILE_COLS - count);
    bool full = true;
    for (uint32_t r = 0; r < item->rows; r++) {
        uint32_t row = item->row0 + item->step * r;
        if (!item_owns(item, r))
            continue;
        for (uint64_t k = p->row[row]; k < p->row[row + 1]; k++)
            for (uint32_t j = p->run[k].begin; j < p->run[k].end; j++)
                if (place[j] > first && place[j] <= first + count)
                    word[r] |= (u32)1 << (place[j] - 1 - first);
        full &= word[r] == all;
    }
    return full;
}

static void add_group(const struct price *p, const struct pattern *classes,
                      const struct abi_item *item, uint32_t strip_rows, const uint32_t *place,
                      uint32_t group, uint32_t count, struct draft *d)
{
    struct abi_gather g = {group * ABI_TILE_COLS, count, 0};
    u32 *word = draft_pattern(d, strip_rows);
    memset(word, 0, strip_rows * sizeof *word);
    bool full = fill_pattern(classes, item, place, group, count, word);
    if (full)
        d->n_words -= strip_rows;
    else
        g.pattern = (u32)(d->n_words / strip_rows);
    *MEMORY_PUSH(d->gathers, d->n_gathers, d->gathers_room) = g;
    d->cost += columns_group_price(p, item->rows, count, full);
}

void residue_build(const struct pattern *classes, const struct abi_item *item,
                   uint32_t strip_rows, const struct price *p, uint32_t *place, struct draft *d)
{
    draft_clear(d);
    d->cost = p->item + item->rows * p->item_row;
    uint32_t columns = list_columns(classes, item, d, place);
    for (uint32_t from = 0; from < columns; from += ABI_TILE_COLS) {
        uint32_t count = columns - from < ABI_TILE_COLS ? columns - from : ABI_TILE_COLS;
        add_group(p, classes, item, strip_rows, place, from / ABI_TILE_COLS, count, d);
    }
    for (uint32_t k = 0; k < columns; k++)
        place[d->columns[k]] = 0;
    if (columns)
        draft_piece(d, ABI_RESIDUE, 0, d->n_gathers, columns);
}

/* ---- what was decoded: gathers, as those of scattered columns ---- */

static const struct lowering *gathers(void)
{
    return lowering_of(ABI_COLUMNS);
}

static bool decode(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    return gathers()->decode(t, strip_rows, item, piece, v);
}

static uint64_t columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    return gathers()->columns(t, piece);
}

static uint64_t executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n)
{
    return gathers()->executed(t, item, piece, n);
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    gathers()->count(t, item, piece, ret);
}

static void print(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    gathers()->print(t, strip_rows, item, piece, out);
}

const struct lowering lowering_residue = {
    .name = "residue",
    .part = "class group",
    .kind = ABI_RESIDUE,
    .table = TABLE_GATHERS,
    .decode = decode,
    .columns = columns,
    .count = count,
    .executed = executed,
    .print = print,
};
