/* SPDX-License-Identifier: Apache-2.0 */
#include "model/graph/lay_out.h"
#include "model/arch/arch.h"

/* Of the engine's dtype. */
static void *take(const struct engine *g, struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * element_bytes(g->dtype));
}

static float *take_f32(struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * sizeof(float));
}

static void lay_out_attention(const struct engine *g, uint64_t rows, struct arena *a,
                              struct layer_tape *l)
{
    const uint64_t columns = attention_columns(&g->config);
    l->projection = take(g, a, rows * 3 * columns);
    l->context = take(g, a, rows * columns);
}

static void lay_out_rest(const struct engine *g, uint64_t rows, struct arena *a,
                         struct layer_tape *l)
{
    const struct model_config *m = &g->config;
    const uint64_t hidden = rows * m->hidden, inner = rows * m->intermediate;
    l->output_norm.normalised = take(g, a, hidden);
    l->output_norm.inverse = take_f32(a, rows);
    l->middle = take(g, a, hidden);
    l->pre = take(g, a, (m->arch->gated ? 2 : 1) * inner);
    l->inner = take(g, a, inner);
    l->outer_norm.normalised = take(g, a, hidden);
    l->outer_norm.inverse = take_f32(a, rows);
    if (arch_norm_of(m->arch, BLOCK_ATTENTION) == NORM_BEFORE)
        l->attention_in = take(g, a, hidden);
    if (arch_norm_of(m->arch, BLOCK_FEED) == NORM_BEFORE)
        l->feed_in = take(g, a, hidden);
}

static void lay_out_final(const struct engine *g, uint64_t rows, struct arena *a,
                          struct tape *tape)
{
    if (!g->encoder->final_norm.size)
        return;
    tape->unnormed = take(g, a, rows * g->config.hidden);
    tape->final_norm.normalised = take(g, a, rows * g->config.hidden);
    tape->final_norm.inverse = take_f32(a, rows);
}

void graph_lay_out(const struct engine *g, const struct graph_sizes *s, struct arena *a,
                   struct layer_tape *layer, struct tape *tape)
{
    const uint64_t hidden = s->rows * g->config.hidden;
    for (uint32_t k = 0; k < g->config.layers; k++) {
        struct layer_tape *l = &layer[k];
        *l = k ? layer[0] : (struct layer_tape){0};
        l->hidden = take(g, a, hidden);
        if (k == 0 || s->keeps_attention)
            lay_out_attention(g, s->rows, a, l);
        if (k == 0 || s->keeps_layers)
            lay_out_rest(g, s->rows, a, l);
    }
    *tape = (struct tape){.layer = layer, .step = 1, .rows = s->rows};
    tape->last = take(g, a, hidden);
    tape->embeddings_norm.normalised = take_f32(a, hidden);
    tape->embeddings_norm.inverse = take_f32(a, s->rows);
    lay_out_final(g, s->rows, a, tape);
}
