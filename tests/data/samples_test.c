/* SPDX-License-Identifier: Apache-2.0 */
/* Is an epoch a permutation? Are masks drawn in the right number, at the right places, in the right shares, and the
   same wherever a sample stands? Is a batch what its records say? Do threads make no difference to prep? */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "model/data/order.h"
#include "tests/data/data_files.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void near(double seen, double draws, double p)
{
    double sigma = sqrt(draws * p * (1 - p));
    if (!(fabs(seen - draws * p) <= 4 * sigma))
        fail_msg("%g of %g draws, %g +- %g are expected", seen, draws, draws * p, sigma);
}

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
    near(next, 10000 - 128, 0.5);
    near(far, 10000 - 128, 0.5);
    assert_true(order_at(3, 0, UINT32_MAX, 9) < UINT32_MAX);
}

enum { VOCABULARY = 1000, FIRST_FOLLOWING = 700, LENGTH = 100, DRAWS = 8000 };

static struct masking masking(bool whole_words)
{
    static uint8_t follows[VOCABULARY / 8];
    for (uint32_t k = FIRST_FOLLOWING; k < VOCABULARY; k++)
        follows[k / 8] |= (uint8_t)(1u << k % 8);
    return (struct masking){.probability = 0.15,
                            .whole_words = whole_words,
                            .begin = 2,
                            .end = 3,
                            .mask = 4,
                            .vocabulary = VOCABULARY,
                            .follows = follows};
}

/* [CLS] .. [SEP] .. [SEP]; without whole words no piece follows. */
static void fill_tokens(uint32_t *token, uint32_t count, uint32_t seed, bool pieces)
{
    struct draws d = draws_begin(seed, (enum random_stream)99, 0, 0);
    for (uint32_t k = 0; k < count; k++)
        token[k] = 10 + draws_below(&d, (pieces ? VOCABULARY : FIRST_FOLLOWING) - 10);
    token[0] = 2;
    token[count / 2] = token[count - 1] = 3;
}

static void masks_have_their_shares(void **state)
{
    (void)state;
    struct masking m = masking(false);
    struct masking_memory memory = {0};
    uint32_t at_place[LENGTH] = {0}, masked = 0, kept = 0, all = 0, special = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t token[LENGTH], before[LENGTH], place[LENGTH], label[LENGTH];
        fill_tokens(token, LENGTH, k, false);
        memcpy(before, token, sizeof before);
        uint32_t n = masking_apply(&m, (struct masking_key){9, 0, k}, &memory,
                                   (struct masking_target){token, LENGTH, place, label});
        assert_int_equal(n, 15);
        for (uint32_t j = 0; j < n; j++) {
            assert_true(j == 0 || place[j] > place[j - 1]);
            assert_int_equal(label[j], before[place[j]]);
            assert_true(label[j] != 2 && label[j] != 3);
            at_place[place[j]]++;
            masked += token[place[j]] == m.mask;
            kept += token[place[j]] == label[j];
            special += token[place[j]] < 5 && token[place[j]] != m.mask;
            before[place[j]] = token[place[j]];
        }
        assert_memory_equal(before, token, sizeof token); /* nothing else has changed */
        all += n;
    }
    /* A random token may be [MASK], or what stood there. */
    near(masked, all, 0.8 + 0.1 / VOCABULARY);
    near(kept, all, 0.1 + 0.1 / VOCABULARY);
    near(special, all, 0.1 * 4 / VOCABULARY); /* random tokens come from the whole vocabulary */
    for (uint32_t k = 0; k < LENGTH; k++)
        if (k == 0 || k == LENGTH / 2 || k == LENGTH - 1)
            assert_int_equal(at_place[k], 0);
        else
            near(at_place[k], DRAWS, 15.0 / (LENGTH - 3));
    masking_finish(&memory);
}

