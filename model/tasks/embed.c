/* SPDX-License-Identifier: Apache-2.0 */
/* Sentence vectors: pooling, the modules after it, truncation to `dimension`. */
#include "masks/base/memory.h"
#include "model/engine/heads.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct embed {
    const struct task_options *o;
    const struct engine *g;
    const struct embedding *how;
    const uint32_t *left_out; /* [texts]: first tokens that are not pooled; null: none */
    float *ret;
};

static uint32_t pooled_width(const struct engine *g, const struct embedding *m)
{
    return g->config.hidden * m->poolings;
}

uint32_t embedding_width(const struct engine *g, const struct embedding *m)
{
    uint32_t ret = pooled_width(g, m);
    for (uint32_t k = 0; k < m->steps; k++)
        ret = m->step[k] ? m->step[k]->out : ret;
    return ret;
}

uint32_t embedding_size(const struct engine *g, const struct embedding *m)
{
    uint32_t size = embedding_width(g, m);
    return m->dimension && m->dimension < size ? m->dimension : size;
}

static void make_unit(uint32_t size, float *x)
{
    double squares = 0;
    for (uint32_t k = 0; k < size; k++)
        squares += (double)x[k] * (double)x[k];
    float length = (float)fmax(sqrt(squares), 1e-12);
    for (uint32_t k = 0; k < size; k++)
        x[k] /= length;
}

void embedding_cut(const struct engine *g, const struct embedding *m, float *x)
{
    if (m->normalize)
        make_unit(embedding_width(g, m), x);
    if (m->normalize_kept)
        make_unit(embedding_size(g, m), x);
}

/* ---- pooling of fetched rows ---- */

/* Rows first .. end - 1 are a sequence, of which begin .. end - 1 are pooled: none where all tokens are the prompt's. */
struct rows {
    uint32_t first, begin, end;
};

static struct rows rows_of(const struct embed *m, const struct engine_workspace *w, uint32_t s,
                           uint32_t text)
{
    const uint32_t first = (uint32_t)w->offsets[s], end = (uint32_t)w->offsets[s + 1];
    const uint32_t left_out = m->left_out ? m->left_out[text] : 0;
    return (struct rows){first, left_out < end - first ? first + left_out : end, end};
}

/* Sum of weight(k) * row k over the pooled rows, divided; k counts from 1 at the first row of the sequence. */
static void sum_rows(const struct embed *m, const struct engine_workspace *w, struct rows r,
                     enum pooling pooling, float *ret)
{
    const uint32_t size = m->g->config.hidden, n = r.end - r.begin, before = r.begin - r.first;
    const bool weighted = pooling == POOLING_WEIGHTED_MEAN;
    const double divisor = weighted                       ? 0.5 * n * (2.0 * before + n + 1)
                           : pooling == POOLING_MEAN_SQRT ? sqrt(n)
                                                          : n;
    double *sum = memory_new(size, sizeof *sum);
    for (uint32_t k = r.begin; k < r.end; k++) {
        engine_row(m->g, w, k, ret);
        for (uint32_t i = 0; i < size; i++)
            sum[i] += (weighted ? k - r.first + 1.0 : 1.0) * (double)ret[i];
    }
    for (uint32_t i = 0; i < size; i++)
        ret[i] = n ? (float)(sum[i] / divisor) : 0;
    free(sum);
}

static void max_rows(const struct embed *m, const struct engine_workspace *w, struct rows r,
                     float *ret)
{
    const uint32_t size = m->g->config.hidden;
    float *row = memory_new(size, sizeof *row);
    for (uint32_t i = 0; i < size; i++)
        ret[i] = -INFINITY;
    for (uint32_t k = r.begin; k < r.end; k++) {
        engine_row(m->g, w, k, row);
        for (uint32_t i = 0; i < size; i++)
            ret[i] = row[i] > ret[i] || isnan(row[i]) ? row[i] : ret[i];
    }
    free(row);
}

/* The last row; 0 where none is pooled. */
static void last_row(const struct embed *m, const struct engine_workspace *w, struct rows r,
                     float *ret)
{
    if (r.begin < r.end)
        engine_row(m->g, w, r.end - 1, ret);
    else
        memset(ret, 0, m->g->config.hidden * sizeof *ret);
}

