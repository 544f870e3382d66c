/* SPDX-License-Identifier: Apache-2.0 */
/* Two and four ranks, threads of this process, against one rank: the same bits of losses, gradients, parameters and
   moments, with the batch in four parts and in eight. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "tests/support/test.h"
#include "tests/train/ranks/random_objective.h"
#include "tests/train/subject.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The last step's batch reaches over the end of an epoch of 40 samples. */
enum { MOST_RANKS = 4, STEPS = 4, BATCH = 7, FIRST_STEP = 3 };

/* ---- ranks as threads ---- */

struct meeting {
    pthread_barrier_t barrier;
    uint32_t ranks;
    bool poisons_last; /* a parameter of the last rank is NaN */
    void *array[MOST_RANKS];
    uint64_t sums; /* how many there were */
};

/* A tree of two or four ranks; each rank has room for the result. */
#define DEFINE_SUM(name, type)                                                      \
    static int name(const struct comm *c, type *x, uint64_t count, struct error *e) \
    {                                                                               \
        struct meeting *m = c->context;                                             \
        type *sum = memory_new(count, sizeof *sum);                                 \
        (void)e;                                                                    \
        m->array[c->rank] = x;                                                      \
        pthread_barrier_wait(&m->barrier);                                          \
        for (uint64_t k = 0; k < count; k++) {                                      \
            type each[MOST_RANKS] = {0};                                            \
            for (uint32_t r = 0; r < m->ranks; r++)                                 \
                each[r] = ((const type *)m->array[r])[k];                           \
            sum[k] = (each[0] + each[1]) + (each[2] + each[3]);                     \
        }                                                                           \
        m->sums += c->rank == 0;                                                    \
        pthread_barrier_wait(&m->barrier);                                          \
        memcpy(x, sum, count * sizeof *x);                                          \
        free(sum);                                                                  \
        return 0;                                                                   \
    }
DEFINE_SUM(sum_f32, float)
DEFINE_SUM(sum_f64, double)
DEFINE_SUM(sum_u64, uint64_t)

/* ---- a run ---- */

struct rank {
    struct comm comm;
    struct run_options options;
    struct trainer trainer;
    struct step_result step[STEPS];
    struct evaluation held_out; /* before the first step */
    float *gradient[STEPS];
    float *d_alpha[STEPS];
    int result;
    struct error error;
};

static void must(int r, const struct error *e)
{
    if (r < 0)
        fail_msg("%s", e->text);
}

static void rank_begin(struct rank *r, const struct learn_options *learn)
{
    struct trainer *t = &r->trainer;
    const bool learns = learn->kind != LEARN_NOTHING;
    struct error e = {0};
    const struct engine_options options = {.mask = learns ? "dense" : "longformer(5,2)",
                                           .transform = "softmax",
                                           .dtype = ELEMENT_F32,
                                           .threads = 1,
                                           .parts = random_objective.parts,
                                           .trains = true,
                                           .dropout = true,
                                           .biased = learns};
    r->options.batch = BATCH;
    r->options.seed = 9;
    r->options.hidden_dropout = r->options.attention_dropout = 0.1;
    r->options.optimizer = (struct optimizer){OPTIMIZER_ADAMW, 0.9, 0.999, 1e-3, 0.01, 1, true};
    t->objective = &random_objective;
    t->data = &random_data;
    t->options = &r->options;
    t->engine = engine_load(random_folder, &options, &e);
    must(t->engine ? train_state_new(t->engine, &t->state, &e) : -1, &e);
    if (learns)
        must(learner_new(learn, t->engine, 5, &t->learner, &e), &e);
    must(engine_repack(t->engine, &e), &e);
    trainer_begin(t);
}

static void rank_end(struct rank *r)
{
    for (int k = 0; k < STEPS; k++) {
        free(r->gradient[k]);
        free(r->d_alpha[k]);
    }
    trainer_finish(&r->trainer);
    learner_destroy(r->trainer.learner);
    train_state_destroy(r->trainer.state);
    engine_destroy(r->trainer.engine);
}

