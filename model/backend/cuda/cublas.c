/* SPDX-License-Identifier: Apache-2.0 */
/* We store matrices by rows, cuBLASLt by columns. y [rows, out] = x [rows, in] W [out, in]^T by rows is
   y' [out, rows] = op(W') x' by columns, where W' [in, out] and x' [in, rows] are the same memory and op
   transposes. So A is W with leading dimension `in`, B is x with `in`, D is y with `out`. The library adds a
   bias to each row of D, which is a column of y, as we want it. */
#include "model/backend/cuda/cublas.h"
#include "masks/base/memory.h"
#include "model/backend/cuda/cublas_library.h"
#include <pthread.h>
#include <stdlib.h>

/* What a product was made for, and what the library answered. */
struct plan_key {
    struct linear_shape shape; /* `after` is not asked for: the epilogue stands for it */
    uint32_t rows;
    int epilogue;
};

struct plan {
    struct plan_key key;
    bool supported;
    struct lt_layout *a, *b, *d;
    struct lt_result found;
};

struct cublas {
    struct cublas_library lib;
    struct lt_handle *handle;
    pthread_mutex_t lock; /* of the plans */
    struct plan **plan;
    uint32_t plans, capacity;
};

static int fail(const char *what, int status, struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE, "cuBLASLt: %s: status %d", what, status);
}

static int open(struct cublas *c, struct error *e)
{
    if (cublas_library_open(&c->lib, e) < 0)
        return -1;
    int status = c->lib.cublasLtCreate(&c->handle);
    if (!status)
        return 0;
    c->handle = NULL;
    return fail("it does not start on this GPU", status, e);
}

