/* SPDX-License-Identifier: Apache-2.0 */
/* Request for a kernel, and the config that its code is specialised on. */
#pragma once
#include "masks/base/error.h"
#include "templates/abi.h"
#include <stdbool.h>
#include <stdint.h>

/* User's request for a kernel, apart from the mask and the target. */
struct kernel_request {
    enum abi_dtype dtype;
    enum abi_transform transform;
    float lambda; /* sparsegen */
    uint32_t head_dim;
    bool dropout, backward;
    uint32_t length;    /* of the mask; 0: unknown, which resident kernels do not take */
    enum abi_bias bias; /* an array X beside the mask: learnt, not compiled in */
    /* Heads of K and V; 0: as many as Q. Query head h uses key head h / (heads / kv_heads). */
    uint32_t kv_heads;
    /* Rows of Q, and of K and V; both or none. The mask stays square, of the larger length: rows from `queries` on and
       columns from `keys` on are empty. */
    uint32_t queries, keys;
};

/* Rows and columns of a pass: queries and keys, or keys and queries in the transposed plan. */
struct request_sides {
    uint32_t rows, columns;
};

/* `n`: side of the mask. */
static inline struct request_sides request_sides(const struct kernel_request *r, uint32_t n,
                                                 bool transposed)
{
    const uint32_t queries = r->queries ? r->queries : n, keys = r->keys ? r->keys : n;
    return transposed ? (struct request_sides){keys, queries}
                      : (struct request_sides){queries, keys};
}

struct kernel_family;
/* Config that code is specialised on: the request, and what plan_build() adds for a mask. */
struct kernel_config {
    struct kernel_request request;
    /* CUDA: row blocks merge rows of split items; there are global rows; these are cut into parts; row blocks have
       128 rows in the place of 64. */
    bool shared_rows, global_rows, cut_rows, tall;
    /* Kernel families of the passes; null: the first family that accepts the request. */
    const struct kernel_family *forward, *backward;
    uint32_t step_shape[3]; /* kernel shapes where kernels read steps, by enum machine_pass */
    /* A CPU's matrix unit: groups of gathered columns that a thread keeps from row block to row block, shared ones
       included; 0: GATHERS_KEPT. */
    uint32_t gathers_kept;
};

/* GATHERS_KEPT: groups of gathered columns that a thread keeps, in addition to the shared ones (gen/plan/shared.c).
   GATHERS_KEPT_MOST: the most kept groups that a plan requests, shared ones included. */
enum { GATHERS_KEPT = 4, GATHERS_KEPT_MOST = 24 };

struct target;
/* Accepts D if it is a multiple of 8 in 16..256, and lambda below 1; refuses everything else with one line. */
int kernel_request_check(const struct kernel_request *r, const struct target *t,
                         struct error *e);
const char *dtype_name(enum abi_dtype dtype); /* "f32", "bf16", "f16", "tf32" */
uint32_t dtype_bytes(enum abi_dtype dtype);
int dtype_parse(const char *name, enum abi_dtype *ret, struct error *e);
/* "softmax" or "sparsegen=L"; sets transform and lambda. */
int transform_parse(const char *text, struct kernel_request *r, struct error *e);
const char *bias_name(enum abi_bias bias); /* "none", "bias", "scale" */
int bias_parse(const char *name, enum abi_bias *ret, struct error *e);
