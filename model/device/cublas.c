/* SPDX-License-Identifier: Apache-2.0 */
/* y [rows, out] = x [rows, in] W [out, in]^T, by rows, is for a library that counts by columns
   y' [out, rows] = op(W') x', where W' [in, out] and x' [in, rows] are the same memory and op transposes:
   A is W with leading dimension `in`, B is x with `in`, D is y with `out`. A bias of D's rows is then one
   of y's columns, as it should be. */
#include "model/device/cublas.h"
#include "masks/base/memory.h"
#include "model/device/cublas_symbols.h"
#include "runtime/toolkit.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct library {
#define S(name, args) int(*name) args;
    CUBLAS_SYMBOLS(S)
#undef S
};

/* What a product was made for, and what the library said. */
struct plan {
    uint32_t in, out, rows;
    enum element x, y;
    int epilogue;
    bool supported;
    struct lt_layout *a, *b, *d;
    struct lt_result found;
};

struct cublas {
    struct library lib;
    struct lt_handle *handle;
    pthread_mutex_t lock; /* of the list */
    struct plan **plan;
    uint32_t plans, room;
};

/* ---- finding the library; it stays loaded ---- */

static bool take_symbols(void *library, struct library *l)
{
#define S(name, args) *(void **)&l->name = dlsym(library, #name);
    CUBLAS_SYMBOLS(S)
#undef S
#define S(name, args) l->name &&
    return CUBLAS_SYMBOLS(S) true;
#undef S
}

static bool open_library(const char *path, void *context)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library && take_symbols(library, context);
}

static const struct toolkit_library cublas_files = {
    "MASKC_CUBLASLT",
    "libcublasLt.so.1[23]",
    {"libcublasLt.so.13", "libcublasLt.so.12"},
};

static int fail(const char *what, int status, struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE, "cuBLASLt: %s: status %d", what, status);
}

struct cublas *cublas_new(struct error *e)
{
    struct cublas *c = memory_new(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    int status = -1;
    if (!toolkit_find(&cublas_files, open_library, &c->lib))
        error_set(e, ERROR_UNAVAILABLE,
                  "no cuBLASLt (libcublasLt.so.12 or .13): install the CUDA toolkit, or `pip "
                  "install nvidia-cublas`, or set CUDA_HOME to a toolkit or MASKC_CUBLASLT to "
                  "the library");
    else if ((status = c->lib.cublasLtCreate(&c->handle)))
        fail("it does not start on this GPU", status, e);
    if (!status)
        return c;
    c->handle = NULL;
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

/* The library's GELU is the tanh form, and may use a fast tanh: good enough for bf16 alone. The default
   stands for what it cannot do in one go. */
static int epilogue_of(const struct linear *w)
{
    switch (w->after) {
    case AFTER_NONE:
        return LT_EPILOGUE_BIAS;
    case AFTER_RELU:
        return LT_EPILOGUE_RELU_BIAS;
    case AFTER_GELU_TANH:
        return w->y == ELEMENT_BF16 ? LT_EPILOGUE_GELU_BIAS : LT_EPILOGUE_DEFAULT;
    default:
        return LT_EPILOGUE_DEFAULT;
    }
}

/* What is to be done, for one weight matrix. */
static int make_desc(const struct cublas *c, const struct linear *w, int epilogue,
                     struct lt_desc **ret)
{
    const struct library *l = &c->lib;
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
    const struct library *l = &c->lib;
    int s = l->cublasLtMatrixLayoutCreate(&p->a, type_of(p->x), p->in, p->out, p->in);
    if (!s)
        s = l->cublasLtMatrixLayoutCreate(&p->b, type_of(p->x), p->in, p->rows, p->in);
    if (!s)
        s = l->cublasLtMatrixLayoutCreate(&p->d, type_of(p->y), p->out, p->rows, p->out);
    return s;
}

static int ask(const struct cublas *c, struct lt_desc *desc, struct plan *p)
{
    const struct library *l = &c->lib;
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

static struct plan *find(const struct cublas *c, const struct linear *w, uint32_t rows,
                         int epilogue)
{
    for (uint32_t k = 0; k < c->plans; k++) {
        struct plan *p = c->plan[k];
        if (p->in == w->in && p->out == w->out && p->rows == rows && p->x == w->x &&
            p->y == w->y && p->epilogue == epilogue)
            return p;
    }
    return NULL;
}

static const struct plan *plan_of(struct cublas *c, const struct linear *w, uint32_t rows,
                                  int epilogue, struct lt_desc *desc, struct error *e)
{
    pthread_mutex_lock(&c->lock);
    struct plan *p = find(c, w, rows, epilogue);
    if (!p) {
        p = memory_new(1, sizeof *p);
        *p = (struct plan){w->in, w->out, rows, w->x, w->y, epilogue};
        int s = make_layouts(c, p);
        if (!s)
            s = ask(c, desc, p);
        if (s) {
            plan_destroy(c, p);
            p = NULL;
            fail("a matrix layout", s, e);
        } else {
            *MEMORY_PUSH(c->plan, c->plans, c->room) = p;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* ---- running ---- */

/* *ret: whether the library has such a product; if not, nothing is done. */
static int run(struct cublas *c, const struct linear *w, uint32_t rows, const void *x, void *y,
               void *workspace, void *stream, int epilogue, bool *ret, struct error *e)
{
    const float one = 1, zero = 0;
    struct lt_desc *desc;
    int s = make_desc(c, w, epilogue, &desc);
    if (s)
        return fail("a product's description", s, e);
    const struct plan *p = plan_of(c, w, rows, epilogue, desc, e);
    *ret = p && p->supported;
    if (*ret)
        s = c->lib.cublasLtMatmul(c->handle, desc, &one, w->packed, p->a, x, p->b, &zero, y,
                                  p->d, y, p->d, &p->found.algorithm, workspace,
                                  CUBLAS_WORKSPACE_BYTES, stream);
    c->lib.cublasLtMatmulDescDestroy(desc);
    return s ? fail("a product", s, e) : p ? 0 : -1;
}

int cublas_product(struct cublas *c, const struct linear *w, uint32_t rows, const void *x,
                   void *y, void *workspace, void *stream, bool *fused, struct error *e)
{
    const int epilogue = *fused ? epilogue_of(w) : LT_EPILOGUE_DEFAULT;
    bool done = false;
    *fused = false;
    if (epilogue != LT_EPILOGUE_DEFAULT) {
        if (run(c, w, rows, x, y, workspace, stream, epilogue, &done, e) < 0)
            return -1;
        *fused = done;
    }
    if (!done && run(c, w, rows, x, y, workspace, stream, LT_EPILOGUE_DEFAULT, &done, e) < 0)
        return -1;
    return done ? 0
                : error_set(e, ERROR_UNAVAILABLE,
                            "cuBLASLt has no %s product of %u rows with a matrix of %u x %u",
                            element_name(w->x), rows, w->out, w->in);
}
