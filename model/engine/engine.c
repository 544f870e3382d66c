/* SPDX-License-Identifier: Apache-2.0 */
/* An engine, loaded. encode.c asks it. */
#include "model/engine/engine.h"
#include "masks/base/memory.h"
#include "model/backend/training.h"
#include "model/checkpoint/json.h"
#include "model/engine/encoder.h"
#include "model/engine/parts.h"
#include "runtime/load/load.h"
#include <omp.h>
#include <stdlib.h>

static int read_tokenizer(const char *folder, enum tokenizer_compat compat, struct engine *g,
                          struct error *e)
{
    if (!tokenizer_exists(folder))
        return 0;
    g->tokenizer = tokenizer_load(folder, compat, e);
    if (!g->tokenizer)
        return -1;
    if (g->tokenizer->vocabulary.count > g->config.vocabulary)
        return error_set(e, ERROR_INPUT, "%s: the tokenizer has %u tokens, the model %u",
                         folder, g->tokenizer->vocabulary.count, g->config.vocabulary);
    return 0;
}

static int read_files(const char *folder, const struct engine_options *o, struct engine *g,
                      struct error *e)
{
    if (config_read(folder, &g->config, e) < 0 ||
        weights_read(folder, &g->config, &g->weights, e) < 0 ||
        read_tokenizer(folder, o->compat, g, e) < 0 ||
        lengths_read(folder, g->config.json, g->tokenizer, &g->lengths, e) < 0)
        return -1;
    parts_share(g);
    return parts_check(folder, g, e);
}

static int read_outline(const char *folder, struct engine *g, struct error *e)
{
    if (config_read(folder, &g->config, e) < 0)
        return -1;
    parts_share(g);
    weights_begin(&g->config, g->parts, &g->weights);
    return 0;
}

static void tell(const struct engine_options *o, const char *step)
{
    if (o->progress)
        o->progress(step);
}

static int open_backend(const struct engine_options *o, struct engine *g, struct error *e)
{
    struct encoder *c = g->encoder;
    struct backend_options options = {.dtype = o->dtype, .hidden = g->config.hidden};
    options.outline = g->outline;
    options.trains = g->trains;
    const struct backend *b =
        o->backend ? o->backend : backend_find(o->device, &options.ordinal, e);
    if (b && g->trains && b->training->check && b->training->check(&g->config, b, e) < 0)
        return -1;
    c->state = b ? b->open(b, &options, e) : NULL;
    if (!c->state)
        return -1;
    c->backend = b;
    g->device = b->device->name;
    backend_kernel_device(b, options.ordinal, g->kernels, sizeof g->kernels);
    g->phases_cost = b->phases_cost;
    return 0;
}

/* True if training reads only the first row of each sequence, and the model and the backend allow it. */
static bool reads_first_rows(const struct engine *g)
{
    const struct training_backend *training = g->encoder->backend->training;
    return g->trains && !g->biased && !g->config.relative && !g->config.local && training &&
           training->first_rows &&
           (g->parts & (PART_POOLER | PART_MLM | PART_SPAN)) == PART_POOLER;
}

static struct attention_options attention_options_of(const struct engine *g,
                                                     const struct engine_options *o)
{
    const struct backend *b = g->encoder->backend;
    return (struct attention_options){.transform = o->transform,
                                      .dtype = o->dtype,
                                      .device = g->kernels,
                                      .target = b->target ? b->target : g->kernels,
                                      .text_only = b->text_only,
                                      .trains = g->trains,
                                      .dropout = g->dropout,
                                      .biased = g->biased || g->config.relative,
                                      .first_rows = reads_first_rows(g),
                                      .progress = o->progress};
}

/* A text has at most as many tokens as the mask and the model's positions. */
static void limit_length(struct engine *g)
{
    const uint32_t n = g->encoder->attention.mask->n, positions = g->config.positions;
    g->longest = n < positions ? n : positions;
}

