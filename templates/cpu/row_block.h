/* SPDX-License-Identifier: Apache-2.0 */
/* A row block: its rows, its sums, and its score columns, which come in blocks of about CHUNK_COLS. A block is a
   sequence of column tiles. A tile is a panel, up to 32 columns that all rows share, or a column list, where each
   row has columns of its own. In the transposed plan rows are keys and columns are queries, so these files say
   row and column. */
#ifndef MASKC_CPU_ROW_BLOCK_H
#define MASKC_CPU_ROW_BLOCK_H
#include "cpu/deinterleave.h"
#include "cpu/prefetch.h"
#include "cpu/product.h"

enum column_tile_kind {
    TILE_PANEL, /* columns first .. first + width - 1 */
    TILE_DIAGONAL, /* list: diagonals first .. first + width - 1, each gives a row at most one column */
    TILE_GATHERED, /* gathered: plan columns[first .. first + width - 1] */
    TILE_RANGE     /* list: columns first .. first + width - 1, for row 0 alone (global row) */
};

struct column_tile {
    u8 kind;
    u8 live;  /* panel: bit k: group k of MICRO_ROWS rows has an active entry */
    u8 gap;   /* matrix units: unused score columns before `at` */
    u8 shift; /* panel: TILE / 2 where it begins in the middle of a tile ... */
    u32 first;
    u32 at, width; /* score columns of the block */
    u32 pattern;   /* panel: as in struct abi_tile */
    u32 next; /* with a shift: pattern of the tile that holds the panel's second half; 0: none */
    u32 columns; /* panel: bit c: column first + c counts */
};

struct block {
    float score[BLOCK_ROWS][SCORE_STRIDE];             /* S, then P or dS */
    float dp[BACKWARD ? BLOCK_ROWS : 1][SCORE_STRIDE]; /* dP, then dS */
    u32 column[BLOCK_ROWS][SCORE_STRIDE]; /* lists: of each row; see list_count() */
    u32 keep[BLOCK_ROWS][KEEP_WORDS];     /* dropout: bit c % 32 of word c / 32, 1 where kept */
    struct column_tile tile[CHUNK_COLS];
    u32 tiles, cols;
    u32 lists; /* 1 where some tile is a column list */
    u32 kept;  /* matrix units, sparsegen: how many scores dp[0] has packed */
    u32 unused[12];
#if BIAS
    float bias[BLOCK_ROWS][SCORE_STRIDE]; /* X, or dX: see bias.h */
#endif
#if MATRIX
    u16 p_ds[1 + BACKWARD][BLOCK_ROWS][P_STRIDE]; /* P and dS in bf16 */
#endif
};

#if MATRIX
/* Gathered columns of a tile: see matrix/gathered.h. */
struct gathered {
    u32 b, h, width;   /* whose; no width: none */
    u32 panels, pairs; /* bit k: those of operand k are there */
    u32 used;          /* when, last */
    u32 column[TILE], unused[10];
    float panel[2][TILE * DEPTH / 2];
    u32 pair[2][TILE / 2 * WIDTH];
};
#endif

#if MATRIX
enum { GATHERS = GATHERED };
_Static_assert(sizeof(struct gathered) == CPU_GATHERED_BYTES(WIDTH, DEPTH),
               "sizes.h: gathered");
#else
enum { GATHERS = 0 };
#endif

struct row_block_memory {
    float row[2][BLOCK_ROWS][WIDTH];  /* the row block's rows: for S (scaled), for dP */
    float sums[2][BLOCK_ROWS][WIDTH]; /* O; dQ; dK, dV */
    u32 blank[BLOCK_ROWS]; /* blank[0], blank[1]: sums[k] is empty; the rest is padding */
    float row_max[BLOCK_ROWS], total[BLOCK_ROWS]; /* online softmax: m (base 2), l */
#if !MATRIX
    float gather[WIDTH][GATHER_STRIDE]; /* a tile's columns, transposed or as rows */
#endif
    float offset[BLOCK_ROWS], delta[BLOCK_ROWS]; /* LSE (base 2) or tau; delta */
#if MATRIX
    u16 half_row[2][BLOCK_ROWS][DEPTH]; /* as `row` */
    struct gathered gathered[GATHERED];
    u32 gathered_used, unused[15];
#endif
};

enum {
    ROW_BLOCK_BYTES = (sizeof(struct row_block_memory) + 63) / 64 * 64,
    BLOCK_BYTES = (sizeof(struct block) + 63) / 64 * 64,
};
/* The structs have the sizes in sizes.h, by which the emitter reserved scratch. If blocks are kept,
   there is one for each CHUNK_COLS columns, one that is partly filled, and one in which
   block_next() finds that no columns are left. */
