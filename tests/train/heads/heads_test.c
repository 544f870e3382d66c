/* SPDX-License-Identifier: Apache-2.0 */
/* Are the losses of fine-tuning and their gradients those of float64, with the dropout before the head; the same bits for
   any number of threads; the sum of a batch's parts? */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include "tests/train/gradients/differences.h"
#include "tests/train/heads/head_subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- float64 ---- */

static uint32_t most_threads = 3; /* --few: 2 */
static bool every_family = true;  /* --few: BERT alone where a test is about heads */

/* Those of BERT are the first. */
static bool tried(const struct head_case *c)
{
    return every_family || !c->type;
}

/* One group: sequences of 17, 16 and 2 tokens. */
enum { FEW_FIRST = 3, FEW = GROUP };

struct float64 {
    struct plain_bert bert;
    float *kept;
};

static double float64_loss(void *context, const struct gradients_request *r)
{
    const struct float64 *f = context;
    return plain_loss(&f->bert, r, f->kept);
}

static void equals_float64(void **unused)
{
    (void)unused;
    for (const struct head_case *c = head_cases; c->name; c++) {
        struct head_subject s;
        struct train_batch few;
        int32_t offsets[SEQUENCES + 1];
        uint32_t rows[HEAD_ROWS];
        head_begin(&s, c, ELEMENT_F32, 2);
        train_batch_slice(&s.base.batch, FEW_FIRST, FEW, &few, offsets, rows);
        struct gradients_request r = head_request(&s, 0.3);
        r.batch = &few;
        struct float64 f = {head_plain(&s), head_kept(&r)};
        const struct batch_loss loss = subject_run(&s.base, &r);
        const double truth = plain_loss(&f.bert, &r, f.kept);
        if (!(fabs(total_loss(&r, &loss) - truth) <= 1e-5 * truth))
            fail_msg("%s: loss %.9g, and not %.9g", c->name, total_loss(&r, &loss), truth);
        gradients_must_fit(c->name, &r,
                           &(struct difference){1e-6F, 1e-4, 1e-12, float64_loss, &f});
        free(f.kept);
        head_end(&s);
    }
}

/* Losses and number of right logits of the whole batch. Evaluation has no dropout. */
static void counts_equal_float64(void **unused)
{
    static const uint32_t counts[] = {
        [LOSS_SQUARE] = SEQUENCES, [LOSS_CHOICE] = SEQUENCES / GROUP, [LOSS_SPAN] = SEQUENCES};
    uint32_t right = 0;
    (void)unused;
    for (const struct head_case *c = head_cases; c->name; c++) {
        struct head_subject s;
        head_begin(&s, c, ELEMENT_F32, 2);
        struct gradients_request r = head_request(&s, 0.5);
        r.loss_only = true;
        const struct plain_bert plain = head_plain(&s);
        const struct train_target *t = &s.base.batch.target[0];
        const struct batch_loss loss = subject_run(&s.base, &r);
        assert_int_equal(loss.target[0].count,
                         c->loss == LOSS_LABELS ? t->count : counts[c->loss]);
        assert_int_equal(loss.target[0].count,
                         train_target_count(&s.base.batch, t, 0, SEQUENCES));
        assert_in_range(loss.target[0].right, plain_right(&plain, &r, 0, -1e-6),
                        plain_right(&plain, &r, 0, 1e-6));
        assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r, NULL)) <= 1e-5);
        right += c->loss == LOSS_CHOICE || c->loss == LOSS_SPAN ? loss.target[0].right : 0;
        head_end(&s);
    }
    assert_true(right > 0);
}

/* exp() of these logits is beyond double. */
static void large_logits_have_a_loss(void **unused)
{
    (void)unused;
    for (const struct head_case *c = head_cases; c->name && tried(c); c++) {
        struct head_subject s;
        head_begin(&s, c, ELEMENT_F32, 2);
        const struct train_state *state = s.base.state;
        const struct piece *p = train_state_piece(state, target_form(c->head)->weight, 0);
        float *value = memory_new(p->count, sizeof *value);
        state_read(state, state->value + p->first, p->count, value);
        for (uint64_t k = 0; k < p->count; k++)
            value[k] *= 100000;
        state_write(state, state->value + p->first, p->count, value);
        const struct gradients_request r = head_request(&s, 0);
        const struct plain_bert plain = head_plain(&s);
        const struct batch_loss loss = subject_run(&s.base, &r);
        const double truth = plain_loss(&plain, &r, NULL);
        assert_true(truth > 800);
        if (!(fabs(total_loss(&r, &loss) - truth) <= 1e-5 * truth))
            fail_msg("%s: loss %.9g, and not %.9g", c->name, total_loss(&r, &loss), truth);
        free(value);
        head_end(&s);
    }
}

