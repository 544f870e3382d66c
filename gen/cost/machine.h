/* SPDX-License-Identifier: Apache-2.0 */
/* Machines: the rates from which a plan's time is predicted. The price of each unit of work (gen/cost/price.h) is a
   sum of rates. Golden plans are made for a named row of the table; at run time a stored calibration may replace it. */
#pragma once
#include "gen/target.h"
#include "masks/base/error.h"

/* Seconds of one worker. On CUDA a worker is one of `workers` equal shares of the device, however many row blocks are in flight. */
enum rate {
    RATE_TILE_FLOP,  /* per FLOP of a tile's two products (4 D an entry) */
    RATE_TILE_ENTRY, /* per score entry of a tile: scale, max, exp, sum */
    RATE_TILE_MASK,  /* extra per entry of a tile with a pattern */
    RATE_GATHER, /* per element of a gathered column (D a column); 0: the planner never gathers */
    RATE_LINE_ENTRY, /* per entry of a line (0: the templates have none), plus ... */
    RATE_LINE_FLOP,  /* ... per FLOP of its dot product and its update, plus ... */
    RATE_LINE,       /* ... per line: its set-up and its column of scores, plus ... */
    RATE_LINE_ROW,   /* ... per row of a row block that has lines */
    RATE_ROW_ENTRY,  /* global rows: as RATE_LINE_ENTRY and ... */
    RATE_ROW_FLOP,   /* ... RATE_LINE_FLOP */
    RATE_ROW_ITEM,   /* per global row, and ... */
    RATE_ROW_RANGE,  /* ... per range of its keys after the first */
    RATE_FAR, /* per byte of keys and values that lines and gathers load from beyond the L2 cache */
    RATE_ITEM,         /* per row block, and ... */
    RATE_ITEM_ELEMENT, /* ... per element of its output (rows x D) */
    RATE_PACK,         /* per element of two operands packed, once a head */
    RATE_STREAM,       /* per byte of a launch's tensors that comes from memory */
    RATE_TILE_FAR,     /* as RATE_FAR, for tiles */
    RATE_MIXED, /* extra per entry of lines that cannot take the kernel of diagonals, and ... */
    RATE_MIXED_ROW, /* ... per row of theirs */
    RATE_BIAS,      /* extra per entry where there is a bias: X is read, dX written, and ... */
    RATE_BIAS_FLOP, /* ... per FLOP, as RATE_TILE_FLOP, where dX is a pass of its own */
    RATE_EXPOSED, /* extra per byte as of RATE_STREAM, times the share of entries that are not visited: loads have
                     little work to hide behind (0: RATE_STREAM says it) */
    RATE_LOOP, /* extra per row block that has tiles: its loop over keys begins and ends (0: RATE_ITEM says it). On CUDA the
                  latency of the loads that depend on each other before the first columns arrive: work, item, piece, tile, pattern */
    RATE_PARTIAL, /* per element of a partial row that a split item stores, or another merges (D a row) */
    RATES
};
extern const char *const rate_names[RATES]; /* "tile_flop", ... */

/* The forward pass; dQ, over the same plan; dK and dV, over the transposed one. */
enum machine_pass { PASS_FORWARD, PASS_DQ, PASS_DKV, PASSES };
extern const char *const pass_names[PASSES]; /* "forward", "dq", "dkv" */

/* Factors over the rates of the tiled kernels for those that keep whole heads on a processor (cuda_resident), by pass. */
struct head_rates {
    double item, tile /* products */, mask;
    int growth;    /* power of a head's row blocks, for the mask */
    double bytes;  /* of a launch, over those of the tiled kernels' pass */
    double warps;  /* on a processor, where these were measured */
    double gather; /* of columns that are brought */
    double entry;  /* of a tile's work beside its products and patterns */
    /* Of all work, where a warp cannot hold all scores of a row (n > 128); 0 counts as 1. */
    double chunks;
    double
        pairs; /* beside `chunks`, where a warp of that kernel has two row blocks; 0 counts as 1 */
};

struct machine {
    const char *name; /* "x86-amx", "x86-avx2", "h100", ... */
    enum target_kind kind;
    /* Rooflines, of one core (CPU) or of the whole device (CUDA). */
    double flops;       /* multiply-add peak of the templates' matrix work, FLOP/s */
    double exps;        /* exponentials, 1/s */
    double bytes;       /* memory, B/s, ... */
    double cache_bytes; /* ... or where a head's tensors are smaller than `cache`, B/s */
    double cache;       /* bytes of a core's L2 cache; 0: loads from beyond it cost nothing */
    double launch;      /* seconds a pass */
    uint32_t
        workers; /* CUDA: shares of the device that rates are for; CPU: 1, the threads are the caller's */
    uint32_t
        processors; /* CUDA: each has as many row blocks in flight as the family says; 0: one a worker */
    double rate[PASSES][RATES];
    double
        wake; /* CPU: seconds a pass more where several threads take it: they are woken and wait for each other (0 in the
                    table: nobody measured it there) */
    struct head_rates heads[PASSES]; /* warps 0: guessed from the rates */
};

extern const struct machine machines[]; /* ends with a null name */
const struct machine *machine_find(const char *name, struct error *e);
