/* SPDX-License-Identifier: Apache-2.0 */
/* The table of lowerings, in the order in which plans join their names. A new lowering is a file and
   a row here. One with a kind of its own needs more: HACKING.md, How to add. */
#include "gen/lowering/lowering.h"
#include <stddef.h>

extern const struct lowering lowering_blocks, lowering_columns, lowering_diagonal,
    lowering_rows, lowering_residue;

const struct lowering *const lowerings[] = {
    &lowering_dense,    &lowering_tiles, &lowering_blocks,  &lowering_columns,
    &lowering_diagonal, &lowering_rows,  &lowering_residue, NULL,
};
_Static_assert(sizeof lowerings / sizeof *lowerings - 1 <= LOWERINGS_MOST, "room in a summary");

const struct lowering *lowering_of(enum abi_piece_kind kind)
{
    for (const struct lowering *const *l = lowerings; *l; l++)
        if ((*l)->kind == kind && (*l)->decode)
            return *l;
    return NULL;
}

bool item_is_row_block(uint32_t can, const struct abi_item *item)
{
    return can & CAN_PIECES && item->step == 1 && item->rows > 1;
}

void count_print(struct text *out, uint64_t count, const char *noun)
{
    text_add(out, "%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
}

uint32_t item_owned_rows(const struct abi_item *item)
{
    uint32_t rows = 0;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        rows += (uint32_t)__builtin_popcount(item->own[w]);
    return rows;
}
