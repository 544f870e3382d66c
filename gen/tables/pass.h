/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a plan in one direction, as templates/abi.h defines them: written by the planner, decoded by the
   lowerings, stored in kernel files, read by every kernel. */
#pragma once
#include "gen/tables/item_kernel.h"
#include "templates/abi.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows that the table of lowerings may have. */
enum { LOWERINGS_MOST = 12 };

struct plan_summary; /* gen/plan/plan.h */
struct plan_alone;

struct plan_pass {
    struct abi_item *items;
    struct abi_piece *pieces;
    struct abi_range *ranges;
    struct abi_tile *tiles;
    struct abi_line *lines;
    struct abi_gather *gathers;
    u32 *columns;  /* index lists of the gathers */
    u32 *patterns; /* [n_patterns][block_rows] */
    struct abi_work *work;
    struct abi_head *heads; /* [layers][heads] */
    uint64_t n_items, n_pieces, n_ranges, n_tiles, n_lines, n_gathers, n_columns, n_patterns,
        n_work, n_heads;
    uint64_t items_capacity, pieces_capacity, ranges_capacity, tiles_capacity, lines_capacity,
        gathers_capacity, columns_capacity, patterns_capacity;
    uint32_t *item_first; /* [mask patterns + 1]: items of pattern p */
    uint64_t (*layer_work)
        [3]; /* [layers]: first and count in `work`, and how many of these merge, in a launch of their own */
    uint32_t max_cols, uses;
    uint32_t
        panel_cols; /* of a kernel file, where kernels need more: cpu_panel_cols(); else 0 */
    uint32_t partial_slots; /* that a head needs: the end of the furthest item's */
    uint32_t block_rows;    /* words of a pattern */
    bool lines_only;        /* every row block is visited by lines alone, which packs nothing */
    bool fragments;         /* kernels leave out what is empty of a tile by 16 x 8, ... */
    bool halves;            /* ... by 16 columns */
    uint32_t
        gathers_kept; /* groups of gathered columns that kernels keep from row block to row block */
    struct item_kernels kernels;  /* that items may take beside the row-block kernel */
    struct plan_summary *summary; /* [mask patterns] */
    struct plan_alone *alone;     /* [mask patterns] */
    const char
        *prices; /* the row of the machine table whose prices chose; or one of the next two */
};

/* The words of a tile's or a group's pattern; null for 0, the full one. */
static inline const u32 *pass_pattern(const struct plan_pass *t, u32 pattern)
{
    return pattern ? t->patterns + (size_t)(pattern - 1) * t->block_rows : NULL;
}

/* True if the item merges partial sums that another item left for some row. */
static inline bool item_merges(const struct abi_item *item)
{
    u32 any = 0;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        any |= item->merge[w];
    return any;
}
