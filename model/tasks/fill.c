/* SPDX-License-Identifier: Apache-2.0 */
/* The likeliest words for the [MASK] tokens of texts. */
#include "masks/base/memory.h"
#include "model/engine/heads.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <stdlib.h>

struct fill {
    const struct task_options *o;
    const struct engine *g;
    const struct task_batches *b;
    struct task_gaps *ret;
};

/* The embedding table may be padded with rows that are no word. They are never an answer and take no part in
   the softmax. */
static uint32_t count_words(const struct vocabulary *v)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < v->count; k++)
        count += v->token[k] != NULL;
    return count;
}

/* The best `top` words, by insertion: there are few. */
static void choose(const float *logit, const struct vocabulary *v, uint32_t top,
                   struct task_word *ret)
{
    double sum = 0;
    uint32_t have = 0;
    for (uint32_t k = 0; k < v->count; k++) {
        if (!v->token[k] || (have == top && logit[k] <= ret[have - 1].probability))
            continue;
        uint32_t at = have < top ? have++ : have - 1;
        for (; at > 0 && ret[at - 1].probability < logit[k]; at--)
            ret[at] = ret[at - 1];
        ret[at] = (struct task_word){k, logit[k]};
    }
    float most = ret[0].probability;
    for (uint32_t k = 0; k < v->count; k++)
        sum += v->token[k] ? exp((double)(logit[k] - most)) : 0;
    for (uint32_t k = 0; k < have; k++)
        ret[k].probability = (float)(exp((double)(ret[k].probability - most)) / sum);
}

/* Finds the gaps of a batch: adds them to f->ret, and their rows of the hidden states to *ret_rows. */
static uint32_t find(struct fill *f, const uint32_t *text, uint32_t n,
                     const struct engine_workspace *workspace, uint32_t **ret_rows)
{
    uint32_t count = 0, rows_capacity = 0;
    for (uint32_t s = 0; s < n; s++) {
        const struct sequence *q = &f->b->sequence[text[s]];
        for (uint32_t i = 0; i < q->count; i++)
            if (q->token_ids[i] == f->g->tokenizer->mask) {
                *MEMORY_PUSH(*ret_rows, count, rows_capacity) =
                    (uint32_t)workspace->offsets[s] + i;
                *MEMORY_PUSH(f->ret->gap, f->ret->gaps, f->ret->capacity) = (struct task_gap){
                    text[s], i, memory_new(f->ret->top, sizeof(struct task_word))};
            }
    }
    return count;
}

/* Any NaN or +infinity among the logits makes all probabilities NaN. */
static int check_gap(const struct fill *f, const struct task_gap *gap, struct error *e)
{
    return f->ret->top ? task_check_output(f->o, gap->text, &gap->word[0].probability, 1, e)
                       : 0;
}

static int fill(void *context, const uint32_t *text, uint32_t n,
                struct engine_workspace *workspace, struct error *e)
{
    enum { AT_ONCE = 64 };
    struct fill *f = context;
    uint32_t *rows = NULL, before = f->ret->gaps, words = f->g->config.vocabulary;
    uint32_t count = find(f, text, n, workspace, &rows);
    float *logit = memory_new((size_t)AT_ONCE * words, sizeof *logit);
    int r = 0;
    for (uint32_t k = 0; k < count && r == 0; k += AT_ONCE) {
        uint32_t some = count - k < AT_ONCE ? count - k : AT_ONCE;
        r = head_words(f->g, workspace, rows + k, some, logit, e);
        for (uint32_t i = 0; i < some && r == 0; i++) {
            const struct task_gap *gap = &f->ret->gap[before + k + i];
            choose(logit + (size_t)i * words, &f->g->tokenizer->vocabulary, f->ret->top,
                   gap->word);
            r = check_gap(f, gap, e);
        }
    }
    free(logit);
    free(rows);
    return r;
}

static int compare(const void *a, const void *b)
{
    const struct task_gap *x = a, *y = b;
    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

int task_fill(const struct task_runner *t, const struct task_batches *b, uint32_t top,
              struct task_gaps *ret, struct error *e)
{
    const struct engine *g = t->engine;
    struct fill f = {t->options, g, b, ret};
    struct task_visitor visitor = {fill, &f};
    if (g->tokenizer->mask < 0)
        return error_set(e, ERROR_INPUT, "the tokenizer has no [MASK]");
    uint32_t words = count_words(&g->tokenizer->vocabulary);
    *ret = (struct task_gaps){.top = top < words ? top : words};
    if (task_run(t, b, &visitor, e) < 0) {
        task_gaps_finish(ret);
        return -1;
    }
    if (ret->gaps)
        qsort(ret->gap, ret->gaps, sizeof *ret->gap, compare);
    return 0;
}

void task_gaps_finish(struct task_gaps *g)
{
    for (uint32_t k = 0; k < g->gaps; k++)
        free(g->gap[k].word);
    free(g->gap);
    *g = (struct task_gaps){0};
}