/* Sequences without rows have no span, and groups are counted where they are. */
static void counts_parts(void **unused)
{
    struct head_subject s;
    (void)unused;
    head_begin(&s, head_case("choice"), ELEMENT_F32, 2);
    const struct train_batch *b = &s.base.batch;
    assert_int_equal(train_target_count(b, &b->target[0], GROUP, 3 * GROUP), 2);
    head_end(&s);
    head_begin(&s, head_case("span"), ELEMENT_F32, 2);
    struct train_target *t = &s.base.batch.target[0];
    t->count = (uint32_t)b->offsets[SEQUENCES - 2];
    assert_int_equal(train_target_count(b, t, 1, SEQUENCES), SEQUENCES - 3);
    const struct gradients_request r = head_request(&s, 0);
    const struct plain_bert plain = head_plain(&s);
    const struct batch_loss loss = subject_run(&s.base, &r);
    assert_int_equal(loss.target[0].count, SEQUENCES - 2);
    assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r, NULL)) <= 1e-5);
    head_end(&s);
}

/* The head of next sentences has no dropout. */
static void next_drops_nothing(void **unused)
{
    struct train_subject s;
    (void)unused;
    random_model(1, 64, 4, 2, "gelu");
    subject_begin(&s, &(struct subject_options){"dense", NULL, ELEMENT_F32, 2});
    struct gradients_request r = subject_request(&s);
    const struct batch_loss without = subject_run(&s, &r);
    r.head_dropout = 0.5;
    const struct batch_loss with = subject_run(&s, &r);
    assert_memory_equal(&with, &without, sizeof with);
    subject_end(&s);
}

/* ---- threads, parts ---- */

static struct batch_loss run_with(struct head_subject *s, uint32_t parts, float **ret_gradient)
{
    struct gradients_request r = head_request(s, 0.2);
    const uint32_t all = s->base.batch.sequences;
    struct batch_loss loss = {0};
    struct error e = {0};
    r.hidden_dropout = r.attention_dropout = 0.1;
    if (train_state_clear(s->base.state, 2, &e) < 0)
        fail_msg("%s", e.text);
    for (uint32_t k = 0; k < parts; k++) {
        struct train_batch part;
        int32_t offsets[SEQUENCES + 1];
        uint32_t rows[HEAD_ROWS];
        train_batch_slice(&s->base.batch, all / parts * k, all / parts, &part, offsets, rows);
        r.batch = &part;
        if (gradients_compute(&r, s->base.workspace, &loss, &e) < 0)
            fail_msg("%s", e.text);
    }
    *ret_gradient = state_gradient(s->base.state);
    return loss;
}

static void same_bits_of(const struct head_case *c, enum element dtype)
{
    struct head_subject one, other;
    float *truth, *found;
    head_begin(&one, c, dtype, 1);
    const struct batch_loss loss = run_with(&one, 1, &truth);
    for (uint32_t threads = 2; threads <= most_threads; threads++) {
        head_begin(&other, c, dtype, threads);
        head_lend(&other, &one);
        const struct batch_loss again = run_with(&other, 1, &found);
        if (memcmp(&again, &loss, sizeof loss) ||
            memcmp(found, truth, one.base.state->count * sizeof *truth))
            fail_msg("%s: other bits with %u threads", c->name, threads);
        free(found);
        head_end(&other);
    }
    free(truth);
    head_end(&one);
}

static void same_bits(void **unused)
{
    (void)unused;
    for (const struct head_case *c = head_cases; c->name && tried(c); c++) {
        same_bits_of(c, ELEMENT_F32);
        if (!target_form(c->head)->pooled)
            same_bits_of(c, ELEMENT_BF16);
    }
}

static double norm_of(const float *a, const float *b, uint64_t count)
{
    double ret = 0;
    for (uint64_t k = 0; k < count; k++) {
        const double d = (double)a[k] - (b ? (double)b[k] : 0);
        ret += d * d;
    }
    return sqrt(ret);
}

static void parts_add_up(void **unused)
{
    (void)unused;
    for (const struct head_case *c = head_cases; c->name && tried(c); c++) {
        struct head_subject s;
        float *whole, *sum;
        head_begin(&s, c, ELEMENT_F32, 2);
        const struct batch_loss loss = run_with(&s, 1, &whole),
                                parts = run_with(&s, SEQUENCES / GROUP, &sum);
        const uint64_t count = s.base.state->count;
        const double all = norm_of(whole, NULL, count), d = norm_of(whole, sum, count);
        if (!(all > 0 && d <= 1e-6 * all))
            fail_msg("%s: off by %g of %g", c->name, d, all);
        assert_int_equal(parts.target[0].count, loss.target[0].count);
        assert_int_equal(parts.target[0].right, loss.target[0].right);
        assert_true(fabs(parts.target[0].sum / loss.target[0].sum - 1) <= 1e-6);
        free(whole);
        free(sum);
        head_end(&s);
    }
}

int main(int argc, char **argv)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    if (test_option(argc, argv, "--few")) {
        differences_are_few();
        most_threads = 2;
        every_family = false;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_float64),     cmocka_unit_test(counts_equal_float64),
        cmocka_unit_test(counts_parts),       cmocka_unit_test(large_logits_have_a_loss),
        cmocka_unit_test(next_drops_nothing), cmocka_unit_test(same_bits),
        cmocka_unit_test(parts_add_up),
    };
    return cmocka_run_group_tests(tests, random_setup, random_teardown);
}
