/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's figures for one head dimension, in the units that lowerings count in: seconds on one
   worker. Everything that scales with D is folded in here and nowhere else. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/target.h"

struct price {
    double full;      /* per entry of a tile or range without mask test */
    double partial;   /* per entry of a tile under a pattern */
    double gather;    /* per gathered column of a strip; 0: never planned */
    double walk;      /* per entry of a line; 0: never planned */
    double line;      /* per line more */
    double line_row;  /* per row of a strip that has lines */
    double row;       /* per key of the row pass */
    double row_item;  /* per row of the row pass */
    double row_range; /* per range of its keys */
    double item;      /* per strip, and ... */
    double item_row;  /* ... per row of it */
    double pack_row;  /* per row of a head whose K and V are packed */
};

struct price price_make(const struct machine *m, const struct features *f);

/* A range without mask test: keys are taken RANGE_GRAIN at a time. */
enum { RANGE_GRAIN = 16 };
double price_range(const struct price *p, uint32_t rows, uint32_t columns);
