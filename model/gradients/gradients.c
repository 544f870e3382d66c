/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a request, then has the engine's backend compute it. */
#include "model/gradients/gradients.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/training.h"
#include "model/engine/encoder.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>

struct gradients_workspace {
    const struct backend *backend;
    struct backend_training *memory;
};

struct gradients_workspace *gradients_workspace_new(const struct engine *g)
{
    struct gradients_workspace *w = memory_new(1, sizeof *w);
    w->backend = g->encoder->backend;
    if (w->backend->training)
        w->memory = w->backend->training->workspace_new(g);
    return w;
}

void gradients_workspace_destroy(struct gradients_workspace *w)
{
    if (!w)
        return;
    if (w->memory)
        w->backend->training->workspace_destroy(w->memory);
    free(w);
}

static int check_engine(const struct engine *g, struct error *e)
{
    if (!g->trains)
        return error_set(e, ERROR_INPUT, "the engine was not loaded for training");
    return 0;
}

static int check_sequence(const struct engine *g, const struct train_batch *b, uint32_t k,
                          struct error *e)
{
    const struct sequence *s = &b->list[k];
    if (s->count < 1 || s->count > g->longest ||
        b->offsets[k + 1] - b->offsets[k] != (int32_t)s->count)
        return error_set(e, ERROR_INPUT, "sequence %u has %u tokens; 1..%u are expected", k,
                         s->count, g->longest);
    if (s->first_part < s->count && g->config.types == 1 && !g->config.one_type)
        return error_set(e, ERROR_INPUT, "sequence %u is a pair; the model has one type", k);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->token_ids[i] >= g->config.vocabulary)
            return error_set(e, ERROR_INPUT, "sequence %u: token %u of %u", k, s->token_ids[i],
                             g->config.vocabulary);
    return 0;
}

/* The head, and how many labels it has. */
static int check_head(const struct engine *g, const struct train_target *t, struct error *e)
{
    static const uint32_t wanted[] = {[LOSS_SQUARE] = 1, [LOSS_CHOICE] = 1, [LOSS_SPAN] = 2};
    const uint32_t parts = target_form(t->head)->parts,
                   labels = target_labels(&g->config, t->head);
    if ((g->parts & parts) != parts)
        return error_set(e, ERROR_INPUT, "the engine was loaded without the batch's head");
    if (t->loss == LOSS_LABELS)
        return 0;
    if (t->head == TARGET_WORDS)
        return error_set(e, ERROR_INPUT, "words: a loss over labels is expected");
    return labels == wanted[t->loss]
               ? 0
               : error_set(e, ERROR_INPUT, "the head has %u labels; its loss is over %u",
                           labels, wanted[t->loss]);
}

static int check_row(const struct train_batch *b, const struct train_target *t, uint32_t labels,
                     uint32_t k, struct error *e)
{
    if (t->row[k] >= b->tokens || (k && t->row[k] <= t->row[k - 1]))
        return error_set(e, ERROR_INPUT, "labelled row %u: row %u of %u in ascending order", k,
                         t->row[k], b->tokens);
    if (t->loss == LOSS_SQUARE && !isfinite(t->value[k]))
        return error_set(e, ERROR_INPUT, "labelled row %u: value %g", k, (double)t->value[k]);
    if (t->loss != LOSS_SQUARE && t->label[k] >= labels)
        return error_set(e, ERROR_INPUT, "labelled row %u: label %u of %u", k, t->label[k],
                         labels);
    return 0;
}

/* Rows of a place whose label has the bit; *ret_last: the last of them. */
static uint32_t count_marked(const struct train_target *t, struct target_rows rows,
                             uint32_t bit, uint32_t *ret_last)
{
    uint32_t ret = 0;
    for (uint32_t k = rows.first; k < rows.end; k++)
        if (t->label[k] & bit) {
            *ret_last = k;
            ret++;
        }
    return ret;
}

static int check_choice(const struct train_target *t, struct target_rows rows, uint32_t group,
                        struct error *e)
{
    uint32_t right;
    const uint32_t count = count_marked(t, rows, 1, &right);
    return count == 1 ? 0
                      : error_set(e, ERROR_INPUT, "group %u: %u right rows; 1 is expected",
                                  group, count);
}

static int check_span(const struct train_target *t, struct target_rows rows, uint32_t sequence,
                      struct error *e)
{
    uint32_t start = 0, end = 0;
    const uint32_t starts = count_marked(t, rows, 1, &start),
                   ends = count_marked(t, rows, 2, &end);
    if (starts != 1 || ends != 1)
        return error_set(e, ERROR_INPUT,
                         "sequence %u: %u starts and %u ends of a span; 1 of each is expected",
                         sequence, starts, ends);
    return start <= end ? 0
                        : error_set(e, ERROR_INPUT, "sequence %u: a span ends before its start",
                                    sequence);
}

