/* SPDX-License-Identifier: Apache-2.0 */
/* Products by oneDNN, 2.x or 3.x: the difference is in onednn.h. Weights lie in the layout that a product
   of LAYOUT_ROWS rows asks for (matmul_pack.c); products for other numbers of rows are made for that same
   layout. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul_engine.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { LAYOUT_ROWS = 256 };

struct product {
    struct linear_shape shape;
    struct product_use use;
    const struct matmul *of;
    dnnl_primitive_t primitive;
    struct layout x, w, b, y, scratch;
};

int matmul_fail(struct error *e, const char *what, dnnl_status_t s)
{
    enum error_kind kind = s == dnnl_unimplemented ? ERROR_UNAVAILABLE : ERROR_FALSE;
    return error_set(e, kind, "oneDNN: %s: %s", what,
                     s == dnnl_unimplemented   ? "this machine cannot"
                     : s == dnnl_out_of_memory ? "out of memory"
                                               : "failed");
}

struct matmul *matmul_new(struct error *e)
{
    if (matmul_limit(e) < 0)
        return NULL;
    struct matmul *m = memory_new(1, sizeof *m);
    dnnl_status_t s = dnnl_engine_create(&m->engine, dnnl_cpu, 0);
    pthread_mutex_init(&m->lock, NULL);
    m->rows = cpu_encoder_ops();
    m->widens_bf16 = !matmul_multiplies_bf16();
    if (s == dnnl_success)
        return m;
    m->engine = NULL;
    matmul_destroy(m);
    matmul_fail(e, "a CPU engine", s);
    return NULL;
}

static void product_destroy(struct product *p)
{
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    layout_finish(&p->x);
    layout_finish(&p->w);
    layout_finish(&p->b);
    layout_finish(&p->y);
    layout_finish(&p->scratch);
    free(p);
}

void matmul_destroy(struct matmul *m)
{
    if (!m)
        return;
    for (uint32_t k = 0; k < m->products; k++)
        product_destroy(m->product[k]);
    for (uint32_t k = 0; k < m->gradients; k++)
        gradient_product_destroy(m->gradient[k]);
    for (uint32_t k = 0; k < m->layouts; k++) {
        layout_finish(m->layout[k]);
        free(m->layout[k]);
    }
    if (m->engine)
        dnnl_engine_destroy(m->engine);
    pthread_mutex_destroy(&m->lock);
    pool_finish(&m->weights);
    free(m->product);
    free(m->gradient);
    free(m->layout);
    free(m);
}

void matmul_describe(struct text *ret)
{
    const dnnl_version_t *v = dnnl_version();
    text_add(ret, "oneDNN %d.%d.%d, instructions %d", v->major, v->minor, v->patch,
             (int)dnnl_get_effective_cpu_isa());
}

/* ---- products ---- */

static const struct {
    dnnl_alg_kind_t kind;
    float alpha;
} afters[] = {
    [AFTER_GELU] = {dnnl_eltwise_gelu_erf, 0}, [AFTER_GELU_TANH] = {dnnl_eltwise_gelu_tanh, 0},
    [AFTER_RELU] = {dnnl_eltwise_relu, 0},     [AFTER_SILU] = {dnnl_eltwise_swish, 1},
    [AFTER_TANH] = {dnnl_eltwise_tanh, 0},
};

static dnnl_status_t make_attributes(enum after after, bool adds, dnnl_primitive_attr_t *ret)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(ret);
    if (!s)
        s = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
    if (s || (after == AFTER_NONE && !adds))
        return s;
    s = dnnl_post_ops_create(&ops);
    if (!s && adds)
        s = append_sum(ops);
    if (!s && after != AFTER_NONE)
        s = append_eltwise(ops, afters[after].kind, afters[after].alpha);
    if (!s)
        s = dnnl_primitive_attr_set_post_ops(*ret, ops);
    dnnl_post_ops_destroy(ops);
    return s;
}