static int take_step(struct rank *r, int k)
{
    const struct trainer *t = &r->trainer;
    const struct step_request q = {
        .step = (uint64_t)k + FIRST_STEP, .rate = 1e-3, .mask_rate = 1e-2, .tau = 1};
    if (trainer_step(&r->trainer, &q, &r->step[k], &r->error) < 0)
        return -1;
    r->gradient[k] = state_gradient(t->state);
    if (t->learner)
        r->d_alpha[k] = memory_copy(t->learner->alpha_gradient.host,
                                    t->learner->alpha.count * sizeof(float));
    return 0;
}

static void *run(void *of)
{
    struct rank *r = of;
    if (!random_spoilt)
        r->result = trainer_evaluate(&r->trainer, &random_data, &r->options.data_options,
                                     &r->held_out, &r->error);
    for (int k = 0; k < STEPS && r->result == 0; k++)
        r->result = take_step(r, k);
    return NULL;
}

static void poison(const struct trainer *t)
{
    struct error e = {0};
    t->state->value[train_state_piece(t->state, PARAMETER_EMBEDDINGS_SHIFT, 0)->first] = NAN;
    must(engine_repack(t->engine, &e), &e);
}

static void run_ranks(struct rank rank[MOST_RANKS], uint32_t parts,
                      const struct learn_options *learn, struct meeting *m)
{
    pthread_t thread[MOST_RANKS];
    pthread_barrier_init(&m->barrier, NULL, m->ranks);
    for (uint32_t k = 0; k < m->ranks; k++) {
        rank[k].comm = (struct comm){.name = "threads",
                                     .rank = k,
                                     .size = m->ranks,
                                     .context = m,
                                     .sum_f32 = sum_f32,
                                     .sum_f64 = sum_f64,
                                     .sum_u64 = sum_u64};
        rank[k].trainer.comm = &rank[k].comm;
        rank[k].options.accumulate = parts;
        rank_begin(&rank[k], learn);
        if (m->poisons_last && k == m->ranks - 1)
            poison(&rank[k].trainer);
    }
    for (uint32_t k = 0; k < m->ranks; k++)
        pthread_create(&thread[k], NULL, run, &rank[k]);
    for (uint32_t k = 0; k < m->ranks; k++)
        pthread_join(thread[k], NULL);
    pthread_barrier_destroy(&m->barrier);
}

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
    run(&one);
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
    struct learn_options o = {.kind = LEARN_DISTANCES,
                              .lambda = 1e-3,
                              .tau = 1,
                              .tau_end = 0.5,
                              .scale = 10,
                              .rate = 1e-2,
                              .relaxed = true};
    check(&o);
    o.two_levels = true;
    check(&o);
    o.kind = LEARN_P;
    o.per_layer = true;
    o.two_levels = false;
    check(&o);
}

/* A part has whole samples, or its request is refused: 2 sequences each, also in halves of --bi-level. */
static void samples_stay_whole(void **unused)
{
    (void)unused;
    random_group = 2;
    check(&(struct learn_options){.kind = LEARN_NOTHING});
    check(&(struct learn_options){.kind = LEARN_DISTANCES,
                                  .lambda = 1e-3,
                                  .tau = 1,
                                  .tau_end = 0.5,
                                  .scale = 10,
                                  .rate = 1e-2,
                                  .relaxed = true,
                                  .two_levels = true});
    random_group = 1;
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

static int setup(void **unused)
{
    (void)unused;
    return random_begin() ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    return random_end();
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_have_the_bits_of_one), cmocka_unit_test(so_do_learned_masks),
        cmocka_unit_test(samples_stay_whole), cmocka_unit_test(failure_ends_all),
        cmocka_unit_test(the_faulty_rank_is_named)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
