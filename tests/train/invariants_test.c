/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, recomputing, packing again and the parts of a batch must not change its gradients. Wrong requests are refused. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/checkpoint/save.h"
#include "tests/support/test.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct subject_options plain = {"longformer(5,2)", NULL, ELEMENT_F32, 2, false};

/* Gradients of the batch with dropout; the caller frees them. */
static float *gradients(struct train_subject *s, enum recompute recompute, double *ret_loss)
{
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = 0.1;
    r.attention_dropout = 0.1;
    r.recompute = recompute;
    struct batch_loss loss = subject_run(s, &r);
    *ret_loss = total_loss(&r, &loss);
    return state_gradient(s->state);
}

static void must_be_same(const char *what, struct train_subject *s, enum recompute recompute,
                         const float *truth, double loss)
{
    double found;
    float *g = gradients(s, recompute, &found);
    if (found != loss || memcmp(g, truth, s->state->count * sizeof *g) != 0)
        fail_msg("%s: other bits; losses %.17g, %.17g", what, found, loss);
    free(g);
}

/* The batches of subjects are random: the first one's is given to the others. */
static void lend_batch(struct train_subject *to, const struct train_subject *from)
{
    to->batch = from->batch;
}

static void same_bits(enum element dtype, const char *type)
{
    struct train_subject first, other;
    struct subject_options o = plain;
    double loss;
    o.dtype = dtype;
    o.threads = 1;
    random_model_of(&(struct bert_case){
        .layers = 3, .hidden = 128, .heads = 2, .act = "gelu", .type = type});
    subject_begin(&first, &o);
    float *truth = gradients(&first, RECOMPUTE_NONE, &loss);
    must_be_same("once more", &first, RECOMPUTE_NONE, truth, loss);
    must_be_same("attention recomputed", &first, RECOMPUTE_ATTENTION, truth, loss);
    must_be_same("layers recomputed", &first, RECOMPUTE_LAYER, truth, loss);
    for (o.threads = 2; o.threads <= 3; o.threads++) {
        subject_begin(&other, &o);
        lend_batch(&other, &first);
        must_be_same("other threads", &other, RECOMPUTE_NONE, truth, loss);
        must_be_same("other threads, recomputed", &other, RECOMPUTE_LAYER, truth, loss);
        subject_end(&other);
    }
    free(truth);
    subject_end(&first);
}

static void same_bits_f32(void **unused)
{
    (void)unused;
    same_bits(ELEMENT_F32, NULL);
    same_bits(ELEMENT_F32, "toy");
}

static void same_bits_bf16(void **unused)
{
    (void)unused;
    same_bits(ELEMENT_BF16, NULL);
    same_bits(ELEMENT_BF16, "toy");
}

/* Gradients of a batch in parts. */
static void run_parts(struct train_subject *s, uint32_t parts, double dropout)
{
    struct gradients_request r = subject_request(s);
    const uint32_t all = s->batch.sequences;
    r.hidden_dropout = r.attention_dropout = dropout;
    struct error e = {0};
    if (train_state_clear(s->state, 2, &e) < 0)
        fail_msg("%s", e.text);
    for (uint32_t k = 0; k < parts; k++) {
        const uint32_t begin = all * k / parts, end = all * (k + 1) / parts;
        struct train_batch part;
        int32_t offsets[SEQUENCES + 1];
        uint32_t rows[ROWS];
        struct batch_loss loss = {0};
        train_batch_slice(&s->batch, begin, end - begin, &part, offsets, rows);
        r.batch = &part;
        if (gradients_compute(&r, s->workspace, &loss, &e) < 0)
            fail_msg("%s", e.text);
    }
}

/* Norm of a - b, or of a where b is null. */
static double norm_of(const float *a, const float *b, uint64_t count)
{
    double ret = 0;
    for (uint64_t k = 0; k < count; k++) {
        const double d = (double)a[k] - (b ? (double)b[k] : 0);
        ret += d * d;
    }
    return sqrt(ret);
}

