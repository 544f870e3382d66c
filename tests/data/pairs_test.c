/* SPDX-License-Identifier: Apache-2.0 */
/* Are a document's samples those of Google's create_pretraining_data.py? plain_instances() is
   create_instances_from_document() line by line, over lists of tokens, fed with the same random numbers. Are full
   sentences packed as pairs.h says? */
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "model/data/pairs.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST = 4096 };

struct list {
    uint32_t token[LIST];
    uint32_t count;
};

struct plain {
    struct list *sentence; /* of all documents */
    uint32_t *first;       /* sentence of each document, and the end */
    uint32_t documents;
};

struct instance {
    struct list a, b;
    bool random;
};

static void extend(struct list *to, const struct list *from)
{
    assert_true(to->count + from->count <= LIST);
    memcpy(to->token + to->count, from->token, from->count * sizeof *from->token);
    to->count += from->count;
}

static struct plain read_plain(const struct corpus *c)
{
    struct plain p = {.documents = (uint32_t)corpus_documents(c)};
    uint32_t count = 0;
    p.first = memory_new(p.documents + 1, sizeof *p.first);
    for (uint32_t k = 0; k < p.documents; k++) {
        p.first[k] = count;
        count += corpus_document(c, k).sentences;
    }
    p.first[p.documents] = count;
    p.sentence = memory_new(count, sizeof *p.sentence);
    for (uint32_t k = 0; k < p.documents; k++) {
        struct corpus_document d = corpus_document(c, k);
        for (uint32_t j = 0; j < d.sentences; j++) {
            struct list *s = &p.sentence[p.first[k] + j];
            s->count = d.begin[j + 1] - d.begin[j];
            corpus_copy(c, d.base + d.begin[j], s->count, s->token);
        }
    }
    return p;
}

static void truncate_seq_pair(struct list *a, struct list *b, uint32_t max_num_tokens,
                              struct draws *rng)
{
    while (a->count + b->count > max_num_tokens) {
        struct list *longer = a->count > b->count ? a : b;
        assert_true(longer->count >= 1);
        if (draw_share(rng) < 0.5)
            memmove(longer->token, longer->token + 1, (longer->count - 1) * sizeof(uint32_t));
        longer->count--;
    }
}

/* Returns how many instances it wrote. */
static uint32_t plain_instances(const struct plain *p, const struct pairs_rules *r,
                                uint32_t document_index, uint32_t copy, struct instance *ret)
{
    struct draws rng = data_draws(r->seed, STREAM_PAIRS, document_index, copy);
    const struct list *document = p->sentence + p->first[document_index];
    uint32_t size = p->first[document_index + 1] - p->first[document_index], instances = 0;
    uint32_t max_num_tokens = r->length - 3, target_seq_length = max_num_tokens;
    if (draw_share(&rng) < r->short_share)
        target_seq_length = 2 + draws_below(&rng, max_num_tokens - 1);
    uint32_t chunk[64], chunks = 0, current_length = 0;
    for (uint32_t i = 0; i < size; i++) {
        chunk[chunks++] = i;
        current_length += document[i].count;
        if (i != size - 1 && current_length < target_seq_length)
            continue;
        struct instance *x = &ret[instances++];
        *x = (struct instance){0};
        uint32_t a_end = chunks >= 2 ? 1 + draws_below(&rng, chunks - 1) : 1;
        for (uint32_t j = 0; j < a_end; j++)
            extend(&x->a, &document[chunk[j]]);
        if (chunks == 1 || draw_share(&rng) < 0.5) {
            x->random = true;
            int64_t target_b_length = (int64_t)target_seq_length - x->a.count;
            uint32_t other = 0;
            for (int k = 0; k < 10; k++) {
                other = draws_below(&rng, p->documents);
                if (other != document_index)
                    break;
            }
            uint32_t start = draws_below(&rng, p->first[other + 1] - p->first[other]);
            for (uint32_t j = p->first[other] + start; j < p->first[other + 1]; j++) {
                extend(&x->b, &p->sentence[j]);
                if ((int64_t)x->b.count >= target_b_length)
                    break;
            }
            i -= chunks - a_end;
        } else {
            for (uint32_t j = a_end; j < chunks; j++)
                extend(&x->b, &document[chunk[j]]);
        }
        truncate_seq_pair(&x->a, &x->b, max_num_tokens, &rng);
        assert_true(x->a.count >= 1 && x->b.count >= 1);
        chunks = 0;
        current_length = 0;
    }
    return instances;
}

