/* SPDX-License-Identifier: Apache-2.0 */
/* Input of a kernel: the plan's tables and the caller's tensors. Plain C without headers, read
   by the planner, the runtime, the C templates, the CUDA templates (NVRTC) and the emulation alike.
   Changing anything here means a new ABI_VERSION; kernel files of another version are refused.

   Words: i is a query, j a key, b a sequence of the batch, h a head, d a position in the head.
   In the transposed plan rows are keys and columns are queries. */
#ifndef MASKC_ABI_H
#define MASKC_ABI_H

enum { ABI_VERSION = 7 };

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

/* clang-format off */

/* ---- plan tables (mask content; built by gen/plan, checked bit for bit) ---- */

enum { ABI_TILE_COLS = 32 };  /* keys of a tile: one mask word per row */
enum { ABI_MAX_BLOCK_ROWS = 128 }; /* rows of the tallest row block */
enum { ABI_KEY_HEAD_ROWS = 64 };   /* CUDA: keys of a block that adds up the dK and dV of query heads */

/* A piece visits part of a row block by one lowering. Its `first` and `count` index the table that
   belongs to its kind. */
enum abi_piece_kind {
    ABI_BLOCKS,   /* ranges: every owned row sees every key of the range; no mask test. CPU: the rows
                     may be a step > 1 apart */
    ABI_TILES,    /* tiles: BLOCK_ROWS x 32 entries, full (pattern 0) or under a pattern */
    ABI_DIAGONAL, /* lines: one key per row, along a diagonal (step 1) or down a column (step 0) */
    ABI_ROWS,     /* ranges of the keys of one row; only in items with rows = 1 */
    ABI_COLUMNS,  /* gathers: scattered columns that rows share, brought together */
    ABI_RESIDUE,  /* gathers of an item whose rows are of one residue class (step > 1); the only kind of piece in its item */
    ABI_KINDS
};

/* Kinds whose products read packed operands on CPUs, as bits. */
enum { ABI_PACKED_KINDS = 1 << ABI_BLOCKS | 1 << ABI_TILES };

enum { ABI_SPLIT = 1 << 30 }; /* in `uses`: some item is split; another one merges its rows */

struct abi_range {
    u32 begin, end; /* columns begin .. end - 1 */
};

struct abi_tile {
    u32 col0;    /* first column, a multiple of 32; the last tile may reach past n: its pattern
                    is then never 0, and those bits are off */
    u32 pattern; /* 0: full; else 1 + index into patterns: BLOCK_ROWS words, bit c = column col0+c */
};

struct abi_line {
    i32 col0;       /* row r of the row block, row_begin <= r < row_end, sees column col0 + step * r */
    u32 step;       /* 0 or 1 */
    u32 row_begin, row_end;
};

/* Up to ABI_TILE_COLS columns of the index list, taken together as those of a tile are. */
struct abi_gather {
    u32 first, count; /* columns[first .. first + count - 1], ascending; 1 <= count <= 32 */
    u32 pattern;      /* 0: full; else 1 + index into patterns, bit k = column columns[first+k] */
};

struct abi_piece {
    u32 kind, first, count;
    u32 cols; /* score columns that it needs: sum of range lengths, 32 a tile, 1 a line,
                 count of a gather */
};

/* The kernel that computes an item, among those of its kernel family. The planner chooses it by
   what a plan knows: pieces, rows that are split or merged, the transform, a bias. Dropout does not
   change it. Neighbouring items of ABI_DIAGONAL_KERNEL may run together. CUDA kernels ignore it:
   there it is always the first. */
enum abi_item_kernel {
    ABI_ROW_BLOCK_KERNEL,  /* any item */
    ABI_DIAGONAL_KERNEL,   /* one piece of lines, nothing split or merged */
    ABI_GLOBAL_ROW_KERNEL, /* one row with one range, nothing split or merged */
    ABI_MATRIX_ROW_KERNEL, /* the same by packed operands, which the plan has */
    ABI_ITEM_KERNELS
};

/* One row block, or one global row. Rows whose `own` bit is off belong to another item: this one neither visits
   nor writes them. An item without pieces still writes its owned rows (0, -inf). No (row, column) is visited by
   two pieces.

   Split items. A row of a residue class may have entries outside of its class. The class's item is then `split`: it writes
   no output but leaves the partial sums of its rows in the workspace. The one item that owns the row and is not split
   merges them (`merge`). All split items of a launch end before an item merges.

   A global row with very many keys may be cut: split items, each with a part of its columns and a partial slot of its own,
   and an item without pieces that merges its partial slots in order. */
