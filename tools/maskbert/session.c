/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/session.h"
#include "masks/base/memory.h"
#include "tools/maskbert/command.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void session_tell(const char *step)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, step ? "\r\033[K%s" : "\r\033[K", step ? step : "");
}

static void tell_texts(void *context, uint64_t done, uint64_t all)
{
    char line[64];
    (void)context;
    snprintf(line, sizeof line, "%" PRIu64 " of %" PRIu64 " texts", done, all);
    session_tell(done < all ? line : NULL);
}

int session_compat(const struct options *o, enum tokenizer_compat *ret, struct error *e)
{
    *ret = o->compat && !strcmp(o->compat, "google") ? TOKENIZER_GOOGLE : TOKENIZER_HF;
    if (o->compat && *ret == TOKENIZER_HF && strcmp(o->compat, "hf"))
        return error_set(e, ERROR_INPUT, "--tokenizer-compat %s: hf or google is expected",
                         o->compat);
    if (o->max_length && o->max_length < TOKENIZER_MIN_LENGTH)
        return error_set(e, ERROR_INPUT, "--max-length %u: at least %d is expected",
                         o->max_length, TOKENIZER_MIN_LENGTH);
    return 0;
}

int session_dtype(const struct options *o, enum element *ret, struct error *e)
{
    *ret = ELEMENT_F32;
    if (o->dtype &&
        (!element_parse(o->dtype, ret) || (*ret != ELEMENT_F32 && *ret != ELEMENT_BF16)))
        return error_set(e, ERROR_INPUT, "--dtype %s: f32 or bf16 is expected", o->dtype);
    return 0;
}

int session_options(const struct options *o, struct engine_options *ret, struct error *e)
{
    if (session_compat(o, &ret->compat, e) < 0)
        return -1;
    ret->mask = o->mask;
    ret->transform = o->transform;
    ret->device = o->device;
    ret->threads = o->threads;
    ret->progress = session_tell;
    return session_dtype(o, &ret->dtype, e);
}

int session_open(const struct options *o, uint32_t parts, struct session *s, struct error *e)
{
    struct engine_options options = {.parts = parts};
    if (session_options(o, &options, e) < 0)
        return -1;
    s->engine = engine_load(o->argument, &options, e);
    session_tell(NULL);
    if (!s->engine)
        return -1;
    if (o->max_length > s->engine->longest)
        return error_set(e, ERROR_INPUT, "--max-length %u: the model has %u positions",
                         o->max_length, s->engine->longest);
    s->task = (struct task_options){.max_length = o->max_length,
                                    .overlap = o->stride,
                                    .batch_tokens = o->batch_tokens,
                                    .progress = tell_texts};
    return 0;
}

void session_tell_cut(const char *path, uint32_t cut, uint32_t all, const char *what,
                      uint32_t tokens)
{
    if (cut)
        fprintf(stderr,
                "maskbert: %s%s%" PRIu32 " of %" PRIu32 " %s are cut to %" PRIu32 " tokens\n",
                path ? path : "", path ? ": " : "", cut, all, what, tokens);
}

int session_prepare(struct session *s, uint32_t texts, struct error *e)
{
    if (task_prepare(s->engine, s->text, texts, &s->task, &s->batches, e) < 0)
        return -1;
    session_tell_cut(NULL, s->batches.cut, texts, "texts",
                     task_longest(s->engine, s->task.max_length));
    return 0;
}

int session_read(const struct options *o, struct session *s, struct error *e)
{
    if (input_read(o->input, &s->input, e) < 0)
        return -1;
    s->text = memory_new(s->input.count, sizeof *s->text);
    for (uint32_t k = 0; k < s->input.count; k++)
        input_parts(s->input.line[k], &s->text[k].a, &s->text[k].b);
    return session_prepare(s, s->input.count, e);
}

struct task_runner session_runner(struct session *s)
{
    return (struct task_runner){s->engine, &s->task, &s->workspace};
}

void session_close(struct session *s)
{
    task_finish(&s->batches);
    free(s->text);
    input_text_finish(&s->input);
    engine_workspace_finish(&s->workspace);
    engine_destroy(s->engine);
    *s = (struct session){0};
}
