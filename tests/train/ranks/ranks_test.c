/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks, two threads of this process, against one rank that accumulates two parts. Sums of losses and of gradients
   go in another order, so that losses are equal to 1e-12 and gradients to 1e-6 of their norm; counts are exact, and so
   is what the ranks have in common: parameters, moments, losses. */
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
enum { RANKS = 2, STEPS = 4, BATCH = 7, FIRST_STEP = 3 };

/* ---- ranks as threads ---- */

struct meeting {
    pthread_barrier_t barrier;
    void *array[RANKS];
    uint64_t sums; /* how many there were */
};

/* Ranks add up in the order of their numbers; each has room for the result. */
#define DEFINE_SUM(name, type)                                                      \
    static int name(const struct comm *c, type *x, uint64_t count, struct error *e) \
    {                                                                               \
        struct meeting *m = c->context;                                             \
        type *sum = memory_new(count, sizeof *sum);                                 \
        (void)e;                                                                    \
        m->array[c->rank] = x;                                                      \
        pthread_barrier_wait(&m->barrier);                                          \
        for (uint32_t r = 0; r < RANKS; r++)                                        \
            for (uint64_t k = 0; k < count; k++)                                    \
                sum[k] += ((const type *)m->array[r])[k];                           \
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

static void run_ranks(struct rank rank[RANKS], const struct learn_options *learn,
                      struct meeting *m)
{
    pthread_t thread[RANKS];
    pthread_barrier_init(&m->barrier, NULL, RANKS);
    for (uint32_t k = 0; k < RANKS; k++) {
        rank[k].comm = (struct comm){.name = "threads",
                                     .rank = k,
                                     .size = RANKS,
                                     .context = m,
                                     .sum_f32 = sum_f32,
                                     .sum_f64 = sum_f64,
                                     .sum_u64 = sum_u64};
        rank[k].trainer.comm = &rank[k].comm;
        rank[k].options.accumulate = 1;
        rank_begin(&rank[k], learn);
    }
    for (uint32_t k = 0; k < RANKS; k++)
        pthread_create(&thread[k], NULL, run, &rank[k]);
    for (uint32_t k = 0; k < RANKS; k++)
        pthread_join(thread[k], NULL);
    pthread_barrier_destroy(&m->barrier);
}

/* ---- comparisons ---- */

static double off(const float *a, const float *b, uint64_t count)
{
    double d = 0, size = 0;
    for (uint64_t k = 0; k < count; k++) {
        d += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        size += (double)b[k] * (double)b[k];
    }
    assert_true(size > 0);
    return sqrt(d / size);
}

static void must_be_near(double a, double b, double part)
{
    if (!(fabs(a - b) <= part * fabs(b)))
        fail_msg("%.17g, and not %.17g", a, b);
}

static void compare_steps(const struct rank *a, const struct rank *one)
{
    const struct train_state *s = one->trainer.state;
    const double first = 1e-6, later = 1e-5; /* parameters differ from then on */
    for (int k = 0; k < STEPS; k++) {
        must_be_near(a->step[k].loss, one->step[k].loss, k ? later : 1e-12);
        must_be_near(a->step[k].norm, one->step[k].norm, k ? later : first);
        assert_int_equal(a->step[k].tokens, one->step[k].tokens);
        assert_true(off(a->gradient[k], one->gradient[k], s->count) <= (k ? later : first));
        if (a->d_alpha[k])
            assert_true(off(a->d_alpha[k], one->d_alpha[k],
                            one->trainer.learner->alpha.count) <= (k ? later : first));
    }
}

static void compare_held_out(const struct evaluation *a, const struct evaluation *b)
{
    assert_int_equal(a->tokens, b->tokens);
    for (uint32_t k = 0; k < random_objective.targets; k++) {
        assert_int_equal(a->losses.target[k].count, b->losses.target[k].count);
        assert_int_equal(a->losses.target[k].right, b->losses.target[k].right);
        must_be_near(a->losses.target[k].sum, b->losses.target[k].sum, 1e-12);
    }
}

/* The same bits. */
static void must_be_same(const struct rank *a, const struct rank *b)
{
    const struct train_state *s = a->trainer.state, *t = b->trainer.state;
    const size_t bytes = s->count * sizeof(float);
    assert_memory_equal(s->value, t->value, bytes);
    assert_memory_equal(s->first_moment, t->first_moment, bytes);
    assert_memory_equal(s->second_moment, t->second_moment, bytes);
    for (int k = 0; k < STEPS; k++)
        assert_true(a->step[k].loss == b->step[k].loss && a->step[k].norm == b->step[k].norm);
    if (a->trainer.learner)
        assert_memory_equal(a->trainer.learner->alpha.value, b->trainer.learner->alpha.value,
                            a->trainer.learner->alpha.count * sizeof(float));
}

static void check(const struct learn_options *learn)
{
    struct rank *rank = memory_new(RANKS, sizeof *rank), one = {.options.accumulate = RANKS};
    struct meeting m = {0};
    random_restart();
    random_model(2, 64, 4, 2, "gelu");
    run_ranks(rank, learn, &m);
    rank_begin(&one, learn);
    run(&one);
    must(one.result, &one.error);
    for (uint32_t k = 0; k < RANKS; k++)
        must(rank[k].result, &rank[k].error);
    assert_true(m.sums > STEPS);
    compare_held_out(&rank[0].held_out, &one.held_out);
    compare_steps(&rank[0], &one);
    must_be_same(&rank[0], &rank[1]);
    for (uint32_t k = 0; k < RANKS; k++)
        rank_end(&rank[k]);
    rank_end(&one);
    free(rank);
}

static void two_ranks_are_two_parts(void **unused)
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

/* A part has whole samples, or its request is refused: 3 and 4 of 2 sequences, and halves of --bi-level. */
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

/* Only the second rank's part has the token; the first one must not wait for it. */
static void failure_ends_all(void **unused)
{
    (void)unused;
    struct rank *rank = memory_new(RANKS, sizeof *rank);
    struct meeting m = {0};
    random_model(1, 64, 4, 2, "gelu");
    random_spoilt = true;
    run_ranks(rank, &(struct learn_options){.kind = LEARN_NOTHING}, &m);
    random_spoilt = false;
    for (uint32_t k = 0; k < RANKS; k++)
        assert_int_equal(rank[k].result, -1);
    assert_string_equal(rank[0].error.text, "rank 1 failed");
    assert_non_null(strstr(rank[1].error.text, "token"));
    for (uint32_t k = 0; k < RANKS; k++)
        rank_end(&rank[k]);
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
        cmocka_unit_test(two_ranks_are_two_parts), cmocka_unit_test(so_do_learned_masks),
        cmocka_unit_test(samples_stay_whole), cmocka_unit_test(failure_ends_all)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
