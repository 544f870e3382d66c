/* SPDX-License-Identifier: Apache-2.0 */
/* /rerank: the scores of texts for a query, by a cross-encoder. With "texts" the reply is that of
   text-embeddings-inference, with "documents" that of Cohere and Jina. */
#include "masks/base/memory.h"
#include "tools/maskbert/serve/replies.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *ranking_missing(const struct serving *s)
{
    enum task_kind kind = task_kind(&s->engine->config);
    if (!(s->engine->parts & PART_CLASSIFIER))
        return "the model has no classifier";
    return s->engine->config.labels != 1 || kind == TASK_TOKENS || kind == TASK_CHOICE
               ? "the model is no cross-encoder with one label"
               : NULL;
}

size_t ranking_bytes(const struct serving *s, const struct request *r)
{
    (void)s;
    return r->texts * (size_t)128 + 2 * r->body.length;
}

struct result {
    uint32_t text;
    double score;
};

static int compare(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* Results of a request, best first. The caller frees them. */
static struct result *sort(const struct request *r, const float *logit)
{
    struct result *ret = memory_new(r->texts, sizeof *ret);
    for (uint32_t k = 0; k < r->texts; k++) {
        double x = (double)logit[k];
        ret[k] = (struct result){k, r->options.raw_scores ? x : 1 / (1 + exp(-x))};
    }
    qsort(ret, r->texts, sizeof *ret, compare);
    return ret;
}

static json_t *result_json(const struct request *r, const struct result *x)
{
    const struct request_options *o = &r->options;
    const struct text_part *part = &r->text[x->text].b;
    json_t *ret = json_pack("{s:I, s:f}", "index", (json_int_t)x->text,
                            o->documents ? "relevance_score" : "score", x->score);
    json_t *text = o->return_texts ? json_stringn(part->bytes, part->size) : NULL;
    if (text && o->documents)
        text = json_pack("{s:o}", "text", text);
    if (text)
        json_object_set_new(ret, o->documents ? "document" : "text", text);
    return ret;
}

static void print(const struct serving *s, struct request *r, const float *logit)
{
    struct result *best = sort(r, logit);
    uint32_t top = r->options.top && r->options.top < r->texts ? r->options.top : r->texts;
    json_t *list = json_array();
    for (uint32_t k = 0; k < top; k++)
        json_array_append_new(list, result_json(r, &best[k]));
    if (r->options.documents)
        list = json_pack("{s:o, s:o, s:{s:I}}", "model", request_model(s, r), "results", list,
                         "usage", "total_tokens", (json_int_t)request_tokens(r));
    char *words = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(9));
    text_add(&r->reply, "%s\n", words ? words : "null");
    free(words);
    json_decref(list);
    free(best);
}

int ranking_run(struct serving *s, const struct task_batches *b, struct request *first,
                struct error *e)
{
    const struct task_runner runner = {s->engine, &s->task, &s->workspace};
    float *value = memory_new(b->texts, sizeof *value), *x = value;
    int code = task_logits(&runner, b, value, e);
    for (struct request *r = first; r && code == 0; r = r->next) {
        if (r->status)
            continue;
        print(s, r, x);
        x += r->texts;
    }
    free(value);
    return code;
}
