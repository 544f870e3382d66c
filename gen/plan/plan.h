/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: how a kernel visits exactly the active entries of a mask, in two directions. Rows of
   the forward plan are queries; rows of the transposed plan are keys (for dK and dV). The tables
   are those of templates/abi.h, concatenated over the mask's distinct patterns. */
#pragma once
#include "gen/cost/price.h"
#include "gen/family/family.h"
#include "gen/tables/pass.h"
#include "gen/tables/steps.h"
#include "gen/target.h"
#include "masks/base/text.h"
#include "masks/mask.h"
#include "templates/abi.h"
#include <jansson.h>

enum { FAMILIES_REJECTED = 4 };

struct plan_rejected {
    /* Null: the plan's own family. Else the family whose plan of this mask was dearer. */
    const struct kernel_family *family;
    /* The row block lowering taken everywhere that it applies, or "dense"; of another family's plan its summary. */
    char lowering[80];
    double predicted; /* seconds for one sequence and one head; ... */
    bool at_least;    /* ... a bound from below, under the plan's own seconds */
};

/* Cost of one pattern in one direction. Seconds are for one sequence, one head, one worker. */
struct plan_summary {
    /* Names of the kinds used, joined: "tiles+diagonal+rows"; "dense": all entries are
       visited, none by lines; "empty": the mask has no active entry. */
    char lowering[80];
    char reason[320];         /* why, in one line: for tables that people read */
    double executed_fraction; /* visited entries, inactive ones of tiles included */
    double predicted, dense_predicted, floor;
    uint32_t keys;     /* that kernels read: where numbers of keys and queries differ,
                                    those that some query sees; else all */
    const char *bound; /* "compute", "memory", "exp": what binds the floor */
    struct effort effort,
        dense; /* of the plan; of every tile, or of the dense mask's plan where numbers of keys and
                                    queries differ; packing of operands included */
    struct plan_rejected rejected[LOWERINGS_MOST + FAMILIES_REJECTED];
    uint32_t n_rejected;
};

/* Each lowering by itself over one pattern, by row of the table of lowerings. */
struct plan_alone {
    double seconds[LOWERINGS_MOST]; /* one sequence, one head, one worker */
    bool applied[LOWERINGS_MOST];   /* whether it could visit some of it */
    uint32_t uses[LOWERINGS_MOST];  /* kinds of pieces, which say what is packed */
};

struct plan {
    uint32_t n, heads, layers, n_masks; /* n_masks: distinct patterns */
    uint32_t *at;                       /* [layers * heads], as in struct mask */
    uint32_t block_rows;
    uint32_t can; /* what the kernels of all passes can do (enum family_can) */
    const struct target *target;
    const struct machine *machine;
    struct kernel_config config;
    struct price price[PASSES];
    uint32_t in_flight[PASSES]; /* row blocks at a time on a GPU */
    /* [2][n_masks] columns that a head packs on a CPU: forward plan, transposed plan */
    double *packed;
    struct plan_pass forward, transposed; /* transposed is empty without request.backward */
    struct plan_steps steps[PASSES];      /* by enum machine_pass; PASS_DKV over `transposed` */
};

/* Where row blocks come from several plans. */
#define PLAN_MIXED "mixed"
/* Where the machine's own prices choose, and lines are tried for whole row blocks. */
#define PLAN_LINES "lines"

/* Which plan is taken of those that prices of other rows of the machine table choose (portfolio.c). All of them are
   told and predicted by `machine`. Zeroed: the cheapest. */
struct plan_options {
    bool plain; /* prices of `machine` alone choose: one plan is made, in a fifth of the time */
    /* Tables of these prices, as a measurement found; null: the cheapest. A name that is none of the portfolio's for
       this mask is as null. */
    const char *forward, *transposed;
    /* Null, or the family of all passes that it takes; one that takes none is an error. */
    const struct kernel_family *family;
    bool
        by_rates; /* only kernels that rates price: none that read steps, unless they are asked for */
};

/* A new plan, checked against the mask in debug builds, or null with *e set. Of several plans that kernels
   could run it is the best: over the families that take the request, heights of row blocks, and prices of other machines.
   Code is emitted for its config. Options: null is zeroed. */
struct plan *plan_build(const struct mask *m, const struct target *t,
                        const struct kernel_request *r, const struct machine *machine,
                        const struct plan_options *o, struct error *e);
/* A plan of tables that are there, as a kernel file has them, for the config's request and families: what it is predicted to
   take. Nothing is planned; the tables are copied. What other lowerings would cost, and dense, is not known: plan_predict_dense() has no meaning. */
struct plan *plan_of_tables(const struct mask *m, const struct target *t,
                            const struct kernel_config *c, const struct machine *machine,
                            const struct plan_pass *forward, const struct plan_pass *transposed,
                            struct error *e);

/* One plan of a portfolio, and what it is predicted to take. */
struct plan_choice {
    char forward[32], transposed[32]; /* as in plan_options */
    double seconds;                   /* all passes and layers, one sequence, one worker */
};
/* The cheapest of them that differ, the cheapest first, all of one family: `family` where that is not null. Returns how many, at most `most`; 0 with *e set. */
uint32_t plan_choices(const struct mask *m, const struct target *t,
                      const struct kernel_request *r, const struct machine *machine,
                      const struct kernel_family *family, struct plan_choice *ret,
                      uint32_t most, struct error *e);
/* True if it would be the same for another target, with the same request, machine and asked family (or null). */
bool plan_suits(const struct plan *p, const struct target *t, const struct kernel_request *r,
                const struct kernel_family *asked);
void plan_destroy(struct plan *p);

/* Decodes the binary tables and compares them with the mask bit for bit, both directions; also that
   nothing is visited twice, every row is owned exactly once, indices stay inside their tables and
   the counts agree. Fails with the first entry that differs. */
int plan_check(const struct plan *p, const struct mask *m, struct error *e);

/* Predicted seconds for a whole launch (all heads, a batch, threads; CPU: LPT over the items). */
double plan_predict(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                    uint32_t threads);
double plan_predict_dense(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                          uint32_t threads);
double plan_floor(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                  uint32_t threads);

/* Effort of a pass over one layer for a batch, all heads, with a cache of `workers` cores. */
struct effort plan_effort(const struct plan *p, enum machine_pass pass, uint32_t layer,
                          uint32_t batch, uint32_t workers);

/* plan_spread(): parallel time / serial time: 1 / workers if the load is balanced, else more. plan_launches(): number
   of launches that a pass counts as. */
double plan_spread(const struct plan *p, enum machine_pass pass, uint32_t layer, uint32_t batch,
                   uint32_t threads);
double plan_launches(const struct plan *p, enum machine_pass pass, uint32_t layer);

/* The plan as text, which is deterministic (tests/golden), and as the JSON of `maskc plan --json`. */
void plan_print(const struct plan *p, uint32_t batch, uint32_t threads, struct text *out);
json_t *plan_json(const struct plan *p, uint32_t batch, uint32_t threads);
