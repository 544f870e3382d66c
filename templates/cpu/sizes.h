/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of what the CPU kernels keep, from the numbers of a kernel config. The emitter reserves scratch and pack
   space by them; the templates lay out their structs by them and hold sizeof against them. Plain C without
   headers. Counts are of elements, *_BYTES are bytes; numbers are floats or words of 4 bytes, halves of 2. */
#ifndef MASKC_CPU_SIZES_H
#define MASKC_CPU_SIZES_H

enum {
    CPU_BLOCK_ROWS = 32, /* rows of a row block */
    CPU_TILE_COLS = 32,  /* columns of a column tile */
    CPU_GATHER_STRIDE =
        48, /* of gathered columns, transposed; 16 more: an odd number of cache lines */
    CPU_PANEL_COLS = 256, /* columns of a panel of transposed rows .. */
    CPU_PANEL_EXTRA = 48, /* .. 32 of the next panel, repeated, and 16 of padding */
    CPU_ROW_NUMBERS = 5,  /* numbers that each row carries: blank, m, l, LSE, delta */
};

/* Score columns of a block: for a matrix unit as many as the first-level cache holds, else enough that the cost of
   a block is not seen. With a bias a block of all columns saves the products that delta needs (delta.h). */
#define CPU_CHUNK_COLS(matrix, bias) ((matrix) && !(bias) ? 256 : 512)

#define CPU_ROUND_64(bytes) (((bytes) + 63) / 64 * 64)

/* Floats of a row: whole vectors. */
#define CPU_WIDTH(vector_bytes, head_dim) \
    (((head_dim) + (vector_bytes) / 4 - 1) / ((vector_bytes) / 4) * ((vector_bytes) / 4))
/* Elements of a row as a matrix unit takes them: whole steps of 32 features. */
#define CPU_DEPTH(head_dim) (((head_dim) + 31) / 32 * 32)
/* From row to row of a block's scores: a tile may begin at the last column; an odd number of cache lines. */
#define CPU_SCORE_STRIDE(chunk_cols) ((chunk_cols) + CPU_TILE_COLS + 16)
/* From row to row of P and dS in bf16. */
#define CPU_P_STRIDE(chunk_cols) ((chunk_cols) + CPU_TILE_COLS)
/* Words of dropout bits of a row of scores. */
#define CPU_KEEP_WORDS(chunk_cols) (CPU_SCORE_STRIDE(chunk_cols) / 32 + 2)

/* ---- scratch ---- */

/* Gathered columns that a matrix unit's kernel keeps: their header; both operands as panels and as pairs. */
#define CPU_GATHERED_BYTES(width, depth) (192 + 4 * CPU_BLOCK_ROWS * ((depth) + (width)))

/* A row block: two operands, two sums and the numbers of its rows; gathered columns; for a matrix unit both
   operands rounded, and the gathered columns that it keeps. */
#define CPU_ROW_BLOCK_BYTES(matrix, gathers, width, depth)                       \
    CPU_ROUND_64(4 * CPU_BLOCK_ROWS * (4 * (width) + CPU_ROW_NUMBERS) +          \
                 ((matrix) ? 2 * 2 * CPU_BLOCK_ROWS * (depth) +                  \
                                 (gathers)*CPU_GATHERED_BYTES(width, depth) + 64 \
                           : 4 * CPU_GATHER_STRIDE * (width)))

/* A column tile, at most one for each score column, and what a block says of itself. */
enum { CPU_COLUMN_TILE_BYTES = 32, CPU_BLOCK_HEADER_BYTES = 64 };

/* A block: scores, the columns of lists, dP (one row without a backward pass), dropout bits, X of a bias, the
   column tiles; for a matrix unit P and dS in bf16. */
#define CPU_BLOCK_BYTES(matrix, chunk_cols, backward, bias)             \
    CPU_ROUND_64(                                                       \
        4 * CPU_SCORE_STRIDE(chunk_cols) *                              \
            (2 * CPU_BLOCK_ROWS + ((backward) ? CPU_BLOCK_ROWS : 1) +   \
             ((bias) ? CPU_BLOCK_ROWS : 0)) +                           \
        4 * CPU_BLOCK_ROWS * CPU_KEEP_WORDS(chunk_cols) +               \
        CPU_COLUMN_TILE_BYTES * (chunk_cols) + CPU_BLOCK_HEADER_BYTES + \
        ((matrix) ? 2 * CPU_BLOCK_ROWS * CPU_P_STRIDE(chunk_cols) * (1 + (backward)) : 0))

/* ---- pack space ---- */

/* For each row of a head, padded to 32, and for 32 more. K as panels, K and V as rows; with a backward pass all
   four operands both ways. A panel repeats columns of the next one, the last panel is narrower: never more than
   3/2 of the rows. For a matrix unit panels are pairs of features, and there are pairs of rows, half a row each. */
#define CPU_PACK_OPERANDS(backward) ((backward) ? 4 : 2)
#define CPU_PACK_PANELS(backward)   ((backward) ? 4 : 1)
#define CPU_PACK_ROW_BYTES(matrix, backward, head_dim, width, depth) \
    ((matrix) ? 4 * (CPU_PACK_PANELS(backward) * (depth) / 2 +       \
                     CPU_PACK_OPERANDS(backward) * (width)*3 / 2)    \
              : 4 * (CPU_PACK_PANELS(backward) * (head_dim)*3 / 2 +  \
                     CPU_PACK_OPERANDS(backward) * (width)))

/* Bytes that a split row stores: its sums (two of them in the backward pass) and two numbers. */
#define CPU_PARTIAL_ROW_BYTES(backward, width) (4 * ((1 + (backward)) * (width) + 2))

/* ---- what the kernels of some items take (enum abi_item_kernel) ---- */

/* Rows that a dot product along a diagonal takes at once: tiles 16, where they hold whole vectors; vectors 4.
   Diagonals are dense where at least one row in so many of those taken is covered. */
enum { CPU_DIAGONAL_TILE_ROWS = 16, CPU_DIAGONAL_VECTOR_ROWS = 4 };
#define CPU_DIAGONAL_ONE_IN(rows) ((int)(rows) == (int)CPU_DIAGONAL_VECTOR_ROWS ? 2 : 3)

/* Diagonals of an item: the scores of its rows fill a block. */
#define CPU_DIAGONAL_MOST(chunk_cols) (chunk_cols)

/* Columns of a global row: its scores are stored where a block has them, up to a whole vector; with a matrix unit P
   where a block has it, from a multiple of 16 to one of 32. A short one is not worth the unit. */
enum { CPU_MOST_LANES = 16, CPU_MATRIX_ROW_LEAST = 128 };
#define CPU_GLOBAL_ROW_MOST(chunk_cols) \
    (CPU_BLOCK_ROWS * CPU_SCORE_STRIDE(chunk_cols) - CPU_MOST_LANES)
#define CPU_MATRIX_ROW_MOST(chunk_cols) \
    (CPU_BLOCK_ROWS * CPU_P_STRIDE(chunk_cols) - 2 * CPU_TILE_COLS)

#endif