_Static_assert(ROW_BLOCK_BYTES == CPU_ROW_BLOCK_BYTES(MATRIX, GATHERS, WIDTH, DEPTH),
               "sizes.h: row block");
_Static_assert(BLOCK_BYTES <= CPU_BLOCK_BYTES(MATRIX, CHUNK_COLS, BACKWARD, BIAS),
               "sizes.h: block");
_Static_assert(sizeof(struct column_tile) <= CPU_COLUMN_TILE_BYTES, "sizes.h: column tile");
_Static_assert(SCRATCH_FIXED_BYTES >= ROW_BLOCK_BYTES + (1 + BLOCKS_KEPT) * BLOCK_BYTES,
               "scratch");
_Static_assert(!BLOCKS_KEPT || (u64)SCRATCH_COL_BYTES * CHUNK_COLS >= BLOCK_BYTES,
               "scratch of columns");
_Static_assert((int)BLOCK_ROWS == (int)CPU_BLOCK_ROWS && (int)TILE == (int)CPU_TILE_COLS,
               "a row's columns of a tile, and a tile's rows, are bits of a word");

struct row_block {
    struct sequence s;
    const struct abi_plan *plan;
    const struct abi_item *item;
    int transposed;
    u32 live;                  /* bit r: row r is owned and below the length */
    u32 live_blocks;           /* bit k: group k of MICRO_ROWS rows has a live row */
    u32 rows;                  /* rows of a block that are in use */
    u32 lists;                 /* 1 where some piece is a column list */
    struct operand operand[2]; /* columns: for S, for dP */
    float
        row_scale; /* of the rows: scale, times log2(e) for softmax; with a matrix unit its sign .. */
    float
        softmax_scale; /* .. and its absolute value, of S: so that the rows are not rounded again; else 1 */
    u32 piece, entry, offset; /* where the next tile begins */
    struct row_block_memory *m;
    struct block *blocks;
    struct prefetch *prefetch;
};

static inline struct block *row_block_block(const struct row_block *t, u32 k)
{
    return (struct block *)(void *)((u8 *)t->blocks + (u64)k * BLOCK_BYTES);
}

INLINE int row_owned(const struct abi_item *item, u32 r)
{
    return item->own[r / 32] >> (r % 32) & 1;
}

/* The tensor of operand 0 or 1. */
static inline const struct abi_tensor *row_block_tensor(const struct row_block *t, u32 which)
{
    if (t->transposed)
        return operand_tensor(t->s.a, which ? OPERAND_GRADIENT : OPERAND_QUERY);
    return operand_tensor(t->s.a, which ? OPERAND_VALUE : OPERAND_KEY);
}

/* The position in the sequence. */
INLINE u32 row_of(const struct abi_item *item, u32 r)
{
    return item->row0 + item->step * r;
}

static inline int piece_gathers(u32 kind)
{
    return kind == ABI_COLUMNS || kind == ABI_RESIDUE;
}

static inline int piece_is_panel(u32 kind)
{
    return kind == ABI_TILES || kind == ABI_BLOCKS || piece_gathers(kind);
}

/* Bit r: row r is owned and below the length. */
static inline u32 rows_live(const struct sequence *s, const struct abi_item *item)
{
    u32 active = item->row0 < s->length ? s->length - item->row0 : 0;
    if (item->step > 1)
        active = (active + item->step - 1) / item->step;
    active = active < item->rows ? active : item->rows;
    return item->own[0] & (active < 32 ? (1u << active) - 1 : 0xffffffff);
}

static void row_block_open(struct row_block *t, const struct sequence *s,
                           const struct abi_plan *plan, const struct abi_item *item,
                           int transposed, struct prefetch *x, u8 *scratch)
{
    *x = (struct prefetch){.rows = 0};
    *t = (struct row_block){
        .s = *s, .plan = plan, .item = item, .transposed = transposed, .prefetch = x};
    t->m = (struct row_block_memory *)(void *)scratch;
    t->blocks = (struct block *)(void *)(scratch + ROW_BLOCK_BYTES);
    t->operand[0] = operand_of(s, transposed ? OPERAND_QUERY : OPERAND_KEY);
    t->operand[1] = operand_of(s, transposed ? OPERAND_GRADIENT : OPERAND_VALUE);
    t->row_scale = s->a->scale * (IS_SOFTMAX ? LOG2_E : 1);
    t->softmax_scale = 1;
    if (MATRIX) {
        t->softmax_scale = t->row_scale < 0 ? -t->row_scale : t->row_scale;
        t->row_scale = t->row_scale < 0 ? -1 : 1;
    }
    t->live = rows_live(s, item);
    for (u32 k = 0; k < BLOCKS; k++)
        t->live_blocks |= (u32)((t->live >> (k * MICRO_ROWS) & ((1u << MICRO_ROWS) - 1)) != 0)
                          << k;
    t->rows = item->rows;
    for (u32 k = 0; k < item->pieces; k++)
        if (piece_is_panel(plan->pieces[item->piece + k].kind))
            t->rows = (item->rows + MICRO_ROWS - 1) / MICRO_ROWS * MICRO_ROWS;
        else
            t->lists = 1;
}

