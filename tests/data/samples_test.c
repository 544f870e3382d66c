/* SPDX-License-Identifier: Apache-2.0 */
/* Is an epoch a permutation? Are samples and masks the same wherever a sample stands? Is a batch what its records say? Do threads make no difference to prep? */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void an_epoch_is_a_permutation(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 5, 16, 17, 1000, 65537};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            uint8_t *seen = memory_new(counts[k], 1);
            for (uint32_t j = 0; j < counts[k]; j++) {
                uint32_t at = order_at(5, epoch, counts[k], j);
                assert_true(at < counts[k] && !seen[at]);
                seen[at] = 1;
            }
            free(seen);
        }
    uint32_t fixed = 0, same = 0, next = 0, far = 0;
    for (uint32_t j = 0; j < 10000; j++) {
        fixed += order_at(5, 0, 10000, j) == j;
        same += order_at(5, 0, 10000, j) == order_at(5, 1, 10000, j);
    }
    assert_true(fixed < 10 && same < 10); /* 1 is expected */
    for (uint32_t j = 0; j + 128 < 10000; j++) {
        next += order_at(5, 0, 10000, j) < order_at(5, 0, 10000, j + 1);
        far += order_at(5, 0, 10000, j) < order_at(5, 0, 10000, j + 128);
    }
    data_near(next, 10000 - 128, 0.5);
    data_near(far, 10000 - 128, 0.5);
    assert_true(order_at(3, 0, UINT32_MAX, 9) < UINT32_MAX);
}

