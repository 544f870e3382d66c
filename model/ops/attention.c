/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/attention.h"
#include "masks/base/memory.h"
#include "model/mask/drop.h"
#include "model/mask/model_mask.h"
#include "runtime/launch/launch.h"
#include "runtime/load/load.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t attention_padded_dim(uint32_t head_dim)
{
    uint32_t padded = head_dim <= 16 ? 16 : (head_dim + 7) / 8 * 8;
    return padded <= 256 ? padded : 0;
}

uint32_t attention_columns(const struct model_config *c)
{
    return c->heads * attention_padded_dim(c->hidden / c->heads);
}

static struct mask *load_mask(const struct model_config *c, const struct attention_options *o,
                              struct error *e)
{
    if (o->given)
        return mask_crop(o->given, o->given->n, e);
    if (o->mask || !c->mask)
        return o->mask ? model_mask(o->mask, c, e) : model_mask_own(c, e);
    bool changed;
    return model_mask_stored(o->folder, c, &changed, e);
}

/* One head for all is repeated: equal heads are stored and planned once. */
static struct mask *full_heads(struct mask *m, uint32_t heads, struct error *e)
{
    if (m->heads == heads)
        return m;
    struct mask *full = mask_repeat_heads(m, heads, e);
    mask_destroy(m);
    return full;
}

static int read_shape(const struct model_config *c, const struct attention_options *o,
                      struct attention *a, struct error *e)
{
    *a = (struct attention){.heads = c->heads,
                            .head_dim = c->hidden / c->heads,
                            .padded_dim = attention_padded_dim(c->hidden / c->heads),
                            .dtype = o->dtype};
    a->scale = (float)(1 / sqrt(a->head_dim));
    if (!a->padded_dim)
        return error_set(e, ERROR_INPUT, "heads of %u: at most 256 are supported", a->head_dim);
    return encoder_transform_parse(o->transform ? o->transform : c->mask_transform,
                                   &a->transform, e);
}

static struct encoder_attention kernel_of(const struct attention_options *o,
                                          const struct attention *a)
{
    return (struct encoder_attention){
        .mask = a->mask,
        .dtype = a->dtype == ELEMENT_BF16 ? MASKC_BF16 : MASKC_F32,
        .head_dim = a->padded_dim,
        .transform = a->transform,
        .target = o->target,
        .device = o->device,
        .text_only = o->text_only,
        .backward = o->trains,
        .dropout = o->trains && o->dropout,
        .bias = o->biased,
        .progress = o->progress,
        .bytes = o->kernel,
        .size = o->kernel_size,
    };
}

static struct pattern *first_row(const struct pattern *p)
{
    struct pattern *ret = pattern_new(p->n);
    for (uint64_t k = p->row[0]; k < p->row[1]; k++)
        pattern_add(ret, 0, p->run[k].begin, p->run[k].end);
    for (uint32_t i = 0; i < p->n; i++)
        pattern_row(ret, i);
    return pattern_finish(ret);
}

/* The mask, and one more layer: the first rows of its last. */
static struct mask *with_first_rows(const struct mask *m)
{
    const uint32_t all = m->layers * m->heads;
    struct pattern **pattern = memory_new(all + m->heads, sizeof(struct pattern *));
    for (uint32_t k = 0; k < all; k++)
        pattern[k] = pattern_copy(m->pattern[m->at[k]]);
    for (uint32_t h = 0; h < m->heads; h++)
        pattern[all + h] = first_row(mask_pattern(m, m->layers - 1, h));
    struct mask *ret = mask_new(m->layers + 1, m->heads, pattern, m->source);
    free(pattern);
    return ret;
}

/* A kernel file that was made before may have no layer of first rows. */
static int load_kernel(const struct attention_options *o, struct attention *a, struct error *e)
{
    struct encoder_attention kernel = kernel_of(o, a);
    struct mask *more = o->first_rows ? with_first_rows(a->mask) : NULL;
    kernel.mask = more ? more : a->mask;
    int r = encoder_attention_load(&kernel, &a->kernel, e);
    mask_destroy(more);
    if (r == 0)
        a->first_rows = a->kernel->artifact->mask->layers > a->mask->layers;
    return r;
}

int attention_kernel(const struct model_config *c, const struct attention_options *o,
                     struct encoder_attention *ret, struct error *e)
{
    struct attention a;
    if (read_shape(c, o, &a, e) < 0)
        return -1;
    *ret = kernel_of(o, &a);
    return 0;
}

