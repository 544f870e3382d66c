/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files with a right checksum and wrong tables: each kind of lie is refused by name. */
#include "runtime/artifact/tables.h"
#include "tests/runtime/forge.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- one lie at a time ---- */

static struct plan_pass *pass_of(struct artifact *a)
{
    return &a->plan[0].forward;
}

/* The first piece of a kind that has entries. */
static struct abi_piece *piece_of(struct plan_pass *p, uint32_t kind)
{
    for (uint64_t k = 0; k < p->n_pieces; k++)
        if (p->pieces[k].kind == kind && p->pieces[k].count)
            return &p->pieces[k];
    return NULL;
}

static void swap_work(struct plan_pass *p, uint64_t i, uint64_t k)
{
    struct abi_work w = p->work[i];
    p->work[i] = p->work[k];
    p->work[k] = w;
}

/* clang-format off */
#define LIE_IF(name, there, ...)                                          \
    static bool name(struct artifact *a)                                  \
    {                                                                     \
        struct plan_pass *p = pass_of(a);                                 \
        return p && (there) && ((__VA_ARGS__), true);                     \
    }
#define LIE(name, ...) LIE_IF(name, true, __VA_ARGS__)
LIE(item_row0,     p->items[0].row0 = a->mask->n)
LIE(item_row0_big, p->items[0].row0 = UINT32_MAX)
LIE(item_rows_0,   p->items[0].rows = 0)
LIE(item_rows_big, p->items[0].rows = 33)
LIE(item_own,      p->items[0].own[3] = 1)
LIE_IF(item_own_none, p->items[0].own[0] & 1, p->items[0].own[0] &= ~1u)
LIE(item_piece,    p->items[0].piece = (u32)p->n_pieces + 1)
LIE(item_pieces,   p->items[0].pieces = UINT32_MAX)
LIE(item_cols,     p->items[0].cols++)
LIE(item_cost,     p->items[0].cost = 0)
LIE(item_step_0,   p->items[0].step = 0)
LIE(item_partial,  p->items[0].split ^= 1)
LIE(item_halves,   p->items[0].split = 2)
LIE(item_merge,   p->items[p->n_items - 1].merge[0] ^= 1)
LIE(item_merge_3, p->items[p->n_items - 1].merge[3] ^= 1)
LIE_IF(class_step,    p->items[0].step > 1, p->items[0].step = 1)
LIE_IF(class_leaves,  p->items[0].step > 1, p->items[0].step = a->mask->n)
LIE_IF(class_partials, p->heads[0].splits, p->heads[0].splits--)
LIE_IF(class_merge,    p->heads[0].splits, swap_work(p, p->layer_work[0][0], p->layer_work[0][0] + p->heads[0].splits))
LIE_IF(class_capacity,    p->uses & ABI_SPLIT, a->target[0].launch.partial_row = 0)
LIE_IF(piece_kind,    p->n_pieces, p->pieces[0].kind = ABI_KINDS)
LIE_IF(piece_first,   p->n_pieces, p->pieces[0].first = UINT32_MAX)
LIE_IF(piece_count,   p->n_pieces, p->pieces[0].count = UINT32_MAX)
LIE_IF(piece_cols,    p->n_pieces, p->pieces[0].cols--)
LIE_IF(piece_more,    p->n_pieces, p->pieces[0].count++)
LIE_IF(tile_col0,     p->n_tiles, p->tiles[0].col0 = 1)
LIE_IF(tile_beyond,   p->n_tiles, p->tiles[0].col0 = (a->mask->n + 31) / 32 * 32)
LIE_IF(tile_pattern,  p->n_tiles, p->tiles[0].pattern = (u32)p->n_patterns + 1)
LIE(work_head,     p->work[0].head = a->mask->heads)
LIE(work_item,     p->work[0].item = (u32)p->n_items)
LIE_IF(work_twice,    p->n_work > 1, p->work[0] = p->work[1])
LIE(layer_first,   p->layer_work[0][0] = 1)
LIE(layer_big,     p->layer_work[0][0] = UINT64_MAX)
LIE(layer_count,   p->layer_work[0][1]--)
LIE(head_first,    p->heads[0].item++)
LIE(head_items,    p->heads[p->n_heads - 1].items++)
LIE(first_order,   p->item_first[0] = 1)
LIE(first_last,    p->item_first[a->mask->n_patterns]--)
LIE(layer_merge,    p->layer_work[0][2] = p->layer_work[0][1] + 1)
LIE(item_partial_slot,     p->items[0].partial_slot = 1)
LIE(item_partial_slots,    p->items[0].partial_slots = UINT32_MAX)
LIE(partial_slots,         p->partial_slots++)
LIE(max_cols,      p->max_cols--)
LIE(uses,          p->uses ^= 1u << ABI_TILES)
LIE_IF(block_rows,    p->n_patterns == 0, a->plan[0].block_rows = 64)
LIE(launch_row_block,  a->target[0].launch.block_rows = 64)
LIE(plan_index,    a->target[1].plan = a->n_plans)
LIE(no_phases,     a->target[0].launch.n_forward = 0)
LIE(no_backward,   a->target[0].launch.n_backward = 0)
LIE(no_state,      a->target[0].launch.delta_row = 0)
LIE(huge_scratch,  a->target[0].launch.scratch_col = UINT64_C(1) << 40)
LIE(many_waves,    a->target[0].launch.forward[0].waves = 17)
LIE(bad_entry,     strcpy(a->target[0].launch.forward[0].entry, "a b"))
LIE(over,          a->target[0].launch.forward[0].over = ABI_OVER_TRANSPOSED)
LIE(twice,         strcpy(a->target[1].name, a->target[0].name))
LIE(no_code,       a->target[0].n_images = 0)
LIE(empty_code,    a->target[1].image[0].size = 0)
LIE(missing_code,  a->target[1].image[1].size = 0)
LIE(two_codes,     a->target[0].image[a->target[0].n_images++] = a->target[0].image[0])
LIE(head_dim,      a->request.head_dim = 60)
LIE(mask_at,       a->mask->at[0] = 1)
LIE(mask_at_big,   a->mask->at[1] = UINT32_MAX)
LIE_IF(mask_run_end,   a->mask->pattern[0]->n_runs, a->mask->pattern[0]->run[0].end = a->mask->n + 1)
LIE_IF(mask_run_order, a->mask->pattern[0]->n_runs, a->mask->pattern[0]->run[0].begin = UINT32_MAX)
LIE(mask_row,      a->mask->pattern[0]->row[1] = UINT64_MAX)
LIE(mask_row_last, a->mask->pattern[0]->row[a->mask->n]--)
LIE(lambda,        a->request.transform = ABI_SPARSEGEN, a->request.lambda = 1)
LIE(transposed,    a->plan[0].transposed.items[0].row0++)
/* clang-format on */

