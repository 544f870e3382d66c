/* SPDX-License-Identifier: Apache-2.0 */
/* What a learned mask looks like (SparseBERT, Figures 1 and 2). */
#pragma once
#include "masks/importance.h"

/* Means of P over the entries of a head: i = j, |i - j| = 1, those of the first and last position; and the share of
   entries with P above 1/2. */
struct head_importance {
    double p_diagonal, p_neighbour, p_special, density;
};
struct head_importance head_importance_of(const float *p, uint32_t n);

/* Averages over all heads and layers. */
struct mean_importance {
    uint32_t n;
    float *map;                        /* [n, n] */
    double *distance;                  /* [n]: over the entries with |i - j| */
    const float *first_row, *last_row; /* of the map: what [CLS] and the last position see */
};
void mean_importance_of(const struct importance *p, struct mean_importance *ret);
void mean_importance_finish(struct mean_importance *m);

/* .png or .svg by suffix: the mean map, P over distances, the first and last row, and a map for each head. */
int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const char *path, struct error *e);