static int check_target(const struct engine *g, const struct train_batch *b,
                        const struct train_target *t, struct error *e)
{
    const uint32_t labels = t->loss == LOSS_CHOICE ? 2
                            : t->loss == LOSS_SPAN ? 4
                                                   : target_labels(&g->config, t->head);
    if (check_head(g, t, e) < 0)
        return -1;
    for (uint32_t k = 0; k < t->count; k++)
        if (check_row(b, t, labels, k, e) < 0)
            return -1;
    if (!t->count || (t->loss != LOSS_CHOICE && t->loss != LOSS_SPAN))
        return 0;
    for (uint32_t k = 0; k < train_target_places(b, t); k++) {
        const struct target_rows rows = train_target_rows(b, t, k);
        if (t->loss == LOSS_CHOICE ? check_choice(t, rows, k, e) < 0
                                   : rows.end > rows.first && check_span(t, rows, k, e) < 0)
            return -1;
    }
    return 0;
}

static int check_batch(const struct engine *g, const struct train_batch *b, struct error *e)
{
    if (!b->sequences || b->tokens > INT32_MAX / 2 || b->offsets[0] != 0 ||
        b->offsets[b->sequences] != (int32_t)b->tokens || b->targets > TARGETS_MOST)
        return error_set(e, ERROR_INPUT, "a batch of %u sequences with %u tokens", b->sequences,
                         b->tokens);
    if (b->sequences % train_batch_group(b))
        return error_set(e, ERROR_INPUT, "%u sequences; samples of %u are expected",
                         b->sequences, b->group);
    for (uint32_t k = 0; k < b->sequences; k++)
        if (check_sequence(g, b, k, e) < 0)
            return -1;
    for (uint32_t k = 0; k < b->targets; k++)
        if (check_target(g, b, &b->target[k], e) < 0)
            return -1;
    return 0;
}

static int check_request(const struct gradients_request *r, struct error *e)
{
    if (!(r->hidden_dropout >= 0 && r->hidden_dropout < 0.99) ||
        !(r->attention_dropout >= 0 && r->attention_dropout < 0.99) ||
        !(r->head_dropout >= 0 && r->head_dropout < 0.99))
        return error_set(e, ERROR_INPUT, "dropout: 0 or more and less than 0.99 is expected");
    if (!r->loss_only && r->attention_dropout > 0 && !r->engine->dropout)
        return error_set(e, ERROR_INPUT, "the engine was loaded without dropout");
    if (r->engine->biased != (r->bias && r->bias->value))
        return error_set(e, ERROR_INPUT,
                         "a bias and an engine that was loaded biased go together");
    return check_batch(r->engine, r->batch, e);
}

int gradients_compute(const struct gradients_request *r, struct gradients_workspace *w,
                      struct batch_loss *loss, struct error *e)
{
    if (check_engine(r->engine, e) < 0 || check_request(r, e) < 0)
        return -1;
    if (r->engine->outline)
        return error_set(e, ERROR_INPUT, "the engine is an outline without weights");
    int before = omp_get_max_threads();
    omp_set_num_threads((int)r->engine->threads);
    int result = w->backend->training->compute(r, w->memory, loss, e);
    omp_set_num_threads(before);
    return result;
}

static void raise(uint32_t *most, uint32_t x)
{
    *most = x > *most ? x : *most;
}

struct gradients_sizes gradients_sizes_of(const struct gradients_request *r)
{
    const struct train_batch *b = r->batch;
    const bool shared = r->engine->config.arch->pooler == POOLER_SHARED;
    struct gradients_sizes s = {
        .sequences = b->sequences, .tokens = b->tokens, .recompute = r->recompute};
    for (uint32_t k = 0; k < b->targets; k++) {
        const struct train_target *t = &b->target[k];
        raise(t->head == TARGET_WORDS ? &s.words : &s.labels, t->count);
        if (target_form(t->head)->pooled || (t->head != TARGET_WORDS && shared))
            raise(&s.pooled, t->count);
    }
    for (uint32_t k = 0; k < b->sequences; k++)
        raise(&s.longest, b->list[k].count);
    return s;
}

char *gradients_identity(const struct engine *g)
{
    return g->encoder->backend->training->identity(g);
}

int gradients_memory(const struct engine *g, const struct gradients_sizes *s,
                     struct gradients_memory *ret, struct error *e)
{
    if (check_engine(g, e) < 0)
        return -1;
    return g->encoder->backend->training->memory(g, s, ret, e);
}

void gradients_attention_arrays(const struct gradients_workspace *w,
                                struct gradients_array ret[GRADIENTS_ATTENTION_ARRAYS])
{
    w->backend->training->attention(w->memory, ret);
}
