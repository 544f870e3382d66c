/* SPDX-License-Identifier: Apache-2.0 */
/* The table of machines: the figures from which a plan's time is predicted. Golden plans are made
   for a named row; a stored calibration may stand in its place at run time. */
#pragma once
#include "gen/target.h"
#include "masks/base/error.h"

struct machine {
    const char *name; /* "x86-amx", "x86-avx512", "x86-avx2", "x86-sse", "a100", "h100" */
    enum target_kind kind;
    /* Rooflines, of one core (CPU) or of the whole device (CUDA). */
    double flops; /* multiply-add peak of the templates' matrix work, FLOP/s */
    double exps;  /* exponentials, 1/s */
    double bytes; /* memory, B/s, ... */
    double cache,
        cache_bytes; /* ... or where a head's tensors are smaller than cache bytes, B/s */
    /* What the templates reach on one worker. Seconds. */
    double tile_flop;  /* per FLOP of a full tile's two products */
    double tile_entry; /* per score entry of a tile: scale, max, exp, sum */
    double tile_mask;  /* per entry more where the tile has a pattern */
    double
        gather_element; /* per element of a gathered column (D a column, both operands); 0: the
                              templates only walk them, so they are never planned */
    double line_entry;  /* per entry of a diagonal walk (0: the templates have none), plus ... */
    double line_flop;   /* ... per FLOP of its dot product and its update, plus ... */
    double line;        /* ... per line: its set-up and its column of scores, plus ... */
    double line_row;    /* ... per row of a strip that has lines */
    double row_entry, row_flop; /* of the row pass, as line_entry and line_flop */
    double row_item, row_range; /* per row of the row pass, and per range of its keys */
    double item, item_element;  /* per strip, and per element of its output (rows x D) */
    double pack_element;        /* per element of K and V packed, once per head */
    double launch;              /* per pass */
    double backward_ratio;      /* time of backward over forward for the same plan */
    uint32_t workers; /* CUDA: strips in flight; CPU: 1, the threads are the caller's */
};

extern const struct machine machines[]; /* ends with a null name */
const struct machine *machine_find(const char *name, struct error *e);
