/* SPDX-License-Identifier: Apache-2.0 */
/* Two and four ranks, threads of this process, against one rank: the same bits of losses, gradients, parameters and
   moments, with the batch in four parts and in eight. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "tests/model/random/random_bert.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include "tests/train/ranks/random_objective.h"
#include "tests/train/ranks/thread_ranks.h"
#include <stdlib.h>
#include <string.h>

static bool few; /* --few, under sanitizers: two ranks, AdamW, one kind of learned mask */

static const struct learn_options distances = {.kind = LEARN_DISTANCES,
                                               .lambda = 1e-3,
                                               .tau = 1,
                                               .tau_end = 0.5,
                                               .scale = 10,
                                               .rate = 1e-2,
                                               .relaxed = true};

/* ---- comparisons ---- */

static void compare_held_out(const struct evaluation *a, const struct evaluation *b)
{
    assert_int_equal(a->tokens, b->tokens);
    assert_true(a->loss == b->loss);
    for (uint32_t k = 0; k < random_objective.targets; k++) {
        assert_int_equal(a->losses.target[k].count, b->losses.target[k].count);
        assert_int_equal(a->losses.target[k].right, b->losses.target[k].right);
        assert_true(a->losses.target[k].sum == b->losses.target[k].sum);
    }
}

static void must_be_same(const struct rank *a, const struct rank *b)
{
    const struct train_state *s = a->trainer.state, *t = b->trainer.state;
    const size_t bytes = s->count * sizeof(float);
    assert_memory_equal(s->value, t->value, bytes);
    assert_memory_equal(s->first_moment, t->first_moment, bytes);
    assert_memory_equal(s->second_moment, t->second_moment, bytes);
    for (int k = 0; k < STEPS; k++) {
        assert_true(a->step[k].loss == b->step[k].loss && a->step[k].norm == b->step[k].norm);
        assert_int_equal(a->step[k].tokens, b->step[k].tokens);
        assert_memory_equal(a->gradient[k], b->gradient[k], bytes);
    }
    if (a->trainer.learner)
        assert_memory_equal(a->trainer.learner->alpha.value, b->trainer.learner->alpha.value,
                            a->trainer.learner->alpha.count * sizeof(float));
}

/* ranks: 2 or 4 */
static void check_ranks(uint32_t ranks, uint32_t parts, const struct learn_options *learn)
{
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank),
                one = {.options.accumulate = parts};
    struct meeting m = {.ranks = ranks};
    random_restart();
    random_model(2, 64, 4, 2, "gelu");
    run_ranks(rank, parts, learn, &m);
    rank_begin(&one, learn);
    rank_run(&one);
    must(one.result, &one.error);
    assert_true(m.sums > STEPS);
    for (uint32_t k = 0; k < ranks; k++) {
        must(rank[k].result, &rank[k].error);
        compare_held_out(&rank[k].held_out, &one.held_out);
        must_be_same(&rank[k], &one);
        rank_end(&rank[k]);
    }
    rank_end(&one);
    free(rank);
}

static void check(const struct learn_options *learn)
{
    check_ranks(2, 4, learn);
    if (!few)
        check_ranks(4, 8, learn);
}

static void ranks_have_the_bits_of_one(void **unused)
{
    (void)unused;
    check(&(struct learn_options){.kind = LEARN_NOTHING});
}

static void so_do_learned_masks(void **unused)
{
    (void)unused;
    struct learn_options o = distances;
    if (!few)
        check(&o);
    o.two_levels = true;
    check(&o);
    if (few)
        return;
    o.kind = LEARN_P;
    o.per_layer = true;
    o.two_levels = false;
    check(&o);
}

/* Values and norms of ranks that share the moments; each has the moments of its span. The model has parameters of several
   blocks of the norm, and a span begins inside of one. Rank 0 sends its part of the gradients and its values. */
