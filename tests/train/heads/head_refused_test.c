/* SPDX-License-Identifier: Apache-2.0 */
/* Are wrong targets refused in one line, is a model's own dropout before each head that of transformers, are the rates of
   layers and embeddings those of their formula? */
#include "model/backend/cpu/matmul/matmul.h"
#include "model/checkpoint/config.h"
#include "tests/support/test.h"
#include "tests/train/heads/head_subject.h"
#include <math.h>
#include <string.h>

/* ---- refused ---- */

static void must_refuse(struct head_subject *s, double head_dropout, const char *says)
{
    struct gradients_request r = subject_request(&s->base);
    struct batch_loss loss = {0};
    struct error e = {0};
    r.head_dropout = head_dropout;
    assert_int_equal(gradients_compute(&r, s->base.workspace, &loss, &e), -1);
    if (strcmp(e.text, says))
        fail_msg("'%s', and not '%s'", e.text, says);
}

static void choices_are_checked(void **unused)
{
    struct head_subject s;
    (void)unused;
    head_begin(&s, head_case("choice"), ELEMENT_F32, 2);
    struct train_batch *b = &s.base.batch;
    memset(s.label, 0, sizeof s.label);
    s.label[0] = s.label[4] = s.label[8] = 1;
    s.label[1] = 2;
    must_refuse(&s, 0, "labelled row 1: label 2 of 2");
    s.label[1] = 1;
    must_refuse(&s, 0, "group 0: 2 right rows; 1 is expected");
    s.label[1] = s.label[8] = 0;
    must_refuse(&s, 0, "group 2: 0 right rows; 1 is expected");
    b->target[0].count = 6; /* a group without rows */
    must_refuse(&s, 0, "group 2: 0 right rows; 1 is expected");
    b->group = 2;
    must_refuse(&s, 0, "9 sequences; samples of 2 are expected");
    head_end(&s);
}

static void spans_are_checked(void **unused)
{
    struct head_subject s;
    (void)unused;
    head_begin(&s, head_case("span"), ELEMENT_F32, 2);
    uint32_t *second = s.label + s.base.batch.offsets[1];
    memset(second, 0, POSITIONS * sizeof *second);
    must_refuse(&s, 0, "sequence 1: 0 starts and 0 ends of a span; 1 of each is expected");
    second[3] = 2;
    must_refuse(&s, 0, "sequence 1: 0 starts and 1 ends of a span; 1 of each is expected");
    second[4] = 1;
    must_refuse(&s, 0, "sequence 1: a span ends before its start");
    second[4] = 3;
    must_refuse(&s, 0, "sequence 1: 1 starts and 2 ends of a span; 1 of each is expected");
    second[3] = 4;
    must_refuse(&s, 0, "labelled row 8: label 4 of 4");
    head_end(&s);
}

static void heads_are_checked(void **unused)
{
    struct head_subject s;
    (void)unused;
    head_begin(&s, head_case("regression"), ELEMENT_F32, 2);
    struct train_target *t = &s.base.batch.target[0];
    s.value[2] = NAN;
    must_refuse(&s, 0, "labelled row 2: value nan");
    s.value[2] = -INFINITY;
    must_refuse(&s, 0, "labelled row 2: value -inf");
    s.row[1] = s.row[0];
    must_refuse(&s, 0, "labelled row 1: row 0 of 277 in ascending order");
    must_refuse(&s, 1, "dropout: 0 or more and less than 0.99 is expected");
    must_refuse(&s, -0.1, "dropout: 0 or more and less than 0.99 is expected");
    t->head = TARGET_SPAN;
    must_refuse(&s, 0, "the engine was loaded without the batch's head");
    head_end(&s);
    head_begin(&s, head_case("labels of sequences"), ELEMENT_F32, 2);
    t->loss = LOSS_SQUARE;
    must_refuse(&s, 0, "the head has 5 labels; its loss is over 1");
    t->loss = LOSS_CHOICE;
    must_refuse(&s, 0, "the head has 5 labels; its loss is over 1");
    t->loss = LOSS_SPAN;
    must_refuse(&s, 0, "the head has 5 labels; its loss is over 2");
    head_end(&s);
}

