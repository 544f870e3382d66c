/* SPDX-License-Identifier: Apache-2.0 */
/* Price of a single row block in a plan of so many heads and tokens: built as by plan_build() and priced as predictions
   are. For searches over masks, which price many candidates. Excludes decisions of a plan for all its row blocks:
   packing of operands, residue classes, launches, balance of threads. */
#pragma once
#include "gen/plan/plan.h"

struct row_pricer;

/* For plans of masks with so many heads, on this target and machine, for this request (with its length); null with *e
   set. */
struct row_pricer *row_pricer_new(uint32_t heads, const struct target *t,
                                  const struct kernel_request *r, const struct machine *machine,
                                  struct error *e);
void row_pricer_destroy(struct row_pricer *x); /* null is fine */

uint32_t row_pricer_block_rows(const struct row_pricer *x);
/* Prices of the passes, for those who want to guess before they ask. */
const struct price *row_pricer_prices(const struct row_pricer *x);

/* The row block to price, and how it is built. */
struct row_query {
    const struct pattern *pattern;
    uint32_t row0;
    bool
        training; /* dQ as well, and dK and dV over the transposed pattern, which then has entries in this row block alone */
    bool
        lines; /* of lines and global rows alone: a plan of such row blocks packs no operands */
};

/* Seconds for one sequence and one head on one worker; infinite where lines cannot take it. */
double row_pricer_price(struct row_pricer *x, const struct row_query *q);
/* Seconds that packing of operands costs a head in a plan that is not of lines alone. */
double row_pricer_pack(const struct row_pricer *x, bool training);

/* Bits of entries that kernels compute for the row block that was priced last, in tiles and gathered columns, active
   or not: key j of row r in bit j % 64 of words[r * (n + 63) / 64 + j / 64]. Adds to what is there. */
void row_pricer_executed(const struct row_pricer *x, uint64_t *words);
