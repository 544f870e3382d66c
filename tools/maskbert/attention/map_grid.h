/* SPDX-License-Identifier: Apache-2.0 */
/* Attention maps as a picture: a row of panels for each layer, a column for each head. White is probability 0,
   dark is 1; queries go down, keys go right. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct map_grid {
    uint32_t layers, heads, n; /* those shown */
    uint32_t first_layer, first_head;
    const float *value;       /* [layers, heads, n, n] */
    const double *support;    /* [layers, heads]: mean number of keys of a query */
    const char *const *token; /* [n] */
};

/* .png or .svg by suffix. Tokens are named where there is space. */
int map_grid_draw(const struct map_grid *m, const char *path, struct error *e);
