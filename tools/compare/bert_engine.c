/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert's engine as a shared library for tools/bert-peers, which calls it by ctypes: token ids
   in, hidden states out. Not installed; the functions are stated here alone. */
#include "masks/base/memory.h"
#include "model/engine/engine.h"
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))
enum { TEXT_BYTES = ERROR_TEXT_BYTES }; /* of the caller's array for an error */

struct bert {
    struct engine *engine;
    struct engine_workspace workspace;
    struct sequence *list;
    uint32_t list_capacity;
};

/* The last argument is where an error's text goes. */
EXPORTED struct bert *bert_open(const char *folder, const char *mask, const char *dtype,
                                uint32_t threads, char *text);
EXPORTED int bert_run(struct bert *b, const uint32_t *token_ids, const uint32_t *count,
                      uint32_t n, double *seconds, char *text);
EXPORTED void bert_states(const struct bert *b, float *ret);
EXPORTED const char *bert_phase(uint32_t k);
EXPORTED void bert_close(struct bert *b);

static void tell(const struct error *e, char *text)
{
    snprintf(text, TEXT_BYTES, "%s", e->text);
}

/* Null with a text where it fails. mask null: the model's own. */
struct bert *bert_open(const char *folder, const char *mask, const char *dtype,
                       uint32_t threads, char *text)
{
    struct error e = {0};
    struct engine_options o = {.mask = mask, .threads = threads};
    struct engine *g = NULL;
    if (!element_parse(dtype, &o.dtype))
        error_set(&e, ERROR_INPUT, "%s: f32 or bf16 is expected", dtype);
    else
        g = engine_load(folder, &o, &e);
    if (!g) {
        tell(&e, text);
        return NULL;
    }
    struct bert *b = memory_new(1, sizeof *b);
    b->engine = g;
    return b;
}

/* token_ids: n sequences one after another, count[k] ids each. What each phase took is added to seconds
   (null: not measured). */
int bert_run(struct bert *b, const uint32_t *token_ids, const uint32_t *count, uint32_t n,
             double *seconds, char *text)
{
    struct error e = {0};
    if (n > b->list_capacity) {
        free(b->list);
        b->list = memory_new(n, sizeof *b->list);
        b->list_capacity = n;
    }
    for (uint32_t k = 0; k < n; token_ids += count[k++])
        b->list[k] = (struct sequence){token_ids, count[k], count[k]};
    b->workspace.seconds = seconds;
    if (engine_encode(b->engine, b->list, n, &b->workspace, &e) == 0)
        return 0;
    tell(&e, text);
    return -1;
}

/* The hidden states of the last run, [tokens, H]. */
void bert_states(const struct bert *b, float *ret)
{
    for (uint32_t row = 0; row < b->workspace.tokens; row++)
        engine_row(b->engine, &b->workspace, row, ret + (size_t)row * b->engine->config.hidden);
}

/* Null beyond the last. */
const char *bert_phase(uint32_t k)
{
    return k < PHASE_COUNT ? engine_phase_name((enum engine_phase)k) : NULL;
}

void bert_close(struct bert *b)
{
    if (!b)
        return;
    engine_workspace_finish(&b->workspace);
    engine_destroy(b->engine);
    free(b->list);
    free(b);
}
