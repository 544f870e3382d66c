/* SPDX-License-Identifier: Apache-2.0 */
/* We store matrices by rows, cuBLASLt by columns. y [rows, out] = x [rows, in] W [out, in]^T by rows is
   y' [out, rows] = op(W') x' by columns, where W' [in, out] and x' [in, rows] are the same memory and op
   transposes. So A is W with leading dimension `in`, B is x with `in`, D is y with `out`. The library adds a
   bias to each row of D, which is a column of y, as we want it.

   dW [out, in] += dy [rows, out]^T x [rows, in] is dw' [in, out] += x' [in, rows] op(dy' [out, rows]): A is x, B is dy
   transposed, D is dW. */
#include "model/backend/cuda/cublas.h"
#include "masks/base/memory.h"
#include "model/backend/cuda/cublas_library.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Key of a cuBLASLt plan: the product that it was made for. */
struct plan_key { /* without holes: compared as bytes */
    uint32_t m, n, k;
    int type, type_d; /* of A and B, of D */
    uint32_t transpose_a, transpose_b;
    uint32_t a_leading, b_leading, d_leading;
    int epilogue;
    uint32_t a_alignment, b_alignment, d_alignment; /* of pointers, at most ALIGNMENT bytes */
};

enum { ALIGNMENT = 256 };

struct plan {
    struct plan_key key;
    bool supported;
    struct lt_layout *a, *b, *d;
    struct lt_result found;
};

/* D [m, n] = op(A) op(B), or with that added, all by columns. */
struct multiplication {
    const void *a, *b;
    void *d;
    const void *bias; /* of the epilogue's */
    struct plan_key key;
    bool adds;
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

/* The attributes of a multiplication that are not in its layouts. */
static int set_desc(const struct cublas_library *l, const struct multiplication *m,
                    struct lt_desc *desc)
{
    const int32_t transpose = LT_TRANSPOSE;
    const uint32_t epilogue = (uint32_t)m->key.epilogue;
    int s = 0;
    if (m->key.transpose_a)
        s = l->cublasLtMatmulDescSetAttribute(desc, LT_DESC_TRANSA, &transpose,
                                              sizeof transpose);
    if (!s && m->key.transpose_b)
        s = l->cublasLtMatmulDescSetAttribute(desc, LT_DESC_TRANSB, &transpose,
                                              sizeof transpose);
    if (!s)
        s = l->cublasLtMatmulDescSetAttribute(desc, LT_DESC_EPILOGUE, &epilogue,
                                              sizeof epilogue);
    if (!s && m->bias)
        s = l->cublasLtMatmulDescSetAttribute(desc, LT_DESC_BIAS_POINTER, &m->bias,
                                              sizeof m->bias);
    return s;
}

static int make_desc(const struct cublas *c, const struct multiplication *m,
                     struct lt_desc **ret)
{
    int s = c->lib.cublasLtMatmulDescCreate(ret, LT_COMPUTE_32F, LT_F32);
    if (s)
        return s;
    s = set_desc(&c->lib, m, *ret);
    if (s)
        c->lib.cublasLtMatmulDescDestroy(*ret);
    return s;
}

static int make_layout(const struct cublas_library *l, struct lt_layout **ret, int type,
                       const uint64_t size[3], bool transposed)
{
    return l->cublasLtMatrixLayoutCreate(ret, type, size[transposed], size[!transposed],
                                         (int64_t)size[2]);
}

static int make_layouts(const struct cublas *c, struct plan *p)
{
    const struct plan_key *k = &p->key;
    const uint64_t a[] = {k->m, k->k, k->a_leading}, b[] = {k->k, k->n, k->b_leading},
                   d[] = {k->m, k->n, k->d_leading};
    int s = make_layout(&c->lib, &p->a, k->type, a, k->transpose_a);
    if (!s)
        s = make_layout(&c->lib, &p->b, k->type, b, k->transpose_b);
    if (!s)
        s = make_layout(&c->lib, &p->d, k->type_d, d, false);
    return s;
}

static int set_preference(const struct cublas_library *l, const struct plan_key *k,
                          struct lt_preference *preference)
{
    const uint64_t most = CUBLAS_WORKSPACE_BYTES;
    const uint32_t alignment[] = {k->a_alignment, k->b_alignment, k->d_alignment,
                                  k->d_alignment};
    int s = l->cublasLtMatmulPreferenceSetAttribute(
        preference, LT_PREFERENCE_MAX_WORKSPACE_BYTES, &most, sizeof most);
    for (int i = 0; i < 4 && !s; i++)
        if (alignment[i] < ALIGNMENT) /* which is what the library takes for granted */
            s = l->cublasLtMatmulPreferenceSetAttribute(preference,
                                                        LT_PREFERENCE_MIN_ALIGNMENT_BYTES + i,
                                                        &alignment[i], sizeof alignment[i]);
    return s;
}

static int ask(const struct cublas *c, struct lt_desc *desc, struct plan *p)
{
    const struct cublas_library *l = &c->lib;
    struct lt_preference *preference;
    int found = 0, s = l->cublasLtMatmulPreferenceCreate(&preference);
    if (s)
        return s;
    s = set_preference(l, &p->key, preference);
    if (!s)
        s = l->cublasLtMatmulAlgoGetHeuristic(c->handle, desc, p->a, p->b, p->d, p->d,
                                              preference, 1, &p->found, &found);
    l->cublasLtMatmulPreferenceDestroy(preference);
    p->supported = !s && found == 1 && !p->found.state;
    return 0; /* what the library cannot do is no failure */
}

static struct plan *find(const struct cublas *c, const struct plan_key *key)
{
    for (uint32_t k = 0; k < c->plans; k++)
        if (!memcmp(&c->plan[k]->key, key, sizeof *key))
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
                    const struct multiplication *m, const struct plan *p, struct lt_desc *desc)
{
    const float one = 1, beta = m->adds ? 1 : 0;
    return c->lib.cublasLtMatmul(c->handle, desc, &one, m->a, p->a, m->b, p->b, &beta, m->d,
                                 p->d, m->d, p->d, &p->found.algorithm, s->workspace,
                                 CUBLAS_WORKSPACE_BYTES, s->handle);
}

static uint32_t alignment_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p % ALIGNMENT;
    return at ? (uint32_t)(at & (~at + 1)) : ALIGNMENT;
}

