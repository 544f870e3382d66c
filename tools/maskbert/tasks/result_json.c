/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/tasks/result_json.h"

const char *result_token(const struct engine *g, uint32_t token_id, struct text *buffer)
{
    const struct vocabulary *v = &g->tokenizer->vocabulary;
    if (token_id < v->count && v->token[token_id])
        return v->token[token_id];
    text_finish(buffer);
    text_add(buffer, "[%u]", token_id);
    return text_get(buffer);
}

const char *result_text(const struct engine *g, uint32_t token_id, struct text *buffer)
{
    text_finish(buffer);
    tokenizer_piece(g->tokenizer, token_id, buffer);
    return buffer->length ? text_get(buffer) : result_token(g, token_id, buffer);
}

static struct token_span span_of(const struct task_batches *b, uint32_t text, uint32_t token)
{
    return b->span[b->sequence[text].token_ids - b->token_ids + token];
}

/* ---- words ---- */

static json_t *gap_json(const struct engine *g, const struct task_batches *b,
                        const struct task_gap *gap, uint32_t top)
{
    struct token_span span = span_of(b, gap->text, gap->token);
    json_t *words = json_array();
    struct text token = {0}, text = {0};
    for (uint32_t k = 0; k < top; k++) {
        const struct task_word *w = &gap->word[k];
        json_array_append_new(words,
                              json_pack("{s:I, s:s, s:s, s:f}", "id", (json_int_t)w->token_id,
                                        "word", result_token(g, w->token_id, &token), "text",
                                        result_text(g, w->token_id, &text), "probability",
                                        (double)w->probability));
    }
    text_finish(&token);
    text_finish(&text);
    return json_pack("{s:i, s:[ii], s:o}", "token", (int)gap->token, "offset", (int)span.begin,
                     (int)span.end, "words", words);
}

json_t *result_gaps(const struct engine *g, const struct task_batches *b,
                    const struct task_gaps *gaps, uint32_t text)
{
    json_t *list = json_array();
    uint32_t first = 0, end = gaps->gaps;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (gaps->gap[middle].text < text)
            first = middle + 1;
        else
            end = middle;
    }
    for (; first < gaps->gaps && gaps->gap[first].text == text; first++)
        json_array_append_new(list, gap_json(g, b, &gaps->gap[first], gaps->top));
    return json_pack("{s:o}", "masks", list);
}

/* ---- labels ---- */

uint32_t result_best(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

static json_t *labels_json(const struct engine *g, const struct task_labels *l, const float *x)
{
    uint32_t n = l->labels, best = result_best(x, n);
    char buffer[24];
    json_t *all = json_array();
    for (uint32_t k = 0; k < n; k++)
        json_array_append_new(all, json_pack("{s:s, s:f}", "label",
                                             task_label(&g->config, k, buffer), "probability",
                                             (double)x[k]));
    if (l->kind == TASK_MULTI)
        return json_pack("{s:o}", "labels", all);
    return json_pack("{s:s, s:f, s:o}", "label", task_label(&g->config, best, buffer),
                     "probability", (double)x[best], "labels", all);
}

static json_t *numbers_json(const struct task_labels *l, const float *x)
{
    json_t *all = json_array();
    for (uint32_t k = 0; k < l->labels; k++)
        json_array_append_new(all, json_real((double)x[k]));
    return json_pack("{s:o}", "values", all);
}

static json_t *tokens_json(const struct engine *g, const struct task_batches *b,
                           const struct task_labels *l, uint32_t text, const float *x)
{
    uint32_t n = l->labels, count = b->sequence[text].count;
    json_t *all = json_array();
    struct text token = {0};
    char buffer[24];
    for (uint32_t k = 0; k < count; k++) {
        uint32_t best = result_best(x + (size_t)k * n, n);
        struct token_span span = span_of(b, text, k);
        json_array_append_new(all,
                              json_pack("{s:s, s:[ii], s:s, s:f}", "token",
                                        result_token(g, b->sequence[text].token_ids[k], &token),
                                        "offset", (int)span.begin, (int)span.end, "label",
                                        task_label(&g->config, best, buffer), "probability",
                                        (double)x[(size_t)k * n + best]));
    }
    text_finish(&token);
    return json_pack("{s:o}", "tokens", all);
}

json_t *result_labels(const struct engine *g, const struct task_batches *b,
                      const struct task_labels *l, uint32_t text)
{
    const float *x = l->value + l->first[text] * l->labels;
    if (l->kind == TASK_TOKENS)
        return tokens_json(g, b, l, text, x);
    return l->kind == TASK_REGRESSION ? numbers_json(l, x) : labels_json(g, l, x);
}