/* Where w is null the library chooses the layout of the weights. */
static dnnl_status_t make_layouts(struct product *p, const struct layout *w, struct layout *any)
{
    const struct linear_shape *l = &p->shape;
    const struct matmul *m = p->of;
    dnnl_dims_t x = {p->use.rows, l->in}, weights = {l->in, l->out}, b = {1, l->out},
                y = {p->use.rows, l->out};
    dnnl_status_t s = layout_make(&p->x, x, matmul_type(m, l->x), dnnl_ab);
    if (!s)
        s = layout_make(&p->y, y, matmul_type(m, l->y), dnnl_ab);
    if (!s)
        s = layout_make(&p->b, b, dnnl_f32, dnnl_ab);
    if (!s && !w)
        s = layout_make(any, weights, matmul_type(m, l->x), dnnl_format_tag_any);
    return s;
}

static dnnl_status_t make_primitive(struct product *p, const struct layout *w)
{
    struct layout any = {0};
    const struct product_layouts layouts = {&p->x, w ? w : &any, &p->b, &p->y};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s = make_layouts(p, w, &any);
    if (!s)
        s = make_attributes(p->shape.after, p->use.adds, &attributes);
    if (!s)
        s = describe(&pd, p->of->engine, &layouts, attributes);
    if (!s)
        s = layout_query(&p->w, pd, dnnl_query_weights_md);
    if (!s)
        s = layout_query(&p->scratch, pd, dnnl_query_scratchpad_md);
    if (!s)
        s = dnnl_primitive_create(&p->primitive, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (attributes)
        dnnl_primitive_attr_destroy(attributes);
    layout_finish(&any);
    return s;
}

/* The library decides when it makes a product among how many OpenMP threads to divide it. */
static struct product *make_product(struct matmul *m, const struct linear_shape *shape,
                                    const struct product_use *use, const struct layout *w,
                                    struct error *e)
{
    struct product *p = memory_new(1, sizeof *p);
    *p = (struct product){.shape = *shape, .use = *use, .of = m};
    int before = omp_get_max_threads();
    omp_set_num_threads((int)use->threads);
    dnnl_status_t s = make_primitive(p, w);
    omp_set_num_threads(before);
    if (s == dnnl_success)
        return p;
    product_destroy(p);
    matmul_fail(e, shape->x == ELEMENT_BF16 ? "a bf16 matrix product" : "a matrix product", s);
    return NULL;
}

uint32_t product_rows(uint32_t rows)
{
    uint32_t step = rows <= 64 ? 16 : PRODUCT_ROWS_BEYOND;
    return (rows + step - 1) / step * step;
}

static bool same_shape(const struct linear_shape *a, const struct linear_shape *b)
{
    return a->in == b->in && a->out == b->out && a->x == b->x && a->y == b->y &&
           a->after == b->after;
}

static struct product *find(const struct matmul *m, const struct linear_shape *s,
                            const struct product_use *u)
{
    for (uint32_t k = 0; k < m->products; k++) {
        struct product *p = m->product[k];
        if (p->use.rows == u->rows && p->use.threads == u->threads && p->use.adds == u->adds &&
            same_shape(&p->shape, s))
            return p;
    }
    return NULL;
}

const struct product *product_find(struct matmul *m, const struct linear *l,
                                   const struct product_use *use, struct error *e)
{
    struct product_use u = *use;
    u.rows = product_rows(use->rows);
    pthread_mutex_lock(&m->lock);
    struct product *p = find(m, &l->shape, &u);
    if (!p && (p = make_product(m, &l->shape, &u, l->layout, e)))
        *MEMORY_PUSH(m->product, m->products, m->capacity) = p;
    pthread_mutex_unlock(&m->lock);
    return p;
}

const struct layout *matmul_layout(struct matmul *m, const struct linear_shape *shape,
                                   struct error *e)
{
    const struct product_use use = {LAYOUT_ROWS, 1, false};
    struct product *p = make_product(m, shape, &use, NULL, e);
    if (!p)
        return NULL;
    struct layout *ret = memory_new(1, sizeof *ret);
    *ret = p->w;
    p->w = (struct layout){0};
    product_destroy(p);
    *MEMORY_PUSH(m->layout, m->layouts, m->layouts_capacity) = ret;
    return ret;
}

/* ---- running ---- */

void product_workspace_finish(struct product_workspace *w)
{
    if (w->stream)
        dnnl_stream_destroy(w->stream);
    free(w->scratch);
    *w = (struct product_workspace){0};
}

/* The f32 copies of x and y lie behind the library's scratch memory. */
static size_t library_bytes(const struct product *p)
{
    const size_t line = 64;
    return (layout_bytes(&p->scratch) + line - 1) / line * line;
}

static uint64_t x_bytes(const struct product *p)
{
    return matmul_widened_bytes(p->of, p->shape.x, (uint64_t)p->use.rows * p->shape.in);
}

uint64_t product_widened_bytes(const struct matmul *m, const struct linear_shape *shape,
                               uint32_t rows)
{
    const uint64_t all = product_rows(rows);
    return matmul_widened_bytes(m, shape->x, all * shape->in) +
           matmul_widened_bytes(m, shape->y, all * shape->out);
}

int product_workspace_grow(struct matmul *m, const struct product *p,
                           struct product_workspace *w, struct error *e)
{
    size_t bytes = library_bytes(p) + product_widened_bytes(m, &p->shape, p->use.rows);
    if (!w->stream) {
        dnnl_stream_t stream;
        dnnl_status_t s = dnnl_stream_create(&stream, m->engine, dnnl_stream_default_flags);
        if (s)
            return matmul_fail(e, "a stream", s);
        w->stream = stream;
    }
    if (bytes > w->scratch_bytes) {
        free(w->scratch);
        w->scratch = memory_aligned(bytes, 1);
        w->scratch_bytes = bytes;
    }
    return 0;
}

dnnl_status_t operands_run(dnnl_engine_t engine, dnnl_stream_t stream,
                           dnnl_primitive_t primitive, const struct operand *operand, int n)
{
    dnnl_exec_arg_t list[OPERANDS] = {0};
    dnnl_status_t s = dnnl_success;
    for (int k = 0; k < n && !s; k++) {
        list[k].arg = operand[k].what;
        s = memory_make(&list[k].memory, operand[k].layout, engine,
                        (void *)(uintptr_t)operand[k].data);
    }
    if (!s)
        s = dnnl_primitive_execute(primitive, stream, n, list);
    for (int k = 0; k < n; k++)
        if (list[k].memory)
            dnnl_memory_destroy(list[k].memory);
    return s;
}

int product_run(const struct product *p, const struct linear *l, const void *x, void *y,
                struct product_workspace *w)
{
    const struct matmul *m = p->of;
    const bool widens_x = matmul_widens(m, p->shape.x), widens_y = matmul_widens(m, p->shape.y);
    float *wide_x = (float *)((uint8_t *)w->scratch + library_bytes(p)),
          *wide_y = wide_x + x_bytes(p) / sizeof(float);
    const struct operand operand[] = {
        {DNNL_ARG_SRC, &p->x, widens_x ? wide_x : x},
        {DNNL_ARG_WEIGHTS, l->layout, l->packed},
        {DNNL_ARG_BIAS, &p->b, l->bias},
        {DNNL_ARG_DST, &p->y, widens_y ? wide_y : y},
        {DNNL_ARG_SCRATCHPAD, &p->scratch, w->scratch},
    };
    if (widens_x)
        matmul_widen(m, p->use.threads, (uint64_t)p->use.rows * p->shape.in, x, wide_x);
    if (operands_run(m->engine, w->stream, p->primitive, operand, OPERANDS))
        return -1;
    if (widens_y)
        matmul_round(m, p->use.threads, (uint64_t)p->use.rows * p->shape.out, wide_y, y);
    return 0;
}
