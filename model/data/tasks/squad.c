/* SPDX-License-Identifier: Apache-2.0 */
/* SQuAD's JSON. jansson does not say where a value stood: messages give its path instead. */
#include "masks/base/json_load.h"
#include "model/data/tasks/reading.h"
#include <string.h>

struct place {
    struct dataset *d;
    const char *path;
    size_t article, paragraph, question;
    struct error *e;
};

static int fail(const struct place *p, const char *what)
{
    return error_set(p->e, ERROR_INPUT, "%s: data[%zu].paragraphs[%zu].qas[%zu]: %s", p->path,
                     p->article, p->paragraph, p->question, what);
}

static int take_answers(const struct place *p, const json_t *list, struct task_example *x)
{
    x->answers = (uint32_t)json_array_size(list);
    x->answer = dataset_array(p->d, x->answers, sizeof *x->answer);
    x->answer_at = dataset_array(p->d, x->answers, sizeof *x->answer_at);
    for (uint32_t k = 0; k < x->answers; k++) {
        const json_t *answer = json_array_get(list, k);
        const char *text = json_string_value(json_object_get(answer, "text"));
        const json_t *start = json_object_get(answer, "answer_start");
        json_int_t at = json_integer_value(start);
        if (!text)
            return fail(p, "an answer without a \"text\"");
        if (start && (!json_is_integer(start) || at < 0 || at > UINT32_MAX))
            return fail(p, "\"answer_start\": a whole number from 0 is expected");
        x->answer[k] = dataset_keep(p->d, text);
        x->answer_at[k] = (uint32_t)at;
    }
    x->gold = x->answer;
    x->golds = x->answers;
    return 0;
}

static int take_question(const struct place *p, const json_t *question, const char *context)
{
    const json_t *list = json_object_get(question, "answers");
    const char *id = json_string_value(json_object_get(question, "id"));
    const char *text = json_string_value(json_object_get(question, "question"));
    if (!id || !*id || !text)
        return fail(p, "an \"id\" and a \"question\" are expected, both texts");
    if (list && !json_is_array(list))
        return fail(p, "\"answers\": a list is expected");
    if (!dataset_labels_agree(p->d, list != NULL))
        return fail(p,
                    "some questions have \"answers\" and some none; all or none is expected");
    if (list && !json_array_size(list) && !p->d->task->unanswerable)
        return fail(p, "\"answers\" is empty; squad1 has an answer to each question");
    struct task_example *x = dataset_add(p->d, 2, 0);
    x->id = dataset_keep(p->d, id);
    x->text[0] = dataset_keep(p->d, text);
    x->text[1] = context;
    return take_answers(p, list, x);
}

static int take_paragraph(struct place *p, const json_t *paragraph)
{
    const char *context = json_string_value(json_object_get(paragraph, "context"));
    const json_t *questions = json_object_get(paragraph, "qas");
    p->question = 0;
    if (!context || !json_is_array(questions))
        return fail(p, "a text \"context\" and a list \"qas\" are expected around it");
    const char *kept = dataset_keep(p->d, context);
    for (; p->question < json_array_size(questions); p->question++)
        if (take_question(p, json_array_get(questions, p->question), kept) < 0)
            return -1;
    return 0;
}

static int take_articles(struct place *p, const json_t *articles)
{
    if (!json_is_array(articles))
        return error_set(p->e, ERROR_INPUT, "%s: a list \"data\" is expected", p->path);
    for (; p->article < json_array_size(articles); p->article++) {
        const json_t *article = json_array_get(articles, p->article);
        const json_t *paragraphs = json_object_get(article, "paragraphs");
        if (!json_is_array(paragraphs))
            return error_set(p->e, ERROR_INPUT,
                             "%s: data[%zu]: a list \"paragraphs\" is expected", p->path,
                             p->article);
        for (p->paragraph = 0; p->paragraph < json_array_size(paragraphs); p->paragraph++)
            if (take_paragraph(p, json_array_get(paragraphs, p->paragraph)) < 0)
                return -1;
    }
    return 0;
}

int read_answers(struct dataset *d, const struct task_source *from, struct error *e)
{
    if (d->task->lines)
        return read_mrqa(d, from, e);
    json_error_t why;
    json_t *all = json_load_bytes((const char *)from->bytes, from->size, JSON_FROM_FILE, &why);
    struct place p = {.d = d, .path = from->path, .e = e};
    if (!all)
        return error_set(e, ERROR_INPUT, "%s:%d:%d: not JSON: %s", from->path, why.line,
                         why.column, why.text);
    int result = take_articles(&p, json_object_get(all, "data"));
    json_decref(all);
    return result;
}
