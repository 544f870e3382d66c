/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an engine, and the memory of its rooms; the CPU's pass is cpu/forward.c. */
#include "model/engine.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/device/pass.h"
#include "model/encoder.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint32_t part;
    const char *name;
} parts[] = {
    {PART_POOLER, "pooler"},
    {PART_MLM, "masked language model's head"},
    {PART_NSP, "next sentence's head"},
    {PART_CLASSIFIER, "classifier"},
    {PART_SPAN, "span head"},
};

/* Newly drawn heads would answer nonsense: a head that is asked for has to be in the files. */
static int check_parts(const char *folder, const struct engine *g, struct error *e)
{
    uint32_t has = g->weights.parts & ~g->weights.new_parts;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (g->parts & ~has & parts[k].part)
            return error_set(e, ERROR_INPUT, "%s: the model has no %s", folder, parts[k].name);
    return 0;
}

static int read_tokenizer(const char *folder, enum tokenizer_compat compat, struct engine *g,
                          struct error *e)
{
    if (!path_exists(folder, "tokenizer.json") && !path_exists(folder, "vocab.txt"))
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
        sentence_read(folder, &g->sentence, e) < 0 ||
        read_tokenizer(folder, o->compat, g, e) < 0)
        return -1;
    return check_parts(folder, g, e);
}

static void tell(const struct engine_options *o, const char *step)
{
    if (o->progress)
        o->progress(step);
}

/* The device, or what the CPU multiplies with. */
static int open_device(const struct engine_options *o, struct engine *g, struct error *e)
{
    struct rows_features f = {o->dtype == ELEMENT_BF16 ? ABI_BF16 : ABI_F32, g->config.hidden};
    struct encoder *c = g->encoder;
    if (backend_open(o->device, &f, &c->backend, e) < 0)
        return -1;
    g->device = c->backend ? c->backend->driver->name : "cpu";
    g->phases_cost = c->backend != NULL;
    if (!c->backend)
        c->matmul = matmul_new(e);
    return c->backend || c->matmul ? 0 : -1;
}

static struct attention_options attention_of(const char *folder, const struct engine_options *o,
                                             const struct backend *b)
{
    struct attention_options a = {.folder = folder,
                                  .mask = o->mask,
                                  .transform = o->transform,
                                  .dtype = o->dtype,
                                  .progress = o->progress};
    if (b) {
        a.device = o->device;
        /* "cuda:1" is that GPU's own target. */
        a.target = strcmp(b->driver->target, "cuda") ? b->driver->target : o->device;
        a.text_only = b->driver->text_only;
    }
    return a;
}

static int load(const char *folder, const struct engine_options *o, struct engine *g,
                struct error *e)
{
    tell(o, "reading weights");
    if (read_files(folder, o, g, e) < 0)
        return -1;
    g->longest = g->config.positions;
    g->encoder = memory_new(1, sizeof *g->encoder);
    tell(o, "opening the device");
    if (open_device(o, g, e) < 0)
        return -1;
    tell(o, "compiling attention");
    struct attention_options attention = attention_of(folder, o, g->encoder->backend);
    if (attention_new(&g->config, &attention, &g->encoder->attention, e) < 0)
        return -1;
    tell(o, "packing weights");
    int r = encoder_new(g, e);
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
    g->threads = o->threads ? o->threads : (uint32_t)omp_get_max_threads();
    if (load(folder, o, g, e) == 0)
        return g;
    engine_destroy(g);
    return NULL;
}

void engine_destroy(struct engine *g)
{
    if (!g)
        return;
    encoder_destroy(g->encoder, &g->config);
    tokenizer_destroy(g->tokenizer);
    weights_finish(&g->weights);
    config_finish(&g->config);
    free(g);
}

const char *engine_phase_name(enum engine_phase p)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_EMBEDDINGS] = "embeddings",     [PHASE_PROJECTION] = "query, key, value",
        [PHASE_ATTENTION] = "attention",       [PHASE_OUTPUT] = "attention output",
        [PHASE_FEED_FORWARD] = "feed forward", [PHASE_NORMS] = "LayerNorm",
    };
    return names[p];
}

/* ---- rooms ---- */

void arena_grow(void **data, uint64_t *bytes, uint64_t wanted)
{
    enum { LARGE = 2 << 20 };
    if (*bytes >= wanted)
        return;
    free(*data);
    *bytes = wanted;
    if (wanted < LARGE)
        *data = memory_aligned(wanted, 1);
    else
        *data = memset(memory_large(bytes), 0, wanted);
}

struct arena *arena_of(struct engine_room *room)
{
    if (!room->arena)
        room->arena = memory_new(1, sizeof *room->arena);
    return room->arena;
}

static void finish_panels(struct arena *a)
{
    for (uint32_t k = 0; k < a->panels; k++)
        product_room_finish(&a->panel[k].product);
    pool_finish(&a->panel_memory);
    free(a->panel);
    a->panel = NULL;
    a->panels = a->panel_rows = 0;
}

void arena_grow_panels(const struct engine *g, struct arena *a, uint32_t rows)
{
    if (a->panels >= g->threads && a->panel_rows >= rows)
        return;
    finish_panels(a);
    a->panels = g->threads;
    a->panel_rows = rows;
    a->panel = memory_new(a->panels, sizeof *a->panel);
    size_t inner = (size_t)rows * (g->config.intermediate / g->encoder->slices);
    size_t sum = (size_t)rows * g->config.hidden;
    for (uint32_t k = 0; k < a->panels; k++) {
        a->panel[k].sum = pool_take(&a->panel_memory, sum * sizeof(float));
        a->panel[k].inner = pool_take(&a->panel_memory, inner * element_bytes(g->dtype));
        if (g->encoder->own_gelu)
            a->panel[k].between = pool_take(&a->panel_memory, inner * sizeof(float));
    }
}

void engine_room_finish(struct engine_room *room)
{
    struct arena *a = room->arena;
    if (a) {
        device_arena_finish(a->backend, a->device);
        free(a->projection);
        free(a->context);
        free(a->lse);
        free(a->workspace);
        free(a->gathered);
        free(a->between);
        free(a->logits);
        finish_panels(a);
        free(a);
    }
    free(room->offsets);
    free(room->hidden);
    *room = (struct engine_room){0};
}
