/* SPDX-License-Identifier: Apache-2.0 */
/* Texts to tokens to batches. Batches take the longest texts first: memory is largest at the beginning, so
   what does not fit shows early. */
#include "masks/base/memory.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

uint32_t task_longest(const struct engine *g, uint32_t max_length)
{
    return lengths_text(&g->lengths, g->longest, max_length);
}

/* One text's tokens, before all texts' are joined. */
struct piece {
    uint32_t *token_ids;
    struct token_span *span;
    uint32_t count, first_part;
    uint32_t left_out; /* first tokens, which pooling leaves out */
    bool cut;
};

/* The prompt and part a in one piece of memory, which the caller frees; null where there is no prompt. */
static char *add_prompt(struct text_part prompt, struct text_part *a)
{
    if (!prompt.bytes || !prompt.size)
        return NULL;
    char *whole = memory_new((size_t)prompt.size + a->size + 1, 1);
    memcpy(whole, prompt.bytes, prompt.size);
    memcpy(whole + prompt.size, a->bytes, a->size);
    *a = (struct text_part){whole, prompt.size + a->size};
    return whole;
}

/* A sequence without text: all of it is of type 0. */
static struct piece copy_ids(const struct task_text *text)
{
    return (struct piece){
        .token_ids = memory_copy(text->token_ids, text->count * sizeof *text->token_ids),
        .span = memory_new(text->count, sizeof(struct token_span)),
        .count = text->count,
        .first_part = text->count,
    };
}

static void encode(const struct engine *g, const struct task_text *text,
                   const struct task_options *o, struct tokens *t, struct piece *ret)
{
    struct text_part a = text->a;
    if (text->token_ids) {
        *ret = copy_ids(text);
        return;
    }
    char *whole = add_prompt(o->prompt, &a);
    tokenizer_encode(g->tokenizer, a, text->b, task_longest(g, o->max_length), t);
    free(whole);
    *ret = (struct piece){
        .token_ids = memory_copy(t->token_ids, t->count * sizeof *t->token_ids),
        .span = memory_copy(t->span, t->count * sizeof *t->span),
        .count = t->count,
        .first_part = t->first_part,
        .left_out = o->prompt_tokens,
        .cut = t->cut,
    };
}

static struct piece *encode_all(const struct engine *g, const struct task_text *text,
                                uint32_t n, const struct task_options *o)
{
    struct piece *piece = memory_new(n, sizeof *piece);
#pragma omp parallel num_threads((int)g->threads) if (n > 16)
    {
        struct tokens t = {0};
#pragma omp for schedule(dynamic, 16)
        for (uint32_t k = 0; k < n; k++)
            encode(g, &text[k], o, &t, &piece[k]);
        tokens_finish(&t);
    }
    return piece;
}

static void join(struct piece *piece, struct task_batches *b)
{
    uint64_t tokens = 0, at = 0;
    for (uint32_t k = 0; k < b->texts; k++)
        tokens += piece[k].count;
    b->token_ids = memory_new(tokens, sizeof *b->token_ids);
    b->span = memory_new(tokens, sizeof *b->span);
    b->sequence = memory_new(b->texts, sizeof *b->sequence);
    b->is_cut = memory_new(b->texts, sizeof *b->is_cut);
    b->left_out = memory_new(b->texts, sizeof *b->left_out);
    for (uint32_t k = 0; k < b->texts; k++) {
        struct piece *p = &piece[k];
        memcpy(b->token_ids + at, p->token_ids, p->count * sizeof *p->token_ids);
        memcpy(b->span + at, p->span, p->count * sizeof *p->span);
        b->sequence[k] = (struct sequence){b->token_ids + at, p->count, p->first_part};
        b->is_cut[k] = p->cut;
        b->left_out[k] = p->left_out;
        b->cut += p->cut;
        at += p->count;
        free(p->token_ids);
        free(p->span);
    }
}

static int compare(const void *a, const void *b, void *context)
{
    const struct sequence *s = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (s[x].count != s[y].count)
        return s[x].count < s[y].count ? 1 : -1;
    return x < y ? -1 : x > y;
}

uint32_t task_budget(const struct task_options *o)
{
    return o->batch_tokens ? o->batch_tokens : BATCH_TOKENS;
}

void task_form(struct task_batches *b, const struct task_options *o)
{
    const uint32_t budget = task_budget(o);
    uint64_t tokens = 0;
    uint32_t capacity = 0;
    b->order = memory_new(b->texts, sizeof *b->order);
    for (uint32_t k = 0; k < b->texts; k++)
        b->order[k] = k;
    qsort_r(b->order, b->texts, sizeof *b->order, compare, b->sequence);
    for (uint32_t k = 0; k < b->texts; k++) {
        uint32_t count = b->sequence[b->order[k]].count;
        if (k == 0 || tokens + count > budget) {
            *MEMORY_PUSH(b->first, b->batches, capacity) = k;
            tokens = 0;
        }
        tokens += count;
    }
    uint32_t used = b->batches;
    *MEMORY_PUSH(b->first, used, capacity) = b->texts;
}

