/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/samples.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *folder, const char *what, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s: %s", folder, what);
}

/* Each range lies within one shard, where corpus_copy() takes it from. */
static bool ranges_fit(const struct samples *s)
{
    const struct corpus *c = &s->corpus;
    bool fine = true;
    for (uint32_t k = 0; k < s->count; k++) {
        const struct sample_record *r = &s->records.sample[k];
        fine &= r->a + r->a_count <= c->first_token[corpus_shard(c, r->a) + 1];
        if (r->b_count)
            fine &= r->b + r->b_count <= c->first_token[corpus_shard(c, r->b) + 1];
    }
    return fine;
}

static int check(const struct samples *s, const char *folder, const struct tokenizer *t,
                 struct error *e)
{
    const struct shard_header *h = s->header, *first = &s->corpus.shard[0].header;
    if (!shard_sum_equal(h->tokens_sum, corpus_sum(&s->corpus)) ||
        h->tokens != corpus_tokens(&s->corpus) || h->vocabulary != first->vocabulary ||
        !shard_sum_equal(h->vocabulary_sum, first->vocabulary_sum))
        return fail(folder, "its samples are not of these tokens: of another prep", e);
    if (t && !shard_sum_equal(h->vocabulary_sum, shard_vocabulary_sum(t)))
        return fail(folder,
                    "made with another vocabulary than the model's: run maskbert prep again",
                    e);
    return ranges_fit(s) ? 0 : fail(folder, "damaged: samples beyond a shard", e);
}

static int open_records(struct samples *s, const char *folder, enum data_part part,
                        struct error *e)
{
    char *path = samples_path(folder, part);
    int r =
        part == DATA_HELD_OUT && access(path, F_OK) < 0 && access(folder, F_OK) == 0
            ? fail(folder,
                   "holds no documents for evaluation: maskbert prep --held-out P keeps some",
                   e)
            : shard_open(path, SHARD_SAMPLES, &s->records, e);
    s->header = &s->records.header;
    s->count = (uint32_t)s->header->samples;
    if (r == 0 && (s->header->part != part || !s->header->shard || s->header->shard > 1u << 20))
        r = fail(path, "damaged: of another part", e);
    if (r == 0 && !s->count)
        r = fail(path, "no samples", e);
    free(path);
    return r;
}

struct samples *samples_open(const char *folder, enum data_part part,
                             const struct tokenizer *tokenizer, struct error *e)
{
    struct samples *s = memory_new(1, sizeof *s);
    int r = open_records(s, folder, part, e);
    if (r == 0)
        r = corpus_open(folder, part, s->header->shard, &s->corpus, e);
    if (r == 0)
        r = check(s, folder, tokenizer, e);
    if (r < 0) {
        samples_close(s);
        return NULL;
    }
    return s;
}

void samples_close(struct samples *s)
{
    if (!s)
        return;
    corpus_close(&s->corpus);
    shard_close(&s->records);
    free(s);
}

void sample_batch_finish(struct sample_batch *b)
{
    free(b->batch.list);
    free(b->batch.offsets);
    free(b->batch.sample);
    free(b->next_row);
    free(b->next_label);
    free(b->masked_row);
    free(b->masked_label);
    free(b->token);
    masking_finish(&b->memory);
    *b = (struct sample_batch){0};
}

static void reserve_sequences(struct sample_batch *b, uint32_t count)
{
    struct train_batch *t = &b->batch;
    if (count <= b->sequences_capacity)
        return;
    b->sequences_capacity = count;
    t->list = memory_resize(t->list, count, sizeof *t->list);
    t->offsets = memory_resize(t->offsets, (size_t)count + 1, sizeof *t->offsets);
    t->sample = memory_resize(t->sample, count, sizeof *t->sample);
    b->next_row = memory_resize(b->next_row, count, sizeof *b->next_row);
    b->next_label = memory_resize(b->next_label, count, sizeof *b->next_label);
}

