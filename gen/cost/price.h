/* SPDX-License-Identifier: Apache-2.0 */
/* Time = sum over units of count x price. An effort counts the units of work of a pass over a plan. A price is what
   one unit costs on a machine, for one shape of problem: D, dtype and length enter here and nowhere else. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/target.h"

/* The units of work that lowerings and launches count. */
enum unit {
    UNIT_FULL,    /* entries of tiles or ranges without mask test */
    UNIT_PARTIAL, /* entries of tiles under a pattern */
    UNIT_GATHER, /* gathered columns; all columns, where the kernel copies all of them to shared memory */
    UNIT_WALK,      /* entries of lines */
    UNIT_COLUMN,    /* columns that the lines of a row block see, each once */
    UNIT_LINE,      /* lines */
    UNIT_LINE_ROW,  /* rows of row blocks that have lines */
    UNIT_ROW,       /* keys of global rows */
    UNIT_ROW_ITEM,  /* global rows */
    UNIT_ROW_RANGE, /* ranges of their keys after the first */
    UNIT_ITEM,      /* row blocks */
    UNIT_ITEM_ROW,  /* rows of row blocks */
    UNIT_MIXED, /* entries of lines that the kernel of diagonals cannot take: other pieces beside them, or scattered */
    UNIT_MIXED_ROW, /* rows of row blocks that have such lines */
    UNIT_PACK,      /* rows of two operands packed */
    UNIT_STREAM,    /* bytes of a launch's tensors that come from memory */
    UNIT_EXPOSED, /* of these bytes what no work hides: times the share of entries that are not visited */
    UNIT_LOOP,        /* row blocks that have tiles, ranges or gathered columns */
    UNIT_PARTIAL_ROW, /* partial rows stored or merged, where they wait in memory for another launch */
    UNITS
};

/* Seconds on one worker, in the order of enum unit. */
struct price {
    double full, partial, gather /* 0: never planned */, walk /* 0 as well */, column, line,
        line_row, row, row_item, row_range, item, item_row, mixed, mixed_row, pack_row, stream,
        exposed, loop, partial_row;
};

struct effort {
    double count[UNITS];
};

/* Inputs of prices; family_price_shape() fills it. */
struct price_shape {
    const struct kernel_config *config;
    const struct target *target;
    uint32_t n, heads;   /* rows of a head; heads side by side in a token's row */
    bool matrix;         /* a matrix unit does the dense work */
    uint32_t block_rows; /* rows of a row block */
};

struct price price_make(const struct machine *m, enum machine_pass pass, struct price_shape s);
struct price price_add(struct price a, struct price b);
double price_of(const struct price *p, const struct effort *e);
void effort_add(struct effort *to, const struct effort *e, double times);

/* Time is linear in the rates too: ret[r] is the coefficient of rate r. For fitting. */
void effort_terms(const struct machine *m, struct price_shape s, const struct effort *e,
                  double ret[RATES]);

/* The share, 0 to 1, of `size` bytes that miss a cache when they are read again and again. A smooth step, because
   some bytes are reused sooner than others. 0 where `cache` is 0. */
double cache_miss(double size, double cache);

/* The kernels take LINE_GRAIN rows of a line at once. line_entries: an estimate of the entries that they compute for
   `lines` lines of `cells` entries in all, before their rows are known. price_lines: of such lines, for the choice of
   entries; infinite where the planner never uses lines. */
enum { LINE_GRAIN = 4 };
/* With more lines than this, columns do not stay in L1 from one group of LINE_GRAIN rows to the next. */
enum { LINES_KEPT = 256 };
double line_columns(uint32_t rows, double columns, double lines); /* loads of a column */
double line_entries(uint32_t rows, double cells, double lines);
double price_lines(const struct price *p, uint32_t rows, double cells, double lines,
                   double columns);

/* A range without mask test: the kernels take RANGE_GRAIN keys at once. */
enum { RANGE_GRAIN = 16 };
double range_entries(uint32_t rows, uint32_t columns); /* entries that they compute */
