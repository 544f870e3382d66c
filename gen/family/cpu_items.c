/* SPDX-License-Identifier: Apache-2.0 */
/* Items that CPU kernels accept, limited by the kernels' scratch sizes. Separate from the families: a program that only
   reads kernel files needs no emitter. */
#include "gen/family/cpu.h"
#include "gen/tables/pass.h"
#include "templates/cpu/sizes.h"

bool cpu_has_matrix(const struct target *t, const struct kernel_request *r)
{
    return t->kind == TARGET_CPU && t->matrix_machine && r->dtype == ABI_BF16;
}

/* Rows per dot product along a diagonal: 16 for bf16 with AMX if D is a multiple of 32, otherwise 4. */
static u32 diagonal_rows(const struct target *t, const struct kernel_request *r)
{
    enum { WHOLE = 32 };
    return cpu_has_matrix(t, r) && !t->dots && r->head_dim % WHOLE == 0
               ? CPU_DIAGONAL_TILE_ROWS
               : CPU_DIAGONAL_VECTOR_ROWS;
}

/* Most columns that a piece occupies in blocks. Panels are 32 wide and begin at multiples of 32 in the block and of 16 in
   the sequence: a range may have up to 15 columns before its own. */
static u32 panel_cols(const struct abi_piece *piece)
{
    enum { GAP = CPU_TILE_COLS - 1, SKIP = CPU_TILE_COLS / 2 - 1 };
    switch (piece->kind) {
    case ABI_COLUMNS:
    case ABI_RESIDUE:
        return piece->count * CPU_TILE_COLS + GAP;
    case ABI_BLOCKS:
        return piece->cols + piece->count * (GAP + SKIP) + GAP;
    default:
        return piece->cols + GAP;
    }
}

u32 cpu_panel_cols(const struct plan_pass *t)
{
    u32 most = 0;
    for (uint64_t k = 0; k < t->n_items; k++) {
        u32 cols = 0;
        for (u32 i = 0; i < t->items[k].pieces; i++)
            cols += panel_cols(&t->pieces[t->items[k].piece + i]);
        most = cols > most ? cols : most;
    }
    return most;
}

struct item_kernels cpu_item_kernels(const struct target *t, const struct kernel_request *r)
{
    const bool matrix = cpu_has_matrix(t, r);
    const u32 cols = CPU_CHUNK_COLS(matrix, r->bias);
    if (t->kind != TARGET_CPU || r->bias != ABI_BIAS_NONE)
        return (struct item_kernels){0};
    return (struct item_kernels){
        .priced_only = r->transform != ABI_SOFTMAX, /* rates of lines are those of softmax */
        .diagonal_rows = diagonal_rows(t, r),
        .diagonal_most = CPU_DIAGONAL_MOST(cols),
        .global_row_most = CPU_GLOBAL_ROW_MOST(cols),
        .matrix_row_least = matrix ? CPU_MATRIX_ROW_LEAST : 0,
        .matrix_row_most = matrix ? CPU_MATRIX_ROW_MOST(cols) : 0,
    };
}
