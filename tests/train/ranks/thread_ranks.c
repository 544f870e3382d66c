/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ranks/thread_ranks.h"
#include "masks/base/memory.h"
#include "model/train/step/shards.h"
#include "tests/support/test.h"
#include "tests/train/ranks/random_objective.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

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
        if (c->rank == 0)                                                           \
            m->sums++;                                                              \
        pthread_barrier_wait(&m->barrier);                                          \
        memcpy(x, sum, count * sizeof *x);                                          \
        free(sum);                                                                  \
        return 0;                                                                   \
    }
DEFINE_SUM(sum_f32, float)
DEFINE_SUM(sum_f64, double)
DEFINE_SUM(sum_u64, uint64_t)

static int exchange(const struct comm *c, const struct comm_move *m, struct error *e)
{
    struct meeting *all = c->context;
    (void)e;
    all->move[c->rank] = *m;
    if (c->rank == 0 && m->to < c->size)
        all->sent += m->sent_count;
    pthread_barrier_wait(&all->barrier);
    if (m->from < c->size) {
        const struct comm_move *his = &all->move[m->from];
        if (his->to != c->rank || his->sent_count != m->received_count)
            abort(); /* a thread cannot fail a test */
        memcpy(m->received, his->sent, m->received_count * sizeof(float));
    }
    pthread_barrier_wait(&all->barrier);
    return 0;
}

/* ---- a run ---- */

void must(int r, const struct error *e)
{
    if (r < 0)
        fail_msg("%s", e->text);
}

void rank_begin(struct rank *r, const struct learn_options *learn)
{
    struct trainer *t = &r->trainer;
    const bool learns = learn->kind != LEARN_NOTHING;
    struct error e = {0};
    const struct engine_options options = {.mask = learns ? "dense" : "longformer(5,2)",
                                           .transform = "softmax",
                                           .dtype = ELEMENT_F32,
                                           .threads = 1,
                                           .device = r->device,
                                           .parts = random_objective.parts,
                                           .trains = true,
                                           .dropout = true,
                                           .biased = learns};
    r->options.batch = BATCH;
    r->options.seed = 9;
    r->options.hidden_dropout = r->options.attention_dropout = 0.1;
    r->options.optimizer =
        (struct optimizer){r->options.optimizer.kind, 0.9, 0.999, 1e-3, 0.01, 1, true};
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

void rank_end(struct rank *r)
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

void *rank_run(void *of)
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

static int cannot_read(struct backend_state *s, const float *from, uint64_t count, float *to,
                       struct error *e)
{
    (void)s, (void)from, (void)count, (void)to;
    return error_set(e, ERROR_UNAVAILABLE, "cannot be read");
}

static void lose_bias(struct mirror *m)
{
    static struct training_backend odd;
    odd = *m->device.does;
    odd.array_read = cannot_read;
    m->device.does = &odd;
    m->host = memory_copy(m->host, m->count * sizeof *m->host);
}

static void share_moments(struct rank *r)
{
    struct error e = {0};
    struct train_state *s = r->trainer.state;
    r->options.zero = true;
    must(train_state_shard(
             s, shard_of(s, trainer_needs_pieces(&r->options), r->comm.rank, r->comm.size), &e),
         &e);
}

void run_threads(struct rank rank[MOST_RANKS], struct meeting *m, void *(*body)(void *rank))
{
    pthread_t thread[MOST_RANKS];
    pthread_barrier_init(&m->barrier, NULL, m->ranks);
    for (uint32_t k = 0; k < m->ranks; k++)
        pthread_create(&thread[k], NULL, body, &rank[k]);
    for (uint32_t k = 0; k < m->ranks; k++)
        pthread_join(thread[k], NULL);
    pthread_barrier_destroy(&m->barrier);
}

void run_ranks(struct rank rank[MOST_RANKS], uint32_t parts, const struct learn_options *learn,
               struct meeting *m)
{
    for (uint32_t k = 0; k < m->ranks; k++) {
        rank[k].comm = (struct comm){.name = "threads",
                                     .rank = k,
                                     .size = m->ranks,
                                     .context = m,
                                     .sum_f32 = sum_f32,
                                     .sum_f64 = sum_f64,
                                     .sum_u64 = sum_u64,
                                     .exchange = exchange};
        rank[k].trainer.comm = &rank[k].comm;
        rank[k].options.accumulate = parts;
        rank_begin(&rank[k], learn);
        if (m->shares_moments)
            share_moments(&rank[k]);
        if (m->poisons_last && k == m->ranks - 1)
            poison(&rank[k].trainer);
        if (m->loses_bias && k == m->ranks - 1)
            lose_bias(&rank[k].trainer.learner->d_bias);
    }
    run_threads(rank, m, rank_run);
}
