/* SPDX-License-Identifier: Apache-2.0 */
/* Where hidden states drop out is the architecture's: DistilBERT has a site less than BERT. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "tests/support/test.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>

static void begin_small(struct train_subject *s, const char *type)
{
    random_restart();
    random_model_of(&(struct bert_case){
        .layers = 1, .hidden = 64, .heads = 4, .act = "gelu", .type = type});
    subject_begin(s,
                  &(struct subject_options){"dense", NULL, ELEMENT_F32, 2, .no_pairs = true});
}

/* The other's parameters where both have them, zeros elsewhere. */
static void take_parameters(struct train_subject *to, const struct train_subject *from)
{
    struct error e = {0};
    for (uint32_t k = 0; k < to->state->pieces; k++) {
        const struct piece *p = &to->state->piece[k],
                           *q = train_state_piece(from->state, p->parameter->id,
                                                  p->parameter->layer);
        float *value = memory_new(p->count, sizeof *value);
        if (q)
            state_read(from->state, from->state->value + q->first, p->count, value);
        state_write(to->state, to->state->value + p->first, p->count, value);
        free(value);
    }
    if (engine_repack(to->engine, &e) < 0)
        fail_msg("%s", e.text);
}

static double loss_with(struct train_subject *s, double dropout)
{
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = dropout;
    struct batch_loss loss = subject_run(s, &r);
    return total_loss(&r, &loss);
}

/* DistilBERT is BERT without types, but that nothing drops out after its attention. */
static void one_site_less(void **unused)
{
    (void)unused;
    struct train_subject distil, bert;
    begin_small(&distil, "distilbert");
    begin_small(&bert, NULL);
    take_parameters(&bert, &distil);
    bert.batch = distil.batch;
    if (engine_repack(distil.engine, &(struct error){0}) < 0)
        fail();
    assert_true(fabs(loss_with(&bert, 0) - loss_with(&distil, 0)) < 1e-6);
    assert_true(fabs(loss_with(&bert, 0.2) - loss_with(&distil, 0.2)) > 1e-4);
    subject_end(&bert);
    subject_end(&distil);
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    if (!random_begin())
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_site_less)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return random_end() || failed;
}