struct cublas *cublas_new(struct error *e)
{
    struct cublas *c = memory_new(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    if (open(c, e) == 0)
        return c;
    cublas_destroy(c);
    return NULL;
}

/* ---- plans ---- */

static void plan_destroy(const struct cublas *c, struct plan *p)
{
    struct lt_layout *layout[] = {p->a, p->b, p->d};
    for (int k = 0; k < 3; k++)
        if (layout[k])
            c->lib.cublasLtMatrixLayoutDestroy(layout[k]);
    free(p);
}

void cublas_destroy(struct cublas *c)
{
    if (!c)
        return;
    for (uint32_t k = 0; k < c->plans; k++)
        plan_destroy(c, c->plan[k]);
    if (c->handle)
        c->lib.cublasLtDestroy(c->handle);
    pthread_mutex_destroy(&c->lock);
    free(c->plan);
    free(c);
}

static int type_of(enum element t)
{
    return t == ELEMENT_BF16 ? LT_BF16 : LT_F32;
}

/* The default stands for what the library cannot do in one go. Its GELU is the tanh form and may use a fast
   tanh, which only bf16 can bear. */
static int epilogue_of(const struct linear *w)
{
    switch (w->shape.after) {
    case AFTER_NONE:
        return LT_EPILOGUE_BIAS;
    case AFTER_RELU:
        return LT_EPILOGUE_RELU_BIAS;
    case AFTER_GELU_TANH:
        return w->shape.y == ELEMENT_BF16 ? LT_EPILOGUE_GELU_BIAS : LT_EPILOGUE_DEFAULT;
    default:
        return LT_EPILOGUE_DEFAULT;
    }
}

/* Describes a product with one weight matrix. */
static int make_desc(const struct cublas *c, const struct linear *w, int epilogue,
                     struct lt_desc **ret)
{
    const struct cublas_library *l = &c->lib;
    const int32_t transpose = LT_TRANSPOSE;
    const uint32_t after = (uint32_t)epilogue;
    int s = l->cublasLtMatmulDescCreate(ret, LT_COMPUTE_32F, LT_F32);
    if (s)
        return s;
    s = l->cublasLtMatmulDescSetAttribute(*ret, LT_DESC_TRANSA, &transpose, sizeof transpose);
    if (!s)
        s = l->cublasLtMatmulDescSetAttribute(*ret, LT_DESC_EPILOGUE, &after, sizeof after);
    if (!s && epilogue != LT_EPILOGUE_DEFAULT)
        s = l->cublasLtMatmulDescSetAttribute(*ret, LT_DESC_BIAS_POINTER, &w->fused_bias,
                                              sizeof w->fused_bias);
    if (s)
        l->cublasLtMatmulDescDestroy(*ret);
    return s;
}

static int make_layouts(const struct cublas *c, struct plan *p)
{
    const struct cublas_library *l = &c->lib;
    const struct linear_shape *f = &p->key.shape;
    int s = l->cublasLtMatrixLayoutCreate(&p->a, type_of(f->x), f->in, f->out, f->in);
    if (!s)
        s = l->cublasLtMatrixLayoutCreate(&p->b, type_of(f->x), f->in, p->key.rows, f->in);
    if (!s)
        s = l->cublasLtMatrixLayoutCreate(&p->d, type_of(f->y), f->out, p->key.rows, f->out);
    return s;
}

static int ask(const struct cublas *c, struct lt_desc *desc, struct plan *p)
{
    const struct cublas_library *l = &c->lib;
    const uint64_t most = CUBLAS_WORKSPACE_BYTES;
    struct lt_preference *preference;
    int found = 0, s = l->cublasLtMatmulPreferenceCreate(&preference);
    if (s)
        return s;
    s = l->cublasLtMatmulPreferenceSetAttribute(preference, LT_PREFERENCE_MAX_WORKSPACE_BYTES,
                                                &most, sizeof most);
    if (!s)
        s = l->cublasLtMatmulAlgoGetHeuristic(c->handle, desc, p->a, p->b, p->d, p->d,
                                              preference, 1, &p->found, &found);
    l->cublasLtMatmulPreferenceDestroy(preference);
    p->supported = !s && found == 1 && !p->found.state;
    return 0; /* what the library cannot do is no failure */
}

static bool same(const struct plan_key *a, const struct plan_key *b)
{
    return a->shape.in == b->shape.in && a->shape.out == b->shape.out &&
           a->shape.x == b->shape.x && a->shape.y == b->shape.y && a->rows == b->rows &&
           a->epilogue == b->epilogue;
}

static struct plan *find(const struct cublas *c, const struct plan_key *key)
{
    for (uint32_t k = 0; k < c->plans; k++)
        if (same(&c->plan[k]->key, key))
            return c->plan[k];
    return NULL;
}

static struct plan *make_plan(struct cublas *c, const struct plan_key *key,
                              struct lt_desc *desc, struct error *e)
{
    struct plan *p = memory_new(1, sizeof *p);
    p->key = *key;
    int s = make_layouts(c, p);
    if (!s)
        s = ask(c, desc, p);
    if (s) {
        plan_destroy(c, p);
        fail("a matrix layout", s, e);
        return NULL;
    }
    *MEMORY_PUSH(c->plan, c->plans, c->capacity) = p;
    return p;
}

static const struct plan *plan_of(struct cublas *c, const struct plan_key *key,
                                  struct lt_desc *desc, struct error *e)
{
    pthread_mutex_lock(&c->lock);
    struct plan *p = find(c, key);
    if (!p)
        p = make_plan(c, key, desc, e);
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* ---- running ---- */

static int multiply(const struct cublas *c, const struct gpu_stream *s,
                    const struct gpu_product *g, const struct plan *p, struct lt_desc *desc)
{
    const float one = 1, zero = 0;
    return c->lib.cublasLtMatmul(c->handle, desc, &one, g->l->packed, p->a, g->x, p->b, &zero,
                                 g->y, p->d, g->y, p->d, &p->found.algorithm, s->workspace,
                                 CUBLAS_WORKSPACE_BYTES, s->handle);
}

/* *ret: whether the library has such a product; if not, nothing is done. */
static int run(struct cublas *c, const struct gpu_stream *s, const struct gpu_product *g,
               int epilogue, bool *ret, struct error *e)
{
    const struct plan_key key = {g->l->shape, g->rows, epilogue};
    struct lt_desc *desc;
    int status = make_desc(c, g->l, epilogue, &desc);
    if (status)
        return fail("a product's description", status, e);
    const struct plan *p = plan_of(c, &key, desc, e);
    *ret = p && p->supported;
    if (*ret)
        status = multiply(c, s, g, p, desc);
    c->lib.cublasLtMatmulDescDestroy(desc);
    return status ? fail("a product", status, e) : p ? 0 : -1;
}

int cublas_product(struct cublas *c, const struct gpu_stream *s, const struct gpu_product *p,
                   bool *ret_fused, struct error *e)
{
    const int epilogue = p->fuse ? epilogue_of(p->l) : LT_EPILOGUE_DEFAULT;
    bool done = false;
    *ret_fused = false;
    if (epilogue != LT_EPILOGUE_DEFAULT) {
        if (run(c, s, p, epilogue, &done, e) < 0)
            return -1;
        *ret_fused = done;
    }
    if (!done && run(c, s, p, LT_EPILOGUE_DEFAULT, &done, e) < 0)
        return -1;
    const struct linear_shape *f = &p->l->shape;
    return done ? 0
                : error_set(e, ERROR_UNAVAILABLE,
                            "cuBLASLt has no %s product of %u rows with a matrix of %u x %u",
                            element_name(f->x), p->rows, f->out, f->in);
}
