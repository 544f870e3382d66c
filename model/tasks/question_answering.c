/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that answer questions. Question and text are tokenized once. A window is the question's tokens, some
   of the text's, and [SEP]. A text's answers are the best spans of all its windows. */
#include "masks/base/memory.h"
#include "model/base/windows.h"
#include "model/engine/heads.h"
#include "model/tasks/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_TOKENS = 30 }; /* as in BERT's run_squad.py */

struct window {
    uint32_t text, question, end; /* tokens before the text's, and with them */
    uint64_t at;                  /* of its first token in token_ids and span */
};

struct answer {
    const struct task_options *o;
    const struct engine *g;
    struct task_batches b; /* a sequence is a window */
    struct window *window;
    uint64_t tokens, token_ids_capacity, span_capacity;
    uint32_t window_capacity, sequence_capacity;
    uint32_t most, overlap; /* tokens of a window, and of it in the next */
    struct task_spans *ret;
};

static void add_tokens(struct answer *a, const struct tokens *t, uint32_t first, uint32_t count)
{
    for (uint32_t k = first; k < first + count; k++) {
        uint64_t spans = a->tokens;
        *MEMORY_PUSH(a->b.token_ids, a->tokens, a->token_ids_capacity) = t->token_ids[k];
        *MEMORY_PUSH(a->b.span, spans, a->span_capacity) = t->span[k];
    }
}

/* The tokens first .. first + count of t's second part. */
static void add_window(struct answer *a, uint32_t text, const struct tokens *t,
                       uint32_t question, uint32_t first, uint32_t count)
{
    uint32_t windows = a->b.texts, all = question + count + t->tail;
    *MEMORY_PUSH(a->window, windows, a->window_capacity) =
        (struct window){text, question, question + count, a->tokens};
    *MEMORY_PUSH(a->b.sequence, a->b.texts, a->sequence_capacity) =
        (struct sequence){NULL, all, t->first_part < t->count ? question : all};
    add_tokens(a, t, 0, question - t->middle);
    add_tokens(a, t, t->second - t->middle, t->middle);
    add_tokens(a, t, t->second + first, count);
    add_tokens(a, t, t->count - t->tail, t->tail);
}

static void add_text(struct answer *a, uint32_t text, const struct tokens *t)
{
    struct windows w = windows_begin(a->most - (t->tail - 1), a->overlap, t->second,
                                     t->head + t->middle, t->count - t->second - t->tail);
    uint32_t first, count;
    if (w.question < t->second) {
        a->ret->cut++;
        a->ret->cut_to = w.question;
    }
    while (windows_next(&w, &first, &count))
        add_window(a, text, t, w.question, first, count);
}

/* Puts a span among the best of its text. Two windows may give the same span. */
static void keep(struct task_spans *s, uint32_t text, struct task_span span)
{
    struct task_span *list = s->span + (size_t)text * s->top;
    uint32_t n = s->count[text], at = 0;
    while (at < n && (list[at].begin != span.begin || list[at].end != span.end))
        at++;
    if (at < n && list[at].score >= span.score)
        return;
    if (at == n && n == s->top && list[n - 1].score >= span.score)
        return;
    if (at == n && n < s->top)
        s->count[text]++;
    if (at == s->top)
        at--;
    for (; at > 0 && list[at - 1].score < span.score; at--)
        list[at] = list[at - 1];
    list[at] = span;
}

/* logit: [tokens of the window, 2]. */
static int read_window(struct answer *a, uint32_t k, const float *logit, struct error *e)
{
    const struct window *w = &a->window[k];
    if (task_check_output(a->o, w->text, logit, 2 * (uint64_t)a->b.sequence[k].count, e) < 0)
        return -1;
    const struct token_span *span = a->b.span + w->at;
    uint32_t end = w->end;
    float none = logit[0] + logit[1];
    for (uint32_t i = w->question; i < end; i++)
        for (uint32_t j = i; j < end && j < i + ANSWER_TOKENS; j++)
            keep(a->ret, w->text,
                 (struct task_span){span[i].begin, span[j].end, logit[2 * i] + logit[2 * j + 1],
                                    0});
    if (none < a->ret->no_answer[w->text])
        a->ret->no_answer[w->text] = none;
    return 0;
}

