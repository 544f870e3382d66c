/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: how a kernel visits exactly the active entries of a mask, in two directions. Rows of
   the forward plan are queries; rows of the transposed plan are keys (for dK and dV). The tables
   are those of templates/abi.h, concatenated over the mask's distinct patterns. */
#pragma once
#include "gen/cost/price.h"
#include "gen/family/family.h"
#include "gen/target.h"
#include "masks/base/text.h"
#include "masks/mask.h"
#include "templates/abi.h"
#include <jansson.h>

enum { PLAN_MAX_LOWERINGS = 12 };

struct plan_rejected {
    const char
        *lowering;    /* the row block lowering taken everywhere that it applies, or "dense" */
    double predicted; /* seconds for one sequence and one head */
};

/* What one pattern costs in one direction. Seconds are for one sequence, one head, one worker. */
struct plan_summary {
    /* Names of the kinds used, joined: "tiles+diagonal+rows"; "dense": all n x n entries
       are visited, none by lines; "empty": the mask has no active entry. */
    char lowering[80];
    char reason[200];         /* why, in one line: for tables that people read */
    double executed_fraction; /* visited entries, inactive ones of tiles included, / n^2 */
    double predicted, dense_predicted, floor;
    const char *bound;           /* "compute", "memory", "exp": what binds the floor */
    struct effort effort, dense; /* of the plan; of every tile, packing of operands included */
    struct plan_rejected rejected[PLAN_MAX_LOWERINGS];
    uint32_t n_rejected;
};

struct plan_pass {
    struct abi_item *items;
    struct abi_piece *pieces;
    struct abi_range *ranges;
    struct abi_tile *tiles;
    struct abi_line *lines;
    struct abi_gather *gathers;
    u32 *columns;  /* index lists of the gathers */
    u32 *patterns; /* [n_patterns][block_rows] */
    struct abi_work *work;
    struct abi_head *heads; /* [layers][heads] */
    uint64_t n_items, n_pieces, n_ranges, n_tiles, n_lines, n_gathers, n_columns, n_patterns,
        n_work, n_heads;
    uint64_t items_capacity, pieces_capacity, ranges_capacity, tiles_capacity, lines_capacity,
        gathers_capacity, columns_capacity, patterns_capacity;
    uint32_t *item_first; /* [mask patterns + 1]: items of pattern p */
    uint64_t (*layer_work)
        [3]; /* [layers]: first and count in `work`, and how many of these merge, in a launch of their own */
    uint32_t max_cols, uses;
    uint32_t
        panel_cols; /* of a kernel file, where kernels need more: cpu_panel_cols(); else 0 */
    uint32_t partial_slots; /* that a head needs: the end of the furthest item's */
    uint32_t block_rows;    /* words of a pattern */
    bool fragments;         /* kernels leave out what is empty of a tile by 16 x 8, ... */
    bool halves;            /* ... by 16 columns */
    uint32_t
        gathers_kept; /* groups of gathered columns that kernels keep from row block to row block */
    struct item_kernels kernels;  /* that items may take beside the row-block kernel */
    struct plan_summary *summary; /* [mask patterns] */
};

/* The words of a tile's or a group's pattern; null for 0, the full one. */
static inline const u32 *pass_pattern(const struct plan_pass *t, u32 pattern)
{
    return pattern ? t->patterns + (size_t)(pattern - 1) * t->block_rows : NULL;
}

/* Does the item take up what another left of some row? */
static inline bool item_merges(const struct abi_item *item)
{
    u32 any = 0;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        any |= item->merge[w];
    return any;
}

struct plan {
    uint32_t n, heads, layers, n_masks; /* n_masks: distinct patterns */
    uint32_t *at;                       /* [layers * heads], as in struct mask */
    uint32_t block_rows;
    const struct kernel_family *family; /* of the forward pass */
    uint32_t can; /* what the kernels of all passes can do (enum family_can) */
    const struct target *target;
    const struct machine *machine;
    struct kernel_config config;
    struct price price[PASSES];
    struct plan_pass forward, transposed; /* transposed is empty without request.backward */
};

/* A new plan, checked against the mask in debug builds, or null with *e set. Of several plans that kernels
   could run it is the best. Code is emitted for its config. */
struct plan *plan_build(const struct mask *m, const struct target *t,
                        const struct kernel_request *r, const struct machine *machine,
                        struct error *e);
/* Would it be the same for another target, the request and the machine the same? */
bool plan_suits(const struct plan *p, const struct target *t, const struct kernel_request *r);
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

/* What a pass over one layer does for a batch, all heads, with a cache of `workers` cores. */
struct effort plan_effort(const struct plan *p, enum machine_pass pass, uint32_t layer,
                          uint32_t batch, uint32_t workers);

/* What its seconds on one worker are multiplied with to be those of all: 1 / workers where items come out
   even, more where they do not. And the launches that a pass counts as. */
double plan_spread(const struct plan *p, enum machine_pass pass, uint32_t layer, uint32_t batch,
                   uint32_t threads);
double plan_launches(const struct plan *p, enum machine_pass pass, uint32_t layer);

/* The views: text (golden, deterministic), and the contract's JSON. */
void plan_print(const struct plan *p, uint32_t batch, uint32_t threads, struct text *out);
json_t *plan_json(const struct plan *p, uint32_t batch, uint32_t threads);
