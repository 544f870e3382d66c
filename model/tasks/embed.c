/* SPDX-License-Identifier: Apache-2.0 */
/* Sentence vectors. */
#include "masks/base/memory.h"
#include "model/engine/heads.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct embed {
    const struct engine *g;
    const struct embedding *how;
    float *ret;
};

uint32_t embedding_size(const struct engine *g, const struct embedding *m)
{
    uint32_t size = g->config.hidden;
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

/* `whole` is overwritten. */
static void finish(const struct embed *m, float *whole, float *ret)
{
    uint32_t kept = embedding_size(m->g, m->how);
    if (m->how->normalize)
        make_unit(m->g->config.hidden, whole);
    if (m->how->normalize_kept)
        make_unit(kept, whole);
    memcpy(ret, whole, kept * sizeof *ret);
}

static int embed(void *context, const uint32_t *text, uint32_t n,
                 struct engine_workspace *workspace, struct error *e)
{
    const struct embed *m = context;
    uint64_t size = m->g->config.hidden;
    float *pooled = memory_new(n * size, sizeof *pooled);
    enum pooling pooling = m->how->pooling;
    uint64_t kept = embedding_size(m->g, m->how);
    int r = pooling == POOLING_CLS    ? engine_fetch(m->g, workspace, e)
            : pooling == POOLING_MEAN ? head_mean(m->g, workspace, pooled, e)
                                      : head_pool(m->g, workspace, pooled, e);
    if (r < 0) {
        free(pooled);
        return -1;
    }
#pragma omp parallel for num_threads((int)m->g->threads)
    for (uint32_t k = 0; k < n; k++) {
        if (pooling == POOLING_CLS)
            engine_row(m->g, workspace, (uint32_t)workspace->offsets[k], pooled + k * size);
        finish(m, pooled + k * size, m->ret + text[k] * kept);
    }
    free(pooled);
    return 0;
}

int task_embed(const struct task_runner *t, const struct task_batches *b,
               const struct embedding *how, float *ret, struct error *e)
{
    struct embed m = {t->engine, how, ret};
    struct task_visitor visitor = {embed, &m};
    return task_run(t, b, &visitor, e);
}
