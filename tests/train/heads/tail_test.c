/* SPDX-License-Identifier: Apache-2.0 */
/* The last layer of a batch whose one target is pooled, which is computed for the rows that the pooler reads: are loss and
   gradients those of the whole layer, and the same bits for any number of threads and whatever is computed again? */
#include "tests/support/test.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Attention has a layer of first rows: the engine has no other head than the pooled one. */
static void begin(struct train_subject *s, enum element dtype, uint32_t threads)
{
    random_restart();
    random_model(2, 64, 4, 2, "gelu");
    subject_begin(s, &(struct subject_options){"longformer(5,2)", "softmax", dtype, threads,
                                               .parts = PART_POOLER | PART_NSP});
    s->batch.targets = 1;
    s->batch.target[0] = s->batch.target[SUBJECT_NEXT];
}

static struct gradients_request request_of(const struct train_subject *s)
{
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = r.attention_dropout = 0.1;
    return r;
}

struct outcome {
    struct target_loss loss;
    float *gradient;
    uint64_t count;
};

static struct outcome run(struct train_subject *s, const struct gradients_request *r)
{
    const struct batch_loss loss = subject_run(s, r);
    return (struct outcome){loss.target[0], state_gradient(s->state), s->state->count};
}

/* ---- the whole layer ---- */

/* With a second target, of weight 0, all rows are computed. */
static struct outcome run_whole(struct train_subject *s)
{
    struct train_batch *b = &s->batch;
    b->target[1] = b->target[0];
    b->targets = 2;
    struct gradients_request r = request_of(s);
    r.weight[1] = 0;
    const struct outcome ret = run(s, &r);
    b->targets = 1;
    return ret;
}

static void must_be_near(const struct outcome *a, const struct outcome *b)
{
    double all = 0, off = 0;
    for (uint64_t k = 0; k < a->count; k++) {
        const double d = (double)a->gradient[k] - (double)b->gradient[k];
        all += (double)b->gradient[k] * (double)b->gradient[k];
        off += d * d;
    }
    assert_true(all > 0 && sqrt(off) <= 1e-6 * sqrt(all));
    assert_true(fabs(a->loss.sum / b->loss.sum - 1) <= 1e-6);
    assert_int_equal(a->loss.count, b->loss.count);
    assert_int_equal(a->loss.right, b->loss.right);
}

/* Rows that are not the first of their sequences, and of some sequences none: attention is whole. */
static void choose_rows(struct train_subject *s)
{
    struct train_target *t = &s->batch.target[0];
    t->count = 0;
    for (uint32_t k = 0; k < SEQUENCES; k += 2)
        s->first[t->count++] = (uint32_t)s->offsets[k] + (s->batch.list[k].count - 1) / 2;
}

static void equals_the_whole(void **unused)
{
    struct train_subject s;
    (void)unused;
    begin(&s, ELEMENT_F32, 2);
    for (int chosen = 0; chosen < 2; chosen++) {
        if (chosen)
            choose_rows(&s);
        const struct gradients_request r = request_of(&s);
        const struct outcome whole = run_whole(&s), tail = run(&s, &r);
        must_be_near(&tail, &whole);
        /* sums of other panels: it is not the same code */
        assert_memory_not_equal(tail.gradient, whole.gradient,
                                whole.count * sizeof *whole.gradient);
        free(whole.gradient);
        free(tail.gradient);
    }
    subject_end(&s);
}

/* ---- bits ---- */

static void must_be_equal(const struct outcome *a, const struct outcome *b)
{
    assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
    assert_memory_equal(a->gradient, b->gradient, b->count * sizeof *b->gradient);
}

static void same_bits_of(enum element dtype)
{
    struct outcome first = {0};
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct train_subject s;
        begin(&s, dtype, threads);
        struct gradients_request r = request_of(&s);
        for (r.recompute = RECOMPUTE_NONE; r.recompute <= RECOMPUTE_LAYER; r.recompute++) {
            const struct outcome found = run(&s, &r);
            if (first.gradient) {
                must_be_equal(&found, &first);
                free(found.gradient);
            } else {
                first = found;
            }
        }
        subject_end(&s);
    }
    free(first.gradient);
}

static void same_bits(void **unused)
{
    (void)unused;
    same_bits_of(ELEMENT_F32);
    same_bits_of(ELEMENT_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_whole),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests_name("the rows that a pooler reads", tests, random_setup,
                                       random_teardown);
}
