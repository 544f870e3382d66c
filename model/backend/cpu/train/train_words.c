/* SPDX-License-Identifier: Apache-2.0 */
/* The masked words' loss and its gradient. Masked rows are gathered before the decoder and worked off in chunks; a
   panel's logits stay in its thread's memory, and what is kept of them is their gradient in the engine's dtype. */
#include "model/backend/cpu/train/backward.h"
#include <omp.h>
#include <string.h>

/* Masked rows first .. first + rows of a batch. */
struct chunk {
    const struct cpu_batch *p;
    const struct backward *b;
    const struct train_target *target;
    float weight; /* of the target */
    struct target_loss *loss;
    uint32_t first, rows;
    const struct product *dense[2], *out[2], *out_back[2], *dense_back[2]; /* whole, last */
};

struct words_part {
    const struct chunk *c;
    struct panel_workspace *workspace;
    uint32_t panel, first, rows; /* of the chunk */
    uint32_t last;               /* which product */
    float *logits;
    uint64_t vocabulary, hidden;
};

static float *rows_of(float *base, uint64_t row, uint64_t columns)
{
    return base + row * columns;
}

static void gather(const struct words_part *w)
{
    const struct cpu_batch *p = w->c->p;
    const uint32_t *rows = w->c->target->row + w->c->first + w->first;
    for (uint32_t k = 0; k < w->rows; k++)
        memcpy(cpu_batch_row(p, w->c->b->words.gathered, (uint64_t)w->first + k, w->hidden),
               cpu_batch_row(p, p->tape->last, rows[k], w->hidden),
               w->hidden * element_bytes(p->g->dtype));
}

/* From hidden states to what the decoder takes. */
static int transform(const struct words_part *w)
{
    const struct cpu_batch *p = w->c->p;
    const struct words_arrays *a = &w->c->b->words;
    const struct cpu_train_ops *ops = p->training->ops;
    const struct norm *n = &p->c->words_norm;
    float *x = w->workspace->sum, *inverse = a->norm.inverse + w->first,
          *pre = rows_of(a->pre, w->first, w->hidden);
    void *normalised = cpu_batch_row(p, a->norm.normalised, w->first, w->hidden),
         *y = cpu_batch_row(p, a->normed, w->first, w->hidden);
    if (product_run(w->c->dense[w->last], &p->c->words_dense,
                    cpu_batch_row(p, a->gathered, w->first, w->hidden), pre,
                    &w->workspace->product) < 0)
        return -1;
    ops->activate_f32(linear_after(p->g->config.head_activation), w->rows * w->hidden, pre, x);
    if (p->g->dtype == ELEMENT_BF16)
        ops->norm_bf16(n, w->rows, x, NULL, normalised, inverse, y);
    else
        ops->norm_f32(n, w->rows, x, NULL, normalised, inverse, y);
    return 0;
}

static int decode(const struct words_part *w)
{
    const struct cpu_batch *p = w->c->p;
    return product_run(w->c->out[w->last], &p->c->words_out,
                       cpu_batch_row(p, w->c->b->words.normed, w->first, w->hidden), w->logits,
                       &w->workspace->product);
}

/* The loss of each row; logits become their gradient. */
static void find_loss(const struct words_part *w)
{
    const struct cpu_batch *p = w->c->p;
    const struct gradients_request *r = w->c->b->request;
    const struct words_arrays *a = &w->c->b->words;
    const struct cpu_train_ops *ops = p->training->ops;
    const uint32_t *label = w->c->target->label + w->c->first + w->first,
                   vocabulary = (uint32_t)w->vocabulary;
    const float weight = w->c->weight;
    for (uint32_t k = 0; k < w->rows; k++) {
        const float *logits = rows_of(w->logits, k, w->vocabulary);
        void *d = r->loss_only
                      ? NULL
                      : cpu_batch_row(p, a->d_logits, (uint64_t)w->first + k, w->vocabulary);
        int right;
        double loss =
            p->g->dtype == ELEMENT_BF16
                ? ops->cross_entropy_bf16(vocabulary, logits, label[k], weight, d, &right)
                : ops->cross_entropy_f32(vocabulary, logits, label[k], weight, d, &right);
        a->loss[w->first + k] = loss;
        a->right[w->first + k] = right != 0;
    }
}

