/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/tables/item_kernel.h"
#include "gen/tables/pass.h"
#include "templates/cpu/sizes.h"

const char *const item_kernel_names[ABI_ITEM_KERNELS] = {
    [ABI_ROW_BLOCK_KERNEL] = "row_block",
    [ABI_DIAGONAL_KERNEL] = "diagonal",
    [ABI_GLOBAL_ROW_KERNEL] = "global_row",
    [ABI_MATRIX_ROW_KERNEL] = "matrix_row",
};

/* True if the item is one piece of this kind and neither splits nor merges rows. */
static bool is_all(const struct plan_pass *t, const struct abi_item *item,
                   enum abi_piece_kind kind)
{
    return item->pieces == 1 && t->pieces[item->piece].kind == (u32)kind && !item->split &&
           !item_merges(item);
}

static bool is_one_range(const struct plan_pass *t, const struct abi_item *item)
{
    return is_all(t, item, ABI_ROWS) && t->pieces[item->piece].count == 1 && item->own[0] == 1;
}

static bool has_columns(const struct abi_item *item, u32 least, u32 most)
{
    return item->cols && item->cols >= least && item->cols <= most;
}

bool item_kernel_fits(const struct item_kernels *k, u32 kernel, const struct plan_pass *t,
                      const struct abi_item *item)
{
    if (kernel != ABI_ROW_BLOCK_KERNEL && k->priced_only)
        return false;
    switch (kernel) {
    case ABI_ROW_BLOCK_KERNEL:
        return true;
    case ABI_DIAGONAL_KERNEL:
        return is_all(t, item, ABI_DIAGONAL) && has_columns(item, 1, k->diagonal_most);
    case ABI_GLOBAL_ROW_KERNEL:
        return is_one_range(t, item) && has_columns(item, 1, k->global_row_most);
    case ABI_MATRIX_ROW_KERNEL:
        return is_one_range(t, item) && t->uses & ABI_PACKED_KINDS &&
               has_columns(item, k->matrix_row_least, k->matrix_row_most);
    default:
        return false;
    }
}

/* True if diagonals cover enough of the rows that are computed together with theirs. If they are scattered, the row-block
   kernel, which goes row by row, is as fast. */
static bool is_dense(const struct abi_line *line, u32 lines, u32 together)
{
    uint64_t rows = 0, taken = 0;
    for (u32 k = 0; k < lines; k++) {
        rows += line[k].row_end - line[k].row_begin;
        taken += (line[k].row_end + together - 1) / together - line[k].row_begin / together;
    }
    return (uint64_t)CPU_DIAGONAL_ONE_IN(together) * rows >= together * taken;
}

static bool is_worth_it(const struct item_kernels *k, enum abi_item_kernel kernel,
                        const struct plan_pass *t, const struct abi_item *item)
{
    const struct abi_piece *piece = &t->pieces[item->piece];
    return kernel != ABI_DIAGONAL_KERNEL ||
           is_dense(t->lines + piece->first, piece->count, k->diagonal_rows);
}

enum abi_item_kernel item_kernel(const struct item_kernels *k, const struct plan_pass *t,
                                 const struct abi_item *item)
{
    static const enum abi_item_kernel best_first[] = {
        ABI_DIAGONAL_KERNEL, ABI_MATRIX_ROW_KERNEL, ABI_GLOBAL_ROW_KERNEL};
    for (unsigned i = 0; i < sizeof best_first / sizeof *best_first; i++)
        if (item_kernel_fits(k, best_first[i], t, item) &&
            is_worth_it(k, best_first[i], t, item))
            return best_first[i];
    return ABI_ROW_BLOCK_KERNEL;
}

bool item_lines_mixed(const struct plan_pass *t, const struct abi_item *item)
{
    struct item_kernels kernels = t->kernels;
    kernels.priced_only = 0;
    return item_kernel(&kernels, t, item) != ABI_DIAGONAL_KERNEL;
}
