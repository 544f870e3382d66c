/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks that begin during the backward pass, on the emulated device, with ranks that record them. Is every bucket
   complete when its sum begins, also with accumulation, dropout, recomputing and learned masks? Do sums begin before the
   backward pass has ended? Do all buckets together cover the gradient once? Are the steps those without such sums? */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "tests/support/test.h"
#include "tests/train/ranks/random_objective.h"
#include "tests/train/ranks/thread_ranks.h"
#include "tests/train/subject.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SUMS = 8, LAYERS = 2, HIDDEN = 16 };

/* ---- a comm of one rank that records its sums ---- */

struct recorded_sum {
    float *x;
    uint64_t count, launches; /* that the device had been given when it began */
    float *values;            /* then */
};

struct recorder {
    const struct trainer *trainer;
    struct recorded_sum sum[MOST_SUMS];
    uint32_t begun, ended,
        early; /* early: sums that began before the embeddings' way back was submitted */
};

static uint64_t launches(const struct trainer *t)
{
    return train_state_use(t->state).launches;
}

static void begin_sum(const struct comm *c, float *x, uint64_t count)
{
    struct recorder *r = c->context;
    struct recorded_sum *s = &r->sum[r->begun++];
    assert_true(r->begun <= MOST_SUMS);
    *s = (struct recorded_sum){x, count, launches(r->trainer),
                               memory_new(count, sizeof *s->values)};
    state_read(r->trainer->state, x, count, s->values);
}

/* The buckets lie one before another, from the end of the gradient to its beginning. The bias of a learned mask is last. */
static void check_places(const struct recorder *r)
{
    const struct train_state *s = r->trainer->state;
    const struct learner *l = r->trainer->learner;
    const float *end = s->gradient + s->count;
    const uint32_t buckets = r->begun - (l != NULL);
    assert_int_equal(buckets, LAYERS + 1);
    for (uint32_t k = 0; k < buckets; k++) {
        assert_ptr_equal(r->sum[k].x + r->sum[k].count, end);
        end = r->sum[k].x;
    }
    assert_ptr_equal(end, s->gradient);
    if (l)
        assert_ptr_equal(r->sum[buckets].x, l->d_bias.array);
}

static int end_sums(const struct comm *c, int result, struct error *e)
{
    struct recorder *r = c->context;
    (void)e;
    assert_int_equal(result, 0);
    check_places(r);
    for (uint32_t k = 0; k < r->begun; k++) {
        struct recorded_sum *s = &r->sum[k];
        float *now = memory_new(s->count, sizeof *now);
        state_read(r->trainer->state, s->x, s->count, now);
        assert_memory_equal(s->values, now, s->count * sizeof *now);
        r->early += s->launches < launches(r->trainer);
        free(now);
        free(s->values);
    }
    r->begun = 0;
    r->ended++;
    return 0;
}

/* ---- steps ---- */

static void run(struct rank *r, const struct learn_options *learn, struct recorder *recorder)
{
    r->device = "emulated";
    if (recorder) {
        r->comm = comm_alone;
        r->comm.context = recorder;
        r->comm.begin_sum = begin_sum;
        r->comm.end_sums = end_sums;
        r->trainer.comm = &r->comm;
        r->trainer.bucket = 1;
        recorder->trainer = &r->trainer;
    }
    rank_begin(r, learn);
    rank_run(r);
    must(r->result, &r->error);
}

static void must_be_same(const struct rank *a, const struct rank *b)
{
    const size_t bytes = a->trainer.state->count * sizeof(float);
    for (int k = 0; k < STEPS; k++) {
        assert_true(a->step[k].loss == b->step[k].loss && a->step[k].norm == b->step[k].norm);
        assert_memory_equal(a->gradient[k], b->gradient[k], bytes);
        if (a->trainer.learner)
            assert_memory_equal(a->d_alpha[k], b->d_alpha[k],
                                a->trainer.learner->alpha.count * sizeof(float));
    }
}

static void check(uint32_t parts, enum recompute recompute, const struct learn_options *learn)
{
    struct rank recorded = {.options = {.accumulate = parts, .recompute = recompute}},
                plain = recorded;
    struct recorder recorder = {0};
    random_restart();
    random_model(LAYERS, HIDDEN, 1, 2, "gelu");
    run(&recorded, learn, &recorder);
    run(&plain, learn, NULL);
    assert_int_equal(recorder.ended, STEPS);
    assert_int_equal(recorder.early, STEPS * LAYERS);
    must_be_same(&recorded, &plain);
    rank_end(&recorded);
    rank_end(&plain);
}

static const struct learn_options nothing = {.kind = LEARN_NOTHING};

/* A batch of 7 samples in one part, and in four groups of parts of which some have no sample. */
static void buckets_are_complete(void **unused)
{
    (void)unused;
    check(1, RECOMPUTE_NONE, &nothing);
    check(16, RECOMPUTE_LAYER, &nothing);
}

static void so_are_those_beside_learned_masks(void **unused)
{
    const struct learn_options o = {.kind = LEARN_DISTANCES,
                                    .lambda = 1e-3,
                                    .tau = 1,
                                    .tau_end = 0.5,
                                    .scale = 10,
                                    .rate = 1e-2,
                                    .relaxed = true,
                                    .two_levels = true};
    (void)unused;
    check(4, RECOMPUTE_NONE, &o);
}

/* ---- the usual size ---- */

/* Buckets of a model whose layers are small: of more than one layer, and at most 16. */
static void buckets_are_not_too_small(void **unused)
{
    struct rank r = {0};
    struct buckets b;
    struct span of;
    uint64_t end;
    (void)unused;
    random_restart();
    random_model(40, 16, 1, 2, "gelu");
    rank_begin(&r, &nothing);
    const struct train_state *s = r.trainer.state;
    buckets_begin(&b, s, 0);
    end = s->count;
    assert_true(b.count > 4 && b.count <= 17);
    assert_false(buckets_next(&b, s->count, &of));
    for (uint32_t k = 0; k < b.count; k++) {
        assert_true(buckets_next(&b, 0, &of));
        assert_true(of.first + of.count == end &&
                    (of.count >= s->count / 16 || k + 1 == b.count));
        end = of.first;
    }
    assert_true(end == 0 && !buckets_next(&b, 0, &of));
    buckets_finish(&b);
    rank_end(&r);
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {cmocka_unit_test(buckets_are_complete),
                                       cmocka_unit_test(so_are_those_beside_learned_masks),
                                       cmocka_unit_test(buckets_are_not_too_small)};
    return cmocka_run_group_tests_name("sums beside the backward pass", tests, random_setup,
                                       random_teardown);
}