/* From the logits' gradient to the hidden states', which is added to the stream: rows differ. */
static int back(const struct words_part *w)
{
    const struct cpu_batch *p = w->c->p;
    const struct words_arrays *a = &w->c->b->words;
    const struct cpu_train_ops *ops = p->training->ops;
    const uint64_t h = w->hidden;
    float *d = w->workspace->sum, *bias = rows_of(a->bias, w->panel, w->vocabulary);
    const struct norm_back norm = {&p->c->words_norm, &a->norm, rows_of(a->gain, w->panel, h),
                                   rows_of(a->shift, w->panel, h)};
    void *d_logits = cpu_batch_row(p, a->d_logits, w->first, w->vocabulary),
         *d_dense = cpu_batch_row(p, a->d_dense, w->first, h);
    memset(bias, 0, w->vocabulary * sizeof *bias);
    backward_columns(p, w->rows, (uint32_t)w->vocabulary, d_logits, bias);
    if (product_run(w->c->out_back[w->last], &p->c->words_out_twin, d_logits, d,
                    &w->workspace->product) < 0)
        return -1;
    backward_norm(p, &norm, w->first, w->rows, d);
    ops->activate_back_f32(linear_after(p->g->config.head_activation), w->rows * h,
                           rows_of(a->pre, w->first, h), d, d);
    backward_round(p, w->rows * h, d, d_dense);
    backward_columns(p, w->rows, (uint32_t)h, d_dense, rows_of(a->dense_bias, w->panel, h));
    return product_run(w->c->dense_back[w->last], &p->c->words_dense_twin, d_dense,
                       w->workspace->normed, &w->workspace->product);
}

static void scatter(const struct words_part *w)
{
    const struct cpu_train_ops *ops = w->c->p->training->ops;
    const uint32_t *rows = w->c->target->row + w->c->first + w->first;
    for (uint32_t k = 0; k < w->rows; k++)
        ops->add_f32(w->hidden, rows_of(w->workspace->normed, k, w->hidden),
                     rows_of(w->c->b->stream, rows[k], w->hidden));
}

static void clear_sums(const struct words_part *w)
{
    const struct words_arrays *a = &w->c->b->words;
    float *sums[] = {a->gain, a->shift, a->dense_bias};
    for (int k = 0; k < 3; k++)
        memset(rows_of(sums[k], w->panel, w->hidden), 0, w->hidden * sizeof(float));
}

static int run_panel(const struct chunk *c, uint32_t panel)
{
    const struct cpu_batch *p = c->p;
    const int thread = omp_get_thread_num();
    struct words_part w = {.c = c,
                           .workspace = &p->memory->panel[thread],
                           .panel = panel,
                           .first = panel * HEAD_PANEL,
                           .rows = HEAD_PANEL,
                           .vocabulary = p->g->config.vocabulary,
                           .hidden = p->g->config.hidden};
    if (w.first + w.rows > c->rows)
        w.rows = c->rows - w.first;
    w.last = w.rows < HEAD_PANEL;
    w.logits = p->g->dtype == ELEMENT_F32
                   ? rows_of(c->b->words.d_logits, w.first, w.vocabulary)
                   : rows_of(c->b->words.logits, (uint64_t)thread * HEAD_PANEL, w.vocabulary);
    gather(&w);
    if (transform(&w) < 0 || decode(&w) < 0)
        return -1;
    find_loss(&w);
    if (c->b->request->loss_only)
        return 0;
    clear_sums(&w);
    if (back(&w) < 0)
        return -1;
    scatter(&w);
    return 0;
}

static uint32_t panels_of(const struct chunk *c)
{
    return (c->rows + HEAD_PANEL - 1) / HEAD_PANEL;
}

static int run_panels(const struct chunk *c)
{
    int failed = 0;
#pragma omp parallel reduction(| : failed)
    {
        omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t k = 0; k < panels_of(c); k++)
            failed |= run_panel(c, k) < 0;
    }
    return failed ? -1 : 0;
}

/* ---- products ---- */

static int find(const struct cpu_batch *p, const struct linear *l, uint32_t rows,
                const struct product **ret, struct error *e)
{
    const struct product_use use = {rows, 1, false};
    struct matmul *m = p->c->state->matmul;
    *ret = product_find(m, l, &use, e);
    if (!*ret)
        return -1;
    for (uint32_t t = 0; t < p->memory->panels; t++)
        if (product_workspace_grow(m, *ret, &p->memory->panel[t].product, e) < 0)
            return -1;
    return 0;
}

