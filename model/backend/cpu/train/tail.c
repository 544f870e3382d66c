/* SPDX-License-Identifier: Apache-2.0 */
/* A classifier reads one row of a sequence. So the last layer's output, feed forward and norms are computed for these rows,
   gathered as a batch of their own, forward and backward; the gradients of all other rows there are 0. */
#include "model/backend/cpu/train/backward.h"
#include <string.h>

uint32_t tail_rows(const struct train_batch *b)
{
    uint32_t used = 0, rows = 0;
    for (uint32_t k = 0; k < b->targets; k++)
        if (b->target[k].count) {
            used++;
            rows = target_form(b->target[k].head)->pooled ? b->target[k].count : 0;
        }
    return used == 1 ? rows : 0;
}

static const uint32_t *rows_of(const struct train_batch *b)
{
    uint32_t k = 0;
    while (!b->target[k].count)
        k++;
    return b->target[k].row;
}

void tail_lay_out(const struct engine *g, uint32_t rows, struct arena *a, struct tail_arrays *t)
{
    const uint64_t all = rows + (uint64_t)PRODUCT_ROWS_BEYOND,
                   element = element_bytes(g->dtype), hidden = all * g->config.hidden,
                   columns = all * attention_columns(&g->config);
    t->hidden = arena_take(a, hidden * element);
    t->context = arena_take(a, columns * element);
    t->d_context = arena_take(a, columns * element);
    t->stream = arena_take(a, hidden * sizeof *t->stream);
    t->place = arena_take(a, rows * sizeof *t->place);
}

static void make_tape(const struct cpu_batch *p, const struct tail_arrays *a, struct tail *ret)
{
    ret->layer = *cpu_batch_layer(p, p->g->config.layers - 1);
    ret->layer.hidden = a->hidden;
    ret->layer.context = a->context;
    ret->tape = *p->tape;
    ret->tape.layer = &ret->layer;
    ret->tape.step = 0;
}

static bool are_first(const struct cpu_batch *p, const struct batch_tail *t)
{
    bool ret = t->batch.tokens == p->sequences;
    for (uint32_t k = 0; k < t->batch.tokens && ret; k++)
        ret = t->row[k] == (uint32_t)p->offsets[k];
    return ret;
}

int tail_begin(struct cpu_batch *p, struct tail *ret, struct error *e)
{
    const struct backward *b = p->training->backward;
    struct cpu_batch *batch = &ret->is.batch;
    make_tape(p, &b->tail, ret);
    ret->backward = *b;
    ret->backward.stream = b->tail.stream;
    ret->backward.d_context = b->tail.d_context;
    ret->training = *p->training;
    ret->training.place = b->tail.place;
    ret->training.backward = &ret->backward;
    ret->is.row = rows_of(b->request->batch);
    *batch = *p;
    batch->tape = &ret->tape;
    batch->training = &ret->training;
    batch->tokens = tail_rows(b->request->batch);
    batch->panel = training_panel(batch->tokens);
    batch->panels = (batch->tokens + batch->panel - 1) / batch->panel;
    for (uint32_t k = 0; k < batch->tokens; k++)
        b->tail.place[k] = p->training->place[ret->is.row[k]];
    ret->is.first = are_first(p, &ret->is);
    batch->tail = p->tail = &ret->is;
    return cpu_batch_make_products(batch, e);
}

/* to = 0 but for the tail's rows. */
static void spread(const struct cpu_batch *p, size_t bytes, const void *from, void *to)
{
    const struct batch_tail *t = p->tail;
    memset(to, 0, p->tokens * bytes);
    for (uint64_t k = 0; k < t->batch.tokens; k++)
        memcpy((uint8_t *)to + t->row[k] * bytes, (const uint8_t *)from + k * bytes, bytes);
}

void tail_spread(const struct cpu_batch *p)
{
    const struct backward *b = p->training->backward;
    spread(p, attention_columns(&p->g->config) * element_bytes(p->g->dtype), b->tail.d_context,
           b->d_context);
    spread(p, p->g->config.hidden * sizeof *b->stream, b->tail.stream, b->stream);
}
