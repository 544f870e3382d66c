/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on the CPU: rows of the hidden states are gathered and go through one product or two. */
#include "masks/base/memory.h"
#include "model/backend/cpu/forward/workspace.h"
#include "model/engine/encoder.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int run_product(const struct head_request *r, const struct linear *l, const void *x,
                       void *y, struct error *e)
{
    const struct product_use use = {r->n, r->engine->threads, false};
    struct matmul *m = r->engine->encoder->state->matmul;
    struct product_workspace *w = &r->workspace->memory->panel[0].product;
    int before = omp_get_max_threads();
    omp_set_num_threads((int)r->engine->threads);
    const struct product *p = product_find(m, l, &use, e);
    int result = p ? product_workspace_grow(m, p, w, e) : -1;
    if (result == 0 && product_run(p, l, x, y, w) < 0)
        result = error_set(e, ERROR_FALSE, "oneDNN: a matrix product failed");
    omp_set_num_threads(before);
    return result;
}

static void *grow(struct buffer *b, uint32_t rows, uint64_t columns, enum element type)
{
    const uint64_t all = rows + (uint64_t)PRODUCT_ROWS_BEYOND;
    buffer_grow(&b->data, &b->bytes, all * columns * element_bytes(type));
    return b->data;
}

static void write_mean(const struct engine *g, const struct engine_workspace *w, uint32_t s,
                       float *ret)
{
    const struct cpu_encoder_ops *ops = g->encoder->state->ops;
    uint64_t first = (uint64_t)w->offsets[s], size = g->config.hidden;
    uint32_t rows = (uint32_t)(w->offsets[s + 1] - w->offsets[s]);
    const void *x = (const uint8_t *)w->hidden + first * size * element_bytes(g->dtype);
    if (g->dtype == ELEMENT_BF16)
        ops->sum_bf16(rows, g->config.hidden, x, ret);
    else
        ops->sum_f32(rows, g->config.hidden, x, ret);
    for (uint64_t k = 0; k < size; k++)
        ret[k] /= (float)rows;
}

/* Gathers the means of the sequences that begin at the request's rows. */
static void gather_means(const struct head_request *r, uint8_t *to)
{
    const struct engine *g = r->engine;
    const uint32_t size = g->config.hidden;
    float *mean = memory_new(size, sizeof *mean);
    for (uint32_t k = 0, s = 0; k < r->n; k++) {
        while ((uint32_t)r->workspace->offsets[s] != r->rows[k])
            s++;
        write_mean(g, r->workspace, s, mean);
        elements_from_f32(g->dtype, mean, size,
                          to + (uint64_t)k * size * element_bytes(g->dtype));
    }
    free(mean);
}

static void *gather(const struct head_request *r)
{
    const struct engine *g = r->engine;
    const size_t bytes = (size_t)g->config.hidden * element_bytes(g->dtype);
    const uint8_t *hidden = r->workspace->hidden;
    uint8_t *to = grow(&r->workspace->memory->gathered, r->n, g->config.hidden, g->dtype);
    for (uint32_t k = 0; k < r->n && !r->head->of_means; k++)
        memcpy(to + k * bytes, hidden + r->rows[k] * bytes, bytes);
    if (r->head->of_means)
        gather_means(r, to);
    return to;
}

static void normalise(const struct head_request *r, float *x, void *y)
{
    const struct cpu_encoder_ops *ops = r->engine->encoder->state->ops;
    if (r->engine->dtype == ELEMENT_BF16)
        ops->norm_bf16(r->head->norm, r->n, x, NULL, y);
    else
        ops->norm_f32(r->head->norm, r->n, x, NULL, y);
}

int cpu_head(const struct head_request *r, struct error *e)
{
    struct backend_workspace *m = r->workspace->memory;
    const struct linear *first = r->head->first, *last = r->head->last;
    void *rows = gather(r), *x = rows;
    if (first) {
        x = grow(&m->between, r->n, first->shape.out, ELEMENT_F32);
        if (run_product(r, first, rows, x, e) < 0)
            return -1;
    }
    if (r->head->norm) {
        normalise(r, x, rows);
        x = rows;
    }
    if (!last) {
        elements_to_f32(first->shape.y, x, (uint64_t)r->n * first->shape.out, r->ret);
        return 0;
    }
    float *logits = grow(&m->logits, r->n, last->shape.out, ELEMENT_F32);
    if (run_product(r, last, x, logits, e) < 0)
        return -1;
    memcpy(r->ret, logits, (size_t)r->n * last->shape.out * sizeof *r->ret);
    return 0;
}

int cpu_mean(const struct engine *g, struct engine_workspace *w, float *ret, struct error *e)
{
    (void)e;
#pragma omp parallel for num_threads((int)g->threads)
    for (uint32_t s = 0; s < w->sequences; s++)
        write_mean(g, w, s, ret + (uint64_t)s * g->config.hidden);
    return 0;
}