/* Keys' biases have no gradient but rounding: they are judged beside all gradients. */
static void must_add_up(const struct bert_case *c)
{
    struct train_subject s;
    random_model_of(c);
    subject_begin(&s, &plain);
    run_parts(&s, 1, 0.1);
    float *whole = state_gradient(s.state);
    const double all = norm_of(whole, NULL, s.state->count);
    run_parts(&s, 4, 0.1);
    float *sum = state_gradient(s.state);
    for (uint32_t k = 0; k < s.state->pieces; k++) {
        const struct piece *p = &s.state->piece[k];
        const double d = norm_of(whole + p->first, sum + p->first, p->count),
                     g = norm_of(whole + p->first, NULL, p->count);
        if (!(d <= 1e-6 * fmax(g, 0.02 * all)))
            fail_msg("%s: off by %g of %g", p->parameter->name, d, g);
    }
    free(whole);
    free(sum);
    subject_end(&s);
}

static void parts_add_up(void **unused)
{
    (void)unused;
    must_add_up(&(struct bert_case){.layers = 2, .hidden = 64, .heads = 4, .act = "gelu"});
    must_add_up(&(struct bert_case){
        .layers = 2, .hidden = 52, .heads = 2, .act = "gelu", .type = "toy"});
}

/* bf16 rounds to 8 bits, and weights of 0.2 make much of it; gradient_oracle.py holds it against torch. */
static void bf16_is_near(void **unused)
{
    struct train_subject a, b;
    struct subject_options o = plain;
    double loss[2];
    (void)unused;
    random_model(2, 128, 2, 2, "gelu");
    subject_begin(&a, &o);
    o.dtype = ELEMENT_BF16;
    subject_begin(&b, &o);
    lend_batch(&b, &a);
    float *f32 = gradients(&a, RECOMPUTE_NONE, &loss[0]),
          *bf16 = gradients(&b, RECOMPUTE_NONE, &loss[1]);
    assert_true(fabs(loss[0] - loss[1]) <= 0.01 * loss[0]);
    const double error = norm_of(f32, bf16, a.state->count),
                 size = norm_of(f32, NULL, a.state->count);
    if (!(error <= 0.15 * size))
        fail_msg("off by %g of %g", error, size);
    free(f32);
    free(bf16);
    subject_end(&a);
    subject_end(&b);
}

/* Packed again, weights and their transposed twins are those of a model that is loaded with the new values. */
static void repacking_is_loading(void **unused)
{
    static const uint32_t sizes[][2] = {{64, 4}, {130, 5}};
    (void)unused;
    for (int k = 0; k < 2; k++) {
        struct train_subject a, b;
        struct subject_options o = plain;
        struct error e = {0};
        double loss;
        random_model(1, sizes[k][0], sizes[k][1], 2, "gelu");
        subject_begin(&a, &o);
        state_shake(a.state);
        if (engine_repack(a.engine, &e) < 0 ||
            model_save(random_folder, &a.engine->config, &a.engine->weights, ELEMENT_F32, &e) <
                0)
            fail_msg("%s", e.text);
        float *truth = gradients(&a, RECOMPUTE_NONE, &loss);
        o.as_loaded = true;
        subject_begin(&b, &o);
        lend_batch(&b, &a);
        must_be_same("loaded", &b, RECOMPUTE_NONE, truth, loss);
        free(truth);
        subject_end(&a);
        subject_end(&b);
    }
}

/* The attention kernel of inference has no backward pass and rounds differently. */
static void inference_is_the_same(void **unused)
{
    struct train_subject s;
    struct error e = {0};
    (void)unused;
    random_restart();
    random_model(2, 128, 2, 2, "relu");
    subject_begin(&s, &plain);
    struct engine *g = engine_load(
        random_folder,
        &(struct engine_options){.mask = plain.mask, .dtype = ELEMENT_F32, .threads = 2}, &e);
    if (!g)
        fail_msg("%s", e.text);
    float *a = batch_rows(g, s.tokens.list, SEQUENCES),
          *b = batch_rows(s.engine, s.tokens.list, SEQUENCES);
    assert_true(worst_of(a, b, (size_t)s.batch.tokens * 128) <= 1e-5);
    free(a);
    free(b);
    engine_destroy(g);
    subject_end(&s);
}

