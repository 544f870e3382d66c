/* SPDX-License-Identifier: Apache-2.0 */
/* What a single row block costs in a plan of so many heads and tokens: built as plan_build would build it, and priced
   as predictions are. For searches over masks, which ask this for many candidates. What a plan decides for all of its
   row blocks together is not in it: packing of operands, residue classes, launches, balance of threads. */
#pragma once
#include "gen/plan/plan.h"

struct row_pricer;

/* For plans of this target, request (with its length) and machine whose masks have so many heads; null with *e set. */
struct row_pricer *row_pricer_new(uint32_t heads, const struct target *t,
                                  const struct kernel_request *r, const struct machine *machine,
                                  struct error *e);
void row_pricer_destroy(struct row_pricer *x); /* null is fine */

uint32_t row_pricer_block_rows(const struct row_pricer *x);
/* Prices of the passes, for those who want to guess before they ask. */
const struct price *row_pricer_prices(const struct row_pricer *x);

/* Seconds for one sequence and one head on one worker: row block row0 .. of the pattern, forward; with `training` also
   dQ, and dK and dV over the transposed pattern, which then has entries in this row block alone. */
double row_pricer_price(struct row_pricer *x, const struct pattern *p, uint32_t row0,
                        bool training);

/* Bits of entries that kernels compute for the row block that was priced last, in tiles and gathered columns, active
   or not: key j of row r in bit j % 64 of words[r * (n + 63) / 64 + j / 64]. Adds to what is there. */
void row_pricer_executed(const struct row_pricer *x, uint64_t *words);
