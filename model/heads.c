/* SPDX-License-Identifier: Apache-2.0 */
/* Every head gathers rows of the hidden states and takes them through one product or two. */
#include "model/heads.h"
#include "masks/base/memory.h"
#include "model/device/pass.h"
#include "model/encoder.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Rows that are taken at once: bounds the memory of [rows, vocabulary]. */
enum { HEAD_ROWS = 64 };

static int run_product(const struct engine *g, struct arena *a, const struct linear *l,
                       uint32_t rows, const void *x, void *y, struct error *e)
{
    int before = omp_get_max_threads();
    omp_set_num_threads((int)g->threads);
    const struct product_use use = {rows, g->threads, false};
    const struct product *p = linear_product(g->encoder->matmul, l, &use, e);
    int r = p ? product_room_grow(g->encoder->matmul, p, &a->panel[0].product, e) : -1;
    if (r == 0 && linear_run(p, l, x, y, &a->panel[0].product) < 0)
        r = error_set(e, ERROR_FALSE, "oneDNN: a matrix product failed");
    omp_set_num_threads(before);
    return r;
}

static uint64_t room_for(uint32_t rows, uint64_t columns, enum element t)
{
    return (rows + (uint64_t)LINEAR_ROWS_BEYOND) * columns * element_bytes(t);
}

static void gather(const struct engine *g, struct engine_room *room, const uint32_t *rows,
                   uint32_t n)
{
    struct arena *a = room->arena;
    size_t bytes = (size_t)g->config.hidden * element_bytes(g->dtype);
    arena_grow(&a->gathered, &a->gathered_bytes, room_for(n, g->config.hidden, g->dtype));
    for (uint32_t k = 0; k < n; k++)
        memcpy((uint8_t *)a->gathered + k * bytes, (uint8_t *)room->hidden + rows[k] * bytes,
               bytes);
}

/* How rows that are gathered become numbers: [n, out] f32 into ret. */
struct head {
    const struct linear *first; /* into `between`, or null */
    const struct norm *norm;    /* after the first, or null */
    const struct linear *last;  /* null: what the first says is the result */
};

static void normalise(const struct engine *g, const struct norm *n, uint32_t rows, float *x,
                      void *y)
{
    if (g->dtype == ELEMENT_BF16)
        g->encoder->rows->norm_bf16(n, rows, x, NULL, y);
    else
        g->encoder->rows->norm_f32(n, rows, x, NULL, y);
}

static int run_chunk(const struct engine *g, struct engine_room *room, const struct head *h,
                     const uint32_t *rows, uint32_t n, float *ret, struct error *e)
{
    struct arena *a = room->arena;
    const void *x;
    if (g->encoder->backend)
        return device_head(g, room, h->first, h->norm, h->last, rows, n, ret, e);
    gather(g, room, rows, n);
    x = a->gathered;
    if (h->first) {
        arena_grow(&a->between, &a->between_bytes, room_for(n, h->first->out, ELEMENT_F32));
        if (run_product(g, a, h->first, n, x, a->between, e) < 0)
            return -1;
        x = a->between;
    }
    if (h->norm) {
        normalise(g, h->norm, n, a->between, a->gathered);
        x = a->gathered;
    }
    if (!h->last) {
        elements_to_f32(h->first->y, x, (uint64_t)n * h->first->out, ret);
        return 0;
    }
    arena_grow(&a->logits, &a->logits_bytes, room_for(n, h->last->out, ELEMENT_F32));
    if (run_product(g, a, h->last, n, x, a->logits, e) < 0)
        return -1;
    memcpy(ret, a->logits, (size_t)n * h->last->out * sizeof *ret);
    return 0;
}

