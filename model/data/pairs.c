/* SPDX-License-Identifier: Apache-2.0 */
/* Names in comments are those of create_pretraining_data.py. */
#include "model/data/pairs.h"
#include "masks/base/memory.h"
#include "model/base/order.h"

enum { TRIES = 10 };

struct builder {
    const struct pairs_rules *rules;
    const struct corpus *corpus;
    struct draws draws;
    uint32_t index; /* document_index */
    struct corpus_document document;
    uint32_t target; /* target_seq_length */
    struct samples_list *list;
};

struct range {
    uint64_t first;
    uint64_t count;
};

static uint64_t tokens_between(const struct corpus_document *d, uint32_t from, uint32_t to)
{
    return d->begin[to] - d->begin[from];
}

/* rng.randint(low, high): both may come out. */
static uint32_t draw_between(struct draws *d, uint32_t low, uint32_t high)
{
    return low + draws_below(d, high - low + 1);
}

/* truncate_seq_pair: one token at a time, because the longer one changes. */
static void truncate_pair(struct range *a, struct range *b, uint64_t most, struct draws *d)
{
    while (a->count + b->count > most) {
        struct range *longer = a->count > b->count ? a : b;
        if (draw_share(d) < 0.5)
            longer->first++;
        longer->count--;
    }
}

static void add_record(struct builder *x, struct range a, struct range b, bool random)
{
    *MEMORY_PUSH(x->list->sample, x->list->count, x->list->capacity) =
        (struct sample_record){.a = a.first,
                               .b = b.count ? b.first : 0,
                               .a_count = (uint32_t)a.count,
                               .b_count = (uint32_t)b.count & INT32_MAX,
                               .random = random};
}

/* Sentences of a random document from a random one on, until they are `target` tokens. */
static struct range random_next(struct builder *x, int64_t target)
{
    uint32_t other = 0, documents = (uint32_t)corpus_documents(x->corpus);
    for (int k = 0; k < TRIES; k++) {
        other = draws_below(&x->draws, documents);
        if (other != x->index)
            break;
    }
    struct corpus_document d = corpus_document(x->corpus, other);
    uint32_t from = draws_below(&x->draws, d.sentences), to = from + 1;
    while (to < d.sentences && (int64_t)tokens_between(&d, from, to) < target)
        to++;
    return (struct range){d.base + d.begin[from], tokens_between(&d, from, to)};
}

/* One sample of the sentences from .. to - 1 (current_chunk); returns how many of them it used. */
static uint32_t add_pair(struct builder *x, uint32_t from, uint32_t to)
{
    const struct corpus_document *d = &x->document;
    uint32_t a_end = from + 1;
    if (to - from >= 2)
        a_end = from + draw_between(&x->draws, 1, to - from - 1);
    struct range a = {d->base + d->begin[from], tokens_between(d, from, a_end)};
    struct range b = {d->base + d->begin[a_end], tokens_between(d, a_end, to)};
    bool random = to - from == 1 || draw_share(&x->draws) < 0.5;
    if (random)
        b = random_next(x, (int64_t)x->target - (int64_t)a.count);
    truncate_pair(&a, &b, x->rules->length - 3, &x->draws);
    add_record(x, a, b, random);
    return random ? a_end - from : to - from;
}

static void add_pairs(struct builder *x)
{
    uint32_t from = 0;
    for (uint32_t to = 1; to <= x->document.sentences; to++)
        if (to == x->document.sentences ||
            tokens_between(&x->document, from, to) >= x->target) {
            from += add_pair(x, from, to);
            to = from;
        }
}

static void add_full(struct builder *x)
{
    const struct corpus_document *d = &x->document;
    struct range packed = {d->base + d->begin[0], 0};
    for (uint32_t k = 0; k < d->sentences; k++) {
        uint64_t size = tokens_between(d, k, k + 1);
        if (packed.count && packed.count + size > x->target) {
            add_record(x, packed, (struct range){0}, false);
            packed = (struct range){packed.first + packed.count, 0};
        }
        for (packed.count += size; packed.count > x->target; packed.count -= x->target) {
            add_record(x, (struct range){packed.first, x->target}, (struct range){0}, false);
            packed.first += x->target;
        }
    }
    if (packed.count)
        add_record(x, packed, (struct range){0}, false);
}

void pairs_add(const struct pairs_rules *r, const struct corpus *c, uint32_t document,
               uint32_t copy, struct samples_list *ret)
{
    struct builder x = {.rules = r,
                        .corpus = c,
                        .draws = data_draws(r->seed, STREAM_PAIRS, document, copy),
                        .index = document,
                        .document = corpus_document(c, document),
                        .target = r->length - (r->pairing == PAIRING_NEXT ? 3 : 2),
                        .list = ret};
    if (draw_share(&x.draws) < r->short_share)
        x.target = draw_between(&x.draws, 2, x.target);
    if (r->pairing == PAIRING_NEXT)
        add_pairs(&x);
    else
        add_full(&x);
}