static bool line_of(struct artifact *a, struct abi_line **ret)
{
    struct abi_piece *piece = piece_of(pass_of(a), ABI_DIAGONAL);
    *ret = piece ? &pass_of(a)->lines[piece->first] : NULL;
    return piece;
}

static bool line_col0(struct artifact *a)
{
    struct abi_line *l;
    return line_of(a, &l) && (l->col0 = (i32)a->mask->n);
}

static bool line_negative(struct artifact *a)
{
    struct abi_line *l;
    return line_of(a, &l) && (l->col0 = -1 - (i32)l->row_begin);
}

static bool line_step(struct artifact *a)
{
    struct abi_line *l;
    return line_of(a, &l) && (l->step = 2);
}

static bool line_rows(struct artifact *a)
{
    struct abi_line *l;
    return line_of(a, &l) && (l->row_end = 129);
}

static bool line_empty(struct artifact *a)
{
    struct abi_line *l;
    return line_of(a, &l) && (l->row_begin = l->row_end);
}

static bool gather_of(struct artifact *a, struct abi_gather **ret)
{
    struct abi_piece *piece = piece_of(pass_of(a), ABI_COLUMNS);
    *ret = piece ? &pass_of(a)->gathers[piece->first] : NULL;
    return piece;
}

static bool gather_first(struct artifact *a)
{
    struct abi_gather *g;
    return gather_of(a, &g) && (g->first = (u32)pass_of(a)->n_columns);
}

static bool gather_none(struct artifact *a)
{
    struct abi_gather *g;
    return gather_of(a, &g) && (g->count = 0, true);
}

static bool gather_many(struct artifact *a)
{
    struct abi_gather *g;
    return gather_of(a, &g) && (g->count = 33);
}

static bool gather_pattern(struct artifact *a)
{
    struct abi_gather *g;
    return gather_of(a, &g) && (g->pattern = (u32)pass_of(a)->n_patterns + 1);
}

static bool gather_column(struct artifact *a)
{
    struct abi_gather *g;
    return gather_of(a, &g) && (pass_of(a)->columns[g->first + g->count - 1] = a->mask->n);
}

static bool gather_order(struct artifact *a)
{
    struct abi_gather *g;
    if (!gather_of(a, &g) || g->count < 2)
        return false;
    pass_of(a)->columns[g->first + 1] = pass_of(a)->columns[g->first];
    return true;
}