static void must_be(const struct corpus *c, uint64_t at, uint32_t count, const struct list *l)
{
    uint32_t token[LIST];
    assert_int_equal(count, l->count);
    corpus_copy(c, at, count, token);
    assert_memory_equal(token, l->token, count * sizeof *token);
}

static struct corpus open_corpus(const char *name, uint32_t shards)
{
    char folder[256];
    struct corpus c;
    struct error e = {0};
    data_path(folder, sizeof folder, name);
    if (corpus_open(folder, DATA_TRAIN, shards, &c, &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

static void pairs_are_those_of_the_plain_text(void **state)
{
    (void)state;
    static const struct {
        uint32_t length;
        double short_share;
    } cases[] = {{5, 0.1}, {8, 0.5}, {32, 0.1}, {32, 0.9}, {128, 0}, {512, 0.3}};
    struct tokenizer *t = data_tokenizer();
    struct data_recipe r = data_recipe(t, "pairs");
    struct prepare_stats s = data_make(&r);
    assert_true(s.part[DATA_TRAIN].shards > 2);
    struct corpus c = open_corpus("pairs", s.part[DATA_TRAIN].shards);
    struct plain p = read_plain(&c);
    struct instance *expected = memory_new(512, sizeof *expected);
    uint32_t random = 0, all = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (uint32_t document = 0; document < p.documents; document++)
            for (uint32_t copy = 0; copy < 4; copy++) {
                const struct pairs_rules rules = {11, cases[k].short_share, cases[k].length,
                                                  PAIRING_NEXT};
                struct samples_list list = {0};
                pairs_add(&rules, &c, document, copy, &list);
                uint32_t count = plain_instances(&p, &rules, document, copy, expected);
                assert_int_equal(list.count, count);
                for (uint32_t j = 0; j < count; j++) {
                    const struct sample_record *x = &list.sample[j];
                    must_be(&c, x->a, x->a_count, &expected[j].a);
                    must_be(&c, x->b, x->b_count, &expected[j].b);
                    assert_int_equal(x->random, expected[j].random);
                    random += x->random;
                }
                all += count;
                free(list.sample);
            }
    assert_true(all > 4000 && random > all / 3 && random < all);
    free(expected);
    free(p.sentence);
    free(p.first);
    corpus_close(&c);
    tokenizer_destroy(t);
}

/* Each document is cut into samples without a gap; one ends where the next sentence does not fit, or within a sentence
   that is longer than a sample. */
static void full_sentences_are_packed(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    struct data_recipe r = data_recipe(t, "full");
    r.options.pairing = PAIRING_FULL;
    r.options.dupe = 1;
    struct prepare_stats s = data_make(&r);
    struct corpus c = open_corpus("full", s.part[DATA_TRAIN].shards);
    for (uint32_t length = 4; length < 80; length += 19)
        for (uint32_t k = 0; k < corpus_documents(&c); k++) {
            const struct pairs_rules rules = {1, 0, length, PAIRING_FULL};
            struct samples_list list = {0};
            struct corpus_document d = corpus_document(&c, k);
            uint64_t at = d.base + d.begin[0], end = d.base + d.begin[d.sentences];
            uint32_t sentence = 0;
            pairs_add(&rules, &c, k, 0, &list);
            for (size_t j = 0; j < list.count; j++) {
                const struct sample_record *x = &list.sample[j];
                assert_int_equal(x->a, at);
                assert_int_equal(x->b_count, 0);
                assert_in_range(x->a_count, 1, length - 2);
                at += x->a_count;
                while (sentence < d.sentences && d.base + d.begin[sentence + 1] <= at)
                    sentence++;
                bool whole = d.base + d.begin[sentence] == at;
                uint64_t next =
                    sentence < d.sentences ? d.begin[sentence + 1] - d.begin[sentence] : length;
                assert_true(whole ? x->a_count + next > length - 2 : x->a_count == length - 2);
            }
            assert_int_equal(at, end);
            free(list.sample);
        }
    corpus_close(&c);
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_those_of_the_plain_text),
        cmocka_unit_test(full_sentences_are_packed),
    };
    return cmocka_run_group_tests_name("pairs", tests, data_begin, data_end);
}