static void the_number_of_masks_is_rounded_as_in_python(void **state)
{
    (void)state;
    static const struct {
        uint32_t length, most;
        double probability;
        uint32_t masked;
    } cases[] = {{4, 0, 0.15, 1},   {30, 0, 0.15, 4}, /* 4.5 */
                 {50, 0, 0.15, 8},                    /* 7.5 */
                 {99, 0, 0.15, 15}, {99, 10, 0.15, 10}, {99, 0, 0, 1},
                 {99, 0, 1, 96},    {99, 20, 0.9, 20}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct masking m = masking(false);
        struct masking_memory memory = {0};
        uint32_t token[LENGTH], place[LENGTH], label[LENGTH];
        m.probability = cases[k].probability;
        m.most = cases[k].most;
        fill_tokens(token, cases[k].length, 1, false);
        assert_int_equal(
            masking_apply(&m, (struct masking_key){1, 2, 3}, &memory,
                          (struct masking_target){token, cases[k].length, place, label}),
            cases[k].masked);
        masking_finish(&memory);
    }
}

static void whole_words_go_together(void **state)
{
    (void)state;
    struct masking m = masking(true);
    struct masking_memory memory = {0};
    uint32_t most = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t token[LENGTH], before[LENGTH], place[LENGTH], label[LENGTH];
        bool chosen[LENGTH + 1] = {false};
        fill_tokens(token, LENGTH, k, true);
        memcpy(before, token, sizeof before);
        uint32_t n = masking_apply(&m, (struct masking_key){9, 0, k}, &memory,
                                   (struct masking_target){token, LENGTH, place, label});
        assert_in_range(n, 1, 15);
        most += n == 15;
        for (uint32_t j = 0; j < n; j++)
            chosen[place[j]] = true;
        for (uint32_t j = 1; j < LENGTH; j++)
            if (before[j] >= FIRST_FOLLOWING && before[j - 1] > 3)
                assert_int_equal(chosen[j], chosen[j - 1]);
    }
    assert_true(most >
                DRAWS * 9 / 10); /* words that are too many are passed over, others fill up */
    masking_finish(&memory);
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
    for (; *masked < t->masked && t->masked_row[*masked] < row + q.count; ++*masked) {
        assert_true(t->masked_row[*masked] >= row);
        token[t->masked_row[*masked] - row] = t->masked_label[*masked];
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
    if (s->header->pairing == PAIRING_NEXT)
        assert_int_equal(t->next_label[k], r->random);
    else
        assert_null(t->next_label);
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
        assert_int_equal(masked, b.batch.masked);
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

static void must_be_slice(const struct train_batch *whole, uint32_t first,
                          const struct train_batch *part)
{
    uint32_t masked = 0;
    for (uint32_t k = 0; k < part->sequences; k++) {
        struct sequence a = whole->list[first + k], b = part->list[k];
        assert_int_equal(a.count, b.count);
        assert_int_equal(a.first_part, b.first_part);
        assert_memory_equal(a.token_ids, b.token_ids, a.count * sizeof *a.token_ids);
        assert_int_equal(whole->sample[first + k], part->sample[k]);
        assert_int_equal(whole->next_label[first + k], part->next_label[k]);
        assert_int_equal(part->offsets[k + 1] - part->offsets[k], b.count);
    }
    for (uint32_t k = 0; k < whole->masked; k++) {
        uint32_t row = whole->masked_row[k] - (uint32_t)whole->offsets[first];
        if (whole->masked_row[k] < (uint32_t)whole->offsets[first] || row >= part->tokens)
            continue;
        assert_int_equal(part->masked_row[masked], row);
        assert_int_equal(part->masked_label[masked++], whole->masked_label[k]);
    }
    assert_int_equal(masked, part->masked);
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
        uint32_t rows[3 * 32];
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
        near((double)s.part[DATA_HELD_OUT].documents, 1500, 0.2);
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
        cmocka_unit_test(masks_have_their_shares),
        cmocka_unit_test(the_number_of_masks_is_rounded_as_in_python),
        cmocka_unit_test(whole_words_go_together),
        cmocka_unit_test(a_batch_is_what_its_records_say),
        cmocka_unit_test(grouping_makes_no_difference),
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(documents_are_held_out_by_their_content),
    };
    return cmocka_run_group_tests_name("samples", tests, data_begin, data_end);
}