/* *ret: whether the library has such a product; if not, nothing is done. */
static int run(struct cublas *c, const struct gpu_stream *s, struct multiplication *m,
               bool *ret, struct error *e)
{
    struct lt_desc *desc;
    m->key.a_alignment = alignment_of(m->a);
    m->key.b_alignment = alignment_of(m->b);
    m->key.d_alignment = alignment_of(m->d);
    int status = make_desc(c, m, &desc);
    if (status)
        return fail("a product's description", status, e);
    const struct plan *p = plan_of(c, &m->key, desc, e);
    *ret = p && p->supported;
    if (*ret)
        status = multiply(c, s, m, p, desc);
    c->lib.cublasLtMatmulDescDestroy(desc);
    return status ? fail("a product", status, e) : p ? 0 : -1;
}

static struct multiplication product_of(const struct gpu_product *p, int epilogue)
{
    const struct linear_shape *f = &p->l->shape;
    return (struct multiplication){
        .a = p->l->packed,
        .b = p->x,
        .d = p->y,
        .bias = epilogue == LT_EPILOGUE_DEFAULT ? NULL : p->l->fused_bias,
        .adds = p->adds,
        .key = {.m = f->out,
                .n = p->rows,
                .k = f->in,
                .type = type_of(f->x),
                .type_d = type_of(f->y),
                .transpose_a = true,
                .a_leading = f->in,
                .b_leading = f->in,
                .d_leading = f->out,
                .epilogue = epilogue},
    };
}

int cublas_product(struct cublas *c, const struct gpu_stream *s, const struct gpu_product *p,
                   bool *ret_fused, struct error *e)
{
    const int epilogue = p->fuse ? epilogue_of(p->l) : LT_EPILOGUE_DEFAULT;
    struct multiplication fused = product_of(p, epilogue),
                          plain = product_of(p, LT_EPILOGUE_DEFAULT);
    bool done = false;
    *ret_fused = false;
    if (epilogue != LT_EPILOGUE_DEFAULT) {
        if (run(c, s, &fused, &done, e) < 0)
            return -1;
        *ret_fused = done;
    }
    if (!done && run(c, s, &plain, &done, e) < 0)
        return -1;
    const struct linear_shape *f = &p->l->shape;
    return done ? 0
                : error_set(e, ERROR_UNAVAILABLE,
                            "cuBLASLt has no %s product of %u rows with a matrix of %u x %u",
                            element_name(f->x), p->rows, f->out, f->in);
}

int cublas_weight_gradient(struct cublas *c, const struct gpu_stream *s,
                           const struct weight_gradient *w, struct error *e)
{
    struct multiplication m = {.a = w->x,
                               .b = w->dy,
                               .d = w->dw,
                               .adds = true,
                               .key = {.m = w->in,
                                       .n = w->out,
                                       .k = w->rows,
                                       .type = type_of(w->type),
                                       .type_d = LT_F32,
                                       .transpose_b = true,
                                       .a_leading = (uint32_t)w->x_row,
                                       .b_leading = (uint32_t)w->dy_row,
                                       .d_leading = (uint32_t)w->dw_row,
                                       .epilogue = LT_EPILOGUE_DEFAULT}};
    bool done = false;
    if (run(c, s, &m, &done, e) < 0)
        return -1;
    return done ? 0
                : error_set(e, ERROR_UNAVAILABLE,
                            "cuBLASLt has no %s product for a gradient of %u x %u over %u rows",
                            element_name(w->type), w->out, w->in, w->rows);
}
