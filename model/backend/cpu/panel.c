/* SPDX-License-Identifier: Apache-2.0 */
/* What a panel goes through between two attentions: output, LayerNorm, feed forward, LayerNorm, and the
   next layer's projection. */
#include "model/backend/cpu/pass.h"
#include <omp.h>

enum { CHUNK_ROWS = 16 };

static void lap(const struct part *part, enum engine_phase phase, double *since)
{
    if (!part->seconds)
        return;
    double now = omp_get_wtime();
    part->seconds[phase] += now - *since;
    *since = now;
}

static void norm_some(const struct part *part, const struct norm *n, uint32_t at, uint32_t rows,
                      bool residual)
{
    const struct pass *p = part->p;
    float *x = part->workspace->sum + (uint64_t)at * n->size;
    void *y = pass_row(p, p->workspace->hidden, (uint64_t)part->first + at, n->size);
    if (p->g->dtype == ELEMENT_BF16)
        p->ops->norm_bf16(n, rows, x, residual ? y : NULL, y);
    else
        p->ops->norm_f32(n, rows, x, residual ? y : NULL, y);
}

static uint32_t chunk_rows(const struct part *part, uint32_t at)
{
    uint32_t left = part->rows - at;
    return left < CHUNK_ROWS ? left : CHUNK_ROWS;
}

/* hidden = norm(sum + hidden), or norm(sum). */
static void norm(const struct part *part, const struct norm *n, bool residual)
{
    if (!part->p->divided) {
        norm_some(part, n, 0, part->rows, residual);
        return;
    }
#pragma omp parallel for
    for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
        norm_some(part, n, at, chunk_rows(part, at), residual);
}

static uint32_t sequence_of(const struct pass *p, uint32_t row)
{
    uint32_t low = 0, high = p->workspace->sequences;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if ((uint32_t)p->workspace->offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void embed(const struct part *part)
{
    const struct pass *p = part->p;
    const struct embeddings *m = &p->c->embeddings;
    const int32_t *offsets = p->workspace->offsets;
    uint32_t s = sequence_of(p, part->first), size = p->g->config.hidden;
    for (uint32_t k = 0; k < part->rows; k++) {
        while ((uint32_t)offsets[s + 1] <= part->first + k)
            s++;
        uint32_t at = part->first + k - (uint32_t)offsets[s];
        const struct sequence *from = &p->request->list[s];
        float *sum = part->workspace->sum + (uint64_t)k * size;
        tensor_to_f32(m->mapped_words, (uint64_t)from->token_ids[at] * size, size, sum);
        p->ops->add3(size, sum, m->positions + (uint64_t)at * size,
                     m->types + (at < from->first_part ? 0 : size), sum);
    }
}

static int project(const struct part *part, uint32_t layer)
{
    const struct pass *p = part->p;
    const struct linear *l = &p->c->layer[layer].projection;
    return product_run(part->product[PRODUCT_PROJECTION], l,
                       pass_row(p, p->workspace->hidden, part->first, l->shape.in),
                       pass_row(p, p->memory->projection.data, part->first, l->shape.out),
                       &part->workspace->product);
}

int panel_begin(const struct part *part)
{
    double since = part->seconds ? omp_get_wtime() : 0;
    embed(part);
    norm(part, &part->p->c->embeddings.norm, false);
    lap(part, PHASE_EMBEDDINGS, &since);
    int r = project(part, 0);
    lap(part, PHASE_PROJECTION, &since);
    return r;
}

/* ---- feed forward ---- */

static void activate_some(const struct part *part, uint32_t at, uint32_t rows, uint32_t width)
{
    uint64_t first = (uint64_t)at * width;
    part->p->ops->gelu_bf16((uint64_t)rows * width, part->workspace->between + first,
                            (uint16_t *)part->workspace->inner + first);
}

static void activate(const struct part *part, uint32_t width)
{
    if (!part->p->divided || part->p->sharers > 1) {
        activate_some(part, 0, part->rows, width);
        return;
    }
#pragma omp parallel for
    for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
        activate_some(part, at, chunk_rows(part, at), width);
}

/* sum = or += slice k of the feed forward. */
static int feed_slice(const struct part *part, const struct layer *l, uint32_t k, bool adds)
{
    const struct pass *p = part->p;
    struct panel_workspace *workspace = part->workspace;
    const struct linear *inner = &l->inner[k];
    if (product_run(part->product[PRODUCT_INNER], inner,
                    pass_row(p, p->workspace->hidden, part->first, inner->shape.in),
                    p->c->feed.own_gelu ? workspace->between : workspace->inner,
                    &workspace->product) < 0)
        return -1;
    if (p->c->feed.own_gelu)
        activate(part, inner->shape.out);
    return product_run(part->product[adds ? PRODUCT_OUTER_ADDS : PRODUCT_OUTER], &l->outer[k],
                       workspace->inner, workspace->sum, &workspace->product);
}

/* Slices first, first + step, ... into one sum. */
static int feed_slices(const struct part *part, const struct layer *l, uint32_t first,
                       uint32_t step)
{
    int r = 0;
    for (uint32_t k = first; k < part->p->c->feed.slices && r == 0; k += step)
        r = feed_slice(part, l, k, k > first);
    return r;
}

/* Each thread adds its slices to a sum of its own; the first sum then takes the others. */
static int feed_shared(const struct part *part, const struct layer *l)
{
    const struct pass *p = part->p;
    struct panel_workspace *workspace = p->memory->panel;
    const uint32_t size = l->outer->shape.out;
    int failed = 0;
#pragma omp parallel num_threads(p->sharers) reduction(| : failed)
    {
        uint32_t t = (uint32_t)omp_get_thread_num(), all = (uint32_t)omp_get_num_threads();
        struct part own = *part;
        own.workspace = &workspace[t];
        failed |= feed_slices(&own, l, t, all) < 0;
#pragma omp barrier
#pragma omp for
        for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
            for (uint32_t k = 1; k < all; k++)
                p->ops->add_f32((uint64_t)chunk_rows(part, at) * size,
                                workspace[k].sum + (uint64_t)at * size,
                                workspace->sum + (uint64_t)at * size);
    }
    return failed ? -1 : 0;
}

static int feed(const struct part *part, const struct layer *l)
{
    return part->p->sharers > 1 ? feed_shared(part, l) : feed_slices(part, l, 0, 1);
}

int panel_go_on(const struct part *part, uint32_t layer)
{
    const struct pass *p = part->p;
    const struct layer *l = &p->c->layer[layer];
    struct panel_workspace *workspace = part->workspace;
    double since = part->seconds ? omp_get_wtime() : 0;
    if (product_run(part->product[PRODUCT_OUTPUT], &l->output,
                    pass_row(p, p->memory->context.data, part->first, l->output.shape.in),
                    workspace->sum, &workspace->product) < 0)
        return -1;
    lap(part, PHASE_OUTPUT, &since);
    norm(part, &l->output_norm, true);
    lap(part, PHASE_NORMS, &since);
    if (feed(part, l) < 0)
        return -1;
    lap(part, PHASE_FEED_FORWARD, &since);
    norm(part, &l->outer_norm, true);
    lap(part, PHASE_NORMS, &since);
    int r = layer + 1 < p->g->config.layers ? project(part, layer + 1) : 0;
    lap(part, PHASE_PROJECTION, &since);
    return r;
}