int task_prepare(const struct engine *g, const struct task_text *text, uint32_t n,
                 const struct task_options *o, struct task_batches *ret, struct error *e)
{
    uint32_t longest = task_longest(g, o->max_length);
    if (!g->tokenizer)
        return error_set(e, ERROR_INPUT, "the model has no tokenizer.json and no vocab.txt");
    if (longest < TOKENIZER_MIN_LENGTH)
        return error_set(e, ERROR_INPUT, "texts of %u tokens: at least %d are expected",
                         longest, TOKENIZER_MIN_LENGTH);
    struct task_batches b = {.texts = n};
    struct piece *piece = encode_all(g, text, n, o);
    join(piece, &b);
    free(piece);
    task_form(&b, o);
    *ret = b;
    return 0;
}

static uint64_t tokens_of(const struct task_batches *b)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < b->texts; k++)
        ret += b->sequence[k].count;
    return ret;
}

/* Copies the texts of `part` behind those of b, which has memory for them. `at`: tokens of b. */
static void append(struct task_batches *b, uint64_t at, const struct task_batches *part)
{
    for (uint32_t k = 0; k < part->texts; k++) {
        struct sequence s = part->sequence[k];
        const struct token_span *span = part->span + (s.token_ids - part->token_ids);
        memcpy(b->token_ids + at, s.token_ids, s.count * sizeof *s.token_ids);
        memcpy(b->span + at, span, s.count * sizeof *span);
        s.token_ids = b->token_ids + at;
        b->is_cut[b->texts] = part->is_cut[k];
        b->left_out[b->texts] = part->left_out[k];
        b->sequence[b->texts++] = s;
        at += s.count;
    }
    b->cut += part->cut;
}

void task_join(const struct task_batches *const *part, uint32_t n, const struct task_options *o,
               struct task_batches *ret)
{
    struct task_batches b = {0};
    uint64_t tokens = 0, at = 0;
    uint32_t texts = 0;
    for (uint32_t p = 0; p < n; p++) {
        texts += part[p]->texts;
        tokens += tokens_of(part[p]);
    }
    b.token_ids = memory_new(tokens, sizeof *b.token_ids);
    b.span = memory_new(tokens, sizeof *b.span);
    b.sequence = memory_new(texts, sizeof *b.sequence);
    b.is_cut = memory_new(texts, sizeof *b.is_cut);
    b.left_out = memory_new(texts, sizeof *b.left_out);
    for (uint32_t p = 0; p < n; p++) {
        append(&b, at, part[p]);
        at += tokens_of(part[p]);
    }
    task_form(&b, o);
    *ret = b;
}

void task_finish(struct task_batches *b)
{
    free(b->sequence);
    free(b->is_cut);
    free(b->left_out);
    free(b->token_ids);
    free(b->span);
    free(b->order);
    free(b->first);
    *b = (struct task_batches){0};
}

static int run_batch(const struct task_runner *t, const struct task_batches *b, uint32_t k,
                     const struct task_visitor *visitor, struct error *e)
{
    uint32_t n = b->first[k + 1] - b->first[k];
    const uint32_t *text = b->order + b->first[k];
    struct sequence *list = memory_new(n, sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = b->sequence[text[i]];
    int r = engine_encode(t->engine, list, n, t->workspace, e);
    free(list);
    return r < 0 ? -1 : visitor->batch(visitor->context, text, n, t->workspace, e);
}

int task_run(const struct task_runner *t, const struct task_batches *b,
             const struct task_visitor *visitor, struct error *e)
{
    const struct task_options *o = t->options;
    for (uint32_t k = 0; k < b->batches; k++) {
        if (o->progress)
            o->progress(o->context, b->first[k], b->texts);
        if (run_batch(t, b, k, visitor, e) < 0)
            return -1;
    }
    if (o->progress)
        o->progress(o->context, b->texts, b->texts);
    return 0;
}

int task_check_output(const struct task_options *o, uint32_t text, const float *x, uint64_t n,
                      struct error *e)
{
    uint64_t k = 0;
    while (k < n && isfinite(x[k]))
        k++;
    if (k == n)
        return 0;
    if (o->not_finite)
        *o->not_finite = true;
    return error_set(e, ERROR_FALSE, "the model's output for %s %u is not finite",
                     o->names.unit ? o->names.unit : "line",
                     o->names.number ? o->names.number[text] : text + 1);
}
