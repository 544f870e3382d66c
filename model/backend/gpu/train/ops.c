/* SPDX-License-Identifier: Apache-2.0 */
/* Training's operations of model/ops/ops.h on a driver: the forward ones, which keep values on the tape, and attention's
   backward pass. The others are in ops_back.c. */
#include "model/backend/gpu/train/ops.h"
#include "model/arch/arch.h"
#include <math.h>

int gpu_train_run(const struct op_batch *p, enum train_op op, const struct train_args *a,
                  struct error *e)
{
    return p->state->driver->run_train(p->state->gpu, &p->state->stream, op, a, e);
}

int gpu_train_product(const struct op_batch *p, const struct gpu_product *product,
                      struct error *e)
{
    bool fused;
    return p->state->driver->product(p->state->gpu, &p->state->stream, product, &fused, e);
}

/* ---- dropout ---- */

/* Sets the dropout of a row's columns: round(65536 probability) of 65536 draws are dropped. */
void gpu_train_drop_with(const struct op_batch *p, uint32_t site, double probability,
                         struct train_args *a)
{
    const uint32_t below = (uint32_t)lrint(probability * 65536);
    a->seed = p->request->seed;
    a->site = site;
    a->keep_below = below;
    a->keep_scale = 65536.0f / (float)(65536 - below);
}

void gpu_train_drop(const struct op_batch *p, uint32_t site, struct train_args *a)
{
    const struct gradients_request *r = p->request;
    const bool output = site % 2, /* graph_output_site() */
        as_probabilities =
            arch_block(p->g->config.arch, BLOCK_ATTENTION)->drops_as_probabilities;
    const double probability = r->loss_only || site == SITE_NONE ? 0
                               : output && as_probabilities      ? r->attention_dropout
                                                                 : r->hidden_dropout;
    gpu_train_drop_with(p, site, probability, a);
    a->place = p->staged + p->inputs.place;
}

/* ---- operations ---- */

static int lap(struct op_batch *p, enum engine_phase phase, struct error *e)
{
    (void)p, (void)phase, (void)e;
    return 0;
}

static int embed(struct op_batch *p, void *y, struct error *e)
{
    const struct embeddings *m = &p->c->embeddings;
    const struct train_state *s = p->request->state;
    const struct piece *words = train_state_piece(s, PARAMETER_WORDS, 0);
    struct train_args args = {.rows = p->sizes.tokens,
                              .eps = m->norm.eps,
                              .number = p->staged + p->inputs.number,
                              .position = p->staged + p->inputs.position,
                              .type = p->staged + p->inputs.type,
                              .words = s->value + words->first, /* not rounded, as the CPU's */
                              .positions = m->positions,
                              .types = m->types,
                              .gain = m->norm.gain,
                              .shift = m->norm.shift,
                              .z = p->tape.embeddings_norm.normalised,
                              .inverse = p->tape.embeddings_norm.inverse,
                              .y = y};
    gpu_train_drop(p, SITE_EMBEDDINGS, &args);
    return gpu_train_run(p, TRAIN_OP_EMBED, &args, e);
}

static int norm(struct op_batch *p, const struct op_norm *o, struct error *e)
{
    const struct train_args args = {.rows = p->sizes.tokens,
                                    .eps = o->norm->eps,
                                    .gain = o->norm->gain,
                                    .shift = o->norm->shift,
                                    .residual = o->x,
                                    .z = o->kept.normalised,
                                    .inverse = o->kept.inverse,
                                    .y = o->y};
    return gpu_train_run(p, TRAIN_OP_NORM, &args, e);
}

/* Keeps the rounded input of the activation; the activation reads the kept values. */
static int linear(struct op_batch *p, const struct op_linear *o, struct error *e)
{
    const uint32_t rows = p->sizes.tokens;
    const bool gated = o->glu != AFTER_NONE;
    struct backend_workspace *m = &p->memory->ops;
    struct linear plain = *o->l;
    const struct rows_args after = {.rows = rows,
                                    .columns = gated ? plain.shape.out / 2 : plain.shape.out,
                                    .after = (uint32_t)(gated ? o->glu : plain.shape.after),
                                    .wide = p->g->dtype == ELEMENT_F32,
                                    .x = o->pre,
                                    .y = o->y};
    plain.shape.after = AFTER_NONE;
    if (!o->pre)
        return gpu_run_product(m, &plain, rows, o->x, o->y, e);
    return gpu_run_product(m, &plain, rows, o->x, o->pre, e) < 0
               ? -1
               : gpu_run_op(m, gated ? ENCODER_OP_GLU : ENCODER_OP_FINISH, &after, e);
}