static void pool_rows(const struct embed *m, const struct engine_workspace *w, struct rows r,
                      float *ret)
{
    for (uint32_t k = 0; k < m->how->poolings; k++, ret += m->g->config.hidden) {
        const enum pooling pooling = m->how->pooling[k];
        if (pooling == POOLING_CLS)
            engine_row(m->g, w, r.begin < r.end ? r.begin : r.first, ret);
        else if (pooling == POOLING_LAST)
            last_row(m, w, r, ret);
        else if (pooling == POOLING_MAX)
            max_rows(m, w, r, ret);
        else
            sum_rows(m, w, r, pooling, ret);
    }
}

/* ---- a batch ---- */

/* True for poolings that are a head of the engine. */
static bool is_head(const struct embed *m)
{
    const enum pooling pooling = m->how->pooling[0];
    return m->how->poolings == 1 &&
           (pooling == POOLING_POOLER || (pooling == POOLING_MEAN && !m->left_out));
}

/* pooled [sequences, pooled_width], unless pool_rows() makes them of fetched rows. */
static int begin_pooling(const struct embed *m, struct engine_workspace *w, float *pooled,
                         struct error *e)
{
    if (!is_head(m))
        return engine_fetch(m->g, w, e);
    return m->how->pooling[0] == POOLING_MEAN ? head_mean(m->g, w, pooled, e)
                                              : head_pool(m->g, w, pooled, e);
}

/* The modules behind pooling, for one text: x [pooled_width] to ret [embedding_size]. */
static void run_steps(const struct embed *m, const float *x, float *ret)
{
    uint32_t size = pooled_width(m->g, m->how);
    float *now = memory_copy(x, size * sizeof *x);
    for (uint32_t k = 0; k < m->how->steps; k++) {
        const struct sentence_dense *d = m->how->step[k];
        if (d) {
            float *next = memory_new(d->out, sizeof *next);
            sentence_dense_run(d, now, next);
            free(now);
            now = next;
            size = d->out;
        } else {
            make_unit(size, now);
        }
    }
    embedding_cut(m->g, m->how, now);
    memcpy(ret, now, embedding_size(m->g, m->how) * sizeof *ret);
    free(now);
}

/* The maximum of no rows, where the prompt is all of a text, is -infinity, as in sentence-transformers. */
static int check(const struct embed *m, const struct engine_workspace *w, uint32_t k,
                 uint32_t text, uint64_t size, struct error *e)
{
    const struct rows r = rows_of(m, w, k, text);
    return r.begin == r.end ? 0 : task_check_output(m->o, text, m->ret + text * size, size, e);
}

static int embed(void *context, const uint32_t *text, uint32_t n,
                 struct engine_workspace *workspace, struct error *e)
{
    const struct embed *m = context;
    const uint64_t size = pooled_width(m->g, m->how), kept = embedding_size(m->g, m->how);
    float *pooled = memory_new(n * size, sizeof *pooled);
    if (begin_pooling(m, workspace, pooled, e) < 0) {
        free(pooled);
        return -1;
    }
#pragma omp parallel for num_threads((int)m->g->threads)
    for (uint32_t k = 0; k < n; k++) {
        if (!is_head(m))
            pool_rows(m, workspace, rows_of(m, workspace, k, text[k]), pooled + k * size);
        run_steps(m, pooled + k * size, m->ret + text[k] * kept);
    }
    free(pooled);
    int r = 0;
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = check(m, workspace, k, text[k], kept, e);
    return r;
}

/* b->left_out, or null where it is 0 for each text. */
static const uint32_t *find_left_out(const struct task_batches *b)
{
    for (uint32_t k = 0; k < b->texts && b->left_out; k++)
        if (b->left_out[k])
            return b->left_out;
    return NULL;
}

int task_embed(const struct task_runner *t, const struct task_batches *b,
               const struct embedding *how, float *ret, struct error *e)
{
    struct embed m = {t->options, t->engine, how, find_left_out(b), ret};
    struct task_visitor visitor = {embed, &m};
    return task_run(t, b, &visitor, e);
}
