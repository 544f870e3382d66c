/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a panel between two attentions: output, LayerNorm, feed forward, LayerNorm, and the next layer's projection.
   In training with dropout, and with a tape that is filled. */
#include "model/arch/arch.h"
#include "model/backend/cpu/forward/cpu_batch.h"
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

/* result = norm(sum + residual), or norm(sum). */
struct norm_step {
    const struct norm *norm;
    const struct norm_tape *tape;
    void *residual, *result; /* [T, H]; residual may be null */
};

static void *row_or_null(const struct part *part, void *base, uint32_t at, uint32_t size)
{
    return base ? cpu_batch_row(part->p, base, (uint64_t)part->first + at, size) : NULL;
}

static void norm_some(const struct part *part, const struct norm_step *n, uint32_t at,
                      uint32_t rows)
{
    const struct cpu_batch *p = part->p;
    const uint32_t size = n->norm->size;
    float *x = part->workspace->sum + (uint64_t)at * size;
    void *residual = row_or_null(part, n->residual, at, size),
         *y = row_or_null(part, n->result, at, size);
    if (p->g->dtype == ELEMENT_BF16)
        p->ops->norm_bf16(n->norm, rows, x, residual, y);
    else
        p->ops->norm_f32(n->norm, rows, x, residual, y);
}

static void norm_training(const struct part *part, const struct norm_step *n)
{
    const struct cpu_batch *p = part->p;
    const struct cpu_train_ops *ops = p->training->ops;
    const uint32_t size = n->norm->size;
    float *x = part->workspace->sum, *inverse = n->tape->inverse + part->first;
    void *residual = row_or_null(part, n->residual, 0, size),
         *y = row_or_null(part, n->result, 0, size),
         *normalised = row_or_null(part, n->tape->normalised, 0, size);
    if (p->g->dtype == ELEMENT_BF16)
        ops->norm_bf16(n->norm, part->rows, x, residual, normalised, inverse, y);
    else
        ops->norm_f32(n->norm, part->rows, x, residual, normalised, inverse, y);
}

static uint32_t chunk_rows(const struct part *part, uint32_t at)
{
    uint32_t left = part->rows - at;
    return left < CHUNK_ROWS ? left : CHUNK_ROWS;
}

static void norm(const struct part *part, const struct norm_step *n)
{
    if (part->p->training) {
        norm_training(part, n);
        return;
    }
    if (!part->p->divided) {
        norm_some(part, n, 0, part->rows);
        return;
    }
#pragma omp parallel for
    for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
        norm_some(part, n, at, chunk_rows(part, at));
}

/* In training, on what the next LayerNorm takes. */
static void drop_sum(const struct part *part, uint32_t site)
{
    const struct training *t = part->p->training;
    if (!t || site == SITE_NONE)
        return;
    const struct row_dropout d = training_dropout(t, site);
    if (!d.keep_below)
        return;
    float *sum = part->workspace->sum;
    t->ops->drop_f32(&d, t->place + part->first, part->rows, part->p->g->config.hidden, sum,
                     sum);
}

