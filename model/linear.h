/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products with what follows them: y = after(x W^T + b), for weights that are packed once. The
   only header that knows that there is a library behind it; it is oneDNN (cpu/matmul_onednn.c). */
#pragma once
#include "masks/base/error.h"
#include "model/element.h"
#include <stdbool.h>
#include <stddef.h>

enum after { AFTER_NONE, AFTER_GELU, AFTER_GELU_TANH, AFTER_RELU, AFTER_SILU, AFTER_TANH };

/* The library's engine and the products made so far. Safe to use from many threads. */
struct matmul;
struct matmul *matmul_new(struct error *e); /* null with *e set where there is none */
void matmul_destroy(struct matmul *m);      /* null is fine */

/* A weight matrix [out, in] in the form that the products want. */
struct linear {
    uint32_t in, out;
    enum element x, y; /* of what is read (and of the weights) and of what is written */
    enum after after;
    void *packed;          /* as long as the struct matmul lives */
    float *bias;           /* [out] */
    struct layout *layout; /* internal */
    void *fused_bias; /* on a device: [out] of y's type; packed and bias are the device's too */
};
struct linear_shape {
    uint32_t in, out;
    enum element x, y; /* ELEMENT_F32 or ELEMENT_BF16 */
    enum after after;
};
/* weight: f32 [out, in]; bias: f32 [out] or null for zeros. Neither is kept. One thread at a time. */
int linear_pack(struct matmul *m, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e);
void linear_finish(struct linear *l); /* a zeroed one is fine */

/* Rows that a product is made for: `rows` rounded up, so that there are few of them. Arrays of x and y
   need room for so many; what lies beyond `rows` is read and written, and means nothing. */
uint32_t linear_rows(uint32_t rows);
enum { LINEAR_ROWS_BEYOND = 32 }; /* linear_rows(n) < n + this */

/* The code for linear_rows(rows) rows: made on first use, kept as long as *m. */
struct product;
struct product_use {
    uint32_t rows;
    uint32_t threads; /* that one product is divided among; 1 for those that run side by side */
    bool adds;        /* y += x W^T + b; y is f32 and nothing comes after */
};
const struct product *linear_product(struct matmul *m, const struct linear *l,
                                     const struct product_use *use, struct error *e);

/* What one thread needs to run products; zeroed: empty. */
struct product_room {
    void *stream, *scratch;
    size_t scratch_bytes;
};
void product_room_finish(struct product_room *r);
/* Makes the room ready for a product. */
int product_room_grow(struct matmul *m, const struct product *p, struct product_room *r,
                      struct error *e);
/* x: [rows, in], y: [rows, out], rows as the product was made for; the room is ready. */
int linear_run(const struct product *p, const struct linear *l, const void *x, void *y,
               struct product_room *r);
