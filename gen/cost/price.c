/* SPDX-License-Identifier: Apache-2.0 */
/* Two products of D multiply-adds each: 4 D FLOP an entry, whatever the lowering. */
#include "gen/cost/price.h"

struct price price_make(const struct machine *m, const struct features *f)
{
    double flop = 4.0 * f->head_dim;
    return (struct price){
        .full = m->tile_flop * flop + m->tile_entry,
        .partial = m->tile_flop * flop + m->tile_entry + m->tile_mask,
        .gather = m->gather_element * f->head_dim,
        .walk = m->line_flop * flop + m->line_entry,
        .line = m->line,
        .line_row = m->line_row,
        .row = m->row_flop * flop + m->row_entry,
        .row_item = m->row_item,
        .row_range = m->row_range,
        .item = m->item,
        .item_row = m->item_element * f->head_dim,
        .pack_row = m->pack_element * 2.0 * f->head_dim,
    };
}

double price_range(const struct price *p, uint32_t rows, uint32_t columns)
{
    uint32_t grains = (columns + RANGE_GRAIN - 1) / RANGE_GRAIN;
    return p->full * rows * grains * RANGE_GRAIN;
}
