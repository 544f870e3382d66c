/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind matmul.h share where oneDNN does the products. */
#pragma once
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/cpu/matmul/onednn.h"
#include "model/backend/cpu/pool.h"
#include <pthread.h>

struct gradient_product; /* matmul_gradient.c */

struct matmul {
    dnnl_engine_t engine;
    pthread_mutex_t lock; /* of the products */
    struct product **product;
    uint32_t products, capacity;
    struct gradient_product **gradient;
    uint32_t gradients, gradients_capacity;
    struct pool weights;    /* and biases */
    struct layout **layout; /* of the weights */
    uint32_t layouts, layouts_capacity;
};

int matmul_fail(struct error *e, const char *what, dnnl_status_t s); /* -1 */
dnnl_data_type_t matmul_type(enum element t);

/* The layout of the weights that the library prefers; kept as long as *m. */
const struct layout *matmul_layout(struct matmul *m, const struct linear_shape *shape,
                                   struct error *e);

/* One array of a call of the library. */
struct operand {
    int what; /* DNNL_ARG_ */
    const struct layout *layout;
    const void *data;
};
enum { OPERANDS = 5 }; /* at most */
dnnl_status_t operands_run(dnnl_engine_t engine, dnnl_stream_t stream,
                           dnnl_primitive_t primitive, const struct operand *operand, int n);

void gradient_product_destroy(struct gradient_product *p);