static int close(struct op_batch *p, const struct op_close *o, struct error *e)
{
    const struct norm *n = o->norm.norm;
    struct train_args args = {.rows = p->sizes.tokens,
                              .bias = o->l->bias,
                              .x = p->sum,
                              .residual = o->residual,
                              .z = o->norm.kept.normalised,
                              .inverse = o->norm.kept.inverse,
                              .y = o->y};
    if (n) {
        args.eps = n->eps;
        args.gain = n->gain;
        args.shift = n->shift;
    }
    gpu_train_drop(p, o->site, &args);
    return gpu_train_product(p, &(struct gpu_product){o->l, args.rows, o->x, p->sum}, e) < 0
               ? -1
               : gpu_train_run(p, TRAIN_OP_NORM, &args, e);
}

/* gpu_training_check() refuses models that rotate. */
static int rotate(struct op_batch *p, uint32_t layer, void *x, bool back, struct error *e)
{
    (void)p, (void)layer, (void)x, (void)back;
    return error_set(e, ERROR_INPUT, "rotations are not trained on this device");
}

/* ---- attention ---- */

/* Elements of a layer's bias, or of its gradient. */
static uint64_t bias_size(const struct op_batch *p, bool gradient)
{
    const struct attention *a = &p->c->attention;
    const uint64_t n = a->mask->n;
    return a->heads * (gradient && p->request->bias->diagonals ? 2 * n - 1 : n * n);
}

static uint64_t bias_at(const struct op_batch *p, uint32_t layer, bool gradient)
{
    return p->request->bias->per_layer ? layer * bias_size(p, gradient) : 0;
}

struct attention_call gpu_train_attention_call(const struct op_batch *p, uint32_t layer)
{
    const struct gradients_request *r = p->request;
    const struct layer_tape *t = graph_layer(&p->tape, layer);
    return (struct attention_call){
        .layer = layer,
        .sequences = p->sizes.sequences,
        .longest = p->sizes.longest,
        .tokens = p->sizes.tokens,
        .offsets = (const int32_t *)(p->staged + p->inputs.offsets),
        .projection = t->projection,
        .context = t->context,
        .lse = t->lse,
        .workspace = p->attention,
        .workspace_bytes = p->attention_bytes,
        .stream = p->state->stream.handle,
        .launches = &p->state->stream.launches,
        .emulated = p->state->stream.emulated,
        .dropout = r->loss_only ? 0 : (float)r->attention_dropout,
        .seed = gradients_attention_seed(r->seed, layer),
        .sample = p->staged + p->inputs.sample,
        .bias = r->bias ? r->bias->value + bias_at(p, layer, false) : NULL,
    };
}

static int attend(struct op_batch *p, uint32_t layer, struct error *e)
{
    const struct attention_call call = gpu_train_attention_call(p, layer);
    return attention_run(&p->c->attention, &call, e);
}

static int attend_back(struct op_batch *p, uint32_t layer, struct error *e)
{
    const struct trained_bias *b = p->request->bias;
    const bool wanted = b && b->gradient;
    struct attention_call call = gpu_train_attention_call(p, layer);
    call.grad_context = p->back.d_context;
    call.grad_projection = p->back.d_projection;
    if (wanted)
        *(b->diagonals ? &call.grad_bias_diagonals : &call.grad_bias) = b->part;
    if (attention_run_back(&p->c->attention, &call, e) < 0)
        return -1;
    return wanted
               ? gpu_train_run(p, TRAIN_OP_ADD,
                               &(struct train_args){.count = bias_size(p, true),
                                                    .adds = 1,
                                                    .x = b->part,
                                                    .y = b->gradient + bias_at(p, layer, true)},
                               e)
               : 0;
}

const struct ops gpu_train_ops = {
    .embed = embed,
    .linear = linear,
    .norm = norm,
    .close = close,
    .rotate = rotate,
    .attend = attend,
    .lap = lap,
    .close_back = gpu_close_back,
    .linear_back = gpu_linear_back,
    .norm_back = gpu_norm_back,
    .add = gpu_add,
    .attend_back = attend_back,
    .embed_back = gpu_embed_back,
};