static void check_zero(uint32_t ranks, enum optimizer_kind kind)
{
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank),
                one = {.options = {.accumulate = 4, .optimizer.kind = kind}};
    struct meeting m = {.ranks = ranks, .shares_moments = true};
    uint64_t inside = 0;
    random_model(1, 192, 4, 2, "gelu");
    for (uint32_t k = 0; k < ranks; k++)
        rank[k].options.optimizer.kind = kind;
    run_ranks(rank, 4, &(struct learn_options){.kind = LEARN_NOTHING}, &m);
    rank_begin(&one, &(struct learn_options){.kind = LEARN_NOTHING});
    rank_run(&one);
    must(one.result, &one.error);
    const struct train_state *s = one.trainer.state;
    for (uint32_t k = 0; k < ranks; k++) {
        const struct train_state *t = rank[k].trainer.state;
        const struct span own = t->moments;
        must(rank[k].result, &rank[k].error);
        assert_true(own.count < s->count);
        assert_memory_equal(s->value, t->value, s->count * sizeof(float));
        assert_memory_equal(s->first_moment + own.first, t->first_moment,
                            own.count * sizeof(float));
        assert_memory_equal(s->second_moment + own.first, t->second_moment,
                            own.count * sizeof(float));
        for (int i = 0; i < STEPS; i++)
            assert_true(one.step[i].norm == rank[k].step[i].norm);
        for (uint32_t i = 0; i < s->pieces; i++)
            inside += own.first > s->piece[i].first &&
                      own.first < s->piece[i].first + s->piece[i].count;
    }
    assert_true(kind == OPTIMIZER_LAMB ? inside == 0 : inside > 0);
    assert_int_equal(m.sent, STEPS * (s->count - rank[0].trainer.state->moments.count +
                                      (ranks - 1) * rank[0].trainer.state->moments.count));
    for (uint32_t k = 0; k < ranks; k++)
        rank_end(&rank[k]);
    rank_end(&one);
    free(rank);
}

static void so_do_shared_moments(void **unused)
{
    (void)unused;
    check_zero(2, OPTIMIZER_ADAMW);
    if (!few)
        check_zero(4, OPTIMIZER_LAMB);
}

/* A part has whole samples, or its request is refused: 2 sequences each, also in halves of --bi-level. */
static void samples_stay_whole(void **unused)
{
    (void)unused;
    random_group = 2;
    if (!few)
        check(&(struct learn_options){.kind = LEARN_NOTHING});
    struct learn_options o = distances;
    o.two_levels = true;
    check(&o);
    random_group = 1;
}

/* The most tokens of a part; the parts follow each other, and each has a sample. */
static uint32_t largest_part(const struct train_batch *b, uint32_t first, uint32_t end,
                             uint32_t parts)
{
    uint32_t ret = 0;
    assert_int_equal(train_batch_cut(b, first, end, 0, parts), first);
    assert_int_equal(train_batch_cut(b, first, end, parts, parts), end);
    for (uint32_t k = 0; k < parts; k++) {
        const uint32_t from = train_batch_cut(b, first, end, k, parts),
                       to = train_batch_cut(b, first, end, k + 1, parts);
        assert_true(to > from || (to == from && end - first < parts));
        const uint32_t tokens =
            (uint32_t)(b->offsets[to * b->group] - b->offsets[from * b->group]);
        ret = tokens > ret ? tokens : ret;
    }
    return ret;
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

/* 300 batches of random lengths: no part exceeds its share of the tokens by more than the longest possible sample. Batches of equal lengths are cut into equal numbers of samples. */
static void parts_have_equal_tokens(void **unused)
{
    (void)unused;
    enum { SAMPLES = 40, MOST = 64, GROUP = 2 };
    int32_t offsets[SAMPLES * GROUP + 1];
    uint32_t seed = 7;
    for (int turn = 0; turn < 300; turn++) {
        const struct train_batch b = {.offsets = offsets, .group = 1 + turn % GROUP};
        const uint32_t first = draw(&seed, 5), parts = 1 + draw(&seed, 8),
                       end = first + 1 + draw(&seed, SAMPLES - first),
                       equal = turn % 3 ? 0 : 10;
        offsets[0] = 0;
        for (uint32_t k = 0; k < SAMPLES * b.group; k++)
            offsets[k + 1] = offsets[k] + (int32_t)(equal ? equal : 1 + draw(&seed, MOST));
        const uint32_t samples = end - first, longest = (equal ? equal : MOST) * b.group,
                       all = (uint32_t)(offsets[end * b.group] - offsets[first * b.group]),
                       largest = largest_part(&b, first, end, parts);
        assert_true(largest <= all / parts + longest);
        assert_true(!equal || largest == (samples + parts - 1) / parts * longest);
    }
    const struct train_batch uneven = {
        .offsets = (int32_t[]){0, 10, 20, 30, 230, 240, 250, 260}, .group = 1};
    assert_int_equal(largest_part(&uneven, 0, 7, 2), 230);
    assert_int_equal(largest_part(&uneven, 0, 7, 4), 200);
}

/* Only the last rank's part has the token; the others must not wait for it, and all tell why. */
static void failure_ends_all(void **unused)
{
    (void)unused;
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank);
    struct meeting m = {.ranks = 2};
    random_model(1, 64, 4, 2, "gelu");
    random_spoilt = true;
    run_ranks(rank, 2, &(struct learn_options){.kind = LEARN_NOTHING}, &m);
    random_spoilt = false;
    for (uint32_t k = 0; k < m.ranks; k++) {
        assert_int_equal(rank[k].result, -1);
        assert_int_equal(rank[k].error.kind, ERROR_FALSE);
        assert_true(!strncmp(rank[k].error.text, "rank 1: sequence", 16));
        rank_end(&rank[k]);
    }
    free(rank);
}

