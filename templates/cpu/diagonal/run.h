/* SPDX-License-Identifier: Apache-2.0 */
/* Items that are all diagonals: 16 rows of a row block go side by side (struct diagonal_rows). A diagonal gives each
   row at most one column. Scores are stored diagonal by diagonal, the 16 rows in the lanes of vectors: reductions
   along a row then need nothing across lanes, and what the rows share (where a diagonal begins, whether it covers
   them) is computed once. */
#ifndef MASKC_CPU_DIAGONAL_RUN_H
#define MASKC_CPU_DIAGONAL_RUN_H
#include "cpu/row_block.h"

enum {
    FOUR = CPU_DIAGONAL_VECTOR_ROWS,
    ALL_FOUR = 15,
    DIAGONAL_ROWS = CPU_DIAGONAL_TILE_ROWS,
    ALL_ROWS = (1 << DIAGONAL_ROWS) - 1,
    ROW_VECS = WIDTH / LANES,
    SUM_VECS = VECTOR_BYTES == 64 ? 4 : 2, /* FOUR x SUM_VECS sums stay in registers */
    ROW_SUM_VECS = 4,                      /* of one row */
};

/* A diagonal at 16 rows: row k, if bit k of `rows` is set, sees column + step k. */
struct diagonal_at {
    i32 column;
    u16 step, rows;
};

/* A run: several items go through a pass together. Work of the matrix unit and of vectors then alternates less often,
   and a column's row that one diagonal brought to L1 serves the next diagonal. */
enum {
    RUN_ITEMS = 4,
    RUN_ROWS = RUN_ITEMS * BLOCK_ROWS,
    RUN_BLOCKS = RUN_ROWS / DIAGONAL_ROWS,
    RUN_DIAGONALS = 2 * CHUNK_COLS, /* of an item there may be as many */
};
typedef char an_item_fits[BLOCK_ROWS == 2 * DIAGONAL_ROWS ? 1 : -1];
_Static_assert(2 * CPU_DIAGONAL_MOST(CPU_CHUNK_COLS(MATRIX, BIAS)) <= RUN_DIAGONALS,
               "all diagonals of an item fit a run");

/* 16 rows, some of them live, and the diagonals that those see. */
struct diagonal_rows {
    u32 i, live;      /* row i + k of the sequence, if bit k is set */
    u32 first, count; /* of the run's diagonals, and of their numbers */
    u32 plain,
        special; /* of those, from `plain` to before `special`: diagonals that cover all the rows */
};

/* A number for each diagonal of the run and each of 16 rows. */
typedef __attribute__((aligned(64))) float diagonal_numbers[RUN_DIAGONALS][DIAGONAL_ROWS];

struct diagonal_run {
    const struct sequence *s;
    const struct abi_item *item; /* neighbours */
    u32 items;
    struct operand operand[2]; /* columns: for S, for dP (forward: for O) */
    struct diagonal_rows rows[RUN_BLOCKS];
    u32 blocks;
    struct diagonal_at diagonal[RUN_DIAGONALS + 1];
    u32 diagonals;
    struct prefetch prefetch;
};

/* The kernel that the plan names for the item. All of them but the row-block kernel are for softmax without a bias,
   which is compiled in. */
INLINE enum abi_item_kernel kernel_of(const struct abi_item *item)
{
    return IS_SOFTMAX && !BIAS ? (enum abi_item_kernel)item->kernel : ABI_ROW_BLOCK_KERNEL;
}

/* 2^x for P. With a matrix unit P comes from bf16 numbers, so fewer digits do. */
INLINE vec exp2_p(vec x)
{
#if MATRIX
    return exp2_half(x);
#else
    return exp2_vec(x);
#endif
}

/* Items of a run, from this one on, of so many neighbours; 0: this item takes another kernel. */
static u32 diagonal_run_length(const struct abi_plan *p, const struct abi_item *item,
                               u32 neighbours)
{
    u32 diagonals = 0, items = 0;
    for (; items < neighbours && items < RUN_ITEMS &&
           kernel_of(item + items) == ABI_DIAGONAL_KERNEL;
         items++) {
        diagonals += 2 * p->pieces[item[items].piece].count;
        if (diagonals > RUN_DIAGONALS || item[items].row0 != item->row0 + items * BLOCK_ROWS)
            break;
    }
    return items;
}

static const float no_row[WIDTH]; /* zeros, in any format */

/* Finds the first neighbouring diagonals that cover all 16 rows: `plain` .. `special` - 1 take the fast path. */
static void diagonals_partition(const struct diagonal_at *diagonal, struct diagonal_rows *rows)
{
    u32 k = 0;
    while (k < rows->count && !(diagonal[k].step && diagonal[k].rows == ALL_ROWS))
        k++;
    rows->plain = k;
    while (k < rows->count && diagonal[k].step && diagonal[k].rows == ALL_ROWS)
        k++;
    rows->special = k;
}

