/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that compare a plan's tables with the mask: check.c (items, rows), check_visits.c (what
   pieces visit), check_work.c (the work lists), check_steps.c (steps). Failures set the error. */
#pragma once
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"

struct checker {
    const struct plan *plan;
    const struct plan_pass *pass;
    const struct pattern *mask; /* in the direction of the pass */
    const char *direction;
    uint32_t rows;               /* that are queries or keys; the mask may have more */
    struct item_kernels kernels; /* that the family has */
    uint32_t which, item;
    const struct abi_item
        *decoding;     /* the item, or the split one that has some of its row `as`: ... */
    uint32_t only, as; /* ... then its row `only` is of interest, else UINT32_MAX */
    uint64_t words;    /* of a row of the bitmap */
    u64 *bits;         /* [block_rows][words] */
    uint32_t visited[ABI_MAX_BLOCK_ROWS];
    uint32_t uses, max_cols; /* as found */
    bool *owned;             /* [n] */
    uint32_t *split_by;      /* [n] 1 + the split item that has the row, or 0 */
    uint32_t *
        partial_slot; /* [pass->partial_slots] 1 + the part that is there, until it is merged */
    struct error *e;
};

int checker_fail(struct checker *c, const char *what, uint32_t row, uint32_t column);

/* Sets the bits of all that the item's pieces visit; each piece must be one that fits the item, and the
   columns must add up. */
int check_pieces(struct checker *c, const struct abi_item *item);
/* Adds what a split item visited of a row to what row r of an item did. */
int check_split(struct checker *c, const struct abi_item *from, uint32_t r, uint32_t row);

/* Each layer's list: every item of every head once, in order; shared only by layers that are alike. */
int check_work(struct checker *c);

/* The steps of a pass, where its kernels read them: they are the mask, and each layer's list has every group. */
int check_steps(const struct plan *p, enum machine_pass pass, const struct mask *m,
                struct error *e);
