/* SPDX-License-Identifier: Apache-2.0 */
/* Machines: the figures from which a plan's time is predicted. A pass over a plan is a count of
   things done (gen/cost/price.h), each at a price that is a sum of rates. Golden plans are made for
   a named row of the table; a stored calibration may stand in its place at run time. */
#pragma once
#include "gen/target.h"
#include "masks/base/error.h"

/* Seconds on one worker. */
enum rate {
    RATE_TILE_FLOP,  /* per FLOP of a tile's two products (4 D an entry) */
    RATE_TILE_ENTRY, /* per score entry of a tile: scale, max, exp, sum */
    RATE_TILE_MASK,  /* per entry more where the tile has a pattern */
    RATE_GATHER,     /* per element of a gathered column (D a column); 0: never planned */
    RATE_LINE_ENTRY, /* per entry of a line (0: the templates have none), plus ... */
    RATE_LINE_FLOP,  /* ... per FLOP of its dot product and its update, plus ... */
    RATE_LINE,       /* ... per line: its set-up and its column of scores, plus ... */
    RATE_LINE_ROW,   /* ... per row of a row block that has lines */
    RATE_ROW_ENTRY,  /* of the row pass, as RATE_LINE_ENTRY and ... */
    RATE_ROW_FLOP,   /* ... RATE_LINE_FLOP */
    RATE_ROW_ITEM,   /* per row of the row pass, and ... */
    RATE_ROW_RANGE,  /* ... per range of its keys after the first */
    RATE_FAR, /* per byte of keys and values that walks and gathers bring from behind the second cache */
    RATE_ITEM,         /* per row block, and ... */
    RATE_ITEM_ELEMENT, /* ... per element of its output (rows x D) */
    RATE_PACK,         /* per element of two operands packed, once a head */
    RATE_STREAM,       /* per byte of a launch's tensors that no cache holds */
    RATE_TILE_FAR,     /* per byte of keys and values that tiles bring from behind that cache */
    RATE_MIXED, /* per entry more of lines that the kernel for diagonals does not take, and ... */
    RATE_MIXED_ROW, /* ... per row of it */
    RATE_BIAS,      /* per entry more beside a bias, that is read and given its gradient, ... */
    RATE_BIAS_FLOP, /* ... and per FLOP, as RATE_TILE_FLOP: where dX is a pass of its own */
    RATES
};
extern const char *const rate_names[RATES]; /* "tile_flop", ... */

/* The forward pass; dQ, over the same plan; dK and dV, over the transposed one. */
enum machine_pass { PASS_FORWARD, PASS_DQ, PASS_DKV, PASSES };
extern const char *const pass_names[PASSES]; /* "forward", "dq", "dkv" */

struct machine {
    const char *name; /* "x86-amx", "x86-avx2", "h100", ... */
    enum target_kind kind;
    /* Rooflines, of one core (CPU) or of the whole device (CUDA). */
    double flops;       /* multiply-add peak of the templates' matrix work, FLOP/s */
    double exps;        /* exponentials, 1/s */
    double bytes;       /* memory, B/s, ... */
    double cache_bytes; /* ... or where a head's tensors are smaller than `cache`, B/s */
    double cache;       /* bytes of a core's second cache; 0: nothing is far */
    double launch;      /* seconds a pass */
    uint32_t workers;   /* CUDA: row blocks in flight; CPU: 1, the threads are the caller's */
    double rate[PASSES][RATES];
};

extern const struct machine machines[]; /* ends with a null name */
const struct machine *machine_find(const char *name, struct error *e);
