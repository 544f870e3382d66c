/* SPDX-License-Identifier: Apache-2.0 */
/* A pass forward and backward on the CPU: memory, the forward pass over its tape, heads, and the way back. */
#include "model/backend/cpu/train/train.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include "model/backend/cpu/forward/plain.h"
#include "runtime/device/machine.h"
#include "runtime/load/load.h"
#include <stdlib.h>
#include <string.h>

struct backend_training *cpu_training_new(const struct engine *g)
{
    struct backend_training *m = memory_new(1, sizeof *m);
    m->layer = memory_new(g->config.layers, sizeof *m->layer);
    return m;
}

void cpu_training_destroy(struct backend_training *m)
{
    struct buffer *all[] = {&m->tape, &m->attention, &m->heads, &m->places};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]->data);
    cpu_workspace_clear(&m->panels);
    free(m->layer);
    free(m);
}

/* ---- memory ---- */

static void grow(struct buffer *b, struct arena *a)
{
    buffer_grow(&b->data, &b->bytes, a->used);
    *a = (struct arena){b->data, 0};
}

static uint64_t attention_bytes(const struct engine *g, const struct gradients_sizes *s,
                                const int32_t *offsets)
{
    const struct attention_call call = {.sequences = s->sequences,
                                        .longest = s->longest,
                                        .threads = g->threads,
                                        .tokens = s->tokens,
                                        .offsets = offsets};
    return attention_workspace(&g->encoder->attention, &call);
}

/* Each group of arrays is measured, its buffer made so large, and laid out there. */
static void lay_out(struct backend_training *m, const struct engine *g,
                    const struct gradients_sizes *s, struct tape *tape, struct backward *b)
{
    struct arena a = {0}, lse = {0}, heads = {0};
    for (int there = 0; there < 2; there++) {
        train_lay_out_tape(g, s, &a, m->layer, tape);
        train_lay_out_backward(g, s, &a, b);
        train_lay_out_lse(g, s, &lse, m->layer);
        train_lay_out_heads(g, s, &heads, b);
        if (there)
            break;
        grow(&m->tape, &a);
        grow(&m->attention, &lse);
        grow(&m->heads, &heads);
    }
}

static struct row_place *make_places(struct backend_training *m, const struct train_batch *b)
{
    buffer_grow(&m->places.data, &m->places.bytes, b->tokens * sizeof(struct row_place));
    struct row_place *ret = m->places.data, *at = ret;
    for (uint32_t s = 0; s < b->sequences; s++)
        for (uint32_t k = 0; k < b->list[s].count; k++)
            *at++ = (struct row_place){b->sample[s], k};
    return ret;
}

/* ---- forward and backward ---- */

static struct graph graph_of(struct op_batch *b)
{
    const struct cpu_batch *p = b->batch;
    return (struct graph){p->g, &cpu_ops, b, p->tape};
}

static int forward(const struct cpu_batch *p, struct error *e)
{
    struct op_batch own = {.batch = p};
    const struct graph graph = graph_of(&own);
    return cpu_fuses(p->g->config.arch) ? cpu_batch_forward(p, e) : graph_forward(&graph, e);
}

static int backward(const struct cpu_batch *p, struct error *e)
{
    struct op_batch own = {.batch = p};
    const struct graph graph = graph_of(&own);
    const struct backward *b = p->training->backward;
    const enum recompute level = b->request->recompute;
    const struct graph_back back = {.stream = b->stream,
                                    .block = b->block,
                                    .d_inner = b->d_inner,
                                    .d_outer = b->d_outer,
                                    .d_pre = b->d_pre,
                                    .d_output = b->d_output,
                                    .d_context = b->d_context,
                                    .d_projection = b->d_projection,
                                    .keeps_attention = level == RECOMPUTE_NONE,
                                    .keeps_layers = level != RECOMPUTE_LAYER};
    if (!cpu_fuses(p->g->config.arch))
        return graph_backward(&graph, &back, e);
    return backward_layers(p, e) < 0 ? -1 : backward_embeddings(p, e);
}

static int run_target(const struct cpu_batch *p, const struct backward *b, uint32_t target,
                      struct batch_loss *loss, struct error *e)
{
    const enum target_head head = b->request->batch->target[target].head;
    return (head == TARGET_WORDS ? train_words : train_labels)(p, b, target, loss, e);
}

static int run(const struct cpu_batch *p, const struct backward *b, struct batch_loss *loss,
               struct error *e)
{
    const struct train_batch *batch = b->request->batch;
    const struct cpu_batch *last = p->tail ? &p->tail->batch : p;
    float *stream = last->training->backward->stream;
    if (forward(p, e) < 0)
        return -1;
    memset(stream, 0, (uint64_t)last->tokens * p->g->config.hidden * sizeof *stream);
    for (uint32_t k = 0; k < batch->targets; k++)
        if (batch->target[k].count &&
            run_target(last, last->training->backward, k, loss, e) < 0)
            return -1;
    if (b->request->loss_only)
        return 0;
    if (backward(p, e) < 0)
        return -1;
    backward_relative(p);
    return 0;
}