static int run_head(const struct engine *g, struct engine_room *room, const struct head *h,
                    const uint32_t *rows, uint32_t n, float *ret, struct error *e)
{
    uint64_t out = h->last ? h->last->out : h->first->out;
    for (uint32_t k = 0; k < n; k += HEAD_ROWS) {
        uint32_t some = n - k < HEAD_ROWS ? n - k : HEAD_ROWS;
        if (run_chunk(g, room, h, rows + k, some, ret + k * out, e) < 0)
            return -1;
    }
    return 0;
}

static int need(const struct engine *g, uint32_t parts, struct error *e)
{
    return (g->parts & parts) == parts
               ? 0
               : error_set(e, ERROR_INPUT, "the engine was loaded without this head");
}

/* The first token of each sequence, then the pooler and what stands on it. */
static int run_first(const struct engine *g, struct engine_room *room,
                     const struct linear *last, float *ret, struct error *e)
{
    struct head h = {&g->encoder->pooler, NULL, last};
    uint32_t *rows = memory_new(room->sequences, sizeof *rows);
    for (uint32_t s = 0; s < room->sequences; s++)
        rows[s] = (uint32_t)room->offsets[s];
    int r = run_head(g, room, &h, rows, room->sequences, ret, e);
    free(rows);
    return r;
}

static int run_tokens(const struct engine *g, struct engine_room *room,
                      const struct linear *last, float *ret, struct error *e)
{
    struct head h = {.last = last};
    uint32_t *rows = memory_new(room->tokens, sizeof *rows);
    for (uint32_t k = 0; k < room->tokens; k++)
        rows[k] = k;
    int r = run_head(g, room, &h, rows, room->tokens, ret, e);
    free(rows);
    return r;
}

static void write_mean(const struct engine *g, const struct engine_room *room, uint32_t s,
                       float *ret)
{
    uint64_t first = (uint64_t)room->offsets[s], size = g->config.hidden;
    uint32_t rows = (uint32_t)(room->offsets[s + 1] - room->offsets[s]);
    const uint8_t *x = (const uint8_t *)room->hidden + first * size * element_bytes(g->dtype);
    if (g->dtype == ELEMENT_BF16)
        g->encoder->rows->sum_bf16(rows, g->config.hidden, (const uint16_t *)(const void *)x,
                                   ret);
    else
        g->encoder->rows->sum_f32(rows, g->config.hidden, (const float *)(const void *)x, ret);
    for (uint64_t k = 0; k < size; k++)
        ret[k] /= (float)rows;
}

int head_mean(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    if (g->encoder->backend)
        return device_mean(g, room, ret, e);
#pragma omp parallel for num_threads((int)g->threads)
    for (uint32_t s = 0; s < room->sequences; s++)
        write_mean(g, room, s, ret + (uint64_t)s * g->config.hidden);
    return 0;
}

int head_pool(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    return need(g, PART_POOLER, e) < 0 ? -1 : run_first(g, room, NULL, ret, e);
}

int head_words(const struct engine *g, struct engine_room *room, const uint32_t *rows,
               uint32_t n, float *ret, struct error *e)
{
    const struct encoder *c = g->encoder;
    struct head h = {&c->words_dense, &c->words_norm, &c->words_out};
    return need(g, PART_MLM, e) < 0 ? -1 : run_head(g, room, &h, rows, n, ret, e);
}

int head_next(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    return need(g, PART_POOLER | PART_NSP, e) < 0
               ? -1
               : run_first(g, room, &g->encoder->next, ret, e);
}

int head_sequences(const struct engine *g, struct engine_room *room, float *ret,
                   struct error *e)
{
    return need(g, PART_POOLER | PART_CLASSIFIER, e) < 0
               ? -1
               : run_first(g, room, &g->encoder->classifier, ret, e);
}

int head_tokens(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    return need(g, PART_CLASSIFIER, e) < 0
               ? -1
               : run_tokens(g, room, &g->encoder->classifier, ret, e);
}

int head_span(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    return need(g, PART_SPAN, e) < 0 ? -1 : run_tokens(g, room, &g->encoder->span, ret, e);
}