static bool gather_beyond(struct artifact *a)
{
    struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; k < p->n_gathers; k++)
        if (p->gathers[k].pattern && p->gathers[k].count < 32)
            return p->patterns[(p->gathers[k].pattern - 1) * (uint64_t)32] |= UINT32_C(1) << 31;
    return false;
}

static bool range_end(struct artifact *a)
{
    struct abi_piece *piece = piece_of(pass_of(a), ABI_ROWS);
    return piece && (pass_of(a)->ranges[piece->first].end = a->mask->n + 1);
}

static bool range_order(struct artifact *a)
{
    struct abi_piece *piece = piece_of(pass_of(a), ABI_ROWS);
    return piece && (pass_of(a)->ranges[piece->first].begin = UINT32_MAX);
}

static bool rows_in_row_block(struct artifact *a)
{
    struct abi_piece *piece = piece_of(pass_of(a), ABI_BLOCKS);
    if (!piece)
        piece = piece_of(pass_of(a), ABI_TILES);
    return piece && (piece->kind = ABI_ROWS);
}

/* The last column tile reaches past the mask: its bits there must be off. */
static bool tile_tail(struct artifact *a)
{
    struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; k < p->n_tiles; k++)
        if (p->tiles[k].col0 + 32 > a->mask->n && p->tiles[k].pattern)
            return p->patterns[(p->tiles[k].pattern - 1) * (uint64_t)32] |= UINT32_C(1) << 31;
    return false;
}

static bool tile_full(struct artifact *a)
{
    struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; k < p->n_tiles; k++)
        if (p->tiles[k].col0 + 32 > a->mask->n) {
            p->tiles[k].pattern = 0;
            return true;
        }
    return false;
}

/* Plan and launch agree on a row block that the CPU's kernels do not have. */
static bool cpu_row_block(struct artifact *a)
{
    struct artifact_plan *plan = &a->plan[0];
    if (plan->forward.n_patterns || plan->transposed.n_patterns)
        return false;
    plan->block_rows = 64;
    for (uint32_t t = 0; t < a->n_targets; t++)
        a->target[t].launch.block_rows = a->plan[a->target[t].plan].block_rows;
    return true;
}

/* clang-format off */
static const struct lie lies[] = {
    NAMED(item_row0), NAMED(item_row0_big), NAMED(item_rows_0), NAMED(item_rows_big),
    NAMED(item_own), NAMED(item_own_none), NAMED(item_piece), NAMED(item_pieces),
    NAMED(item_step_0), NAMED(item_partial), NAMED(item_halves), NAMED(item_merge),
    NAMED(item_merge_3), NAMED(class_step), NAMED(class_leaves), NAMED(class_partials),
    NAMED(class_merge), NAMED(class_capacity), NAMED(item_cols), NAMED(item_cost), NAMED(piece_kind), NAMED(piece_first),
    NAMED(piece_count), NAMED(piece_cols), NAMED(piece_more), NAMED(tile_col0),
    NAMED(tile_beyond), NAMED(tile_pattern), NAMED(tile_tail), NAMED(tile_full),
    NAMED(line_col0), NAMED(line_negative), NAMED(line_step), NAMED(line_rows),
    NAMED(line_empty), NAMED(range_end), NAMED(range_order), NAMED(rows_in_row_block),
    NAMED(gather_first), NAMED(gather_none), NAMED(gather_many), NAMED(gather_pattern),
    NAMED(gather_column), NAMED(gather_order), NAMED(gather_beyond),
    NAMED(work_head), NAMED(work_item), NAMED(work_twice), NAMED(layer_first),
    NAMED(layer_big), NAMED(layer_count), NAMED(head_first), NAMED(head_items), NAMED(first_order), NAMED(first_last),
    NAMED(max_cols), NAMED(layer_merge), NAMED(item_partial_slot), NAMED(item_partial_slots), NAMED(partial_slots), NAMED(uses), NAMED(block_rows), NAMED(launch_row_block), NAMED(cpu_row_block), NAMED(plan_index),
    NAMED(no_phases), NAMED(no_backward), NAMED(no_state), NAMED(huge_scratch), NAMED(many_waves),
    NAMED(bad_entry), NAMED(over), NAMED(twice), NAMED(no_code), NAMED(empty_code),
    NAMED(missing_code), NAMED(two_codes), NAMED(head_dim),
    NAMED(mask_at), NAMED(mask_at_big), NAMED(mask_run_end), NAMED(mask_run_order),
    NAMED(mask_row), NAMED(mask_row_last), NAMED(lambda), NAMED(transposed),
};
/* clang-format on */

static void every_lie_is_refused(void **state)
{
    (void)state;
    forge_all(lies, sizeof lies / sizeof *lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_lie_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
