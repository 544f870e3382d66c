/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences to hidden states. The forward pass on the engine's device is the backend's. */
#include "model/backend/backend.h"
#include "model/base/buffer.h"
#include "model/engine/encoder.h"
#include "model/engine/engine.h"
#include <omp.h>
#include <stdlib.h>

static int check_sequence(const struct engine *g, const struct sequence *s, uint32_t k,
                          struct error *e)
{
    const struct model_config *m = &g->config;
    if (s->count < 1 || s->count > g->longest)
        return error_set(e, ERROR_INPUT, "sequence %u has %u tokens; 1..%u are expected", k,
                         s->count, g->longest);
    if (s->first_part < s->count && m->types == 1 && !m->one_type)
        return error_set(e, ERROR_INPUT, "sequence %u is a pair; the model has one type", k);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->token_ids[i] >= m->vocabulary)
            return error_set(e, ERROR_INPUT, "sequence %u: token %u of %u", k, s->token_ids[i],
                             m->vocabulary);
    return 0;
}

static int check_batch(const struct engine *g, const struct sequence *list, uint32_t n,
                       struct error *e)
{
    uint64_t tokens = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (check_sequence(g, &list[k], k, e) < 0)
            return -1;
        tokens += list[k].count;
    }
    return n >= 1 && tokens <= INT32_MAX / 2
               ? 0
               : error_set(e, ERROR_INPUT,
                           "a batch of %u sequences; 1 or more with at most %d "
                           "tokens are expected",
                           n, INT32_MAX / 2);
}

/* The request for a batch; notes in *w where its sequences begin. */
static struct encode_request lay_out(const struct engine *g, const struct sequence *list,
                                     uint32_t n, struct engine_workspace *w)
{
    struct encode_request r = {.engine = g, .list = list, .workspace = w};
    void *offsets = w->offsets;
    buffer_grow(&offsets, &w->offsets_bytes, (n + UINT64_C(1)) * sizeof *w->offsets);
    w->offsets = offsets;
    w->offsets[0] = 0;
    for (uint32_t k = 0; k < n; k++) {
        w->offsets[k + 1] = w->offsets[k] + (int32_t)list[k].count;
        r.longest = list[k].count > r.longest ? list[k].count : r.longest;
    }
    w->sequences = n;
    w->tokens = (uint32_t)w->offsets[n];
    w->backend = g->encoder->backend;
    return r;
}

int engine_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_workspace *w, struct error *e)
{
    if (check_batch(g, list, n, e) < 0)
        return -1;
    struct encode_request request = lay_out(g, list, n, w);
    int before = omp_get_max_threads();
    omp_set_num_threads((int)g->threads);
    int r = w->backend->encode(&request, e);
    omp_set_num_threads(before);
    return r;
}

int engine_fetch(const struct engine *g, struct engine_workspace *w, struct error *e)
{
    return g->encoder->backend->fetch(g, w, e);
}

void engine_row(const struct engine *g, const struct engine_workspace *w, uint32_t row,
                float *ret)
{
    uint64_t size = g->config.hidden;
    const uint8_t *from = w->hidden;
    elements_to_f32(g->dtype, from + row * size * element_bytes(g->dtype), size, ret);
}

void engine_workspace_finish(struct engine_workspace *w)
{
    if (w->backend)
        w->backend->workspace_finish(w->memory);
    free(w->offsets);
    free(w->hidden);
    *w = (struct engine_workspace){0};
}
