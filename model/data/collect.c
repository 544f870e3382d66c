/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/collect.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "model/data/text_reader.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { RUN_BYTES = 64 << 10, DEFAULT_SHARD_TOKENS = 1 << 25 };

/* Sentences of a block that a thread takes at once, and their tokens. */
struct run {
    uint32_t first, last;   /* sentences first .. last - 1 */
    uint32_t *token, *size; /* of all; of each sentence */
    uint32_t count, capacity, sentences, size_capacity;
};

/* Documents on their way to a file; offsets as in shard.h, without their first 0. */
struct gathered {
    uint32_t *token, *sentence, *document;
    size_t tokens, sentences, documents;
    size_t tokens_capacity, sentences_capacity, documents_capacity;
};

struct collector {
    const struct prepare_options *options;
    const char *folder;
    const struct shard_header *base;
    struct prepare_stats *stats;
    bool has_text;                    /* in the document that is being read */
    struct gathered open;             /* the document that is being read */
    struct gathered part[DATA_PARTS]; /* shards that are being filled */
    uint64_t *frequency[DATA_PARTS];  /* of each token */
    struct text_block block;
    struct run *run;
    uint32_t runs, runs_capacity;
    struct tokens *tokens; /* of each thread */
    int threads;
};

static void reserve(uint32_t **array, size_t *capacity, size_t need)
{
    if (need <= *capacity)
        return;
    *capacity = need > 2 * *capacity ? need : 2 * *capacity;
    *array = memory_resize(*array, *capacity, sizeof **array);
}

static void gathered_finish(struct gathered *g)
{
    free(g->token);
    free(g->sentence);
    free(g->document);
}

/* Tokens between [CLS] and [SEP] of each sentence of a run. */
static void tokenise(const struct collector *x, struct run *r, struct tokens *t)
{
    r->count = r->sentences = 0;
    for (uint32_t k = r->first; k < r->last; k++) {
        const struct text_sentence *s = &x->block.sentence[k];
        tokenizer_encode(x->options->tokenizer,
                         (struct text_part){x->block.bytes + s->begin, s->size},
                         (struct text_part){0}, 0, t);
        uint32_t count = t->count - 2;
        if (count > r->capacity - r->count) {
            r->capacity = 2 * r->capacity + count;
            r->token = memory_resize(r->token, r->capacity, sizeof *r->token);
        }
        memcpy(r->token + r->count, t->token_ids + 1, count * sizeof *r->token);
        r->count += count;
        *MEMORY_PUSH(r->size, r->sentences, r->size_capacity) = count;
    }
}

static void cut_runs(struct collector *x)
{
    size_t bytes = RUN_BYTES;
    x->runs = 0;
    for (uint32_t k = 0; k < x->block.count; k++) {
        if (bytes >= RUN_BYTES) {
            uint32_t old = x->runs_capacity;
            struct run *r = MEMORY_PUSH(x->run, x->runs, x->runs_capacity);
            if (x->runs_capacity > old)
                memset(x->run + old, 0, (x->runs_capacity - old) * sizeof *x->run);
            r->first = k;
            bytes = 0;
        }
        bytes += x->block.sentence[k].size + 16u;
        x->run[x->runs - 1].last = k + 1;
    }
}

static void tokenise_block(struct collector *x)
{
    cut_runs(x);
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads)
    for (uint32_t k = 0; k < x->runs; k++)
        tokenise(x, &x->run[k], &x->tokens[omp_get_thread_num()]);
}

static enum data_part choose_part(const struct prepare_options *o, const struct gathered *g)
{
    uint64_t hash = XXH3_64bits(g->token, g->tokens * sizeof *g->token);
    struct draws d =
        data_draws(o->seed, STREAM_HELD_OUT, (uint32_t)hash, (uint32_t)(hash >> 32));
    return draw_share(&d) < o->held_out ? DATA_HELD_OUT : DATA_TRAIN;
}

static int write_shard(struct collector *x, enum data_part part, struct error *e)
{
    struct gathered *g = &x->part[part];
    struct shard_header h = *x->base;
    h.kind = SHARD_TOKENS;
    h.part = part;
    h.shard = x->stats->part[part].shards++;
    h.documents = g->documents - 1;
    h.sentences = g->sentences - 1;
    h.tokens = g->tokens;
    char *path = shard_path(x->folder, part, h.shard);
    int r = shard_write(path, &h, g->document, g->sentence, g->token, e);
    free(path);
    g->tokens = g->sentences = g->documents = 0;
    return r;
}

static void append(struct gathered *to, const struct gathered *from)
{
    reserve(&to->token, &to->tokens_capacity, to->tokens + from->tokens);
    reserve(&to->sentence, &to->sentences_capacity, to->sentences + from->sentences + 1);
    reserve(&to->document, &to->documents_capacity, to->documents + 2);
    if (!to->documents) {
        to->document[to->documents++] = 0;
        to->sentence[to->sentences++] = 0;
    }
    uint32_t base = (uint32_t)to->tokens;
    memcpy(to->token + to->tokens, from->token, from->tokens * sizeof *from->token);
    for (size_t k = 0; k < from->sentences; k++)
        to->sentence[to->sentences++] = base + from->sentence[k];
    to->tokens += from->tokens;
    to->document[to->documents++] = (uint32_t)to->sentences - 1;
}

