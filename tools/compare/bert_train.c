/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert's training as a shared library for tools/bert-peers --train, which calls it by ctypes: a model, one batch,
   whole steps over it. Not installed; the functions are stated here alone. */
#include "masks/base/memory.h"
#include "model/gradients/gradients.h"
#include "model/train/optimizer.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { TEXT_BYTES = ERROR_TEXT_BYTES }; /* of the caller's array for an error */
enum { DROPOUT = 1, WORDS = 2 }; /* options of a trainer; WORDS: no head for next sentences */

/* Parts of a step; seconds add up over steps. */
enum part { CLEAR, PASS, OPTIMIZER, REPACK, PART_COUNT };

struct trainer {
    struct engine *engine;
    struct train_state *state;
    struct gradients_workspace *workspace;
    struct train_batch batch;
    uint64_t steps;
    double seconds[PART_COUNT];
};

/* A batch as the caller has it: `tokens` ids, the arrays of struct train_batch. */
struct caller_batch {
    uint32_t sequences, masked;
    const uint32_t *token_ids, *count, *first_part, *masked_row, *masked_label;
    const uint8_t *next_label; /* null: masked words are the only target */
};

/* Where a function has `text`, an error's text goes there, and it returns null or -1. mask null: the model's
   own. */
EXPORTED struct trainer *trainer_open(const char *folder, const char *mask, const char *dtype,
                                      uint32_t threads, uint32_t options, char *text);
/* The arrays of token ids, rows and labels stay the caller's and must live on. */
EXPORTED void trainer_batch(struct trainer *t, const struct caller_batch *b);
/* Gradients without dropout; ret_loss: the mean over masked words, and over sequences. */
EXPORTED int trainer_gradients(struct trainer *t, double ret_loss[2], char *text);
/* One parameter's; -1: no such. */
EXPORTED int trainer_gradient(const struct trainer *t, const char *name, uint64_t count,
                              float *ret);
EXPORTED int trainer_step(struct trainer *t, double hidden_dropout, double attention_dropout,
                          char *text);
EXPORTED const char *trainer_part(uint32_t k); /* null beyond the last */
EXPORTED void trainer_seconds(const struct trainer *t, double ret[PART_COUNT]);
EXPORTED void trainer_close(struct trainer *t);

static void tell(const struct error *e, char *text)
{
    snprintf(text, TEXT_BYTES, "%s", e->text);
}

static int load(struct trainer *t, const char *folder, const struct engine_options *o,
                struct error *e)
{
    t->engine = engine_load(folder, o, e);
    if (!t->engine || train_state_new(t->engine, &t->state, e) < 0)
        return -1;
    t->workspace = gradients_workspace_new(t->engine);
    return engine_repack(t->engine, e);
}

struct trainer *trainer_open(const char *folder, const char *mask, const char *dtype,
                             uint32_t threads, uint32_t options, char *text)
{
    struct error e = {0};
    struct engine_options o = {.mask = mask,
                               .threads = threads,
                               .parts =
                                   PART_MLM | (options & WORDS ? 0u : PART_POOLER | PART_NSP),
                               .trains = true,
                               .dropout = options & DROPOUT};
    struct trainer *t = memory_new(1, sizeof *t);
    int r = element_parse(dtype, &o.dtype)
                ? load(t, folder, &o, &e)
                : error_set(&e, ERROR_INPUT, "%s: f32 or bf16 is expected", dtype);
    if (r == 0)
        return t;
    tell(&e, text);
    trainer_close(t);
    return NULL;
}

static void batch_finish(struct train_batch *b)
{
    free(b->list);
    free(b->offsets);
    free(b->sample);
    free((void *)(uintptr_t)b->target[1].row);
    free((void *)(uintptr_t)b->target[1].label);
}

