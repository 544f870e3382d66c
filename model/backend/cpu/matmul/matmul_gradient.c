/* SPDX-License-Identifier: Apache-2.0 */
/* dW += dY^T X by oneDNN. A thread takes a block of dW and goes through the rows, GRADIENT_ROWS at a time: plain
   products of strided arrays, which the library copies as it goes (measured within 8 % of products whose
   operands were packed before). The last rows are copied beside zeros, up to a multiple of ROW_STEP, so that
   packed batches of any length need few products. bf16 rows that are multiplied as f32 are all copied. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul_engine.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_OUT = 128, BLOCK_IN = 512, BLOCK_STEP = 16, ROW_STEP = 32 };

/* Key of a product of oneDNN. */
struct gradient_shape {
    uint32_t out, in, rows; /* of the block */
    enum element type;
    uint64_t dy_row, x_row, dw_row;
};

struct gradient_product {
    struct gradient_shape shape;
    dnnl_primitive_t primitive;
    struct layout dy, x, dw, scratch;
};

void gradient_product_destroy(struct gradient_product *p)
{
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    layout_finish(&p->dy);
    layout_finish(&p->x);
    layout_finish(&p->dw);
    layout_finish(&p->scratch);
    free(p);
}

static dnnl_status_t make_layouts(struct gradient_product *p, const struct matmul *m)
{
    const struct gradient_shape *g = &p->shape;
    const dnnl_dims_t dy = {g->out, g->rows}, dy_strides = {1, (int64_t)g->dy_row},
                      x = {g->rows, g->in}, x_strides = {(int64_t)g->x_row, 1},
                      dw = {g->out, g->in}, dw_strides = {(int64_t)g->dw_row, 1};
    dnnl_status_t s = layout_strided(&p->dy, dy, matmul_type(m, g->type), dy_strides);
    if (!s)
        s = layout_strided(&p->x, x, matmul_type(m, g->type), x_strides);
    if (!s)
        s = layout_strided(&p->dw, dw, dnnl_f32, dw_strides);
    return s;
}

static dnnl_status_t make_attributes(dnnl_primitive_attr_t *ret)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(ret);
    if (!s)
        s = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
    if (!s)
        s = dnnl_post_ops_create(&ops);
    if (!s)
        s = append_sum(ops);
    if (!s)
        s = dnnl_primitive_attr_set_post_ops(*ret, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return s;
}

static dnnl_status_t make_primitive(struct gradient_product *p, const struct matmul *m)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s = make_layouts(p, m);
    if (!s)
        s = make_attributes(&attributes);
    if (!s)
        s = describe(&pd, m->engine, &(struct product_layouts){&p->dy, &p->x, NULL, &p->dw},
                     attributes);
    if (!s)
        s = layout_query(&p->scratch, pd, dnnl_query_scratchpad_md);
    if (!s)
        s = dnnl_primitive_create(&p->primitive, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (attributes)
        dnnl_primitive_attr_destroy(attributes);
    return s;
}

static bool same_shape(const struct gradient_shape *a, const struct gradient_shape *b)
{
    return a->out == b->out && a->in == b->in && a->rows == b->rows && a->type == b->type &&
           a->dy_row == b->dy_row && a->x_row == b->x_row && a->dw_row == b->dw_row;
}

/* The lock is held. */
static const struct gradient_product *find(struct matmul *m, const struct gradient_shape *shape,
                                           struct error *e)
{
    for (uint32_t k = 0; k < m->gradients; k++)
        if (same_shape(&m->gradient[k]->shape, shape))
            return m->gradient[k];
    struct gradient_product *p = memory_new(1, sizeof *p);
    p->shape = *shape;
    dnnl_status_t s = make_primitive(p, m);
    if (s) {
        gradient_product_destroy(p);
        matmul_fail(e, "the product of a weight gradient", s);
        return NULL;
    }
    *MEMORY_PUSH(m->gradient, m->gradients, m->gradients_capacity) = p;
    return p;
}

/* ---- the blocks of a list ---- */

struct block {
    const struct weight_gradient *of;
    uint32_t first_out, first_in, out, in;
    const struct gradient_product *whole,
        *last;   /* of GRADIENT_ROWS rows, and of what is left; or null */
    bool copies; /* `whole` too reads copies of the rows */
};