/* Nor when a rank cannot read the gradient of a mask before sums that share the moments. */
static void failure_between_sums_ends_all(void **unused)
{
    (void)unused;
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank);
    struct meeting m = {.ranks = 2, .shares_moments = true, .loses_bias = true};
    random_model(1, 64, 4, 2, "gelu");
    run_ranks(rank, 2, &distances, &m);
    for (uint32_t k = 0; k < m.ranks; k++) {
        assert_int_equal(rank[k].result, -1);
        assert_string_equal(rank[k].error.text, "rank 1: cannot be read");
        rank_end(&rank[k]);
    }
    free(rank);
}

/* The loss of rank 1 alone is not finite: nothing moves, and each rank knows which one it was. */
static void the_faulty_rank_is_named(void **unused)
{
    (void)unused;
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank);
    struct meeting m = {.ranks = 2, .poisons_last = true};
    random_model(1, 64, 4, 2, "gelu");
    run_ranks(rank, 2, &(struct learn_options){.kind = LEARN_NOTHING}, &m);
    for (uint32_t k = 0; k < m.ranks; k++) {
        must(rank[k].result, &rank[k].error);
        assert_false(rank[k].step[0].finite);
        assert_int_equal(rank[k].step[0].faulty, 1);
        rank_end(&rank[k]);
    }
    free(rank);
}

static void must_not_save(struct rank *rank, struct meeting *m, float *number)
{
    const float before = *number;
    *number += 1e-6f;
    run_threads(rank, m, rank_save);
    *number = before;
    for (uint32_t k = 0; k < m->ranks; k++) {
        assert_int_equal(rank[k].result, -1);
        assert_int_equal(rank[k].error.kind, ERROR_FALSE);
        assert_non_null(strstr(rank[k].error.text, "rank 1: step 7: other parameters"));
    }
}

/* One number of rank 1, of a parameter or of a learned mask, is another one: no rank writes. */
static void other_parameters_are_not_saved(void **unused)
{
    (void)unused;
    struct rank *rank = memory_new(MOST_RANKS, sizeof *rank);
    struct meeting m = {.ranks = 2};
    random_model(1, 64, 4, 2, "gelu");
    run_ranks(rank, 2, &distances, &m);
    must_not_save(rank, &m, &rank[1].trainer.state->value[11]);
    must_not_save(rank, &m, &rank[1].trainer.learner->alpha.value[3]);
    for (uint32_t k = 0; k < m.ranks; k++)
        rank_end(&rank[k]);
    free(rank);
}

int main(int argc, char **argv)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    few = test_option(argc, argv, "--few");
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_have_the_bits_of_one),
                                       cmocka_unit_test(so_do_learned_masks),
                                       cmocka_unit_test(so_do_shared_moments),
                                       cmocka_unit_test(samples_stay_whole),
                                       cmocka_unit_test(parts_have_equal_tokens),
                                       cmocka_unit_test(failure_ends_all),
                                       cmocka_unit_test(failure_between_sums_ends_all),
                                       cmocka_unit_test(the_faulty_rank_is_named),
                                       cmocka_unit_test(other_parameters_are_not_saved)};
    return cmocka_run_group_tests(tests, random_setup, random_teardown);
}