void trainer_batch(struct trainer *t, const struct caller_batch *b)
{
    uint32_t *first = memory_new(b->sequences, sizeof *first),
             *label = memory_new(b->sequences, sizeof *label);
    batch_finish(&t->batch);
    t->batch = (struct train_batch){
        .sequences = b->sequences,
        .list = memory_new(b->sequences, sizeof(struct sequence)),
        .offsets = memory_new(b->sequences + (size_t)1, sizeof(int32_t)),
        .sample = memory_new(b->sequences, sizeof(uint32_t)),
        .targets = b->next_label ? 2 : 1,
        .target = {{TARGET_WORDS, b->masked, b->masked_row, b->masked_label},
                   {TARGET_NEXT, b->sequences, first, label}}};
    for (uint32_t k = 0; k < b->sequences; k++) {
        first[k] = t->batch.tokens;
        label[k] = b->next_label ? b->next_label[k] : 0;
        t->batch.list[k] =
            (struct sequence){b->token_ids + t->batch.tokens, b->count[k], b->first_part[k]};
        t->batch.tokens += b->count[k];
        t->batch.offsets[k + 1] = (int32_t)t->batch.tokens;
        t->batch.sample[k] = k;
    }
}

static int run_pass(struct trainer *t, const double dropout[2], struct batch_loss *loss,
                    struct error *e)
{
    const struct gradients_request r = {
        .engine = t->engine,
        .state = t->state,
        .batch = &t->batch,
        .seed = t->steps,
        .hidden_dropout = dropout[0],
        .attention_dropout = dropout[1],
        .weight = {1.0 / t->batch.target[0].count, 1.0 / t->batch.sequences}};
    return gradients_compute(&r, t->workspace, loss, e);
}

int trainer_gradients(struct trainer *t, double ret_loss[2], char *text)
{
    struct error e = {0};
    struct batch_loss loss = {0};
    if (train_state_clear(t->state, t->engine->threads, &e) < 0 ||
        run_pass(t, (const double[]){0, 0}, &loss, &e) < 0) {
        tell(&e, text);
        return -1;
    }
    ret_loss[0] = loss.target[0].sum / t->batch.target[0].count;
    ret_loss[1] = loss.target[1].sum / t->batch.sequences;
    return 0;
}

int trainer_gradient(const struct trainer *t, const char *name, uint64_t count, float *ret)
{
    for (uint32_t k = 0; k < t->state->pieces; k++) {
        const struct piece *p = &t->state->piece[k];
        if (strcmp(p->parameter->name, name) != 0 || p->count != count)
            continue;
        const struct training_device *d = &t->state->device;
        return d->does->array_read(d->state, t->state->gradient + p->first, count, ret, NULL);
    }
    return -1;
}

static void lap(struct trainer *t, enum part part, double *since)
{
    const double now = omp_get_wtime();
    t->seconds[part] += now - *since;
    *since = now;
}

int trainer_step(struct trainer *t, double hidden_dropout, double attention_dropout, char *text)
{
    static const struct optimizer adamw = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.01, 1.0, true};
    struct error e = {0};
    struct batch_loss loss = {0};
    double since = omp_get_wtime(), norm;
    const struct optimizer_step at = {++t->steps, 1e-4, t->engine->threads};
    int r = train_state_clear(t->state, at.threads, &e);
    lap(t, CLEAR, &since);
    if (r == 0)
        r = run_pass(t, (const double[]){hidden_dropout, attention_dropout}, &loss, &e);
    lap(t, PASS, &since);
    if (r == 0)
        r = optimizer_step(&adamw, t->state, &at, &norm, &e);
    lap(t, OPTIMIZER, &since);
    if (r == 0)
        r = engine_repack(t->engine, &e);
    lap(t, REPACK, &since);
    if (r < 0)
        tell(&e, text);
    return r;
}

const char *trainer_part(uint32_t k)
{
    static const char *const name[] = {
        [CLEAR] = "clear", [PASS] = "pass", [OPTIMIZER] = "optimizer", [REPACK] = "repack"};
    return k < PART_COUNT ? name[k] : NULL;
}

void trainer_seconds(const struct trainer *t, double ret[PART_COUNT])
{
    memcpy(ret, t->seconds, sizeof t->seconds);
}

void trainer_close(struct trainer *t)
{
    if (!t)
        return;
    gradients_workspace_destroy(t->workspace);
    train_state_destroy(t->state);
    engine_destroy(t->engine);
    batch_finish(&t->batch);
    free(t);
}
