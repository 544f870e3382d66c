/* SPDX-License-Identifier: Apache-2.0 */
/* A pass forward and backward on a driver: what is refused, memory, the graph over its tape, heads. */
#include "model/backend/gpu/train/train.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include "runtime/load/load.h"
#include <stdlib.h>

enum { LINE = 256 }; /* what products like best */

struct backend_training *gpu_training_new(const struct engine *g)
{
    struct backend_training *m = memory_new(1, sizeof *m);
    m->layer = memory_new(g->config.layers, sizeof *m->layer);
    m->passes.segments = SEGMENT_LAYERS + g->config.layers + 1;
    m->heads.segments = TARGETS_MOST * HEAD_SEGMENTS;
    m->ops.state = g->encoder->state;
    m->ops.stream = g->encoder->state->stream;
    m->ops.stream.launches = 0;
    return m;
}

void gpu_training_destroy(struct backend_training *m)
{
    const struct backend_state *s = m->ops.state;
    struct error ignored;
    s->driver->wait(s->gpu, &m->ops.stream, &ignored);
    gpu_train_forget(m);
    gpu_release(s, m->device);
    gpu_train_stages_finish(s, &m->stages);
    gpu_train_result_finish(s, &m->losses);
    gpu_train_result_finish(s, &m->logits);
    free(m->layer);
    free(m);
}

/* ---- what it takes ---- */

int gpu_training_check(const struct model_config *c, const struct backend *b, struct error *e)
{
    const char *what = c->local          ? "rotated positions"
                       : c->relative     ? "biases of scores"
                       : c->mean_pooling ? "pooled means"
                                         : NULL;
    return what ? error_set(e, ERROR_UNAVAILABLE,
                            "%s does not train models with %s: the CPU does (--device cpu)",
                            b->device->name, what)
                : 0;
}

/* LSE and the kernels' workspace. */
static uint64_t attention_bytes(const struct op_batch *p)
{
    const uint64_t layers = p->sizes.recompute == RECOMPUTE_NONE ? p->g->config.layers : 1;
    return p->attention_bytes + layers * p->sizes.tokens * p->g->config.heads * sizeof(float);
}

