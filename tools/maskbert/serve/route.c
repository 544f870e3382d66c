/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/serve/route.h"
#include "masks/base/memory.h"
#include "tools/maskbert/serve/server.h"
#include "tools/maskbert/tasks/result_json.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void request_refuse(struct request *r, unsigned status, const char *format, ...)
{
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    json_t *json = json_pack("{s:s}", "error", what);
    char *words = json ? json_dumps(json, JSON_COMPACT) : NULL;
    text_finish(&r->reply);
    text_add(&r->reply, "%s\n", words ? words : "{\"error\":\"refused\"}");
    r->status = status;
    free(words);
    json_decref(json);
}

/* ---- the body ---- */

static bool read_one(struct request *r, json_t *value)
{
    if (!json_is_string(value))
        return false;
    r->text[r->texts++].a =
        (struct text_part){json_string_value(value), json_string_length(value)};
    return true;
}

static bool read_inputs(struct request *r, json_t *inputs)
{
    size_t count = json_is_array(inputs) ? json_array_size(inputs) : 1;
    if (count > TEXTS_LIMIT) {
        request_refuse(r, 413, "inputs: %zu texts, at most %d are expected", count,
                       TEXTS_LIMIT);
        return false;
    }
    r->text = memory_new(count, sizeof *r->text);
    for (size_t k = 0; k < count; k++)
        if (!read_one(r, json_is_array(inputs) ? json_array_get(inputs, k) : inputs)) {
            request_refuse(r, 400, "inputs: a text or a list of texts is expected");
            return false;
        }
    return true;
}

static const char *strange_key(json_t *json)
{
    const char *key;
    json_t *value;
    json_object_foreach(json, key,
                        value) if (strcmp(key, "inputs") && strcmp(key, "truncate")) return key;
    return NULL;
}

static bool read_truncate(struct request *r)
{
    const json_t *value = json_object_get(r->json, "truncate");
    if (value && !json_is_boolean(value)) {
        request_refuse(r, 400, "truncate: true or false is expected");
        return false;
    }
    r->truncate = json_is_true(value);
    return true;
}

bool request_read(const struct serving *s, struct request *r)
{
    json_error_t e;
    (void)s;
    r->json = json_loadb(text_get(&r->body), r->body.length,
                         JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!r->json) {
        request_refuse(r, 400, "line %d, column %d: %s", e.line, e.column, e.text);
        return false;
    }
    json_t *inputs = json_object_get(r->json, "inputs");
    if (!inputs) {
        request_refuse(r, 400, "{\"inputs\": TEXT or [TEXT, ..]} is expected");
        return false;
    }
    const char *strange = strange_key(r->json);
    if (strange) {
        request_refuse(r, 400, "'%.64s': only inputs and truncate are expected", strange);
        return false;
    }
    return read_truncate(r) && read_inputs(r, inputs);
}

/* ---- embed ---- */

static void print_vector(const float *x, uint64_t n, struct text *out)
{
    for (uint64_t k = 0; k < n; k++)
        text_add(out, k ? ",%.9g" : "[%.9g", (double)x[k]);
    text_add(out, "]");
}

static size_t embed_bytes(const struct serving *s, const struct request *r)
{
    return r->texts * (size_t)embedding_size(s->engine, &s->embedding.how) * 16;
}

static struct task_runner runner_of(struct serving *s)
{
    return (struct task_runner){s->engine, &s->task, &s->workspace};
}

static int run_embed(struct serving *s, const struct task_batches *b, struct request *first,
                     struct error *e)
{
    uint64_t size = embedding_size(s->engine, &s->embedding.how);
    float *value = memory_new((size_t)b->texts * size, sizeof *value), *x = value;
    const struct task_runner runner = runner_of(s);
    int code = task_embed(&runner, b, &s->embedding.how, value, e);
    for (struct request *r = first; r && code == 0; r = r->next) {
        if (r->status)
            continue;
        text_add(&r->reply, "[");
        for (uint32_t k = 0; k < r->texts; k++, x += size) {
            text_add(&r->reply, k ? "," : "");
            print_vector(x, size, &r->reply);
        }
        text_add(&r->reply, "]\n");
    }
    free(value);
    return code;
}

/* ---- fill-mask, classify ---- */

/* One JSON value for each text of each request. */
static void put_answers(struct request *first, json_t *(*answer)(void *context, uint32_t text),
                        void *context)
{
    uint32_t text = 0;
    for (struct request *r = first; r; r = r->next) {
        if (r->status)
            continue;
        json_t *all = json_array();
        for (uint32_t k = 0; k < r->texts; k++)
            json_array_append_new(all, answer(context, text++));
        char *words = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
        text_add(&r->reply, "%s\n", words);
        free(words);
        json_decref(all);
    }
}

struct answers {
    const struct serving *s;
    const struct task_batches *b;
    const struct task_gaps *gaps;
    const struct task_labels *labels;
};

static const char *no_words(const struct serving *s)
{
    return s->engine->parts & PART_MLM ? NULL : "the model has no masked-word head";
}

/* Every [MASK] of a text has its words. */
static size_t fill_bytes(const struct serving *s, const struct request *r)
{
    size_t masks = 0;
    for (uint32_t k = 0; k < r->texts; k++) {
        const char *at = r->text[k].a.bytes, *end = at + r->text[k].a.size;
        while ((at = memmem(at, (size_t)(end - at), "[MASK]", 6))) {
            masks++;
            at += 6;
        }
    }
    return masks * (s->top * (size_t)160 + 512) + r->texts * (size_t)32;
}

static json_t *one_fill(void *context, uint32_t text)
{
    const struct answers *a = context;
    return result_gaps(a->s->engine, a->b, a->gaps, text);
}