struct abi_item {
    u32 row0, rows, step;             /* row0 + step * r for 0 <= r < rows <= BLOCK_ROWS; step >= 1 */
    u32 split;                        /* 1: leaves partial sums, writes no output */
    u32 own[ABI_MAX_BLOCK_ROWS / 32]; /* bit r % 32 of word r / 32 */
    u32 merge[ABI_MAX_BLOCK_ROWS / 32]; /* of its own rows those that a split item began */
    u32 partial_slot, partial_slots;  /* of a cut row: the slots that this item fills or merges, partial_slot ..
                                         partial_slot + partial_slots - 1 of the head; 0 slots: the rows' own places */
    u32 piece, pieces;                /* pieces[piece .. piece + pieces - 1], in order */
    u32 cols;                         /* sum of the pieces' cols */
    u32 cost;                         /* predicted, in nanoseconds for one sequence and one head, >= 1 */
    u32 kernel;                       /* enum abi_item_kernel */
};

/* The work list of a layer: which head does which item, the dearest first, to a factor of four. CPU: head by head, split
   items of a head before all others. CUDA: within that factor head by head; items that merge come last. */
struct abi_work {
    u32 head, item;
};

/* All items of one head of a layer, split ones first, then row blocks ascending: for kernels and launches that take
   a head at a time. */
struct abi_head {
    u32 item, items; /* items[item .. item + items - 1] */
    u32 splits;    /* of these, the first ones */
};

struct abi_plan {
    const struct abi_work *work;  /* [works], the launched layer's part */
    const struct abi_head *heads; /* [heads], the launched layer's part */
    const struct abi_item *items;
    const struct abi_piece *pieces;
    const struct abi_range *ranges;
    const struct abi_tile *tiles;
    const struct abi_line *lines;
    const struct abi_gather *gathers;
    const u32 *columns;  /* the index lists of the gathers */
    const u32 *patterns; /* [n_patterns][BLOCK_ROWS] */
    u32 works;
    u32 merge;    /* CUDA: how many works at the end of the list merge, in a phase of their own */
    u32 max_cols; /* largest item.cols */
    u32 uses;     /* bit k: some item of the table has a piece of kind k; ABI_SPLIT */
    u32 n;        /* length of the mask */
};

/* ---- steps (cuda_hopper; built by gen/steps from the tables above, checked bit for bit) ---- */

enum {
    ABI_GROUP_BLOCKS = 4, /* row blocks of a group, at most */
    ABI_STEP_SLOTS = 4,   /* slots of a step, at most */
};

/* Row blocks of 64 rows that a block of the grid takes together, one to each of its warpgroups. */
struct abi_group {
    u32 item[ABI_GROUP_BLOCKS]; /* items of the plan, one for each warpgroup; ABI_NO_ITEM: none */
    u32 step, steps;            /* steps[step .. step + steps - 1], in order */
    u32 in_turn;                /* 1: every warpgroup takes part in every step, so that they may take turns */
    u32 cost;                   /* predicted, in clocks for one sequence and one head, >= 1 */
};
#define ABI_NO_ITEM 0xffffffffu

/* Columns that come together: SLOTS slots (a number of the kernel) of ABI_TILE_COLS columns each. */
struct abi_step {
    u32 column[ABI_STEP_SLOTS]; /* of each slot the first column, or ABI_GATHERED + index into columns[] */
    u32 live[ABI_STEP_SLOTS];   /* bit c: column c of the slot counts; the last bit set is of a column below n */
    u32 pattern[ABI_GROUP_BLOCKS][ABI_STEP_SLOTS]; /* what each row block has there: ABI_SLOT_EMPTY, ABI_SLOT_FULL,
                                                      or ABI_SLOT_PATTERN + index into patterns[] */
    u32 times;  /* >= 1: repeated so often, each time SLOTS * 32 columns further; above 1 no slot is gathered or
                   has a pattern, the slots are one run of columns, and all of them count */
    u32 run;    /* 1: the slots are one run of columns, from column[0] on */
    u32 pad[2];
};
#define ABI_GATHERED 0x80000000u
enum { ABI_SLOT_EMPTY, ABI_SLOT_FULL, ABI_SLOT_PATTERN };

/* Steps of one pass: forward, dQ, or dK and dV. */
struct abi_steps {
    const struct abi_work *work; /* [works], the launched layer's part; `item` is a group. The dearest first, to a
                                    factor of four, and within that head by head */
    const struct abi_group *groups;
    const struct abi_step *steps;
    u32 works;
    u32 pad;
};

/* ---- launch arguments (the caller's) ---- */

/* Element (b, i, h, d) is data[b * batch + i * row + h * head + d]. Packed batches: batch = 0 and
   the row is offsets[b] + i. Pointers and strides are multiples of 16 bytes. */
struct abi_tensor {
    void *data;
    i64 batch, row, head;
};

