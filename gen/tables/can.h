/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of a family's kernels: the tables of a plan that they handle. */
#pragma once

/* clang-format off */
enum family_can {
    CAN_PIECES = 1 << 0,        /* handles pieces of every lowering and global rows; without it only whole row blocks of tiles */
    CAN_SPLIT = 1 << 1,         /* items of residue classes leave partial sums, others merge them */
    CAN_WHOLE_CLASSES = 1 << 2, /* items of residue classes may have all entries of their rows */
    CAN_CUT_ROWS = 1 << 3,      /* a global row in parts, each a split item */
    CAN_JOIN_ROWS = 1 << 4,     /* rows a stride apart that see the same keys, as one item of ranges */
    CAN_KEEP_GATHERS = 1 << 5,  /* keeps gathered columns from one row block to the next */
    CAN_TALL = 1 << 6,          /* row blocks of 128 rows */
    MERGES_LAST = 1 << 7,       /* merges are a separate launch; without it each head does its merges, in order */
    SKIPS_FRAGMENTS = 1 << 8,   /* empty parts of a tile are skipped in units of 16 x 8 entries, ... */
    SKIPS_HALVES = 1 << 9,      /* ... of 16 columns */
    JOINS_KEYS_ALONE = 1 << 10, /* joins rows only in the transposed plan */
    CAN_JOIN_NESTED = 1 << 11,  /* rows a stride apart that see different keys, as one item of gathered columns */
};
/* clang-format on */
