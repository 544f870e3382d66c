/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a learned mask (SparseBERT, Figures 1 and 2). */
#pragma once
#include "masks/importance.h"
#include "model/train/snapshot/mask_history.h"
#include "tools/common/figure.h"
#include <stdbool.h>

/* Means of P over a head's entries with i = j, with |i - j| = 1, with i or j first or last; and the share with P above
   1/2. */
struct head_importance {
    double p_diagonal, p_neighbour, p_special, density;
};
struct head_importance head_importance_of(const float *p, uint32_t n);

/* A border that is forced on: the first and last row and column are 1 in each head. Nothing of it was learned. */
bool border_is_forced(const struct importance *p);

/* Averages over all heads and layers. */
struct mean_importance {
    uint32_t n;
    bool border; /* forced on */
    float *map;  /* [n, n] */
    double *
        distance; /* [n], or with a border [n - 2]: over the entries with |i - j|, those of the border apart */
};
void mean_importance_of(const struct importance *p, struct mean_importance *ret);
void mean_importance_finish(struct mean_importance *m);

/* The mean map, P over distances, the first and last row, and a map for each head. */
int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const struct figure *f, struct error *e);

/* A learned mask over the steps: a column for each frame (6 for a column of a paper at most, the first and the last among them), a row for
   each head (12 at most). */
int film_draw(const struct mask_history *h, const struct figure *f, struct error *e);
