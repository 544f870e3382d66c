/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of tokens: position p holds token order[p], and M becomes P M P^T. */
#pragma once
#include "masks/base/error.h"
#include "masks/mask.h"

/* One whose neighbourhoods are close together is cheap. All return an array [n] that the caller frees. `graph` is
   symmetric (order_graph). */
uint32_t *order_rcm(const struct pattern *graph); /* reverse Cuthill-McKee: a small bandwidth */
uint32_t *order_bisect(
    const struct pattern *graph); /* halves by breadth-first search, and halves of these */

/* Hilbert's curve through points [n, axes], 1 to 3 axes, all finite. */
uint32_t *order_curve(const double *point, uint32_t n, uint32_t axes);

/* The pairs of tokens of which one sees the other in some head. Null with *e set where they are too many. */
struct pattern *order_graph(const struct mask *m, struct error *e);

bool order_is_permutation(const uint32_t *order, uint32_t n);
uint32_t *order_invert(const uint32_t *order, uint32_t n);

/* P M P^T: query p sees key q where order[p] sees order[q]. Null with *e set where that has too many runs. */
struct mask *mask_permute(const struct mask *m, const uint32_t *order, struct error *e);

/* int64 or int32 [n] in a .npy, a permutation of 0 .. n - 1. */
int order_read(const char *path, uint32_t n, uint32_t **ret, struct error *e);
int order_write(const char *path, const uint32_t *order, uint32_t n,
                struct error *e); /* int64 */

/* Floats or whole numbers [n, 1 to 3] in a .npy, finite. */
int points_read(const char *path, uint32_t n, double **ret, uint32_t *ret_axes,
                struct error *e);