static int grow(struct backend_training *m, struct backend_state *s, uint64_t bytes,
                struct error *e)
{
    if (m->bytes >= bytes)
        return 0;
    if (s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    gpu_train_forget(m);
    gpu_release(s, m->device);
    m->bytes = 0;
    m->device = gpu_allocate(s, bytes, e);
    if (!m->device)
        return -1;
    m->bytes = bytes;
    return s->driver->clear(s->gpu, &s->stream, m->device, bytes, e);
}

/* All arrays are measured, the memory is made so large, and they are laid out there. */
static int prepare(struct op_batch *p, struct error *e)
{
    struct backend_state *s = p->state;
    struct arena a = {.line = LINE};
    if (gpu_train_stage(p, e) < 0)
        return -1;
    gpu_train_lay_out(p, &a);
    if (grow(p->memory, s, a.used, e) < 0)
        return -1;
    p->memory->attention_bytes = attention_bytes(p);
    a = (struct arena){p->memory->device, 0, LINE};
    gpu_train_lay_out(p, &a);
    return 0;
}

/* ---- forward and backward ---- */

/* Index of the first target with rows from k on that is of words, or of labels; b->targets: there is none. */
static uint32_t next_target(const struct train_batch *b, uint32_t k, bool words)
{
    while (k < b->targets &&
           (!b->target[k].count || (b->target[k].head == TARGET_WORDS) != words))
        k++;
    return k;
}

/* The first target with few labels begins before the words, so that the device works on these while the host takes its loss. */
static int run_targets(struct op_batch *p, struct batch_loss *loss, struct error *e)
{
    const struct train_batch *b = p->request->batch;
    const uint32_t first = next_target(b, 0, false);
    if (first < b->targets && gpu_train_labels(p, first, e) < 0)
        return -1;
    for (uint32_t k = 0; (k = next_target(b, k, true)) < b->targets; k++)
        if (gpu_train_words(p, k, loss, e) < 0)
            return -1;
    for (uint32_t k = first; k < b->targets; k = next_target(b, k + 1, false))
        if ((k != first && gpu_train_labels(p, k, e) < 0) ||
            gpu_train_end_labels(p, k, loss, e) < 0)
            return -1;
    return 0;
}

static struct graph graph_of(struct op_batch *p)
{
    return (struct graph){p->g, &gpu_train_ops, p, &p->tape};
}

static int run_forward(void *context, uint32_t index, struct error *e)
{
    const struct graph graph = graph_of(context);
    (void)index;
    return graph_forward(&graph, e);
}

/* The norm at the end of the encoder goes with the last layer. */
static int run_layer_back(void *context, uint32_t index, struct error *e)
{
    struct op_batch *p = context;
    const struct graph graph = graph_of(p);
    const uint32_t layer = index - SEGMENT_LAYERS;
    if (layer + 1 == p->g->config.layers && graph_norm_back(&graph, &p->back, e) < 0)
        return -1;
    return graph_layer_back(&graph, &p->back, layer, e) < 0 ? -1 : gpu_train_end_sums(p, e);
}

static int run_embeddings_back(void *context, uint32_t index, struct error *e)
{
    struct op_batch *p = context;
    (void)index;
    return gpu_train_ops.embed_back(p, p->back.stream, e) < 0 ? -1 : gpu_train_end_sums(p, e);
}

/* Layers last to first. Work on a layer's gradients is submitted when its segment is. */
static int run_back(struct op_batch *p, struct error *e)
{
    const uint32_t layers = p->g->config.layers;
    const struct gradients_watch *w = p->request->watch;
    for (uint32_t k = layers; k-- > 0;)
        if (gpu_train_segment(
                p, &(struct train_segment){false, SEGMENT_LAYERS + k, run_layer_back}, e) < 0 ||
            (w && w->left_layer(w->context, k, e) < 0))
            return -1;
    return gpu_train_segment(
        p, &(struct train_segment){false, SEGMENT_LAYERS + layers, run_embeddings_back}, e);
}

/* The host waits for losses when all is submitted: the device then works on. */
static int run(struct op_batch *p, struct batch_loss *loss, struct error *e)
{
    const uint64_t stream = (uint64_t)p->sizes.tokens * p->g->config.hidden * sizeof(float);
    const bool back = !p->request->loss_only;
    if (gpu_train_segment(p, &(struct train_segment){false, SEGMENT_FORWARD, run_forward}, e) <
            0 ||
        (back && p->state->driver->clear(p->state->gpu, &p->state->stream, p->back.stream,
                                         stream, e) < 0) ||
        run_targets(p, loss, e) < 0 || (back && run_back(p, e) < 0))
        return -1;
    return gpu_train_end_words(p, e);
}

int gpu_train(const struct gradients_request *r, struct backend_training *m,
              struct batch_loss *loss, struct error *e)
{
    const struct gradients_sizes own = gradients_sizes_of(r);
    struct op_batch p = {.request = r,
                         .g = r->engine,
                         .c = r->engine->encoder,
                         .state = r->engine->encoder->state,
                         .memory = m,
                         .sizes = gpu_train_padded(r->engine, &own)};
    struct error ignored;
    m->sums = (struct pending_sums){0};
    if (prepare(&p, e) < 0)
        return -1;
    gpu_train_find_recorded(&p);
    int result = run(&p, loss, e);
    p.state->stream.launches += m->ops.stream.launches;
    m->ops.stream.launches = 0;
    if (result < 0)
        p.state->driver->wait(p.state->gpu, &p.state->stream, &ignored);
    return result;
}

int gpu_training_memory(const struct engine *g, const struct gradients_sizes *s,
                        struct gradients_memory *ret, struct error *e)
{
    struct backend_training m = {.layer = memory_new(g->config.layers, sizeof *m.layer)};
    struct op_batch p = {.g = g,
                         .c = g->encoder,
                         .state = g->encoder->state,
                         .memory = &m,
                         .sizes = gpu_train_padded(g, s)};
    struct arena a = {.line = LINE};
    (void)e;
    gpu_train_lay_out(&p, &a);
    free(m.layer);
    *ret = (struct gradients_memory){
        .activations = a.used - attention_bytes(&p) + gpu_update_bytes(g) +
                       STAGE_PLACES * gpu_train_stage_most(&p.sizes) * sizeof(uint32_t),
        .attention = attention_bytes(&p),
        .weights = g->encoder->state->kept_bytes,
    };
    return 0;
}

char *gpu_training_identity(const struct engine *g)
{
    struct text t = {0};
    text_add(&t, "%s; %s", g->device, g->encoder->attention.kernel->target->name);
    return text_take(&t);
}

void gpu_training_attention(const struct backend_training *m, struct gradients_array *ret)
{
    for (int k = 0; k < GRADIENTS_ATTENTION_ARRAYS; k++)
        ret[k] = (struct gradients_array){0};
    ret[0].bytes = m->attention_bytes;
}

void gpu_training_use(const struct backend_state *s, struct training_use *ret)
{
    ret->launches = s->stream.launches + s->beside.launches;
    ret->no_graphs = s->no_graphs;
    gpu_memory_use(s, &ret->bytes, &ret->most_bytes);
}