static int read_batch(void *context, const uint32_t *window, uint32_t n,
                      struct engine_workspace *workspace, struct error *e)
{
    struct answer *a = context;
    float *logit = memory_new((size_t)workspace->tokens * 2, sizeof *logit);
    int r = head_span(a->g, workspace, logit, e);
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = read_window(a, window[k], logit + 2 * (size_t)workspace->offsets[k], e);
    free(logit);
    return r;
}

/* Fails where the sum of two logits is not finite. */
static int check_scores(const struct answer *a, uint32_t text, struct error *e)
{
    const struct task_spans *s = a->ret;
    int r = task_check_output(a->o, text, &s->no_answer[text], 1, e);
    for (uint32_t k = 0; k < s->count[text] && r == 0; k++)
        r = task_check_output(a->o, text, &s->span[(size_t)text * s->top + k].score, 1, e);
    return r;
}

static void share_out(struct task_spans *s, uint32_t text)
{
    struct task_span *list = s->span + (size_t)text * s->top;
    double sum = 0;
    for (uint32_t k = 0; k < s->count[text]; k++)
        sum += exp((double)(list[k].score - list[0].score));
    for (uint32_t k = 0; k < s->count[text]; k++)
        list[k].probability = (float)(exp((double)(list[k].score - list[0].score)) / sum);
}

static void cut_windows(struct answer *a, const struct task_text *text, uint32_t n)
{
    struct tokens t = {0};
    for (uint32_t k = 0; k < n; k++) {
        tokenizer_encode(a->g->tokenizer, text[k].a, text[k].b, 0, &t);
        add_text(a, k, &t);
    }
    tokens_finish(&t);
    for (uint32_t k = 0; k < a->b.texts; k++)
        a->b.sequence[k].token_ids = a->b.token_ids + a->window[k].at;
}

static int check(const struct engine *g, const struct task_text *text, uint32_t n,
                 struct error *e)
{
    if (!g->tokenizer)
        return error_set(e, ERROR_INPUT, "the model has no tokenizer.json and no vocab.txt");
    for (uint32_t k = 0; k < n; k++)
        if (!text[k].b.bytes)
            return error_set(e, ERROR_INPUT,
                             "line %u: a question, a tab and a text are expected", k + 1);
    return 0;
}

/* An empty list of spans for each of n texts. */
static struct task_spans make_spans(uint32_t n, uint32_t top)
{
    struct task_spans s = {.texts = n, .top = top};
    s.span = memory_new((size_t)n * top, sizeof *s.span);
    s.count = memory_new(n, sizeof *s.count);
    s.no_answer = memory_new(n, sizeof *s.no_answer);
    for (uint32_t k = 0; k < n; k++)
        s.no_answer[k] = HUGE_VALF;
    return s;
}

int task_answer(const struct task_runner *t, const struct task_text *text, uint32_t n,
                uint32_t top, struct task_spans *ret, struct error *e)
{
    const struct engine *g = t->engine;
    struct answer a = {.o = t->options,
                       .g = g,
                       .most = lengths_window(&g->lengths, g->longest, t->options->max_length),
                       .overlap = lengths_overlap(&g->lengths, t->options->overlap)};
    struct task_visitor visitor = {read_batch, &a};
    if (check(g, text, n, e) < 0)
        return -1;
    if (a.most < WINDOW_LEAST)
        return error_set(e, ERROR_INPUT, "windows of %u tokens: at least %d are expected",
                         a.most, WINDOW_LEAST);
    struct task_spans s = make_spans(n, top);
    a.ret = &s;
    cut_windows(&a, text, n);
    task_form(&a.b, t->options);
    int r = task_run(t, &a.b, &visitor, e);
    task_finish(&a.b);
    free(a.window);
    for (uint32_t k = 0; k < n && r == 0; k++) {
        r = check_scores(&a, k, e);
        share_out(&s, k);
    }
    if (r < 0)
        task_spans_finish(&s);
    else
        *ret = s;
    return r;
}

double task_no_answer_lead(const struct task_spans *s, uint32_t k)
{
    const double best = s->count[k] ? (double)s->span[(size_t)k * s->top].score : 0;
    return (double)s->no_answer[k] - best;
}

bool task_is_withheld(const struct task_spans *s, uint32_t k, double threshold)
{
    return !s->count[k] || task_no_answer_lead(s, k) > threshold;
}

void task_spans_finish(struct task_spans *s)
{
    free(s->span);
    free(s->count);
    free(s->no_answer);
    *s = (struct task_spans){0};
}
