/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "emulated": the encoder ops' CUDA text on this CPU, and products by plain loops. Its memory is
   the host's, and all is done when a call returns. */
#include "runtime/device/emulated/emulated.h"
#include "masks/base/memory.h"
#include "model/backend/gpu/gpu.h"
#include "runtime/device/emulated/emulated_text.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 4 };

struct gpu {
    struct emulated_text *ops, *training; /* training: or null */
};

static void close(struct gpu *g)
{
    emulated_close(g->ops);
    emulated_close(g->training);
    free(g);
}

static struct emulated_text *open_ops(const struct encoder_ops_shape *shape, bool trains,
                                      struct error *e)
{
    const struct encoder_ops_shape of = {shape->dtype, shape->hidden, trains};
    char *text = encoder_ops_text(&of);
    struct emulated_text *ops =
        emulated_open(text, trains ? "the kernels of training" : "the encoder ops", e);
    free(text);
    return ops;
}

static struct gpu *open(int ordinal, const struct encoder_ops_shape *shape, struct error *e)
{
    struct gpu *g = memory_new(1, sizeof *g);
    (void)ordinal;
    g->ops = open_ops(shape, false, e);
    if (g->ops && shape->trains)
        g->training = open_ops(shape, true, e);
    if (g->ops && (g->training || !shape->trains))
        return g;
    close(g);
    return NULL;
}

static int stream_open(const struct gpu *g, bool multiplies, struct gpu_stream *s,
                       struct error *e)
{
    (void)g, (void)multiplies, (void)s, (void)e;
    return 0;
}

static void stream_close(const struct gpu *g, struct gpu_stream *s)
{
    (void)g, (void)s;
}

/* ---- memory ---- */

static void *allocate(const struct gpu *g, uint64_t bytes, struct error *e)
{
    (void)g, (void)e;
    return memory_aligned(bytes ? bytes : 1, 1);
}

static void release(const struct gpu *g, void *p)
{
    (void)g;
    free(p);
}

static int clear(const struct gpu *g, struct gpu_stream *s, void *p, uint64_t bytes,
                 struct error *e)
{
    (void)g, (void)s, (void)e;
    memset(p, 0, bytes);
    return 0;
}

static int copy(const struct gpu *g, struct gpu_stream *s, void *to, const void *from,
                uint64_t bytes, struct error *e)
{
    (void)g, (void)s, (void)e;
    memcpy(to, from, bytes);
    return 0;
}

static int wait(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    (void)g, (void)s, (void)e;
    return 0;
}

static int is_idle(const struct gpu *g, struct gpu_stream *s, bool *ret, struct error *e)
{
    (void)g, (void)s, (void)e;
    *ret = true;
    return 0;
}

static int follow(const struct gpu *g, struct gpu_stream *s, const struct gpu_stream *before,
                  struct error *e)
{
    (void)g, (void)s, (void)before, (void)e;
    return 0;
}

static int mark(const struct gpu *g, struct gpu_event *event, const struct gpu_stream *s,
                struct error *e)
{
    (void)g, (void)event, (void)s, (void)e;
    return 0;
}

static int reach(const struct gpu *g, const struct gpu_event *event, struct error *e)
{
    (void)g, (void)event, (void)e;
    return 0;
}

static void event_close(const struct gpu *g, struct gpu_event *event)
{
    (void)g, (void)event;
}

/* ---- products ---- */

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* One row of W against all rows of x: a column of y. `row` is scratch for [in] elements. */
static void multiply_column(const struct gpu_product *p, uint32_t column, const float *x,
                            float *row)
{
    const struct linear_shape *s = &p->l->shape;
    const uint8_t *weight = p->l->packed;
    uint8_t *y = p->y;
    elements_to_f32(s->x, weight + (uint64_t)column * s->in * element_bytes(s->x), s->in, row);
    for (uint32_t r = 0; r < p->rows; r++) {
        float sum = dot(x + (uint64_t)r * s->in, row, s->in);
        if (p->adds)
            sum += ((const float *)p->y)[(uint64_t)r * s->out + column];
        elements_from_f32(s->y, &sum, 1,
                          y + ((uint64_t)r * s->out + column) * element_bytes(s->y));
    }
}

