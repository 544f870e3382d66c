/* SPDX-License-Identifier: Apache-2.0 */
/* Sentence vectors. */
#include "masks/base/memory.h"
#include "model/heads.h"
#include "model/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct embed {
    const struct engine *g;
    enum pooling pooling;
    bool normalize;
    float *ret;
};

static void make_unit(uint32_t size, float *x)
{
    double squares = 0;
    for (uint32_t k = 0; k < size; k++)
        squares += (double)x[k] * (double)x[k];
    float length = (float)fmax(sqrt(squares), 1e-12);
    for (uint32_t k = 0; k < size; k++)
        x[k] /= length;
}

static void pool(const struct embed *m, const struct engine_workspace *workspace, uint32_t s,
                 const float *pooled, float *ret)
{
    uint64_t size = m->g->config.hidden;
    if (m->pooling == POOLING_CLS)
        engine_row(m->g, workspace, (uint32_t)workspace->offsets[s], ret);
    else
        memcpy(ret, pooled + s * size, size * sizeof *ret);
    if (m->normalize)
        make_unit(m->g->config.hidden, ret);
}

static int embed(void *context, const uint32_t *text, uint32_t n,
                 struct engine_workspace *workspace, struct error *e)
{
    const struct embed *m = context;
    uint64_t size = m->g->config.hidden;
    float *pooled = memory_new(n * size, sizeof *pooled);
    int r = m->pooling == POOLING_CLS    ? engine_fetch(m->g, workspace, e)
            : m->pooling == POOLING_MEAN ? head_mean(m->g, workspace, pooled, e)
                                         : head_pool(m->g, workspace, pooled, e);
    if (r < 0) {
        free(pooled);
        return -1;
    }
#pragma omp parallel for num_threads((int)m->g->threads)
    for (uint32_t k = 0; k < n; k++)
        pool(m, workspace, k, pooled, m->ret + text[k] * size);
    free(pooled);
    return 0;
}

int task_embed(const struct task_runner *t, const struct task_batches *b, enum pooling pooling,
               bool normalize, float *ret, struct error *e)
{
    struct embed m = {t->engine, pooling, normalize, ret};
    struct task_visitor visitor = {embed, &m};
    return task_run(t, b, &visitor, e);
}
