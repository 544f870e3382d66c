/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over one pattern while it is planned. Between build.c, row_blocks.c, which goes row block by row block,
   classes.c, which plans strides apart from the rest, and cuts.c, which cuts global rows. */
#pragma once
#include "gen/cost/margins.h"
#include "gen/lowering/effort.h"
#include "gen/lowering/gathers.h"
#include "gen/plan/tables.h"
#include "masks/pattern.h"

/* ---- strides (split.c) ---- */

/* Entries whose query and key are of one residue class modulo `step`, apart from the rest. The rows of a class share their
   columns, so brought together they are blocks. */
enum { SPLIT_MOST = 3 };

struct split {
    uint32_t step;
    struct pattern
        *classes;         /* entries with (row - column) % step == 0, of rows that take part */
    struct pattern *rest; /* all others */
    bool whole;           /* `classes` has all entries of rows that take part */
};

/* Steps that may be worth a split, the most promising first; returns how many. Quick. */
uint32_t split_candidates(const struct pattern *p, uint32_t step[SPLIT_MOST]);
/* False where the parts would be too large to hold: *ret is empty then. */
/* Row `apart` (n: none) takes no part. */
bool split_make(const struct pattern *p, uint32_t step, bool whole, uint32_t apart,
                struct split *ret);
void split_finish(struct split *s); /* an empty one is fine */
/* Entries of the middle one of the rows that have some. */
uint32_t pattern_middle_row(const struct pattern *p);

/* ---- the builder ---- */

struct global_row {
    const struct pattern *pattern;
    uint32_t row;
};

/* Options that stay the same while a pass is planned. */
struct planner_options {
    uint32_t can;        /* bits of enum family_can: those of the kernels */
    double merge_launch; /* seconds that a launch of what merges split items costs */
};

struct builder {
    struct planner_options options;
    struct plan_pass *pass;
    struct price price;  /* that the choice is made by: of all passes over these tables */
    struct price report; /* of the first of them, which costs are told for */
    struct row_block *row_block;
    struct draft draft[3]; /* best of this ownership, being built, best so far */
    struct pattern_index index;
    struct plan_alone alone; /* each lowering by itself over the pattern */
    struct effort dense;     /* of every tile */
    /* Null, or the classes whose items are split: row blocks merge what those leave. */
    const struct pattern *split_classes;
    struct global_row *global_rows; /* of the pattern: they wait until all else is built */
    uint64_t n_global, global_capacity;
    uint32_t partial_slots; /* of their parts */
    u32 shared[COLUMNS_SHARED];
    uint32_t *gathered; /* null, or how many row blocks gather each column */
    uint32_t *place;    /* [n] zeros, for residue_build */
    double *joined;     /* null, or [n]: seconds of a row that leaves to be joined; 0: others */
    double total;       /* seconds of the pattern, so far */
    uint32_t uses;      /* kinds of pieces that row blocks have, so far */
    double most;        /* a dry pass may stop where `total` is more */
    bool dry;           /* prices alone, nothing goes to the tables */
    bool lines_too;  /* lines for a row block as a whole are tried beside its cheapest draft */
    bool lines_only; /* lines take each row block as a whole ... */
    bool others;     /* ... but for some */
};

static inline bool builder_can(const struct builder *b, uint32_t what)
{
    return b->options.can & what;
}

/* A builder for one pass of the plan, with nothing built; and its end. */
void builder_begin(struct builder *b, const struct plan *p, struct plan_pass *pass,
                   bool transposed);
void builder_finish(struct builder *b);
/* Builds all row blocks of the pattern; `note`: also notes what each lowering would cost by itself. */
int builder_row_blocks(struct builder *b, const struct plan *p, const struct pattern *pattern,
                       bool note, struct error *e);
/* Builds the row block whose first row is row0. */
void builder_row_block(struct builder *b, const struct pattern *pattern, uint32_t row0,
                       bool note);
/* The columns that its row blocks should gather alike, to b->row_block. */
void shared_choose(struct builder *b, const struct plan *p, const struct pattern *pattern);
/* Notes the cost of each lowering by itself. Reported even if the plan uses another lowering. */
void builder_note(struct builder *b, const struct plan *p, const struct pattern *pattern);
/* lines_choose(): true if a plan of only lines is cheaper for the pass than row blocks or classes with packed operands,
   where a matrix unit skips halves of tiles (lines.c). lines_beat(): true if it is cheaper than the same tables of an
   existing plan, on any CPU. */
bool lines_choose(struct builder *b, const struct plan *p, const struct mask *m);
bool lines_beat(struct builder *b, const struct plan *p, const struct mask *m,
                const struct plan *than);
/* A global row to the tables, or to those that wait. */
void cuts_add_row(struct builder *b, const struct pattern *p, uint32_t row);
/* The waiting rows, whole or in parts. The pattern's items begin at `first`, and its price is b->total. */
void cuts_build(struct builder *b, const struct plan *p, uint64_t first);
/* The waiting rows: those a stride apart become one item of ranges where that is cheaper. */
void joins_build(struct builder *b, const struct plan *p);
/* The same for rows that see different keys: one item of gathered columns. The other rows go on waiting. */
void joins_build_nested(struct builder *b, const struct plan *p);
/* Before row blocks are planned: which rows that stand out will be joined so, and at what price (b->joined). */
void joins_expect(struct builder *b, const struct plan *p, const struct pattern *pattern);
int builder_check_capacity(const struct plan_pass *t,
                           struct error *e); /* are tables too large? */

/* The split that is worth having; empty where row blocks alone are as good. */
void classes_choose(struct builder *b, const struct plan *p, const struct pattern *pattern,
                    struct split *ret);
/* The price of the cheapest split; infinite where there is none. */
double classes_price(struct builder *b, const struct plan *p, const struct pattern *pattern);
int classes_build(struct builder *b, const struct plan *p, const struct split *s,
                  struct error *e);
