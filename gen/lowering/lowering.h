/* SPDX-License-Identifier: Apache-2.0 */
/* A lowering is one way of visiting entries of a row block: one file, one row in the table. Building
   works on a draft: each lowering in turn takes from the row block's open entries those that it visits
   at a lower price than tiles would, and tiles take the rest; the planner compares drafts. */
#pragma once
#include "gen/cost/price.h"
#include "gen/lowering/row_block.h"
#include "gen/tables/can.h"
#include "gen/tables/pass.h"
#include "gen/tables/visitor.h"
#include "masks/base/text.h"

/* Pieces of one item, not yet in the plan. Table indices count from this draft's own tables. */
struct draft {
    double cost; /* seconds, the item's own included: set by draft_price() */
    struct abi_piece piece[ABI_KINDS];
    uint32_t pieces;
    struct abi_range *ranges;
    struct abi_tile *tiles; /* pattern: 0 full, else 1 + index into words / block_rows */
    struct abi_line *lines;
    struct abi_gather *gathers; /* pattern as in tiles */
    u32 *columns;
    u32 *words;      /* patterns, block_rows words each */
    uint32_t n_kept; /* gathers at the end that are taken to be kept from the item before */
    uint64_t n_ranges, n_tiles, n_lines, n_gathers, n_columns, n_words;
    uint64_t ranges_capacity, tiles_capacity, lines_capacity, gathers_capacity,
        columns_capacity, words_capacity;
};

void draft_clear(struct draft *d);
void draft_finish(struct draft *d);
/* Room for one pattern of block_rows words at the end of `words`: the caller fills it. */
u32 *draft_pattern(struct draft *d, uint32_t block_rows);
void draft_piece(struct draft *d, enum abi_piece_kind kind, uint64_t first, uint64_t count,
                 uint64_t cols);

/* Counts over all pieces of one lowering in a plan of one mask. */
struct visits {
    uint64_t pieces, parts; /* parts: what pieces count: tiles, lines, .. */
    uint64_t entries, area; /* computed, active or not; and with those that kernels leave out */
    uint64_t active;
    uint32_t step; /* of the items */
};

/* The plan table that `first` and `count` of a kind's pieces index. */
enum lowering_table { TABLE_RANGES, TABLE_TILES, TABLE_LINES, TABLE_GATHERS };

struct lowering {
    const char *name; /* as `plan` prints it */
    const char *part; /* what a piece counts: "tile", "line" */
    enum abi_piece_kind kind;
    enum lowering_table table;
    bool optional; /* what it takes may turn out dearer: a draft without it is tried as well */
    /* Could it take open entries of this row block? Quick, never false where build would. */
    bool (*applies)(const struct row_block *s, const struct price *p);
    /* Adds the work of the whole row block, if this lowering visited all of it: an estimate, for the lines that `plan`
       rejects. Null: the lowering is not made of row blocks. */
    void (*count_alone)(struct row_block *s, struct effort *ret);
    bool bounds; /* what count_alone adds is a bound from below */
    /* Takes open entries and adds a piece; null: the planner makes its pieces. Prices only guide the choice of
       entries: `count` says what the piece costs. */
    void (*build)(struct row_block *s, const struct price *p, struct draft *d);
    /* Null where another row of the table decodes this kind. False: an index out of its table, or
       the visitor stopped. */
    bool (*decode)(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v);
    /* Score columns of a decoded piece (abi_piece.cols). */
    uint64_t (*columns)(const struct plan_pass *t, const struct abi_piece *piece);
    /* Adds the work of a piece, of a draft or of a plan. Its price is what plans are chosen by and predicted from. */
    void (*count)(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret);
    /* Entries that a decoded piece of a mask of length n computes, active or not. */
    uint64_t (*executed)(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n);
    /* True if kernels that can do `can` (enum family_can) accept such a piece in this item. */
    bool (*fits_item)(uint32_t can, const struct abi_item *item);
    /* Number of active entries of a decoded piece. Null: all that it computes, or for tiles the rest. */
    uint64_t (*active)(const struct plan_pass *t, uint32_t block_rows,
                       const struct abi_item *item, const struct abi_piece *piece);
    /* And its entries with those that kernels leave out; null: they compute all. */
    uint64_t (*area)(const struct plan_pass *t, const struct abi_item *item,
                     const struct abi_piece *piece, uint32_t n);
    const char *name_of_fewer; /* in place of the name, where kernels leave some out */
    /* Reason for such pieces in a plan, by the figures that decided; cells: n x n. Reasons are printed by ascending
       `told`. */
    void (*reason)(const struct visits *v, double cells, struct text *out);
    uint32_t told;
    /* Parts of a piece that take no mask test; null: not told. */
    uint64_t (*full)(const struct plan_pass *t, const struct abi_piece *piece);
    /* One line of text on a piece: "3 lines, 96 entries: diagonals -1 0 1". */
    void (*print)(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out);
};

/* Ends with null. Drafts are built in this order, except for tiles, which take the remaining entries. */
extern const struct lowering *const lowerings[];
extern const struct lowering lowering_tiles, lowering_dense;
const struct lowering *lowering_of(enum abi_piece_kind kind);

/* The row pass: which rows of a loaded row block stand out so much that an item of their own is worth
   trying. Sets `own` to the row block's rows without them; false where there are none. */
bool rows_stand_out(const struct row_block *s, u32 *own);
/* Which rows of a loaded row block stay together even if each of the others has an item of its own: those that see nothing,
   if they are half of its rows. Sets `own` to them; false where there are none. A row block of one row has none. */
bool rows_idle(const struct row_block *s, u32 *own);
uint64_t ranges_columns(const struct plan_pass *t, const struct abi_piece *piece);
uint64_t ranges_executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n);
/* Seconds of a global row with so many keys in so many ranges. */
double row_price(const struct price *p, double keys, double ranges);
/* Adds the work of row r of the row block as a global row. */
void rows_count(const struct row_block *s, uint32_t r, struct effort *ret);

/* Order of a piece's lines, for kernels and for the count of columns: lines along diagonals first, by column, then by
   row. */
void lines_sort(struct abi_line *lines, uint64_t count);

/* Input of residue_build(), whose entries come from a pattern, not from a row block. */
struct residue {
    const struct pattern *classes;
    bool whole; /* items have columns outside of their class too */
    uint32_t block_rows;
    uint32_t *place; /* [n], zeros before and after the call */
};
/* A draft of all entries that the item's owned rows have in the classes. */
void residue_build(const struct residue *x, const struct abi_item *item, struct draft *d);

/* fits_item() of what row blocks have beside tiles. */
bool item_is_row_block(uint32_t can, const struct abi_item *item);
uint32_t item_owned_rows(const struct abi_item *item);

/* "1 line", "3 lines". */
void count_print(struct text *out, uint64_t count, const char *noun);

static inline bool item_owns(const struct abi_item *item, uint32_t r)
{
    return item->own[r / 32] >> (r % 32) & 1;
}