struct blocks {
    struct block *block;
    uint32_t count, capacity;
};

/* Workspace of one thread. */
struct gradient_workspace {
    dnnl_stream_t stream;
    void *scratch, *dy, *x;
};

/* size in parts of at most `most`, about equal, whole steps but for the last. */
static uint32_t part_size(uint32_t size, uint32_t most)
{
    uint32_t parts = (size + most - 1) / most, part = (size + parts - 1) / parts;
    return (part + BLOCK_STEP - 1) / BLOCK_STEP * BLOCK_STEP;
}

static int find_products(struct matmul *m, struct block *b, struct error *e)
{
    const struct weight_gradient *g = b->of;
    const struct gradient_shape in_place = {b->out,    b->in,    GRADIENT_ROWS, g->type,
                                            g->dy_row, g->x_row, g->dw_row},
                                copied = {b->out,    b->in,    GRADIENT_ROWS, g->type,
                                          BLOCK_OUT, BLOCK_IN, g->dw_row};
    const uint32_t left = g->rows % GRADIENT_ROWS;
    struct gradient_shape last = copied;
    last.rows = (left + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
    b->copies = matmul_widens(m, g->type);
    if (g->rows >= GRADIENT_ROWS && !(b->whole = find(m, b->copies ? &copied : &in_place, e)))
        return -1;
    return left && !(b->last = find(m, &last, e)) ? -1 : 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int divide(struct matmul *m, const struct weight_gradient *g, struct blocks *ret,
                  struct error *e)
{
    uint32_t out = part_size(g->out, BLOCK_OUT), in = part_size(g->in, BLOCK_IN);
    for (uint32_t o = 0; o < g->out; o += out)
        for (uint32_t i = 0; i < g->in; i += in) {
            struct block *b = MEMORY_PUSH(ret->block, ret->count, ret->capacity);
            *b = (struct block){.of = g,
                                .first_out = o,
                                .first_in = i,
                                .out = smaller(out, g->out - o),
                                .in = smaller(in, g->in - i)};
            if (find_products(m, b, e) < 0)
                return -1;
        }
    return 0;
}

/* ---- one block ---- */

static dnnl_status_t run_product(const struct matmul *m, const struct gradient_product *p,
                                 const void *dy, const void *x, float *dw,
                                 const struct gradient_workspace *w)
{
    const struct operand operand[] = {{DNNL_ARG_SRC, &p->dy, dy},
                                      {DNNL_ARG_WEIGHTS, &p->x, x},
                                      {DNNL_ARG_DST, &p->dw, dw},
                                      {DNNL_ARG_SCRATCHPAD, &p->scratch, w->scratch}};
    return operands_run(m->engine, w->stream, p->primitive, operand, 4);
}

/* Columns of some rows of dY or X. */
struct rows {
    const uint8_t *first;
    uint64_t stride; /* bytes from row to row */
    uint32_t count, columns;
};

/* The rows, and zero rows behind them, all `width` elements apart; as f32 where products of bf16 are. */
static void copy_rows(const struct matmul *m, enum element type, const struct rows *from,
                      uint32_t padded, uint32_t width, uint8_t *to)
{
    const bool widens = matmul_widens(m, type);
    const size_t bytes = widens ? sizeof(float) : element_bytes(type);
    for (uint32_t r = 0; r < padded; r++, to += width * bytes) {
        const uint8_t *row = from->first + r * from->stride;
        if (r >= from->count)
            memset(to, 0, from->columns * bytes);
        else if (widens)
            m->rows->widen_bf16(from->columns, (const uint16_t *)row, (float *)to);
        else
            memcpy(to, row, from->columns * bytes);
    }
}

static dnnl_status_t run_copied(const struct matmul *m, const struct block *b,
                                const struct rows *dy, const struct rows *x, float *dw,
                                const struct gradient_workspace *w)
{
    const struct gradient_product *p = dy->count == GRADIENT_ROWS ? b->whole : b->last;
    copy_rows(m, b->of->type, dy, p->shape.rows, BLOCK_OUT, w->dy);
    copy_rows(m, b->of->type, x, p->shape.rows, BLOCK_IN, w->x);
    return run_product(m, p, w->dy, w->x, dw, w);
}

static dnnl_status_t run_block(const struct matmul *m, const struct block *b,
                               const struct gradient_workspace *w)
{
    const struct weight_gradient *g = b->of;
    const size_t bytes = element_bytes(g->type);
    float *dw = g->dw + b->first_out * g->dw_row + b->first_in;
    struct rows dy = {(const uint8_t *)g->dy + b->first_out * bytes, g->dy_row * bytes, 0,
                      b->out},
                x = {(const uint8_t *)g->x + b->first_in * bytes, g->x_row * bytes, 0, b->in};
    dnnl_status_t s = dnnl_success;
    for (uint32_t at = 0; at < g->rows && !s; at += GRADIENT_ROWS) {
        dy.count = x.count = smaller(GRADIENT_ROWS, g->rows - at);
        s = b->copies || dy.count < GRADIENT_ROWS
                ? run_copied(m, b, &dy, &x, dw, w)
                : run_product(m, b->whole, dy.first, x.first, dw, w);
        dy.first += GRADIENT_ROWS * dy.stride;
        x.first += GRADIENT_ROWS * x.stride;
    }
    return s;
}

/* ---- all blocks ---- */

static size_t scratch_bytes(const struct blocks *all)
{
    size_t most = 1;
    for (uint32_t k = 0; k < all->count; k++) {
        const struct gradient_product *both[] = {all->block[k].whole, all->block[k].last};
        for (int i = 0; i < 2; i++)
            if (both[i] && layout_bytes(&both[i]->scratch) > most)
                most = layout_bytes(&both[i]->scratch);
    }
    return most;
}

uint64_t matmul_gradient_bytes(uint32_t threads)
{
    return threads * sizeof(float) * GRADIENT_ROWS * (BLOCK_OUT + BLOCK_IN);
}

static dnnl_status_t workspace_make(const struct matmul *m, const struct blocks *all,
                                    struct gradient_workspace *ret)
{
    ret->scratch = memory_aligned(scratch_bytes(all), 1);
    ret->dy = memory_aligned((size_t)GRADIENT_ROWS * BLOCK_OUT, sizeof(float));
    ret->x = memory_aligned((size_t)GRADIENT_ROWS * BLOCK_IN, sizeof(float));
    return dnnl_stream_create(&ret->stream, m->engine, dnnl_stream_default_flags);
}

static void workspace_finish(struct gradient_workspace *w)
{
    if (w->stream)
        dnnl_stream_destroy(w->stream);
    free(w->scratch);
    free(w->dy);
    free(w->x);
}

/* Nested products must not be divided again: a team of one thread is no parallel region to the library, so the number
   of threads that it may take is set to 1 inside. */
static dnnl_status_t run_blocks(const struct matmul *m, const struct blocks *all,
                                uint32_t threads)
{
    dnnl_status_t ret = dnnl_success;
#pragma omp parallel num_threads(threads)
    {
        int before = omp_get_max_threads();
        omp_set_num_threads(1);
        struct gradient_workspace w = {0};
        dnnl_status_t s = workspace_make(m, all, &w);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t k = 0; k < all->count; k++)
            if (!s)
                s = run_block(m, &all->block[k], &w);
        workspace_finish(&w);
        omp_set_num_threads(before);
        if (s) {
#pragma omp critical(gradient_status)
            ret = s;
        }
    }
    return ret;
}

int matmul_weight_gradients(struct matmul *m, const struct weight_gradient *list, uint32_t n,
                            uint32_t threads, struct error *e)
{
    struct blocks all = {0};
    int r = 0, before = omp_get_max_threads();
    omp_set_num_threads(1);
    pthread_mutex_lock(&m->lock);
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = divide(m, &list[k], &all, e);
    pthread_mutex_unlock(&m->lock);
    omp_set_num_threads(before);
    if (r == 0) {
        dnnl_status_t s = run_blocks(m, &all, threads);
        r = s ? matmul_fail(e, "a weight gradient", s) : 0;
    }
    free(all.block);
    return r;
}