static int run_fill(struct serving *s, const struct task_batches *b, struct request *first,
                    struct error *e)
{
    struct task_gaps gaps = {0};
    const struct task_runner runner = runner_of(s);
    if (task_fill(&runner, b, s->top, &gaps, e) < 0)
        return -1;
    put_answers(first, one_fill, &(struct answers){s, b, &gaps, NULL});
    task_gaps_finish(&gaps);
    return 0;
}

static const char *no_labels(const struct serving *s)
{
    enum task_kind kind = task_kind(&s->engine->config);
    if (!(s->engine->parts & PART_CLASSIFIER))
        return "the model has no classifier";
    return kind == TASK_CHOICE || kind == TASK_NEXT ? "the model classifies pairs of texts"
                                                    : NULL;
}

static size_t labels_bytes(const struct serving *s, const struct request *r)
{
    bool tokens = task_kind(&s->engine->config) == TASK_TOKENS;
    size_t rows =
        tokens ? task_longest(s->engine, s->task.max_length) : s->engine->config.labels;
    return r->texts * (rows + 1) * (size_t)256;
}

static json_t *one_label(void *context, uint32_t text)
{
    const struct answers *a = context;
    return result_labels(a->s->engine, a->b, a->labels, text);
}

static int run_labels(struct serving *s, const struct task_batches *b, struct request *first,
                      struct error *e)
{
    struct task_labels labels = {0};
    const struct task_runner runner = runner_of(s);
    if (task_classify(&runner, b, &labels, e) < 0)
        return -1;
    put_answers(first, one_label, &(struct answers){s, b, NULL, &labels});
    task_labels_finish(&labels);
    return 0;
}

/* ---- the table ---- */

static const char *no_vectors(const struct serving *s)
{
    return *s->no_embedding.text ? s->no_embedding.text : NULL;
}

static const char *nothing_missing(const struct serving *s)
{
    (void)s;
    return NULL;
}

static void get_health(struct server *server, struct text *out)
{
    (void)server;
    text_add(out, "{\"status\":\"ok\"}\n");
}

/* clang-format off */
static const char type_of_json[] = "application/json";
const struct route routes[] = {
    {"/embed",     "POST", no_vectors,      true,  embed_bytes,  run_embed,  NULL,       type_of_json},
    {"/fill-mask", "POST", no_words,        false, fill_bytes,   run_fill,   NULL,       type_of_json},
    {"/classify",  "POST", no_labels,       false, labels_bytes, run_labels, NULL,       type_of_json},
    {"/health",    "GET",  nothing_missing, false, NULL,         NULL,       get_health, type_of_json},
    {"/metrics",   "GET",  nothing_missing, false, NULL,         NULL,       server_metrics,
     "text/plain; version=0.0.4"},
    {0},
};
/* clang-format on */

const struct route *route_find(const char *path)
{
    for (const struct route *r = routes; r->path; r++)
        if (!strcmp(r->path, path))
            return r;
    return NULL;
}

/* ---- a batch ---- */

/* The tokens of all requests that are not refused. */
static int tokenize(const struct serving *s, const struct request *first,
                    struct task_batches *ret, struct error *e)
{
    struct task_options o = s->task;
    uint32_t texts = 0, at = 0;
    o.prompt = first->route->prompted ? s->embedding.prompt : (struct text_part){0};
    for (const struct request *r = first; r; r = r->next)
        texts += r->status ? 0 : r->texts;
    struct task_text *text = memory_new(texts, sizeof *text);
    for (const struct request *r = first; r; r = r->next)
        for (uint32_t k = 0; k < r->texts && !r->status; k++)
            text[at++] = r->text[k];
    int code = task_prepare(s->engine, text, texts, &o, ret, e);
    free(text);
    return code;
}

/* Refuses requests with texts that were cut and should not be. Returns their number. */
static uint32_t refuse_long(const struct serving *s, struct request *first,
                            const struct task_batches *b)
{
    uint32_t at = 0, refused = 0;
    for (struct request *r = first; r; r = r->next) {
        const bool *is_cut = b->is_cut + at;
        at += r->texts;
        for (uint32_t k = 0; k < r->texts && !r->truncate && !r->status; k++)
            if (is_cut[k])
                request_refuse(r, 413,
                               "text %u has more than %u tokens; a shorter text or "
                               "\"truncate\": true is expected",
                               k, task_longest(s->engine, s->task.max_length));
        refused += r->status != 0;
    }
    return refused;
}

static int answer(struct serving *s, struct request *first, uint32_t *tokens, struct error *e)
{
    struct task_batches b = {0};
    int code = tokenize(s, first, &b, e);
    if (code == 0 && b.cut && refuse_long(s, first, &b)) {
        task_finish(&b);
        code = tokenize(s, first, &b, e);
    }
    if (code == 0 && b.texts)
        code = first->route->run(s, &b, first, e);
    for (uint32_t k = 0; k < b.texts && code == 0; k++)
        *tokens += b.sequence[k].count;
    task_finish(&b);
    return code;
}

void requests_answer(struct serving *s, struct request *first, uint32_t *tokens)
{
    struct error e = {0};
    uint32_t texts = 0;
    for (struct request *r = first; r; r = r->next)
        texts += r->texts;
    int code = texts ? answer(s, first, tokens, &e) : 0;
    for (struct request *r = first; r; r = r->next) {
        if (r->status)
            continue;
        if (code < 0)
            request_refuse(r, 500, "%s", e.text);
        else if (!r->texts)
            text_add(&r->reply, "[]\n");
        if (!r->status)
            r->status = 200;
    }
}
