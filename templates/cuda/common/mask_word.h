/* SPDX-License-Identifier: Apache-2.0 */
/* The mask as bits, decoded from the plan, for kernels that go over all entries of a head instead of the work
   list. Each thread decodes what it needs, once for a whole batch. */
#ifndef MASKC_CUDA_COMMON_MASK_WORD_H
#define MASKC_CUDA_COMMON_MASK_WORD_H
#include "cuda/common/device.h"
#include "kernel_config.h"

/* Which of the 32 columns from `column` on lie in begin .. end - 1. */
DEVICE u32 mask_range(u32 begin, u32 end, u32 column)
{
    u32 from = begin > column ? begin - column : 0, to = end > column ? end - column : 0;
    u32 below = to < 32 ? (1u << to) - 1 : 0xffffffffu;
    return from < 32 ? below & ~((1u << from) - 1) : 0;
}

DEVICE u32 mask_pattern(const struct abi_plan *p, u32 pattern, u32 r)
{
    return pattern ? p->patterns[(u64)(pattern - 1) * BLOCK_ROWS + r] : 0xffffffffu;
}

DEVICE u32 mask_gather(const struct abi_plan *p, const struct abi_gather *g, u32 r, u32 column)
{
    u32 word = 0, bits = mask_pattern(p, g->pattern, r);
    NO_UNROLL
    for (u32 k = 0; k < g->count; k++) {
        u32 at = p->columns[g->first + k] - column;
        if (at < 32)
            word |= (bits >> k & 1) << at;
    }
    return word;
}

DEVICE u32 mask_line(const struct abi_line *l, u32 r, u32 column)
{
    u32 at = (u32)(l->col0 + (i32)(l->step * r)) - column;
    return r >= l->row_begin && r < l->row_end && at < 32 ? 1u << at : 0;
}

/* Entry `index` of the table of `kind`, for row r of its item. */
DEVICE u32 mask_entry(const struct abi_plan *p, u32 kind, u32 index, u32 r, u32 column)
{
    switch (kind) {
    case ABI_BLOCKS:
    case ABI_ROWS:
        return mask_range(p->ranges[index].begin, p->ranges[index].end, column);
    case ABI_TILES:
        return p->tiles[index].col0 == column ? mask_pattern(p, p->tiles[index].pattern, r) : 0;
    case ABI_DIAGONAL:
        return mask_line(p->lines + index, r, column);
    default:
        return mask_gather(p, p->gathers + index, r, column);
    }
}

DEVICE u32 mask_item(const struct abi_plan *p, const struct abi_item *item, u32 r, u32 column)
{
    u32 word = 0;
    NO_UNROLL
    for (u32 k = 0; k < item->pieces; k++) {
        const struct abi_piece *piece = p->pieces + item->piece + k;
        NO_UNROLL
        for (u32 x = 0; x < piece->count; x++)
            word |= mask_entry(p, piece->kind, piece->first + x, r, column);
    }
    return word;
}

/* Which of the 32 columns from `column` on (a multiple of 32) row `row` of head h sees. */
DEVICE u32 mask_word(const struct abi_plan *p, u32 h, u32 row, u32 column)
{
    const struct abi_head head = p->heads[h];
    u32 word = 0;
    NO_UNROLL
    for (u32 k = 0; k < head.items; k++) {
        const struct abi_item *item = p->items + head.item + k;
        u32 below = row - item->row0, step = item->step;
        u32 r = step == 1 ? below : below / step;
        if (row < item->row0 || r >= item->rows || r * step != below ||
            !(item->own[r / 32] >> (r % 32) & 1))
            continue;
        word |= mask_item(p, item, r, column);
    }
    return word;
}

#endif