struct abi_args {
    struct abi_tensor q, k, v, o;         /* o is written by the forward pass, read by the backward */
    struct abi_tensor d_o, d_q, d_k, d_v; /* d_o is given, the other three are written */
    float *lse;                           /* lse[b * lse_batch + h * lse_head + i] (packed: row
                                             offsets[b] + i): written forward, read backward */
    i64 lse_batch, lse_head;
    const i32 *length;  /* [batch], or null: all n; clamped to 0 .. n by the kernel */
    const i32 *offsets; /* [batch + 1], or null; then `length` is null */
    u32 batch, heads;
    u32 n;                        /* rows of the padded layout; packed: longest sequence; <= plan n */
    u32 first_batch, slice_batch; /* this launch works on sequences first .. first + slice - 1 */
    u32 merge;                    /* CUDA: 1 in the merge pass */
    float scale;                  /* 0 only in f32 and tf32: runtime/launch/scale.c */
    float lambda;                 /* of sparsegen-lin, < 1 */
    u32 keep_below;    /* dropout: dropped iff the 16-bit draw < this (round(65536 p)); 0: none */
    float keep_scale;  /* 65536 / (65536 - keep_below) */
    u64 seed;
    struct abi_plan forward, transposed;
    /* Kernels with a bias, n being the mask's (forward.n): X[h][i][j] at (h * n + i) * n + j. The
       backward pass writes its gradient, summed over the batch, into d_bias alike, and the sums of that
       along diagonals into d_diagonal, [heads][2 n - 1], offset j - i = o at o + n - 1; either may
       be null. */
    const float *bias;
    float *d_bias, *d_diagonal;
    float *bias_part; /* CPU: [forward.works][n + ABI_TILE_COLS], what each item adds to d_diagonal.
                         CUDA: [bias_chunks][heads][n][n], dX of each chunk of the batch (of one chunk
                         maybe d_bias itself) */
    u32 bias_chunks;  /* CUDA: 1 .. batch, the same for every launch of this size; 0: no dX asked for */
    float *delta; /* [batch][heads][delta_rows]: per query, sum over keys of P dP (softmax) or the mean of dP
                     over the support (sparsegen); written by dq, read by dkv */
    u64 delta_rows;
    u8 *pack;     /* per (sequence of the slice, head): packed operands; or null. From byte partial_at on, if
                     the plan has split items: partial sums of delta_rows rows and of `partial_slots` slots */
    u64 pack_stride, partial_at, partial_slots;
    u8 *scratch;  /* per worker (thread or block) */
    u64 scratch_stride;
    const u32 *samples; /* [batch]: whose draws of dropout a sequence has; or null: its position in the batch */
#if !defined ABI_BY_VALUE || GROUPED || RECTANGULAR /* CUDA, by value: in all other kernels it ends here */
    /* K and V with a shape of their own. GROUPED kernels: `group` query heads share a key head,
       which has heads key_head * group .. + group - 1. In the backward pass d_k and d_v are then
       scratch: dK and dV of each query head, floats in every dtype. sum_k and sum_v are written
       from them: for each key head the sums over its query heads, in order. */
    u32 group;
    /* RECTANGULAR kernels: rows of Q, O and theirs, and of K, V and theirs; n is the larger one. `length` is of the
       queries. There are no offsets. */
    u32 queries, keys;
    const i32 *key_length; /* [batch], or null: all keys */
    struct abi_tensor sum_k, sum_v;
#endif
};

/* The phases of a pass, in order; each is one entry point. CPU entry:
       void NAME(const struct abi_args *a, u64 begin, u64 end, u8 *scratch)
   over an index range; single-threaded, no libc. CUDA entry:
       extern "C" __global__ void NAME(const struct abi_args a)
   whose blocks divide the indices: block x mostly has x, x + gridDim.x, ... Its scratch is at
   scratch + x * scratch_stride.
   Indices: ABI_OVER_HEADS: (b - first_batch) * heads + h.
            ABI_OVER_FORWARD / _TRANSPOSED: work * slice_batch + (b - first_batch).
            ABI_OVER_WORK: work of the forward plan. The entry loops over the slice's sequences in
            order, as sums over the batch require.
            ABI_OVER_BIAS: parts of dX, as the entry divides it: at most bias_chunks for every
            32 x 32 entries of a head. CUDA only.
            ABI_OVER_KEY_HEADS: (b - first_batch) * (heads / group) + key head, after all items of
            all heads. CUDA: that, times the blocks of ABI_KEY_HEAD_ROWS keys, + block of keys.
   If a CUDA plan has items that merge, ABI_OVER_FORWARD and _TRANSPOSED leave them out. The merge
   pass does them with args.merge = 1: ABI_OVER_FORWARD_MERGE and _TRANSPOSED_MERGE. */
enum abi_over {
    ABI_OVER_HEADS,
    ABI_OVER_FORWARD,
    ABI_OVER_TRANSPOSED,
    ABI_OVER_WORK,
    ABI_OVER_FORWARD_MERGE,
    ABI_OVER_TRANSPOSED_MERGE,
    ABI_OVER_BIAS,
    ABI_OVER_KEY_HEADS,
    ABI_OVERS
};

/* ABI_TF32: f32 in memory; a GPU's products of tiles round their operands to 11 bits. */
enum abi_dtype { ABI_F32, ABI_BF16, ABI_F16, ABI_TF32 };
enum abi_transform { ABI_SOFTMAX, ABI_SPARSEGEN };
enum abi_bias { ABI_BIAS_NONE, ABI_BIAS_ADD, ABI_BIAS_SCALE }; /* scores + X; probabilities * X */

#endif
