/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by cuBLASLt, which is looked for at run time: $MASKC_CUBLASLT, else beside a
   toolkit or a Python package. Algorithms are asked for once for each shape. */
#pragma once
#include "masks/base/error.h"
#include "model/backend/gpu/driver.h"

struct cublas;
/* In the current context. Null with *e set: ERROR_UNAVAILABLE with what to install. */
struct cublas *cublas_new(struct error *e);
void cublas_destroy(struct cublas *c); /* null is fine */

enum { CUBLAS_WORKSPACE_BYTES = 32 << 20 }; /* of a stream; what NVIDIA advises for Hopper */

/* struct gpu_driver's product, in the current context. */
int cublas_product(struct cublas *c, const struct gpu_stream *s, const struct gpu_product *p,
                   bool *ret_fused, struct error *e);
int cublas_weight_gradient(struct cublas *c, const struct gpu_stream *s,
                           const struct weight_gradient *w, struct error *e);