static int find_both(struct chunk *c, const struct linear *l, const struct product *ret[2],
                     struct error *e)
{
    const uint32_t rest = c->rows % HEAD_PANEL;
    if (find(c->p, l, HEAD_PANEL, &ret[0], e) < 0)
        return -1;
    ret[1] = ret[0];
    return rest ? find(c->p, l, rest, &ret[1], e) : 0;
}

static int find_products(struct chunk *c, struct error *e)
{
    const struct encoder *n = c->p->c;
    struct linear dense = n->words_dense;
    dense.shape.after = AFTER_NONE; /* what stands before the activation is kept */
    if (find_both(c, &dense, c->dense, e) < 0 || find_both(c, &n->words_out, c->out, e) < 0)
        return -1;
    if (c->b->request->loss_only)
        return 0;
    return find_both(c, &n->words_out_twin, c->out_back, e) < 0
               ? -1
               : find_both(c, &n->words_dense_twin, c->dense_back, e);
}

/* The decoder's products are the largest. */
uint64_t train_words_widened_bytes(const struct encoder *c, uint32_t masked)
{
    const uint32_t rows = masked < HEAD_PANEL ? masked : HEAD_PANEL;
    const uint64_t out = product_widened_bytes(c->state->matmul, &c->words_out.shape, rows),
                   back =
                       product_widened_bytes(c->state->matmul, &c->words_out_twin.shape, rows);
    return out > back ? out : back;
}

/* ---- a chunk ---- */

static void add_loss(const struct chunk *c)
{
    for (uint32_t k = 0; k < c->rows; k++) {
        c->loss->sum += c->b->words.loss[k];
        c->loss->right += c->b->words.right[k];
    }
    c->loss->count += c->rows;
}

static void add_sums(const struct chunk *c)
{
    const struct cpu_batch *p = c->p;
    const struct words_arrays *a = &c->b->words;
    const uint64_t h = p->g->config.hidden, v = p->g->config.vocabulary;
    const uint32_t panels = panels_of(c);
    backward_add_panels(p, a->gain, h, panels, h, backward_gradient(p, PARAMETER_MLM_GAIN, 0));
    backward_add_panels(p, a->shift, h, panels, h,
                        backward_gradient(p, PARAMETER_MLM_SHIFT, 0));
    backward_add_panels(p, a->dense_bias, h, panels, h,
                        backward_gradient(p, PARAMETER_MLM_DENSE_BIAS, 0));
    backward_add_panels(p, a->bias, v, panels, v, backward_gradient(p, PARAMETER_MLM_BIAS, 0));
}

static int weight_gradients(const struct chunk *c, struct error *e)
{
    const struct cpu_batch *p = c->p;
    const struct model_config *m = &p->g->config;
    const struct words_arrays *a = &c->b->words;
    const uint64_t h = m->hidden;
    float *words = m->tied ? backward_gradient(p, PARAMETER_WORDS, 0)
                           : backward_gradient(p, PARAMETER_MLM_DECODER, 0),
          *dense = backward_gradient(p, PARAMETER_MLM_DENSE_WEIGHT, 0);
    const struct weight_gradient list[] = {
        {m->hidden, m->vocabulary, c->rows, p->g->dtype, a->d_logits, a->normed, m->vocabulary,
         h, words, h},
        {m->hidden, m->hidden, c->rows, p->g->dtype, a->d_dense, a->gathered, h, h, dense, h},
    };
    return matmul_weight_gradients(p->c->state->matmul, list, 2, p->g->threads, e);
}

static int run_chunk(struct chunk *c, struct error *e)
{
    if (find_products(c, e) < 0)
        return -1;
    if (run_panels(c) < 0)
        return cpu_batch_failed(e);
    add_loss(c);
    if (c->b->request->loss_only)
        return 0;
    add_sums(c);
    return weight_gradients(c, e);
}

int train_words(const struct cpu_batch *p, const struct backward *b, uint32_t target,
                struct batch_loss *loss, struct error *e)
{
    const struct train_target *t = &b->request->batch->target[target];
    struct chunk c = {.p = p,
                      .b = b,
                      .target = t,
                      .weight = (float)b->request->weight[target],
                      .loss = &loss->target[target]};
    for (; c.first < t->count; c.first += HEAD_CHUNK) {
        c.rows = t->count - c.first < HEAD_CHUNK ? t->count - c.first : HEAD_CHUNK;
        if (run_chunk(&c, e) < 0)
            return -1;
    }
    return 0;
}