/* There is one bias. */
static int check_biased(const struct engine *g, struct error *e)
{
    return g->biased && g->config.relative
               ? error_set(
                     e, ERROR_INPUT,
                     "scores of this model have a bias of their own: no mask can be learned")
               : 0;
}

static int load_attention(const char *folder, const struct engine_options *o, struct engine *g,
                          struct error *e)
{
    struct attention_options a = attention_options_of(g, o);
    if (check_biased(g, e) < 0)
        return -1;
    a.folder = folder;
    a.mask = o->mask;
    a.drop = o->drop;
    a.drop_seed = o->drop_seed;
    a.drop_length =
        lengths_sample(&g->lengths, g->parts & PART_SPAN, g->config.positions, o->drop_length);
    a.kernel = o->kernel;
    a.kernel_size = o->kernel_size;
    if (attention_new(&g->config, &a, &g->encoder->attention, e) < 0)
        return -1;
    limit_length(g);
    return 0;
}

struct attention *engine_attention_new(const struct engine *g, const struct engine_options *o,
                                       const struct mask *m, struct error *e)
{
    struct attention_options a = attention_options_of(g, o);
    if (g->config.relative && m->n != g->encoder->attention.mask->n) {
        error_set(e, ERROR_INPUT, "a mask of %u tokens; biases of scores are for %u", m->n,
                  g->encoder->attention.mask->n);
        return NULL;
    }
    struct attention *ret = memory_new(1, sizeof *ret);
    a.given = m;
    if (attention_new(&g->config, &a, ret, e) == 0)
        return ret;
    free(ret);
    return NULL;
}

void engine_attention_destroy(struct attention *a)
{
    if (a)
        attention_finish(a);
    free(a);
}

void engine_attention_swap(struct engine *g, struct attention *a)
{
    const struct attention before = g->encoder->attention;
    g->encoder->attention = *a;
    limit_length(g);
    *a = before;
}

static int load(const char *folder, const struct engine_options *o, struct engine *g,
                struct error *e)
{
    tell(o, "reading weights");
    if ((g->outline ? read_outline(folder, g, e) : read_files(folder, o, g, e)) < 0)
        return -1;
    g->encoder = memory_new(1, sizeof *g->encoder);
    tell(o, "opening the device");
    if (open_backend(o, g, e) < 0)
        return -1;
    tell(o, "compiling attention");
    if (load_attention(folder, o, g, e) < 0)
        return -1;
    tell(o, "packing weights");
    int r = encoder_pack(g, e);
    if (!g->outline)
        weights_release(&g->weights);
    return r;
}

struct engine *engine_load(const char *folder, const struct engine_options *o, struct error *e)
{
    if (o->dtype != ELEMENT_F32 && o->dtype != ELEMENT_BF16) {
        error_set(e, ERROR_INPUT, "dtype: f32 or bf16 is expected");
        return NULL;
    }
    struct engine *g = memory_new(1, sizeof *g);
    g->dtype = o->dtype;
    g->parts = o->parts | PART_ENCODER;
    g->trains = o->trains;
    g->dropout = o->trains && o->dropout;
    g->biased = o->trains && o->biased;
    g->outline = o->trains && o->outline;
    g->threads = o->threads ? o->threads : (uint32_t)omp_get_max_threads();
    if (load(folder, o, g, e) == 0)
        return g;
    engine_destroy(g);
    return NULL;
}

int engine_reload_attention(struct engine *g, const char *folder,
                            const struct engine_options *o, struct error *e)
{
    g->biased = g->trains && o->biased;
    attention_finish(&g->encoder->attention);
    return load_attention(folder, o, g, e);
}

void engine_destroy(struct engine *g)
{
    if (!g)
        return;
    encoder_destroy(g->encoder);
    tokenizer_destroy(g->tokenizer);
    weights_finish(&g->weights);
    config_finish(&g->config);
    free(g);
}

const uint8_t *engine_kernel(const struct engine *g, uint64_t *ret_size)
{
    const struct maskc_kernel *k = g->encoder->attention.kernel;
    *ret_size = k->size;
    return k->bytes;
}