static void reserve_tokens(struct sample_batch *b, uint32_t count)
{
    if (count <= b->tokens_capacity)
        return;
    b->tokens_capacity = count;
    b->token = memory_resize(b->token, count, sizeof *b->token);
    b->masked_row = memory_resize(b->masked_row, count, sizeof *b->masked_row);
    b->masked_label = memory_resize(b->masked_label, count, sizeof *b->masked_label);
}

static uint32_t record_length(const struct sample_record *r)
{
    return r->a_count + 2 + (r->b_count ? r->b_count + 1u : 0);
}

/* [CLS] A [SEP] or [CLS] A [SEP] B [SEP]; returns the length of the first part. */
static uint32_t fill(const struct samples *s, const struct sample_record *r, uint32_t *ret)
{
    uint32_t first_part = r->a_count + 2;
    ret[0] = s->header->begin;
    corpus_copy(&s->corpus, r->a, r->a_count, ret + 1);
    ret[first_part - 1] = s->header->end;
    if (r->b_count) {
        corpus_copy(&s->corpus, r->b, r->b_count, ret + first_part);
        ret[first_part + r->b_count] = s->header->end;
    }
    return first_part;
}

/* Which samples, and where in the batch each of them stands. */
static void lay_out(const struct samples *s, uint64_t seed, uint32_t epoch, uint64_t first,
                    struct train_batch *t)
{
    t->offsets[0] = 0;
    for (uint32_t k = 0; k < t->sequences; k++) {
        uint64_t place = first + k;
        t->sample[k] = order_at(seed, epoch + (uint32_t)(place / s->count), s->count,
                                (uint32_t)(place % s->count));
        t->offsets[k + 1] =
            t->offsets[k] + (int32_t)record_length(&s->records.sample[t->sample[k]]);
    }
    t->tokens = (uint32_t)t->offsets[t->sequences];
}

static struct masking masking_of(const struct samples *s, const struct sample_options *o)
{
    return (struct masking){.probability = o->probability,
                            .whole_words = o->whole_words,
                            .begin = s->header->begin,
                            .end = s->header->end,
                            .mask = s->header->mask,
                            .vocabulary = s->header->vocabulary,
                            .follows = s->records.follows};
}

static void make_sequence(const struct samples *s, const struct masking *m,
                          struct masking_key key, uint32_t k, struct sample_batch *b)
{
    struct train_batch *t = &b->batch;
    const struct sample_record *r = &s->records.sample[key.sample];
    uint32_t row = (uint32_t)t->offsets[k], count = record_length(r);
    uint32_t *token = b->token + row, *place = b->masked_row + b->masked;
    t->list[k] = (struct sequence){token, count, fill(s, r, token)};
    uint32_t masked = masking_apply(
        m, key, &b->memory,
        (struct masking_target){token, count, place, b->masked_label + b->masked});
    for (uint32_t j = 0; j < masked; j++)
        place[j] += row;
    b->masked += masked;
    b->next_row[k] = row;
    b->next_label[k] = r->random;
}

static void set_targets(const struct samples *s, struct sample_batch *b)
{
    struct train_batch *t = &b->batch;
    t->targets = s->header->pairing == PAIRING_NEXT ? 2 : 1;
    t->target[SAMPLE_WORDS] =
        (struct train_target){TARGET_WORDS, b->masked, b->masked_row, b->masked_label};
    t->target[SAMPLE_NEXT] =
        (struct train_target){TARGET_NEXT, t->sequences, b->next_row, b->next_label};
}

void samples_batch(const struct samples *s, const struct sample_options *o, uint32_t epoch,
                   uint64_t first, uint32_t count, struct sample_batch *ret)
{
    struct train_batch *t = &ret->batch;
    const struct masking m = masking_of(s, o);
    reserve_sequences(ret, count);
    t->sequences = count;
    ret->masked = 0;
    lay_out(s, o->seed, epoch, first, t);
    reserve_tokens(ret, t->tokens);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t at = epoch + (uint32_t)((first + k) / s->count);
        make_sequence(s, &m, (struct masking_key){o->seed, at, t->sample[k]}, k, ret);
    }
    set_targets(s, ret);
}
