/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h where maskbert is built without oneDNN: matmul_new says so, and nothing else is reached. */
#include "model/backend/cpu/matmul/matmul.h"

struct matmul *matmul_new(struct error *e)
{
    error_set(e, ERROR_UNAVAILABLE,
              "built without oneDNN, which the encoder's matrix products need: install "
              "libdnnl-dev and build again");
    return NULL;
}

void matmul_destroy(struct matmul *m)
{
    (void)m;
}

int matmul_pack(struct matmul *m, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e)
{
    (void)m, (void)shape, (void)weight, (void)bias, (void)ret;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}

void matmul_describe(struct text *ret)
{
    text_add(ret, "no oneDNN");
}

void matmul_outline(struct matmul *m)
{
    (void)m;
}

uint64_t matmul_gradient_bytes(uint32_t threads)
{
    (void)threads;
    return 0;
}

uint64_t matmul_weights_bytes(const struct matmul *m)
{
    (void)m;
    return 0;
}

uint32_t product_rows(uint32_t rows)
{
    return rows;
}

uint64_t product_widened_bytes(const struct matmul *m, const struct linear_shape *shape,
                               uint32_t rows)
{
    (void)m, (void)shape, (void)rows;
    return 0;
}

const struct product *product_find(struct matmul *m, const struct linear *l,
                                   const struct product_use *use, struct error *e)
{
    (void)m, (void)l, (void)use;
    error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
    return NULL;
}

void product_workspace_finish(struct product_workspace *w)
{
    *w = (struct product_workspace){0};
}

int product_workspace_grow(struct matmul *m, const struct product *p,
                           struct product_workspace *w, struct error *e)
{
    (void)m, (void)p, (void)w;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}

int product_run(const struct product *p, const struct linear *l, const void *x, void *y,
                struct product_workspace *w)
{
    (void)p, (void)l, (void)x, (void)y, (void)w;
    return -1;
}

int matmul_repack(struct matmul *m, const struct linear *l, const struct weight_view *weight,
                  const float *bias, struct error *e)
{
    (void)m, (void)l, (void)weight, (void)bias;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}

int matmul_weight_gradients(struct matmul *m, const struct weight_gradient *list, uint32_t n,
                            uint32_t threads, struct error *e)
{
    (void)m, (void)list, (void)n, (void)threads;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}
