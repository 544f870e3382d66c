/* SPDX-License-Identifier: Apache-2.0 */
/* Snap: the mask that keeps the most of an importance within a predicted time. Each row block of a head has
   candidates, priced by the planner; their concave hull gives steps of falling value over price; the steps of all
   row blocks, merged, are taken until the time is spent. It is the greedy solution of a multiple-choice knapsack. */
#pragma once
#include "gen/plan/plan.h"
#include "masks/importance.h"

/* Kind of mask: snap's own, and those it is compared with. */
enum snap_kind {
    SNAP_ROW_BLOCKS,
    SNAP_MAGNITUDE, /* the largest values, the same share of each head, as --keep takes them */
    SNAP_TILES,     /* 32 x 32 tiles by their sum, over all heads */
    SNAP_WINDOW,    /* |i - j| <= w, first and last row and column, alike in all heads */
    SNAP_DISTANCES, /* distances |i - j| by their mean, over all heads; border as in window */
    SNAP_KINDS
};
extern const char *const snap_kind_names[SNAP_KINDS]; /* "snap", "magnitude", "tiles", ... */

/* Exactly one of share, seconds and retain is above zero. */
struct snap_request {
    double share;   /* of dense's predicted time, 0 to 1 */
    double seconds; /* predicted, of all layers */
    double retain;  /* 0 to 1: the fastest mask that keeps so much of the importance */
    bool training;  /* time is that of forward and backward; else of the forward pass */
    bool
        uniform; /* each head gets the same share of the time; only snap's own kind can, and is returned */
    bool keep_rows;               /* a row keeps its most important key at least */
    uint32_t batch, threads;      /* 0: 1 */
    struct kernel_request kernel; /* .length is set by snap */
    const struct target *target;
    const struct machine *machine;
    /* done: 0 to 1; null: quiet */
    void (*progress)(void *context, double done, const char *what);
    void *progress_context;
    uint32_t
        repeat; /* heads that each head of the importance represents in the predicted time; 0: 1 */
};

/* A mask with its predicted time and what it keeps. */
struct snap_mask {
    enum snap_kind kind;
    struct mask *mask; /* owned; null: none of this kind within the time keeps anything */
    double predicted;  /* seconds of all layers, as plan_predict says of the whole plan */
    double share;      /* predicted / dense's */
    double retained;   /* its part of the sum of the importance */
};

struct snap_result {
    struct snap_mask best; /* of all kinds; a copy of one below: its mask is owned there */
    struct snap_mask kind[SNAP_KINDS]; /* each by itself */
    double dense_predicted;            /* seconds of all layers */
    double
        bound; /* of the linear programme over the candidates: no choice among them keeps more */
    double least_share; /* that any mask reaches: of the empty one */
};

/* 0; or -1 with *e set: ERROR_FALSE (exit code 1) where no mask within the time keeps anything, which names the least
   share of one that does, ERROR_INPUT for an invalid request. The same input gives the same mask, for any threads. */
int snap_solve(const struct importance *p, const struct snap_request *r,
               struct snap_result *ret, struct error *e);
void snap_result_finish(struct snap_result *s); /* a zeroed one is fine */
/* A mask's part of the sum of the importance; the mask has its layers, heads and length. */
double snap_retained(const struct importance *p, const struct mask *m);
double snap_retained_head(const struct importance *p, const struct mask *m, uint32_t layer,
                          uint32_t head); /* of that head's sum; 0 where that is 0 */
