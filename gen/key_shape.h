/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer key than query heads (grouped-query attention), another number of keys than of queries: from what a user asks
   for to a request and the mask that plans are made of. */
#pragma once
#include "gen/request.h"
#include "masks/rectangle.h"

/* Requested heads and length of K and V. 0: as many as query heads; as many as queries. */
struct key_shape {
    uint32_t heads, length;
    enum mask_align align;
};

/* The length that a mask for n queries must have; 0, the mask's own, stays 0. */
uint32_t key_shape_side(const struct key_shape *s, uint32_t n);

/* Writes the shape to the request. A mask of a kernel file with other numbers of keys than queries has these, aligned as
   it was; others are refused. If the numbers of keys and queries differ, *m (loaded at the longer of the two
   lengths) is replaced by the mask between them; n 0: as many queries as the mask has. Fails if the heads do not divide,
   or with a soft mask. *m is destroyed on failure. */
int key_shape_apply(const struct key_shape *s, uint32_t n, struct mask **m,
                    struct kernel_request *r, struct error *e);

/* Do the request's numbers fit the mask? They may come from a file. */
bool key_shape_fits(const struct kernel_request *r, const struct mask *m);

/* Sizes that kernels receive: heads of K and V, rows of Q and of K. */
uint32_t request_kv_heads(const struct kernel_request *r, const struct mask *m);
uint32_t request_queries(const struct kernel_request *r, const struct mask *m);
uint32_t request_keys(const struct kernel_request *r, const struct mask *m);
