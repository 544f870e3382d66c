/* SPDX-License-Identifier: Apache-2.0 */
/* The JSONL of MRQA 2019: lines {"header"} and {"context","qas"}. Spans are [first, last] code points of the context, or
   tokens where char_spans are missing. They are the answers to train on, those of one answer after another;
   the texts of "answers", which the context need not have, are what predictions are compared with. */
#include "model/data/tasks/json_label.h"
#include "model/data/tasks/reading.h"
#include <string.h>

struct place {
    struct dataset *d;
    const char *path, *context;
    const json_t *tokens; /* [[token, its first code point], ..] */
    uint32_t line;
    size_t question;
    struct error *e;
};

static int fail(const struct place *p, const char *what)
{
    return error_set(p->e, ERROR_INPUT, "%s:%u:1: qas[%zu]: %s", p->path, p->line, p->question,
                     what);
}

/* ---- spans ---- */

struct span {
    uint32_t first, last; /* code points */
};

/* The byte of a code point; null beyond the end. */
static const char *point_at(const char *text, uint32_t point)
{
    for (; *text; text++)
        if ((*text & 0xc0) != 0x80 && !point--)
            return text;
    return NULL;
}

static uint32_t count_points(const char *text)
{
    uint32_t count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

static bool read_pair(const json_t *pair, struct span *ret)
{
    const json_t *first = json_array_get(pair, 0), *last = json_array_get(pair, 1);
    json_int_t a = json_integer_value(first), b = json_integer_value(last);
    if (json_array_size(pair) != 2 || !json_is_integer(first) || !json_is_integer(last) ||
        a < 0 || b < a || b >= UINT32_MAX)
        return false;
    *ret = (struct span){(uint32_t)a, (uint32_t)b};
    return true;
}

/* From places of tokens to those of code points. */
static bool convert_tokens(const json_t *tokens, struct span *s)
{
    const json_t *first = json_array_get(tokens, s->first),
                 *last = json_array_get(tokens, s->last);
    const char *word = json_string_value(json_array_get(last, 0));
    json_int_t begin = json_integer_value(json_array_get(first, 1)),
               end = json_integer_value(json_array_get(last, 1));
    if (!first || !word || !*word || begin < 0 || end < begin || end > UINT32_MAX / 2)
        return false;
    *s = (struct span){(uint32_t)begin, (uint32_t)end + count_points(word) - 1};
    return true;
}

static int take_span(const struct place *p, const json_t *pair, bool of_tokens,
                     struct task_example *x)
{
    struct span s;
    if (!read_pair(pair, &s))
        return fail(p, "a span of two whole numbers, the first and the last, is expected");
    if (of_tokens && !convert_tokens(p->tokens, &s))
        return fail(p, "a span beyond \"context_tokens\"");
    const char *begin = point_at(p->context, s.first), *last = point_at(p->context, s.last);
    if (!begin || !last)
        return fail(p, "a span beyond the context");
    const char *end = point_at(last, 1);
    struct text words = {0};
    text_append(&words, begin, end ? (size_t)(end - begin) : strlen(begin));
    x->answer[x->answers] = dataset_keep(p->d, text_get(&words));
    x->answer_at[x->answers++] = s.first;
    text_finish(&words);
    return 0;
}

/* ---- questions ---- */

static const json_t *spans_of(const json_t *answer, bool *ret_of_tokens)
{
    const json_t *spans = json_object_get(answer, "char_spans");
    *ret_of_tokens = !spans;
    return spans ? spans : json_object_get(answer, "token_spans");
}

static int take_detected(const struct place *p, const json_t *list, struct task_example *x)
{
    size_t count = 0, k, j;
    bool of_tokens;
    const json_t *answer, *pair;
    json_array_foreach(list, k, answer) count += json_array_size(spans_of(answer, &of_tokens));
    x->answer = dataset_array(p->d, count, sizeof *x->answer);
    x->answer_at = dataset_array(p->d, count, sizeof *x->answer_at);
    json_array_foreach(list, k, answer)
    {
        const json_t *spans = spans_of(answer, &of_tokens);
        if (!json_array_size(spans))
            return fail(p, "\"detected_answers\": a list \"char_spans\" is expected in each");
        json_array_foreach(spans, j, pair) if (take_span(p, pair, of_tokens, x) < 0) return -1;
    }
    return 0;
}

static int take_gold(const struct place *p, const json_t *list, struct task_example *x)
{
    x->golds = (uint32_t)json_array_size(list);
    x->gold = dataset_array(p->d, x->golds, sizeof *x->gold);
    for (uint32_t k = 0; k < x->golds; k++) {
        const char *text = json_string_value(json_array_get(list, k));
        if (!text)
            return fail(p, "\"answers\": a list of texts is expected");
        x->gold[k] = dataset_keep(p->d, text);
    }
    return 0;
}

static int take_question(const struct place *p, const json_t *question)
{
    const char *id = json_string_value(json_object_get(question, "qid"));
    const char *text = json_string_value(json_object_get(question, "question"));
    const json_t *gold = json_object_get(question, "answers"),
                 *detected = json_object_get(question, "detected_answers");
    if (!id || !*id || !text)
        return fail(p, "a \"qid\" and a \"question\" are expected, both texts");
    if (gold && !json_array_size(gold))
        return fail(p, "\"answers\": a list of texts is expected, at least one");
    if (detected && !json_is_array(detected))
        return fail(p, "\"detected_answers\": a list is expected");
    if (!dataset_labels_agree(p->d, gold != NULL))
        return fail(p,
                    "some questions have \"answers\" and some none; all or none is expected");
    struct task_example *x = dataset_add(p->d, 2, 0);
    x->id = dataset_keep(p->d, id);
    x->line = p->line;
    x->column = 1;
    x->text[0] = dataset_keep(p->d, text);
    x->text[1] = p->context;
    return take_gold(p, gold, x) < 0 ? -1 : take_detected(p, detected, x);
}

static int take_line(struct place *p, const json_t *line)
{
    const char *context = json_string_value(json_object_get(line, "context"));
    const json_t *questions = json_object_get(line, "qas");
    if (json_object_get(line, "header"))
        return 0;
    if (!context || !json_is_array(questions))
        return error_set(p->e, ERROR_INPUT,
                         "%s:%u:1: a text \"context\" and a list \"qas\" are expected", p->path,
                         p->line);
    p->context = dataset_keep(p->d, context);
    p->tokens = json_object_get(line, "context_tokens");
    for (p->question = 0; p->question < json_array_size(questions); p->question++)
        if (take_question(p, json_array_get(questions, p->question)) < 0)
            return -1;
    return 0;
}

int read_mrqa(struct dataset *d, const struct task_source *from, struct error *e)
{
    struct json_lines l = {.from = from};
    struct place p = {.d = d, .path = from->path, .e = e};
    int more;
    while ((more = json_lines_next(&l, e)) > 0) {
        p.line = l.line;
        if (take_line(&p, l.object) < 0) {
            more = -1;
            break;
        }
    }
    json_decref(l.object);
    return more;
}
