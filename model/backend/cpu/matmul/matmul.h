/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the CPU: y = after(x W^T + b), for weights that are packed once, by oneDNN (matmul_onednn.c,
   matmul_pack.c, matmul_gradient.c), or none (matmul_none.c). CPUs without instructions for bf16 multiply it as f32
   (matmul_widen.c). */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include "model/ops/linear.h"
#include <stddef.h>

/* The library's engine, packed weights, and the products made so far. Safe to use from many threads. */
struct matmul;
struct matmul *matmul_new(struct error *e); /* null with *e set where there is none */
void matmul_destroy(struct matmul *m);      /* null is fine */

/* weight: f32 [out, in]; bias: f32 [out]; null: zeros. Neither is kept; *ret lives as long as *m. One thread at a
   time. */
int matmul_pack(struct matmul *m, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e);

/* Rows that a product is made for: `rows` rounded up, so that there are few products. Arrays of x and y
   hold so many; what lies beyond `rows` is read and written, and means nothing. */
uint32_t product_rows(uint32_t rows);
enum { PRODUCT_ROWS_BEYOND = 32 }; /* product_rows(n) < n + this */

/* The code for product_rows(rows) rows: made on first use, kept as long as *m. */
struct product;
struct product_use {
    uint32_t rows;
    uint32_t threads; /* that one product is divided among; 1: products run side by side */
    bool adds;        /* y += x W^T + b; y is f32 and nothing comes after */
};
const struct product *product_find(struct matmul *m, const struct linear *l,
                                   const struct product_use *use, struct error *e);

/* Bytes of the f32 copies that a product works in where the CPU has no instructions for bf16; else 0. */
uint64_t product_widened_bytes(const struct matmul *m, const struct linear_shape *shape,
                               uint32_t rows);

/* Memory of one thread for products; zeroed: empty. */
struct product_workspace {
    void *stream, *scratch;
    size_t scratch_bytes;
};
void product_workspace_finish(struct product_workspace *w);
/* Makes the workspace ready for a product. */
int product_workspace_grow(struct matmul *m, const struct product *p,
                           struct product_workspace *w, struct error *e);
/* x: [rows, in], y: [rows, out], rows as the product was made for; the workspace is ready. */
int product_run(const struct product *p, const struct linear *l, const void *x, void *y,
                struct product_workspace *w);

/* ---- training ---- */

/* The library, its version, and the instructions that it uses. */
void matmul_describe(struct text *ret);

/* From now on weights have no memory: matmul_pack, without values, counts them and knows their layouts. */
void matmul_outline(struct matmul *m);

/* Bytes of all packed weights and biases. */
uint64_t matmul_weights_bytes(const struct matmul *m);

/* Replaces the values of a linear that matmul_pack made; memory and layout stay. bias null: all zeros. Threads may repack
   different linears at once; this one must not be used meanwhile. */
int matmul_repack(struct matmul *m, const struct linear *l, const struct weight_view *weight,
                  const float *bias, struct error *e);

/* Computes a list of weight gradients, divided among the threads by blocks of dW. Sums go over GRADIENT_ROWS rows at a time, in order:
   the same bits for any number of threads, and for a batch cut at a multiple of GRADIENT_ROWS. */
enum { GRADIENT_ROWS = 512 };
uint64_t matmul_gradient_bytes(uint32_t threads); /* that it works in, but for the library's */
int matmul_weight_gradients(struct matmul *m, const struct weight_gradient *list, uint32_t n,
                            uint32_t threads, struct error *e);
