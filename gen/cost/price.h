/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass over a plan does is a count of things, its effort; a machine's rates for one shape of
   problem are the price of each; time is their product. Everything that scales with D, with the type
   or with the length is folded into prices here and nowhere else. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/target.h"

/* The things that lowerings and launches count. */
enum unit {
    UNIT_FULL,      /* entries of tiles or ranges without mask test */
    UNIT_PARTIAL,   /* entries of tiles under a pattern */
    UNIT_GATHER,    /* gathered columns; where a block brings all that it visits, all */
    UNIT_WALK,      /* entries of lines */
    UNIT_COLUMN,    /* columns that the lines of a row block see, each once */
    UNIT_LINE,      /* lines */
    UNIT_LINE_ROW,  /* rows of row blocks that have lines */
    UNIT_ROW,       /* keys of the row pass */
    UNIT_ROW_ITEM,  /* rows of the row pass */
    UNIT_ROW_RANGE, /* and ranges of their keys after the first */
    UNIT_ITEM,      /* row blocks */
    UNIT_ITEM_ROW,  /* and their rows */
    UNIT_MIXED, /* entries of lines in row blocks that have other pieces too, or scattered ones, */
    UNIT_MIXED_ROW, /* and their rows */
    UNIT_PACK,      /* rows of two operands packed */
    UNIT_STREAM,    /* bytes of a launch's tensors that no cache holds */
    UNITS
};

/* Seconds on one worker, in the order of enum unit. */
struct price {
    double full, partial, gather /* 0: never planned */, walk /* 0 as well */, column, line,
        line_row, row, row_item, row_range, item, item_row, mixed, mixed_row, pack_row, stream;
};

struct effort {
    double count[UNITS];
};

/* What of a problem decides prices. */
struct price_shape {
    const struct kernel_config *config;
    const struct target *target;
    uint32_t n, heads; /* rows of a head; heads that lie side by side in a token's row */
};

struct price price_make(const struct machine *m, enum machine_pass pass, struct price_shape s);
struct price price_add(struct price a, struct price b);
double price_of(const struct price *p, const struct effort *e);
void effort_add(struct effort *to, const struct effort *e, double times);

/* The same the other way around, for fitting rates: ret[r] is what rate r is multiplied with. */
void effort_terms(const struct machine *m, struct price_shape s, const struct effort *e,
                  double ret[RATES]);

/* Bytes of `size`, which are gone over again and again, that a cache does not hold: a share, 0 to 1. A
   gentle step, as some bytes are gone over sooner again than others; 0 where `cache` is 0. */
double cache_miss(double size, double cache);

/* Lines are walked LINE_GRAIN rows at a time: the entries that `lines` lines of `cells` entries make in
   a row block of that many rows, if each begins and ends anywhere. Infinite where lines are never planned. */
enum { LINE_GRAIN = 4 };
/* Of more lines than this the columns do not stay in a cache from one such group of rows to the next. */
enum { LINES_KEPT = 256 };
double line_columns(uint32_t rows, double columns, double lines); /* that are brought */
double line_entries(uint32_t rows, double cells, double lines);
double price_lines(const struct price *p, uint32_t rows, double cells, double lines,
                   double columns);

/* A range without mask test: keys are taken RANGE_GRAIN at a time. */
enum { RANGE_GRAIN = 16 };
double range_entries(uint32_t rows, uint32_t columns); /* that are visited */
double price_range(const struct price *p, uint32_t rows, uint32_t columns);