static void words_have_labels(void **unused)
{
    struct head_subject s;
    (void)unused;
    random_model(1, 64, 4, 2, "gelu");
    subject_begin(&s.base, &(struct subject_options){"dense", NULL, ELEMENT_F32, 2});
    s.base.batch.target[SUBJECT_WORDS].loss = LOSS_SPAN;
    must_refuse(&s, 0, "words: a loss over labels is expected");
    subject_end(&s.base);
}

/* ---- dropout of a model ---- */

static void must_drop(const char *json, double pooled, double rows, double span)
{
    struct model_config c = {0};
    struct error e = {0};
    json_t *j = json_loads(json, 0, NULL);
    assert_non_null(j);
    if (config_parse(j, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(target_dropout(&c, TARGET_POOLED) == pooled);
    assert_true(target_dropout(&c, TARGET_ROWS) == rows);
    assert_true(target_dropout(&c, TARGET_SPAN) == span);
    assert_true(target_dropout(&c, TARGET_WORDS) == 0 && target_dropout(&c, TARGET_NEXT) == 0);
    config_finish(&c);
    json_decref(j);
}

/* As modeling_bert.py, modeling_distilbert.py and modeling_roberta.py of transformers 5.24 have it. */
static void models_drop(void **unused)
{
    (void)unused;
#define SIZES                                                                          \
    "\"model_type\": \"bert\", \"vocab_size\": 9, \"hidden_size\": 8, "                \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"intermediate_size\": 8, " \
    "\"max_position_embeddings\": 8"
    must_drop("{" SIZES "}", 0.1, 0.1, 0);
    must_drop("{" SIZES ", \"hidden_dropout_prob\": 0.25, \"classifier_dropout\": null}", 0.25,
              0.25, 0);
    must_drop("{" SIZES ", \"hidden_dropout_prob\": 0.25, \"classifier_dropout\": 0.5}", 0.5,
              0.5, 0);
    must_drop("{" SIZES ", \"classifier_dropout\": 0}", 0, 0, 0);
    must_drop("{\"model_type\": \"distilbert\"}", 0.2, 0.1, 0.1);
    must_drop("{\"model_type\": \"distilbert\", \"dropout\": 0.25, \"seq_classif_dropout\": "
              "0.5, \"qa_dropout\": 0.75}",
              0.5, 0.25, 0.75);
#define HALF "\"hidden_dropout_prob\": 0.25, \"classifier_dropout\": 0.5"
    must_drop("{\"model_type\": \"roberta\", " HALF "}", 0.5, 0.5, 0);
    must_drop("{\"model_type\": \"roberta\", " HALF
              ", \"architectures\": [\"RobertaForMultipleChoice\"]}",
              0.25, 0.5, 0);
}

/* ---- rates of layers ---- */

static void rates_go_by_layers(void **unused)
{
    struct train_subject s;
    uint32_t layers = 0, embeddings = 0, others = 0;
    (void)unused;
    random_classifier(2, 64, 4, "gelu");
    subject_begin(&s, &(struct subject_options){"dense", NULL, ELEMENT_F32, 2,
                                                .parts = PART_POOLER | PART_CLASSIFIER});
    struct train_state *state = s.state;
    for (uint32_t k = 0; k < state->pieces; k++)
        assert_true(state->piece[k].rate_scale == 1);
    train_state_layer_decay(state, 0.5);
    for (uint32_t k = 0; k < state->pieces; k++) {
        const struct piece *p = &state->piece[k];
        const char *name = p->parameter->name;
        const bool embedding = !strncmp(name, "embeddings.", 11),
                   layer = !strncmp(name, "encoder.layer.", 14);
        const float wanted = embedding ? 0.125F : !layer ? 1 : name[14] == '0' ? 0.25F : 0.5F;
        layers += layer;
        embeddings += embedding;
        others += !layer && !embedding;
        if (p->rate_scale != wanted)
            fail_msg("%s: %g, and not %g", name, (double)p->rate_scale, (double)wanted);
    }
    assert_true(layers == 32 && embeddings == 5 && others == 4);
    train_state_layer_decay(state, 1);
    for (uint32_t k = 0; k < state->pieces; k++)
        assert_true(state->piece[k].rate_scale == 1);
    subject_end(&s);
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_checked), cmocka_unit_test(spans_are_checked),
        cmocka_unit_test(heads_are_checked),   cmocka_unit_test(words_have_labels),
        cmocka_unit_test(models_drop),         cmocka_unit_test(rates_go_by_layers),
    };
    return cmocka_run_group_tests(tests, random_setup, random_teardown);
}