static uint32_t sequence_of(const struct cpu_batch *p, uint32_t row)
{
    uint32_t low = 0, high = p->sequences;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if ((uint32_t)p->offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Tokens of sequence s before the row that took a position. */
static uint32_t positions_before(const struct cpu_batch *p, uint32_t s, uint32_t row)
{
    const uint32_t tokens = row - (uint32_t)p->offsets[s];
    uint32_t counted = 0;
    if (!p->g->config.first_position)
        return tokens;
    for (uint32_t k = 0; k < tokens; k++)
        arch_position(&p->g->config, p->list[s].token_ids[k], &counted);
    return counted;
}

static void embed(const struct part *part)
{
    const struct cpu_batch *p = part->p;
    const struct embeddings *m = &p->c->embeddings;
    const int32_t *offsets = p->offsets;
    const bool one_type = p->g->config.one_type;
    uint32_t s = sequence_of(p, part->first), size = p->g->config.hidden;
    uint32_t counted = positions_before(p, s, part->first);
    for (uint32_t k = 0; k < part->rows; k++) {
        while ((uint32_t)offsets[s + 1] <= part->first + k) {
            s++;
            counted = 0;
        }
        uint32_t at = part->first + k - (uint32_t)offsets[s];
        const struct sequence *from = &p->list[s];
        float *sum = part->workspace->sum + (uint64_t)k * size;
        const uint64_t place = arch_position(&p->g->config, from->token_ids[at], &counted);
        const float *position = m->positions ? m->positions + place * size : NULL;
        tensor_to_f32(m->mapped_words, (uint64_t)from->token_ids[at] * size, size, sum);
        if (m->types)
            p->ops->add3(size, sum, position,
                         m->types + (one_type || at < from->first_part ? 0 : size), sum);
        else if (m->positions)
            p->ops->add_f32(size, position, sum);
    }
}

/* Training: the norm in f32, so that what dropout multiplies was not rounded. */
static void begin_training(const struct part *part)
{
    const struct cpu_batch *p = part->p;
    const struct training *t = p->training;
    const uint32_t size = p->g->config.hidden;
    const struct norm_tape *tape = &p->tape->embeddings_norm;
    const struct row_dropout d = training_dropout(t, SITE_EMBEDDINGS);
    float *y = part->workspace->normed;
    void *hidden = cpu_batch_row(p, cpu_batch_layer(p, 0)->hidden, part->first, size);
    t->ops->norm_f32(&p->c->embeddings.norm, part->rows, part->workspace->sum, NULL,
                     (float *)tape->normalised + (uint64_t)part->first * size,
                     tape->inverse + part->first, y);
    if (p->g->dtype == ELEMENT_BF16)
        t->ops->drop_bf16(&d, t->place + part->first, part->rows, size, y, hidden);
    else
        t->ops->drop_f32(&d, t->place + part->first, part->rows, size, y, hidden);
}

int panel_begin(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct norm_step n = {&p->c->embeddings.norm, NULL, NULL,
                                cpu_batch_layer(p, 0)->hidden};
    double since = part->seconds ? omp_get_wtime() : 0;
    (void)layer;
    embed(part);
    if (p->training)
        begin_training(part);
    else
        norm(part, &n);
    lap(part, PHASE_EMBEDDINGS, &since);
    return 0;
}

int panel_project(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct linear *l = &p->c->layer[layer].projection;
    const struct layer_tape *tape = cpu_batch_layer(p, layer);
    double since = part->seconds ? omp_get_wtime() : 0;
    int r = product_run(part->product[PRODUCT_PROJECTION], l,
                        cpu_batch_row(p, tape->hidden, part->first, l->shape.in),
                        cpu_batch_row(p, tape->projection, part->first, l->shape.out),
                        &part->workspace->product);
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

/* Training: from what stands before the activation, which is kept, as is what stands after it. */
static void activate_training(const struct part *part, const struct layer_tape *tape,
                              uint32_t k, uint32_t width)
{
    const struct cpu_batch *p = part->p;
    const struct cpu_train_ops *ops = p->training->ops;
    const enum after after = linear_after(p->g->config.activation);
    const uint64_t count = (uint64_t)part->rows * width;
    void *pre = cpu_batch_slice_row(p, tape->pre, k, part->first),
         *inner = cpu_batch_slice_row(p, tape->inner, k, part->first);
    if (p->g->dtype == ELEMENT_BF16)
        ops->activate_bf16(after, count, part->workspace->between, pre, inner);
    else
        ops->activate_f32(after, count, pre, inner);
}

/* Slice k of one layer's feed forward. */
struct feed_slice {
    const struct layer *layer;
    const struct layer_tape *tape;
    uint32_t k;
};

/* Where the first product writes; ret_inner: where the second reads. */
static void *inner_result(const struct part *part, const struct feed_slice *f, void **ret_inner)
{
    const struct cpu_batch *p = part->p;
    const bool f32 = p->g->dtype == ELEMENT_F32;
    *ret_inner = part->workspace->inner;
    if (!p->training)
        return p->c->feed.own_gelu ? (void *)part->workspace->between : *ret_inner;
    *ret_inner = cpu_batch_slice_row(p, f->tape->inner, f->k, part->first);
    return f32 ? cpu_batch_slice_row(p, f->tape->pre, f->k, part->first)
               : (void *)part->workspace->between;
}

/* sum = or += a slice of the feed forward. */
static int feed_slice(const struct part *part, const struct feed_slice *f, bool adds)
{
    const struct cpu_batch *p = part->p;
    struct panel_workspace *workspace = part->workspace;
    const struct linear *inner = &f->layer->inner[f->k];
    void *between, *y = inner_result(part, f, &between);
    if (product_run(part->product[PRODUCT_INNER], inner,
                    cpu_batch_row(p, f->tape->middle, part->first, inner->shape.in), y,
                    &workspace->product) < 0)
        return -1;
    if (p->training)
        activate_training(part, f->tape, f->k, inner->shape.out);
    else if (p->c->feed.own_gelu)
        activate(part, inner->shape.out);
    return product_run(part->product[adds ? PRODUCT_OUTER_ADDS : PRODUCT_OUTER],
                       &f->layer->outer[f->k], between, workspace->sum, &workspace->product);
}

/* Slices first, first + step, ... into one sum. */
static int feed_slices(const struct part *part, uint32_t layer, uint32_t first, uint32_t step)
{
    struct feed_slice f = {&part->p->c->layer[layer], cpu_batch_layer(part->p, layer), first};
    int r = 0;
    for (; f.k < part->p->c->feed.slices && r == 0; f.k += step)
        r = feed_slice(part, &f, f.k > first);
    return r;
}

/* Each thread adds its slices to a sum of its own; the first sum then takes the others. */
static int feed_shared(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    struct panel_workspace *workspace = p->memory->panel;
    const uint32_t size = p->g->config.hidden;
    int failed = 0;
#pragma omp parallel num_threads(p->sharers) reduction(| : failed)
    {
        uint32_t t = (uint32_t)omp_get_thread_num(), all = (uint32_t)omp_get_num_threads();
        struct part own = *part;
        own.workspace = &workspace[t];
        failed |= feed_slices(&own, layer, t, all) < 0;
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

static int feed(const struct part *part, uint32_t layer)
{
    return part->p->sharers > 1 ? feed_shared(part, layer) : feed_slices(part, layer, 0, 1);
}

int panel_layer(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct layer *l = &p->c->layer[layer];
    const struct layer_tape *t = cpu_batch_layer(p, layer);
    const struct norm_step output = {&l->output_norm, &t->output_norm, t->hidden, t->middle},
                           outer = {&l->outer_norm, &t->outer_norm, t->middle,
                                    cpu_batch_output(p, layer)};
    struct panel_workspace *workspace = part->workspace;
    double since = part->seconds ? omp_get_wtime() : 0;
    if (product_run(part->product[PRODUCT_OUTPUT], &l->output,
                    cpu_batch_row(p, t->context, part->first, l->output.shape.in),
                    workspace->sum, &workspace->product) < 0)
        return -1;
    lap(part, PHASE_OUTPUT, &since);
    drop_sum(part, graph_output_site(p->g->config.arch, layer));
    norm(part, &output);
    lap(part, PHASE_NORMS, &since);
    if (feed(part, layer) < 0)
        return -1;
    lap(part, PHASE_FEED_FORWARD, &since);
    drop_sum(part, graph_outer_site(p->g->config.arch, layer));
    norm(part, &outer);
    lap(part, PHASE_NORMS, &since);
    return 0;
}