static void count_document(struct collector *x, enum data_part part)
{
    const struct gathered *g = &x->open;
    struct prepare_part *p = &x->stats->part[part];
    p->documents++;
    p->sentences += g->sentences;
    p->tokens += g->tokens;
    p->single += g->sentences == 1;
    for (size_t k = 0; k < g->sentences; k++) {
        uint32_t size = g->sentence[k] - (k ? g->sentence[k - 1] : 0);
        p->longest_sentence = size > p->longest_sentence ? size : p->longest_sentence;
    }
    for (size_t k = 0; k < g->tokens; k++) {
        x->frequency[part][g->token[k]]++;
        x->stats->unknown += g->token[k] == x->options->tokenizer->unknown;
    }
}

static int end_document(struct collector *x, struct error *e)
{
    struct gathered *g = &x->open;
    uint64_t most = x->options->shard_tokens ? x->options->shard_tokens : DEFAULT_SHARD_TOKENS;
    x->stats->empty += x->has_text && !g->tokens;
    x->has_text = false;
    if (!g->tokens)
        return 0;
    enum data_part part = choose_part(x->options, g);
    count_document(x, part);
    if (x->part[part].tokens + g->tokens > SHARD_MAX_TOKENS && write_shard(x, part, e) < 0)
        return -1;
    append(&x->part[part], g);
    g->tokens = g->sentences = 0;
    return x->part[part].tokens >= most ? write_shard(x, part, e) : 0;
}

static int add_sentence(struct collector *x, const uint32_t *token, uint32_t count,
                        struct error *e)
{
    struct gathered *g = &x->open;
    if (!count)
        return 0;
    if (g->tokens + count > SHARD_MAX_TOKENS)
        return error_set(
            e, ERROR_INPUT,
            "a document of more than 2^31 tokens: blank lines between documents are "
            "expected");
    reserve(&g->token, &g->tokens_capacity, g->tokens + count);
    memcpy(g->token + g->tokens, token, count * sizeof *token);
    g->tokens += count;
    *MEMORY_PUSH(g->sentence, g->sentences, g->sentences_capacity) = (uint32_t)g->tokens;
    return 0;
}

static int add_run(struct collector *x, const struct run *r, struct error *e)
{
    const uint32_t *token = r->token;
    for (uint32_t k = r->first; k < r->last; k++) {
        uint32_t count = r->size[k - r->first];
        if (x->block.sentence[k].opens && end_document(x, e) < 0)
            return -1;
        x->has_text = true;
        if (add_sentence(x, token, count, e) < 0)
            return -1;
        token += count;
    }
    return 0;
}

static int tell(const struct collector *x, const struct text_reader *reader, struct error *e)
{
    const struct prepare_part *p = x->stats->part;
    const struct prepare_progress now = {
        text_reader_taken(reader), p[0].documents + p[1].documents, p[0].tokens + p[1].tokens};
    x->stats->bytes = now.bytes;
    return !x->options->progress || x->options->progress(&now)
               ? 0
               : error_set(e, ERROR_UNAVAILABLE, "interrupted");
}

static int read_all(struct collector *x, struct error *e)
{
    const struct prepare_options *o = x->options;
    struct text_reader *reader = text_reader_new(o->path, o->n_paths, o->split);
    text_reader_on_report(reader, o->report);
    int r;
    while ((r = text_reader_next(reader, &x->block, e)) == 0 && x->block.count) {
        tokenise_block(x);
        for (uint32_t k = 0; r == 0 && k < x->runs; k++)
            r = add_run(x, &x->run[k], e);
        if (r == 0)
            r = tell(x, reader, e);
        if (r < 0)
            break;
    }
    text_reader_destroy(reader);
    return r == 0 ? end_document(x, e) : -1;
}

static double entropy(const uint64_t *frequency, uint32_t count)
{
    double all = 0, sum = 0;
    for (uint32_t k = 0; k < count; k++)
        all += (double)frequency[k];
    for (uint32_t k = 0; k < count; k++)
        if (frequency[k])
            sum -= (double)frequency[k] / all * log((double)frequency[k] / all);
    return sum;
}

static void collector_finish(struct collector *x)
{
    for (uint32_t k = 0; k < x->runs_capacity; k++) {
        free(x->run[k].token);
        free(x->run[k].size);
    }
    for (int k = 0; k < DATA_PARTS; k++) {
        gathered_finish(&x->part[k]);
        free(x->frequency[k]);
    }
    for (int k = 0; k < x->threads; k++)
        tokens_finish(&x->tokens[k]);
    gathered_finish(&x->open);
    text_block_finish(&x->block);
    free(x->tokens);
    free(x->run);
}

int data_collect(const struct prepare_options *o, const char *folder,
                 const struct shard_header *base, struct prepare_stats *ret, struct error *e)
{
    int threads = o->threads ? (int)o->threads : omp_get_max_threads();
    struct collector x = {.options = o,
                          .folder = folder,
                          .base = base,
                          .stats = ret,
                          .threads = threads,
                          .tokens = memory_new((size_t)threads, sizeof *x.tokens)};
    for (int k = 0; k < DATA_PARTS; k++)
        x.frequency[k] = memory_new(base->vocabulary, sizeof *x.frequency[k]);
    int r = read_all(&x, e);
    for (int k = 0; r == 0 && k < DATA_PARTS; k++) {
        r = x.part[k].tokens ? write_shard(&x, (enum data_part)k, e) : 0;
        ret->part[k].entropy = entropy(x.frequency[k], base->vocabulary);
    }
    collector_finish(&x);
    return r;
}