INLINE int row_live(const struct row_block *t, u32 r)
{
    return t->live >> r & 1;
}

/* The row block's rows of a tensor as floats; zeros for rows that are not live. */
static void row_block_read(const struct row_block *t, const struct abi_tensor *from,
                           float scale, float (*to)[WIDTH])
{
    for (u32 r = 0; r < t->rows; r++)
        if (row_live(t, r))
            row_read(&t->s, from, row_of(t->item, r), scale, to[r]);
        else
            for (u32 d = 0; d < WIDTH; d++)
                to[r][d] = 0;
}

#if MATRIX
/* Copies a row of bf16; null: zeros. */
INLINE void half_copy(const u16 *from, u16 *to)
{
    u32 d = 0;
    for (; d + 2 * LANES <= HEAD_DIM; d += 2 * LANES) {
        vec x = {0};
        if (from)
            x = load((const float *)(const void *)(from + d));
        store((float *)(void *)(to + d), x);
    }
    for (; d < HEAD_DIM; d += 8) {
        quad x = {0};
        if (from)
            x = *(const quad_at *)(const void *)(from + d);
        *(quad_at *)(void *)(to + d) = x;
    }
    for (u32 d = HEAD_DIM; d < DEPTH; d += 8)
        *(quad_at *)(void *)(to + d) = (quad){0};
}

static void row_block_copy(const struct row_block *t, const struct abi_tensor *from,
                           u16 (*to)[DEPTH])
{
    const u16 *at = (const u16 *)from->data + element_at(&t->s, from, t->item->row0);
    for (u32 r = 0; r < t->rows; r++, at += (i64)t->item->step * from->row)
        half_copy(row_live(t, r) ? at : 0, to[r]);
}

INLINE const u16 *block_rows(const struct row_block *t, u32 which)
{
    return t->m->half_row[which][0];
}

static void row_block_round(const struct row_block *t, u32 which)
{
    for (u32 r = 0; r < t->rows; r++) {
        for (u32 d = 0; d < WIDTH; d += LANES)
            half_store(t->m->half_row[which][r] + d, load(t->m->row[which][r] + d));
        for (u32 d = WIDTH; d < DEPTH; d++)
            t->m->half_row[which][r][d] = 0;
    }
}
#else
INLINE const float *block_rows(const struct row_block *t, u32 which)
{
    return t->m->row[which][0];
}

INLINE void row_block_round(const struct row_block *t, u32 which)
{
    (void)t, (void)which;
}
#endif

/* Loads the row block's rows for products and, for column lists, as floats. `which`: for S (0) or for dP (1). */
static void row_block_take(const struct row_block *t, const struct abi_tensor *from,
                           float scale, u32 which)
{
#if MATRIX
    if (scale == 1 && !t->lists) {
        row_block_copy(t, from, t->m->half_row[which]);
        return;
    }
#endif
    row_block_read(t, from, scale, t->m->row[which]);
    row_block_round(t, which);
    for (u32 r = 0; r < t->rows; r++)
        row_deinterleave(t->m->row[which][r]);
}

/* The item that most likely comes next; null: none. */
INLINE const struct abi_item *item_after(const struct row_block *t)
{
    const struct abi_head *head = &t->plan->heads[t->s.h];
    const struct abi_item *next = t->item + 1;
    return next < t->plan->items + head->item + head->items ? next : 0;
}

/* Prefetches the next row block's rows of `from`, and this one's of the output `to` (null: none). */
static void row_block_prefetch(const struct row_block *t, const struct abi_tensor *from,
                               const struct abi_tensor *to)
{
    const struct abi_item *item = t->item;
    const struct abi_item *next = item_after(t);
    if (next)
        prefetch_add(t->prefetch, &t->s, from, next->row0, next->step, next->rows);
    if (to && !item->split && !rows_streamed(&t->s, to))
        prefetch_add(t->prefetch, &t->s, to, item->row0, item->step, item->rows);
}

#endif