/* Bits of the rows that a diagonal covers, among 16 rows of an item from `first` on. */
INLINE u32 diagonal_covers(const struct abi_line *diagonal, i32 first, i32 left)
{
    i32 begin = (i32)diagonal->row_begin - first, end = (i32)diagonal->row_end - first;
    if (diagonal->step || left <= 0)
        end = left < end ? left : end;
    if (begin <= 0 && end >= DIAGONAL_ROWS)
        return ALL_ROWS;
    begin = begin < 0 ? 0 : begin;
    end = end < DIAGONAL_ROWS ? end : DIAGONAL_ROWS;
    return begin < end ? (1u << end) - (1u << begin) : 0;
}

/* Appends a diagonal if it covers some live rows. */
INLINE void diagonal_append(struct diagonal_at *to, struct diagonal_rows *rows, i32 column,
                            u32 step, u32 covered)
{
    covered &= rows->live;
    to[rows->count] = (struct diagonal_at){column, (u16)step, (u16)covered};
    rows->count += covered != 0;
}

/* The diagonals of an item, at its first and at its last 16 rows. */
static void diagonals_of_item(struct diagonal_at *to, const struct abi_line *diagonal,
                              u32 diagonals, u32 length, struct diagonal_rows *first,
                              struct diagonal_rows *last)
{
    const i32 end = (i32)length;
    for (u32 k = 0; k < diagonals; k++, diagonal++) {
        const i32 column = diagonal->col0, next = column + (i32)diagonal->step * DIAGONAL_ROWS;
        const int whole = !diagonal->row_begin && diagonal->row_end == BLOCK_ROWS;
        if (whole && next + DIAGONAL_ROWS <= end) {
            diagonal_append(to, first, column, diagonal->step, ALL_ROWS);
            diagonal_append(to + diagonals, last, next, diagonal->step, ALL_ROWS);
            continue;
        }
        diagonal_append(to, first, column, diagonal->step,
                        diagonal_covers(diagonal, 0, end - column));
        diagonal_append(to + diagonals, last, next, diagonal->step,
                        diagonal_covers(diagonal, DIAGONAL_ROWS, end - next));
    }
}

static void diagonal_run_add(struct diagonal_run *w, const struct abi_plan *p,
                             const struct abi_item *item)
{
    const struct abi_piece *piece = &p->pieces[item->piece];
    const u32 live = rows_live(w->s, item);
    struct diagonal_rows rows[2];
    for (u32 b = 0; b < 2; b++)
        rows[b] = (struct diagonal_rows){.i = item->row0 + b * DIAGONAL_ROWS,
                                         .live = live >> b * DIAGONAL_ROWS & ALL_ROWS,
                                         .first = w->diagonals + b * piece->count};
    diagonals_of_item(w->diagonal + w->diagonals, p->lines + piece->first, piece->count,
                      w->s->column_length, &rows[0], &rows[1]);
    for (u32 b = 0; b < 2; b++)
        if (rows[b].live) {
            diagonals_partition(w->diagonal + rows[b].first, &rows[b]);
            w->rows[w->blocks++] = rows[b];
        }
    w->diagonals += 2 * piece->count;
}

static void diagonal_run_open(struct diagonal_run *w, const struct sequence *s,
                              const struct abi_plan *p, const struct abi_item *item, u32 items)
{
    const int transposed = p == &s->a->transposed;
    w->s = s;
    w->item = item;
    w->items = items;
    w->operand[0] = operand_of(s, transposed ? OPERAND_QUERY : OPERAND_KEY);
    w->operand[1] = operand_of(s, transposed ? OPERAND_GRADIENT : OPERAND_VALUE);
    w->blocks = w->diagonals = 0;
    w->prefetch.count = w->prefetch.next = w->prefetch.rows = 0;
    for (u32 k = 0; k < items; k++)
        diagonal_run_add(w, p, item + k);
}

/* For row r of the run, at or beyond the length: true if it is written. */
INLINE int diagonal_run_beyond(const struct diagonal_run *w, u32 r)
{
    const struct abi_item *item = &w->item[r / BLOCK_ROWS];
    return r % BLOCK_ROWS < item->rows && row_owned(item, r % BLOCK_ROWS) &&
           w->item->row0 + r < w->s->rows;
}

/* The first row of the run for which that may hold. */
INLINE u32 diagonal_run_end(const struct diagonal_run *w)
{
    return w->s->length > w->item->row0 ? w->s->length - w->item->row0 : 0;
}

/* Prefetches the rows of the next run. */
static void diagonal_run_prefetch(struct diagonal_run *w, const struct abi_tensor *t)
{
    const u32 rows = w->items * BLOCK_ROWS;
    prefetch_add(&w->prefetch, w->s, t, w->item->row0 + rows, 1, rows);
}

#endif
