/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files behind matmul.h when oneDNN does the products. */
#pragma once
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/cpu/matmul/onednn.h"
#include "model/backend/cpu/ops/encoder_ops.h"
#include "model/base/pool.h"
#include <pthread.h>

struct gradient_product; /* matmul_gradient.c */

struct matmul {
    dnnl_engine_t engine;
    const struct cpu_encoder_ops *rows;
    bool widens_bf16;     /* bf16 products are computed in f32: matmul_widen.c */
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

/* Keeps the library within MASKC_MAX_CPU; before any other call of it. */
int matmul_limit(struct error *e);
/* True if the library has instructions for bf16 products here. */
bool matmul_multiplies_bf16(void);

/* ---- bf16 in f32 ---- */

bool matmul_widens(const struct matmul *m, enum element t);
/* Type of a product's operand of this type. */
dnnl_data_type_t matmul_type(const struct matmul *m, enum element t);
/* Bytes of the f32 copy of `count` elements, whole cache lines; 0: the library handles the type. */
size_t matmul_widened_bytes(const struct matmul *m, enum element t, uint64_t count);
void matmul_widen(const struct matmul *m, uint32_t threads, uint64_t count, const uint16_t *x,
                  float *y);
void matmul_round(const struct matmul *m, uint32_t threads, uint64_t count, const float *x,
                  uint16_t *y);

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
