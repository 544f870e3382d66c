/* SPDX-License-Identifier: Apache-2.0 */
/* /embed and /v1/embeddings: sentence vectors. All requests of a batch are pooled together; normalisation and dimensions
   are each request's own. */
#include "masks/base/memory.h"
#include "tools/maskbert/serve/replies.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *vectors_missing(const struct serving *s)
{
    return *s->no_embedding.text ? s->no_embedding.text : NULL;
}

/* Returns the settings for pooled vectors of this request. */
static struct embedding settings_of(const struct serving *s, const struct request *r)
{
    const struct request_options *o = &r->options;
    struct embedding ret = s->embedding.how;
    if (o->normalize_given) {
        ret.normalize = ret.normalize && o->normalize;
        ret.normalize_kept = o->normalize;
    }
    if (o->dimensions) {
        ret.normalize_kept |= ret.normalize;
        ret.dimension = o->dimensions;
    }
    return ret;
}

static uint64_t numbers(const struct serving *s, const struct request *r)
{
    const struct embedding how = settings_of(s, r);
    return embedding_size(s->engine, &how);
}

/* ---- a vector as text ---- */

static void print_vector(const float *x, uint64_t n, struct text *out)
{
    for (uint64_t k = 0; k < n; k++) {
        text_add(out, k ? "," : "[");
        if (isfinite(x[k]))
            text_add(out, "%.9g", (double)x[k]);
        else
            text_add(out, "null"); /* the maximum of no rows */
    }
    text_add(out, "]");
}

/* Four digits for each three bytes, of which the last may be missing. */
static void print_base64(const uint8_t *bytes, size_t size, struct text *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t k = 0; k < size; k += 3) {
        const size_t left = size - k;
        const uint32_t bits = (uint32_t)bytes[k] << 16 |
                              (left > 1 ? (uint32_t)bytes[k + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)bytes[k + 2] : 0);
        const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                              left > 1 ? digits[bits >> 6 & 63] : '=',
                              left > 2 ? digits[bits & 63] : '='};
        text_append(out, four, sizeof four);
    }
}

/* ---- replies ---- */

/* Prints the reply to a request. x [texts, embedding_width()]: its vectors before normalisation and cut. */
typedef void print_fn(const struct serving *s, struct request *r, float *x);

static void print_plain(const struct serving *s, struct request *r, float *x)
{
    const struct embedding how = settings_of(s, r);
    text_add(&r->reply, "[");
    for (uint32_t k = 0; k < r->texts; k++, x += embedding_width(s->engine, &how)) {
        embedding_cut(s->engine, &how, x);
        text_add(&r->reply, k ? "," : "");
        print_vector(x, embedding_size(s->engine, &how), &r->reply);
    }
    text_add(&r->reply, "]\n");
}

static void print_openai_vector(const struct request *r, const float *x, uint64_t n,
                                struct text *out)
{
    if (!r->options.base64) {
        print_vector(x, n, out);
        return;
    }
    text_add(out, "\"");
    print_base64((const uint8_t *)x, n * sizeof *x, out); /* the machine is little-endian */
    text_add(out, "\"");
}

static void print_openai(const struct serving *s, struct request *r, float *x)
{
    const struct embedding how = settings_of(s, r);
    json_t *model = request_model(s, r);
    char *name = json_dumps(model, JSON_ENCODE_ANY);
    unsigned long long tokens = request_tokens(r);
    text_add(&r->reply, "{\"object\":\"list\",\"data\":[");
    for (uint32_t k = 0; k < r->texts; k++, x += embedding_width(s->engine, &how)) {
        embedding_cut(s->engine, &how, x);
        text_add(&r->reply,
                 "%s{\"object\":\"embedding\",\"index\":%u,\"embedding\":", k ? "," : "", k);
        print_openai_vector(r, x, embedding_size(s->engine, &how), &r->reply);
        text_add(&r->reply, "}");
    }
    text_add(&r->reply,
             "],\"model\":%s,\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}\n",
             name ? name : "null", tokens, tokens);
    free(name);
    json_decref(model);
}

static int run(struct serving *s, const struct task_batches *b, struct request *first,
               print_fn *print, struct error *e)
{
    struct embedding whole = s->embedding.how;
    whole.dimension = 0;
    whole.normalize = whole.normalize_kept = false;
    const uint64_t size = embedding_width(s->engine, &whole);
    const struct task_runner runner = {s->engine, &s->task, &s->workspace};
    float *value = memory_new(b->texts * size, sizeof *value), *x = value;
    int code = task_embed(&runner, b, &whole, value, e);
    for (struct request *r = first; r && code == 0; r = r->next) {
        if (r->status)
            continue;
        print(s, r, x);
        x += r->texts * size;
    }
    free(value);
    return code;
}

size_t vectors_bytes(const struct serving *s, const struct request *r)
{
    return r->texts * numbers(s, r) * 16;
}

int vectors_run(struct serving *s, const struct task_batches *b, struct request *first,
                struct error *e)
{
    return run(s, b, first, print_plain, e);
}

size_t openai_bytes(const struct serving *s, const struct request *r)
{
    return r->texts * (numbers(s, r) * (r->options.base64 ? 6 : 16) + 64) + r->body.length;
}

int openai_run(struct serving *s, const struct task_batches *b, struct request *first,
               struct error *e)
{
    return run(s, b, first, print_openai, e);
}
