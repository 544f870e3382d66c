/* SPDX-License-Identifier: Apache-2.0 */
/* linear.h where maskbert is built without oneDNN: there is no engine, and matmul_new says so. */
#include "model/linear.h"

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

/* The rest is never reached: it takes a struct matmul, and there is none. */

int linear_pack(struct matmul *m, const struct linear_shape *shape, const float *weight,
                const float *bias, struct linear *ret, struct error *e)
{
    (void)m, (void)shape, (void)weight, (void)bias, (void)ret;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}

void linear_finish(struct linear *l)
{
    *l = (struct linear){0};
}

uint32_t linear_rows(uint32_t rows)
{
    return rows;
}

const struct product *linear_product(struct matmul *m, const struct linear *l,
                                     const struct product_use *use, struct error *e)
{
    (void)m, (void)l, (void)use;
    error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
    return NULL;
}

void product_room_finish(struct product_room *r)
{
    *r = (struct product_room){0};
}

int product_room_grow(struct matmul *m, const struct product *p, struct product_room *r,
                      struct error *e)
{
    (void)m, (void)p, (void)r;
    return error_set(e, ERROR_UNAVAILABLE, "built without oneDNN");
}

int linear_run(const struct product *p, const struct linear *l, const void *x, void *y,
               struct product_room *r)
{
    (void)p, (void)l, (void)x, (void)y, (void)r;
    return -1;
}
