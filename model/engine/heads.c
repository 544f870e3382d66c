/* SPDX-License-Identifier: Apache-2.0 */
/* A head applies one or two products to rows of the hidden states. */
#include "model/engine/heads.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/engine/encoder.h"
#include <stdlib.h>

/* Rows that are computed at once: limits the memory of [rows, vocabulary]. */
enum { HEAD_ROWS = 64 };

/* Runs all rows of a request, HEAD_ROWS at a time. */
static int run_head(const struct head_request *all, struct error *e)
{
    const struct backend *b = all->engine->encoder->backend;
    const struct head *h = all->head;
    const uint64_t out = (h->last ? h->last : h->first)->shape.out;
    struct head_request r = *all;
    for (uint32_t k = 0; k < all->n; k += r.n) {
        r.rows = all->rows + k;
        r.n = all->n - k < HEAD_ROWS ? all->n - k : HEAD_ROWS;
        r.ret = all->ret + k * out;
        if (b->head(&r, e) < 0)
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

/* The part of a head before its last product: the pooler if rows are pooled, or the dense layer and norm that all heads
   share. */
static struct head head_before(const struct engine *g, const struct linear *last, bool pooled)
{
    const struct encoder *c = g->encoder;
    if (arch_pooler(&g->config) == POOLER_SHARED)
        return (struct head){.first = &c->words_dense,
                             .norm = &c->words_norm,
                             .last = last,
                             .of_means = pooled && g->config.mean_pooling};
    return (struct head){.first = pooled ? &c->pooler : NULL, .last = last};
}

/* Runs the pooler and the product after it on the first token of each sequence. */
static int run_first(const struct engine *g, struct engine_workspace *workspace,
                     const struct linear *last, float *ret, struct error *e)
{
    const struct head h = head_before(g, last, true);
    uint32_t *rows = memory_new(workspace->sequences, sizeof *rows);
    for (uint32_t s = 0; s < workspace->sequences; s++)
        rows[s] = (uint32_t)workspace->offsets[s];
    int r =
        run_head(&(struct head_request){g, workspace, &h, rows, workspace->sequences, ret}, e);
    free(rows);
    return r;
}

static int run_tokens(const struct engine *g, struct engine_workspace *workspace,
                      const struct linear *last, float *ret, struct error *e)
{
    const struct head h = head_before(g, last, false);
    uint32_t *rows = memory_new(workspace->tokens, sizeof *rows);
    for (uint32_t k = 0; k < workspace->tokens; k++)
        rows[k] = k;
    int r = run_head(&(struct head_request){g, workspace, &h, rows, workspace->tokens, ret}, e);
    free(rows);
    return r;
}

int head_mean(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e)
{
    return g->encoder->backend->mean(g, workspace, ret, e);
}

int head_pool(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e)
{
    return need(g, PART_POOLER, e) < 0 ? -1 : run_first(g, workspace, NULL, ret, e);
}

int head_words(const struct engine *g, struct engine_workspace *workspace, const uint32_t *rows,
               uint32_t n, float *ret, struct error *e)
{
    const struct encoder *c = g->encoder;
    const struct head h = {&c->words_dense, &c->words_norm, &c->words_out, false};
    const struct head_request all = {g, workspace, &h, rows, n, ret};
    return need(g, PART_MLM, e) < 0 ? -1 : run_head(&all, e);
}

int head_next(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e)
{
    return need(g, PART_POOLER | PART_NSP, e) < 0
               ? -1
               : run_first(g, workspace, &g->encoder->next, ret, e);
}

int head_sequences(const struct engine *g, struct engine_workspace *workspace, float *ret,
                   struct error *e)
{
    return need(g, PART_POOLER | PART_CLASSIFIER, e) < 0
               ? -1
               : run_first(g, workspace, &g->encoder->classifier, ret, e);
}

int head_tokens(const struct engine *g, struct engine_workspace *workspace, float *ret,
                struct error *e)
{
    return need(g, PART_CLASSIFIER, e) < 0
               ? -1
               : run_tokens(g, workspace, &g->encoder->classifier, ret, e);
}

int head_span(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e)
{
    return need(g, PART_SPAN, e) < 0 ? -1 : run_tokens(g, workspace, &g->encoder->span, ret, e);
}