static struct samples *open_part(const char *name, enum data_part part)
{
    char folder[256];
    struct error e = {0};
    data_path(folder, sizeof folder, name);
    struct samples *s = samples_open(folder, part, NULL, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

/* [CLS] A [SEP] B [SEP] of the record, with its labels put back. */
static void check_sequence(const struct samples *s, const struct train_batch *t, uint32_t k,
                           uint32_t *masked)
{
    const struct sample_record *r = &s->records.sample[t->sample[k]];
    struct sequence q = t->list[k];
    uint32_t token[64], expected[64], n = 0, row = (uint32_t)t->offsets[k];
    memcpy(token, q.token_ids, q.count * sizeof *token);
    const struct train_target *words = &t->target[SAMPLE_WORDS];
    for (; *masked < words->count && words->row[*masked] < row + q.count; ++*masked) {
        assert_true(words->row[*masked] >= row);
        token[words->row[*masked] - row] = words->label[*masked];
    }
    expected[n++] = s->header->begin;
    corpus_copy(&s->corpus, r->a, r->a_count, expected + n);
    n += r->a_count;
    expected[n++] = s->header->end;
    assert_int_equal(q.first_part, n);
    if (r->b_count) {
        corpus_copy(&s->corpus, r->b, r->b_count, expected + n);
        n += r->b_count;
        expected[n++] = s->header->end;
    }
    assert_int_equal(q.count, n);
    assert_int_equal(t->offsets[k + 1], row + n);
    assert_true(n <= s->header->length);
    assert_memory_equal(token, expected, n * sizeof *token);
    if (s->header->pairing == PAIRING_NEXT) {
        assert_int_equal(t->target[SAMPLE_NEXT].label[k], r->random);
        assert_int_equal(t->target[SAMPLE_NEXT].row[k], row);
    } else {
        assert_int_equal(t->targets, 1);
    }
}

static const struct sample_options options = {.seed = 4, .probability = 0.15};

static void check_epoch(const struct samples *s)
{
    struct sample_batch b = {0};
    uint8_t *seen = memory_new(s->count, 1);
    for (uint64_t first = 0; first < s->count; first += 7) {
        uint32_t count = s->count - first < 7 ? (uint32_t)(s->count - first) : 7, masked = 0;
        samples_batch(s, &options, 2, first, count, &b);
        assert_int_equal(b.batch.sequences, count);
        for (uint32_t k = 0; k < count; k++) {
            assert_false(seen[b.batch.sample[k]]);
            seen[b.batch.sample[k]] = 1;
            check_sequence(s, &b.batch, k, &masked);
        }
        assert_int_equal(masked, b.batch.target[SAMPLE_WORDS].count);
        assert_int_equal(b.batch.tokens, b.batch.offsets[count]);
    }
    free(seen);
    sample_batch_finish(&b);
}

static void a_batch_is_what_its_records_say(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    for (int full = 0; full < 2; full++) {
        struct data_recipe r = data_recipe(t, full ? "batch-full" : "batch");
        r.options.pairing = full ? PAIRING_FULL : PAIRING_NEXT;
        struct prepare_stats stats = data_make(&r);
        for (int part = 0; part < DATA_PARTS; part++) {
            struct samples *s = open_part(r.name, (enum data_part)part);
            assert_int_equal(s->count, stats.part[part].samples);
            assert_true(s->count > 20);
            check_epoch(s);
            samples_close(s);
        }
    }
    tokenizer_destroy(t);
}

static void must_be_same_sequences(const struct train_batch *whole, uint32_t first,
                                   const struct train_batch *part)
{
    for (uint32_t k = 0; k < part->sequences; k++) {
        struct sequence a = whole->list[first + k], b = part->list[k];
        assert_int_equal(a.count, b.count);
        assert_int_equal(a.first_part, b.first_part);
        assert_memory_equal(a.token_ids, b.token_ids, a.count * sizeof *a.token_ids);
        assert_int_equal(whole->sample[first + k], part->sample[k]);
        assert_int_equal(part->offsets[k + 1] - part->offsets[k], b.count);
    }
}

static void must_be_part(const struct train_batch *whole, uint32_t first,
                         const struct train_target *all, const struct train_batch *part,
                         const struct train_target *some)
{
    const uint32_t begin = (uint32_t)whole->offsets[first];
    uint32_t seen = 0;
    assert_int_equal(all->head, some->head);
    for (uint32_t k = 0; k < all->count; k++) {
        if (all->row[k] < begin || all->row[k] - begin >= part->tokens)
            continue;
        assert_int_equal(some->row[seen], all->row[k] - begin);
        assert_int_equal(some->label[seen++], all->label[k]);
    }
    assert_int_equal(seen, some->count);
}

static void must_be_slice(const struct train_batch *whole, uint32_t first,
                          const struct train_batch *part)
{
    must_be_same_sequences(whole, first, part);
    assert_int_equal(whole->targets, part->targets);
    for (uint32_t k = 0; k < whole->targets; k++)
        must_be_part(whole, first, &whole->target[k], part, &part->target[k]);
}

/* Samples are the same in other batches, in slices, and beyond an epoch's end. */
static void grouping_makes_no_difference(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    struct data_recipe r = data_recipe(t, "grouping");
    data_make(&r);
    struct samples *s = open_part("grouping", DATA_TRAIN);
    struct sample_batch whole = {0}, part = {0};
    uint64_t begin = s->count - 5;
    samples_batch(s, &options, 0, begin, 12, &whole);
    for (uint32_t first = 0; first < 12; first += 3) {
        struct train_batch slice;
        int32_t offsets[4];
        uint32_t rows[3 * 33];
        samples_batch(s, &options, 0, begin + first, 3, &part);
        must_be_slice(&whole.batch, first, &part.batch);
        train_batch_slice(&whole.batch, first, 3, &slice, offsets, rows);
        must_be_slice(&whole.batch, first, &slice);
    }
    samples_batch(s, &options, 1, 0, 7, &part);
    must_be_slice(&whole.batch, 5, &part.batch);
    sample_batch_finish(&part);
    sample_batch_finish(&whole);
    samples_close(s);
    tokenizer_destroy(t);
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    for (uint32_t threads = 1; threads <= 3; threads++) {
        char name[32], line[300];
        snprintf(name, sizeof name, "threads-%u", threads);
        struct data_recipe r = data_recipe(t, name);
        r.documents = 2000;
        r.options.shard_tokens = 20000;
        r.options.threads = threads;
        data_make(&r);
        snprintf(line, sizeof line, "diff -r %s/threads-1 %s/%s", data_folder, data_folder,
                 name);
        assert_int_equal(system(line), 0);
    }
    tokenizer_destroy(t);
}

/* Equal documents are on one side; the share is near; another seed draws others. */
static void documents_are_held_out_by_their_content(void **state)
{
    (void)state;
    struct tokenizer *t = data_tokenizer();
    uint64_t tokens[2];
    for (int k = 0; k < 2; k++) {
        struct data_recipe r = data_recipe(t, k ? "held-out-1" : "held-out-0");
        r.documents = 1500;
        r.options.seed = (uint64_t)k;
        struct prepare_stats s = data_make(&r);
        data_near((double)s.part[DATA_HELD_OUT].documents, 1500, 0.2);
        assert_int_equal(s.part[DATA_TRAIN].documents + s.part[DATA_HELD_OUT].documents, 1500);
        tokens[k] = s.part[DATA_HELD_OUT].tokens;
    }
    assert_int_not_equal(tokens[0], tokens[1]);
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_is_a_permutation),
        cmocka_unit_test(a_batch_is_what_its_records_say),
        cmocka_unit_test(grouping_makes_no_difference),
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(documents_are_held_out_by_their_content),
    };
    return cmocka_run_group_tests_name("samples", tests, data_begin, data_end);
}
