/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of requests for one path: tokens, then the model, then replies. */
#include "masks/base/memory.h"
#include "tools/maskbert/serve/replies.h"
#include <stdlib.h>

uint64_t request_tokens(const struct request *r)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < r->tokens.texts; k++)
        ret += r->tokens.sequence[k].count;
    return ret;
}

json_t *request_model(const struct serving *s, const struct request *r)
{
    json_t *own = r->options.model ? json_copy((json_t *)(uintptr_t)r->options.model) : NULL;
    return own ? own : json_string(s->name);
}

static void refuse_long(const struct serving *s, struct request *r)
{
    for (uint32_t k = 0; k < r->texts && !r->options.truncate && !r->status; k++)
        if (r->tokens.is_cut[k])
            request_refuse(r, 413,
                           "text %u has more than %u tokens; a shorter text or \"truncate\": "
                           "true is expected",
                           k, task_longest(s->engine, s->task.max_length));
}

uint64_t request_tokenize(const struct serving *s, struct request *r)
{
    struct error e = {0};
    struct task_options o = s->task;
    if (r->tokenized)
        return request_tokens(r);
    o.prompt = r->route->prompted ? s->embedding.prompt : (struct text_part){0};
    o.prompt_tokens = r->route->prompted ? s->embedding.prompt_tokens : 0;
    r->tokenized = true;
    if (task_prepare(s->engine, r->text, r->texts, &o, &r->tokens, &e) < 0)
        request_refuse(r, 500, "%s", e.text);
    else
        refuse_long(s, r);
    if (r->status)
        task_finish(&r->tokens);
    return request_tokens(r);
}

/* Joins the texts of the requests without an error. *ret_number: that of each text in its request, from 0. */
static void join(const struct serving *s, struct request *first, struct task_batches *ret,
                 uint32_t **ret_number)
{
    const struct task_batches **part = NULL;
    uint32_t parts = 0, capacity = 0, texts = 0, numbers = 0;
    for (struct request *r = first; r; r = r->next) {
        if (r->status)
            continue;
        *MEMORY_PUSH(part, parts, capacity) = &r->tokens;
        for (uint32_t k = 0; k < r->texts; k++)
            *MEMORY_PUSH(*ret_number, texts, numbers) = k;
    }
    task_join(part, parts, &s->task, ret);
    free(part);
}

static int answer(struct serving *s, struct request *first, struct error *e)
{
    struct task_batches b;
    uint32_t *number = NULL;
    join(s, first, &b, &number);
    s->task.names = (struct task_names){"text", number};
    int code = first->route->run(s, &b, first, e);
    s->task.names = (struct task_names){0};
    task_finish(&b);
    free(number);
    return code;
}

/* Answers a request that shares no batch with others. */
static void answer_alone(struct serving *s, struct request *r)
{
    struct error e = {0};
    struct request *next = r->next;
    r->next = NULL;
    if (!r->status && answer(s, r, &e) < 0)
        request_refuse(r, 500, "%s", e.text);
    r->next = next;
}

/* Output that is not finite is the fault of one text: its request gets the error, and the others are answered. */
void requests_answer(struct serving *s, struct request *first)
{
    struct error e = {0};
    const int code = answer(s, first, &e);
    for (struct request *r = first; r; r = r->next) {
        if (code < 0 && e.kind == ERROR_FALSE && first->next)
            answer_alone(s, r);
        else if (code < 0 && !r->status)
            request_refuse(r, 500, "%s", e.text);
        r->status = r->status ? r->status : 200;
    }
}