/* Padding between pieces stays 0, and a loss without a backward pass leaves no gradient. */
static void leaves_alone(void **unused)
{
    struct train_subject s;
    (void)unused;
    random_model(1, 130, 5, 2, "gelu");
    subject_begin(&s, &plain);
    struct gradients_request r = subject_request(&s);
    struct batch_loss with = subject_run(&s, &r);
    float *gradient = state_gradient(s.state);
    uint64_t at = 0;
    for (uint32_t k = 0; k < s.state->pieces; k++) {
        for (; at < s.state->piece[k].first; at++)
            assert_true(gradient[at] == 0);
        at += s.state->piece[k].count;
    }
    r.loss_only = true;
    struct batch_loss without = subject_run(&s, &r);
    state_read(s.state, s.state->gradient, s.state->count, gradient);
    for (at = 0; at < s.state->count; at++)
        assert_true(gradient[at] == 0);
    free(gradient);
    for (uint32_t k = 0; k < s.batch.targets; k++) {
        assert_true(with.target[k].sum == without.target[k].sum);
        assert_true(with.target[k].count == s.batch.target[k].count);
    }
    subject_end(&s);
}

static void memory_is_linear(void **unused)
{
    struct train_subject s;
    struct error e = {0};
    struct gradients_memory m[3];
    (void)unused;
    random_model(2, 64, 4, 2, "gelu");
    subject_begin(&s, &plain);
    for (uint32_t k = 0; k < 3; k++) {
        const struct gradients_sizes sizes = {256, 16384 * (k + 1), 64, 512,
                                              256, RECOMPUTE_NONE};
        assert_int_equal(gradients_memory(s.engine, &sizes, &m[k], &e), 0);
    }
    const double first = (double)(m[1].activations - m[0].activations),
                 second = (double)(m[2].activations - m[1].activations);
    assert_true(first > 0 && fabs(second - first) <= 0.05 * first);
    assert_true(m[0].heads == m[1].heads && m[0].weights > 0);
    subject_end(&s);
}

/* ---- refused ---- */

static void must_refuse(struct train_subject *s, const struct gradients_request *r,
                        const char *says)
{
    struct error e = {0};
    struct batch_loss loss = {0};
    assert_int_equal(gradients_compute(r, s->workspace, &loss, &e), -1);
    if (!strstr(e.text, says))
        fail_msg("'%s', and not '%s'", e.text, says);
}

static void refuses(void **unused)
{
    struct train_subject s;
    (void)unused;
    random_model(1, 64, 4, 2, "gelu");
    subject_begin(&s, &plain);
    struct gradients_request r = subject_request(&s);
    r.hidden_dropout = 1;
    must_refuse(&s, &r, "dropout");
    r.hidden_dropout = (double)NAN;
    must_refuse(&s, &r, "dropout");
    r.hidden_dropout = 0;
    s.row[3] = s.row[2];
    must_refuse(&s, &r, "labelled row 3");
    s.row[3]++;
    s.label[0] = VOCABULARY;
    must_refuse(&s, &r, "labelled row 0");
    s.label[0] = 0;
    s.tokens.token_ids[2][0] = VOCABULARY;
    must_refuse(&s, &r, "sequence 2: token");
    subject_end(&s);
}

static void refuses_engines(void **unused)
{
    struct error e = {0};
    struct train_state *state;
    (void)unused;
    random_model(1, 64, 4, 2, "gelu");
    struct engine *g =
        engine_load(random_folder, &(struct engine_options){.dtype = ELEMENT_F32}, &e);
    assert_non_null(g);
    assert_int_equal(train_state_new(g, &state, &e), -1);
    assert_int_equal(engine_repack(g, &e), -1);
    engine_destroy(g);
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_f32), cmocka_unit_test(same_bits_bf16),
        cmocka_unit_test(bf16_is_near),  cmocka_unit_test(repacking_is_loading),
        cmocka_unit_test(parts_add_up),  cmocka_unit_test(inference_is_the_same),
        cmocka_unit_test(leaves_alone),  cmocka_unit_test(memory_is_linear),
        cmocka_unit_test(refuses),       cmocka_unit_test(refuses_engines),
    };
    return cmocka_run_group_tests(tests, random_setup, random_teardown);
}
