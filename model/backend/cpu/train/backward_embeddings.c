/* SPDX-License-Identifier: Apache-2.0 */
/* The embeddings: their dropout and LayerNorm by panels, then their rows. A thread takes columns, and all tokens in
   order, so that the sums are the same for any number of threads. */
#include "model/arch/arch.h"
#include "model/backend/cpu/train/backward.h"
#include <string.h>

enum { COLUMN_BLOCK = 64 };

static int panel_back(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct training *t = p->training;
    const uint32_t size = p->g->config.hidden;
    const struct norm_tape *tape = &p->tape->embeddings_norm;
    const struct row_dropout d = training_dropout(t, SITE_EMBEDDINGS);
    float *stream = t->backward->stream + (uint64_t)part->first * size,
          *sums = t->backward->embedding_sums + (uint64_t)part->panel * 2 * size;
    (void)layer;
    memset(sums, 0, 2 * (size_t)size * sizeof *sums);
    if (d.keep_below)
        t->ops->drop_f32(&d, t->place + part->first, part->rows, size, stream, stream);
    t->ops->norm_back_f32(&p->c->embeddings.norm, part->rows,
                          (const float *)tape->normalised + (uint64_t)part->first * size,
                          tape->inverse + part->first, stream, stream, sums, sums + size);
    return 0;
}

/* Gradients of the three tables. */
struct tables {
    float *word, *position, *type;
};

static void add(const struct cpu_batch *p, float *table, uint64_t row, uint32_t first,
                uint32_t columns, const float *x)
{
    p->training->ops->add_f32(columns, x, table + row * p->g->config.hidden + first);
}

/* The padding token's row learns nothing from where the token stands, as in transformers (padding_idx); masking may
   draw it. Nor does the padding's row of the positions. */
static void add_columns(const struct cpu_batch *p, const struct tables *t, uint32_t first,
                        uint32_t columns)
{
    const float *stream = p->training->backward->stream + first;
    const struct model_config *m = &p->g->config;
    for (uint32_t s = 0; s < p->sequences; s++) {
        const struct sequence *from = &p->list[s];
        for (uint32_t k = 0, counted = 0; k < from->count; k++, stream += m->hidden) {
            const uint32_t token = from->token_ids[k],
                           position = arch_position(m, token, &counted);
            if (token != m->pad)
                add(p, t->word, token, first, columns, stream);
            if (t->position && position >= m->first_position)
                add(p, t->position, position, first, columns, stream);
            if (t->type)
                add(p, t->type, !m->one_type && k >= from->first_part, first, columns, stream);
        }
    }
}

void backward_relative(const struct cpu_batch *p)
{
    const struct trained_bias *b = p->training->bias;
    const int32_t n = (int32_t)p->c->attention.mask->n;
    const uint32_t heads = p->g->config.heads;
    if (!p->c->relative)
        return;
    float *to = backward_gradient(p, PARAMETER_RELATIVE, 0);
    for (uint32_t h = 0; h < heads; h++)
        for (int32_t o = 1 - n; o < n; o++)
            to[arch_relative(o) * heads + h] +=
                b->gradient[(int64_t)h * (2 * n - 1) + o + n - 1];
}

int backward_embeddings(const struct cpu_batch *p, struct error *e)
{
    const uint32_t size = p->g->config.hidden;
    const float *sums = p->training->backward->embedding_sums;
    const struct tables t = {
        backward_gradient(p, PARAMETER_WORDS, 0), backward_gradient(p, PARAMETER_POSITIONS, 0),
        p->g->config.types ? backward_gradient(p, PARAMETER_TYPES, 0) : NULL};
    if (cpu_batch_run_panels(p, panel_back, 0) < 0)
        return cpu_batch_failed(e);
    backward_add_panels(p, sums, 2 * (uint64_t)size, p->panels, size,
                        backward_gradient(p, PARAMETER_EMBEDDINGS_GAIN, 0));
    backward_add_panels(p, sums + size, 2 * (uint64_t)size, p->panels, size,
                        backward_gradient(p, PARAMETER_EMBEDDINGS_SHIFT, 0));
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t first = 0; first < size; first += COLUMN_BLOCK)
        add_columns(p, &t, first, size - first < COLUMN_BLOCK ? size - first : COLUMN_BLOCK);
    return 0;
}