static int product(const struct gpu *g, struct gpu_stream *stream, const struct gpu_product *p,
                   bool *ret_fused, struct error *e)
{
    const struct linear_shape *s = &p->l->shape;
    float *x = memory_new((uint64_t)p->rows * s->in, sizeof *x);
    (void)g, (void)e;
    gpu_stream_count(stream);
    elements_to_f32(s->x, p->x, (uint64_t)p->rows * s->in, x);
#pragma omp parallel
    {
        float *row = memory_new(s->in, sizeof *row);
#pragma omp for
        for (uint32_t column = 0; column < s->out; column++)
            multiply_column(p, column, x, row);
        free(row);
    }
    free(x);
    *ret_fused = false;
    return 0;
}

/* Row o of dW. `row` is scratch for [in] elements. */
static void add_gradient_row(const struct weight_gradient *w, uint32_t o, float *row)
{
    const uint64_t size = element_bytes(w->type);
    float *dw = w->dw + o * w->dw_row, dy;
    for (uint64_t r = 0; r < w->rows; r++) {
        elements_to_f32(w->type, (const uint8_t *)w->dy + (r * w->dy_row + o) * size, 1, &dy);
        elements_to_f32(w->type, (const uint8_t *)w->x + r * w->x_row * size, w->in, row);
#pragma omp simd
        for (uint32_t k = 0; k < w->in; k++)
            dw[k] += dy * row[k];
    }
}

static int weight_gradient(const struct gpu *g, struct gpu_stream *s,
                           const struct weight_gradient *w, struct error *e)
{
    (void)g, (void)e;
    gpu_stream_count(s);
#pragma omp parallel
    {
        float *row = memory_new(w->in, sizeof *row);
#pragma omp for
        for (uint32_t o = 0; o < w->out; o++)
            add_gradient_row(w, o, row);
        free(row);
    }
    return 0;
}

/* ---- encoder ops ---- */

static int run_op(const struct gpu *g, struct gpu_stream *s, enum encoder_op op,
                  const struct rows_args *args, uint64_t blocks, struct error *e)
{
    const struct emulated_grid grid = {blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS,
                                       ROWS_THREADS, 0};
    gpu_stream_count(s);
    return emulated_run(g->ops, encoder_op_entries[op], args, &grid, e);
}

static int run_train(const struct gpu *g, struct gpu_stream *s, enum train_op op,
                     const struct train_args *args, struct error *e)
{
    const uint64_t blocks = train_op_blocks(op, args);
    const struct emulated_grid grid = {blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS,
                                       TRAIN_THREADS, TRAIN_SHARED};
    if (!blocks)
        return 0;
    gpu_stream_count(s);
    return emulated_run(g->training, train_op_entry(op), args, &grid, e);
}

const struct gpu_driver gpu_driver_emulated = {
    .open = open,
    .close = close,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate,
    .release_pinned = release,
    .clear = clear,
    .send = copy,
    .fetch = copy,
    .copy = copy,
    .wait = wait,
    .is_idle = is_idle,
    .follow = follow,
    .mark = mark,
    .reach = reach,
    .event_close = event_close,
    .product = product,
    .run_op = run_op,
    .weight_gradient = weight_gradient,
    .run_train = run_train,
};

const struct backend backend_emulated = {
    .device = &device_emulated,
    .target = "sm_80",
    .text_only = true,
    .phases_cost = true,
    .keeps_words = true,
    .driver = &gpu_driver_emulated,
    .open = gpu_open,
    .close = gpu_close,
    .feed_form = gpu_feed_form,
    .keep = gpu_keep,
    .pack = gpu_pack,
    .encode = gpu_encode,
    .fetch = gpu_fetch,
    .head = gpu_head,
    .mean = gpu_mean,
    .workspace_finish = gpu_workspace_finish,
    .training = &gpu_training,
};