int attention_new(const struct model_config *c, const struct attention_options *o,
                  struct attention *ret, struct error *e)
{
    struct attention a;
    if (read_shape(c, o, &a, e) < 0)
        return -1;
    a.mask = load_mask(c, o, e);
    if (a.mask && o->drop)
        a.mask =
            mask_drop(a.mask, o->drop, c,
                      (struct drop_draws){.seed = o->drop_seed, .length = o->drop_length}, e);
    if (a.mask)
        a.mask = full_heads(a.mask, c->heads, e);
    if (!a.mask || load_kernel(o, &a, e) < 0) {
        attention_finish(&a);
        return -1;
    }
    a.kernel_layers = a.mask->layers;
    a.trains = o->trains;
    a.biased = o->biased;
    *ret = a;
    return 0;
}

void attention_finish(struct attention *a)
{
    maskc_kernel_destroy(a->kernel);
    mask_destroy(a->mask);
    *a = (struct attention){0};
}

static uint32_t layer_of(const struct attention *a, uint32_t layer)
{
    return a->kernel_layers == 1 ? 0 : layer;
}

static uint32_t layer_of_call(const struct attention *a, const struct attention_call *c)
{
    return a->first_rows && c->first_rows ? a->kernel_layers : layer_of(a, c->layer);
}

/* Query, key or value in a fused array. */
static struct maskc_tensor third(const struct attention *a, void *base, int k)
{
    const int64_t columns = (int64_t)a->heads * a->padded_dim;
    uint8_t *data = base;
    if (data)
        data += (size_t)k * (size_t)columns * element_bytes(a->dtype);
    return (struct maskc_tensor){data, 0, 3 * columns, a->padded_dim};
}

static struct maskc_launch make_launch(const struct attention *a,
                                       const struct attention_call *c)
{
    const int64_t columns = (int64_t)a->heads * a->padded_dim, dim = a->padded_dim;
    struct maskc_launch l = {
        .struct_size = sizeof l,
        .batch = c->sequences,
        .length = c->longest,
        .layer = layer_of_call(a, c),
        .scale = a->scale,
        .offsets = c->offsets,
        .tokens = c->tokens,
        .dropout = c->dropout,
        .seed = c->seed,
        .query = third(a, c->projection, 0),
        .key = third(a, c->projection, 1),
        .value = third(a, c->projection, 2),
        .out = {c->context, 0, columns, dim},
        .lse = c->lse,
        .workspace = c->workspace,
        .workspace_bytes = c->workspace_bytes,
        .threads = c->threads,
        .stream = c->stream,
        .samples = c->sample,
        .soft = c->bias,
    };
    return l;
}

static struct maskc_launch make_launch_back(const struct attention *a,
                                            const struct attention_call *c)
{
    struct maskc_launch l = make_launch(a, c);
    l.pass = MASKC_BACKWARD;
    l.grad_out = (struct maskc_tensor){c->grad_context, 0, l.out.row, l.out.head};
    l.grad_query = third(a, c->grad_projection, 0);
    l.grad_key = third(a, c->grad_projection, 1);
    l.grad_value = third(a, c->grad_projection, 2);
    l.grad_soft = c->grad_bias;
    l.grad_soft_diagonals = c->grad_bias_diagonals;
    return l;
}

uint64_t attention_workspace(const struct attention *a, const struct attention_call *c)
{
    struct maskc_launch l = make_launch(a, c);
    uint64_t bytes = launch_workspace(a->kernel, &l);
    if (!a->trains)
        return bytes;
    l.pass = MASKC_BACKWARD;
    uint64_t back = launch_workspace(a->kernel, &l);
    return back > bytes ? back : bytes;
}

static int run(const struct attention *a, const struct attention_call *c,
               const struct maskc_launch *l, struct error *e)
{
    return launch_run_inside(a->kernel, l, &(struct launch_inside){c->launches, c->emulated},
                             e);
}

int attention_run(const struct attention *a, const struct attention_call *c, struct error *e)
{
    const struct maskc_launch l = make_launch(a, c);
    return run(a, c, &l, e);
}

int attention_run_back(const struct attention *a, const struct attention_call *c,
                       struct error *e)
{
    const struct maskc_launch l = make_launch_back(a, c);
    return run(a, c, &l, e);
}

const struct pattern *attention_pattern(const struct attention *a, uint32_t layer,
                                        uint32_t head)
{
    return mask_pattern(a->mask, layer_of(a, layer), head);
}