static struct training make_training(const struct gradients_request *r,
                                     struct backend_training *m)
{
    const bool as_probabilities =
        arch_block(r->engine->config.arch, BLOCK_ATTENTION)->drops_as_probabilities;
    return (struct training){.ops = r->engine->encoder->state->train_ops,
                             .place = make_places(m, r->batch),
                             .sample = r->batch->sample,
                             .seed = r->seed,
                             .bias = r->bias,
                             .hidden_dropout = r->loss_only ? 0 : r->hidden_dropout,
                             .attention_dropout = r->loss_only ? 0 : r->attention_dropout,
                             .head_dropout = r->loss_only ? 0 : r->head_dropout,
                             .output_dropout = r->loss_only       ? 0
                                               : as_probabilities ? r->attention_dropout
                                                                  : r->hidden_dropout};
}

static void prepare(struct cpu_batch *p, struct backend_training *m,
                    const struct gradients_sizes *s)
{
    p->panel = training_panel(s->tokens);
    p->panels = (s->tokens + p->panel - 1) / p->panel;
    p->sharers = 1;
    cpu_workspace_grow_panels(p->g, &m->panels, p->panel);
    buffer_grow(&m->panels.attention.data, &m->panels.attention.bytes,
                attention_bytes(p->g, s, p->offsets));
}

/* The model's own bias of scores, whose gradient begins at zero. */
static struct trained_bias relative_bias(const struct cpu_batch *p)
{
    const struct backward *b = p->training->backward;
    const uint64_t size = p->g->config.heads * (2 * (uint64_t)p->c->attention.mask->n - 1);
    const bool wanted = p->c->relative && !b->request->loss_only;
    if (wanted)
        memset(b->relative, 0, size * sizeof *b->relative);
    return (struct trained_bias){.value = p->c->relative,
                                 .diagonals = true,
                                 .gradient = wanted ? b->relative : NULL,
                                 .part = wanted ? b->relative + size : NULL};
}

int cpu_train(const struct gradients_request *r, struct backend_training *m,
              struct batch_loss *loss, struct error *e)
{
    const struct engine *g = r->engine;
    struct gradients_sizes s = gradients_sizes_of(r);
    struct backward b = {.request = r};
    struct training t = make_training(r, m);
    struct tape tape;
    struct tail tail;
    struct cpu_batch p = {.g = g,
                          .c = g->encoder,
                          .ops = g->encoder->state->ops,
                          .train_ops = g->encoder->state->train_ops,
                          .training = &t,
                          .tape = &tape,
                          .list = r->batch->list,
                          .offsets = r->batch->offsets,
                          .sequences = s.sequences,
                          .tokens = s.tokens,
                          .longest = s.longest,
                          .memory = &m->panels};
    s.read = tail_rows(r->batch);
    t.backward = &b;
    lay_out(m, g, &s, &tape, &b);
    const struct trained_bias relative = relative_bias(&p);
    if (p.c->relative)
        t.bias = &relative;
    prepare(&p, m, &s);
    if (cpu_fuses(g->config.arch) && cpu_batch_make_products(&p, e) < 0)
        return -1;
    if (cpu_fuses(g->config.arch) && s.read && tail_begin(&p, &tail, e) < 0)
        return -1;
    return run(&p, &b, loss, e);
}

/* ---- what it takes ---- */

/* f32 copies of bf16 operands: each thread has memory for the largest product. */
static uint64_t widened_bytes(const struct engine *g, const struct gradients_sizes *s)
{
    const struct encoder *c = g->encoder;
    const uint64_t panels = cpu_batch_widened_bytes(c, training_panel(s->tokens)),
                   words = s->words ? train_words_widened_bytes(c, s->words) : 0;
    return g->threads * (panels > words ? panels : words);
}

int cpu_training_memory(const struct engine *g, const struct gradients_sizes *s,
                        struct gradients_memory *ret, struct error *e)
{
    struct layer_tape *layer = memory_new(g->config.layers, sizeof *layer);
    struct tape tape;
    struct backward b = {0};
    struct arena a = {0}, lse = {0}, heads = {0};
    (void)e;
    train_lay_out_tape(g, s, &a, layer, &tape);
    train_lay_out_backward(g, s, &a, &b);
    train_lay_out_lse(g, s, &lse, layer);
    train_lay_out_heads(g, s, &heads, &b);
    free(layer);
    *ret = (struct gradients_memory){
        .activations = buffer_bytes(a.used) +
                       buffer_bytes(s->tokens * sizeof(struct row_place)) +
                       cpu_workspace_panels_bytes(g, training_panel(s->tokens)) +
                       matmul_gradient_bytes(g->threads) + widened_bytes(g, s),
        .attention = buffer_bytes(lse.used) + buffer_bytes(attention_bytes(g, s, NULL)),
        .heads = buffer_bytes(heads.used),
        .weights = matmul_weights_bytes(g->encoder->state->matmul) +
                   pool_held(&g->encoder->state->kept),
    };
    return 0;
}

char *cpu_training_identity(const struct engine *g)
{
    struct text t = {0};
    const struct artifact_target *target = g->encoder->attention.kernel->target;
    text_add(&t, "%s; %s; ", machine_level(), target->name);
    matmul_describe(&t);
    return text_take(&t);
}

void cpu_training_attention(const struct backend_training *m, struct gradients_array *ret)
{
    ret[0] = (struct gradients_array){m->attention.data, m->attention.bytes};
    ret[1] = (struct gradients_array){m->panels.attention.data, m->panels.attention.bytes};
}
