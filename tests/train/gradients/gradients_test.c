/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of every parameter against finite differences of the loss: of BERT in float64 without dropout, of our own
   forward pass with it. A parameter is moved along a random direction; its gradient predicts the change of the loss. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/mask/model_mask.h"
#include "tests/support/test.h"
#include "tests/train/gradients/differences.h"
#include "tests/train/gradients/plain_loss.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sequences of 1 and 17 tokens: the plain loss takes its time. */
enum { FEW_FIRST = 2, FEW = 2 };

static double float64_loss(void *context, const struct gradients_request *r)
{
    return plain_loss(context, r, NULL);
}

static bool has_next(const struct bert_case *c)
{
    return !c->type || !strcmp(c->type, "toy");
}

static void equals_float64(void **unused)
{
    (void)unused;
    for (const struct bert_case *c = bert_cases; c->name; c++) {
        struct train_subject s;
        struct error e = {0};
        random_model_of(c);
        subject_begin(&s,
                      &(struct subject_options){c->mask, c->transform, ELEMENT_F32, 2,
                                                .no_pairs = c->layers == 1 || !has_next(c)});
        struct mask *m = random_mask(c->mask, &s.engine->config, &e);
        struct plain_bert plain = {
            &s.engine->config, &s.engine->weights, m, strcmp(c->transform, "softmax") != 0,
            c->lambda,         &s.state->device};
        struct gradients_request r = subject_request(&s);
        struct train_batch few;
        int32_t offsets[SEQUENCES + 1];
        uint32_t rows[ROWS];
        train_batch_slice(&s.batch, FEW_FIRST, FEW, &few, offsets, rows);
        r.batch = &few;
        struct batch_loss loss = subject_run(&s, &r);
        assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r, NULL)) <= 1e-5);
        gradients_must_fit(c->name, &r,
                           &(struct difference){1e-6F, 1e-4, 1e-12, float64_loss, &plain});
        mask_destroy(m);
        subject_end(&s);
    }
}

/* The classifier over pooled first tokens, over plain rows, and over both. */
static void classifiers_equal_float64(void **unused)
{
    static const struct train_target none = {0};
    (void)unused;
    random_restart();
    random_classifier(1, 64, 4, "gelu");
    for (int k = 0; k < 3; k++) {
        struct train_subject s;
        struct error e = {0};
        subject_begin(&s, &(struct subject_options){"longformer(5,2)", "softmax", ELEMENT_F32,
                                                    2, .parts = PART_POOLER | PART_CLASSIFIER});
        struct train_target rows = s.batch.target[SUBJECT_WORDS],
                            pooled = s.batch.target[SUBJECT_NEXT];
        for (uint32_t i = 0; i < rows.count; i++)
            s.label[i] %= LABELS;
        for (uint32_t i = 0; i < SEQUENCES; i++)
            s.next[i] = (i * 3 + s.next[i]) % LABELS;
        rows.head = TARGET_ROWS;
        pooled.head = TARGET_POOLED;
        s.batch.targets = k == 2 ? 2 : 1;
        s.batch.target[0] = k ? rows : pooled;
        s.batch.target[1] = k == 2 ? pooled : none;
        struct mask *m = model_mask("longformer(5,2)", &s.engine->config, &e);
        struct plain_bert plain = {&s.engine->config, &s.engine->weights, m, false, 0,
                                   &s.state->device};
        struct gradients_request r = subject_request(&s);
        struct train_batch few;
        int32_t offsets[SEQUENCES + 1];
        uint32_t slice_rows[ROWS];
        train_batch_slice(&s.batch, FEW_FIRST, FEW, &few, offsets, slice_rows);
        r.batch = &few;
        struct batch_loss loss = subject_run(&s, &r);
        assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r, NULL)) <= 1e-5);
        gradients_must_fit("classifier", &r,
                           &(struct difference){1e-6F, 1e-4, 1e-12, float64_loss, &plain});
        mask_destroy(m);
        subject_end(&s);
    }
}

/* The loss in f32 is known to some 1e-6, so that gradients are known to a few percent of their moves. */
static void fits_with_dropout(void **unused)
{
    (void)unused;
    static const char *const transforms[] = {"softmax", "sparsegen=-2"};
    for (int k = 0; k < 2; k++) {
        struct train_subject s;
        random_model(1, 64, 4, 2, k ? "silu" : "gelu");
        subject_begin(&s, &(struct subject_options){k ? "longformer(5,2)" : "dense",
                                                    transforms[k], ELEMENT_F32, 2});
        struct gradients_request r = subject_request(&s);
        r.hidden_dropout = 0.2;
        r.attention_dropout = 0.2;
        struct batch_loss loss = subject_run(&s, &r);
        assert_true(isfinite(total_loss(&r, &loss)));
        gradients_must_fit(transforms[k], &r,
                           &(struct difference){1e-4F, 0.03, 3e-6, own_loss, &s});
        subject_end(&s);
    }
}

/* Nothing drops out after attention: sites_test.c. */
static void fits_without_a_site(void **unused)
{
    (void)unused;
    struct train_subject s;
    random_model_of(&(struct bert_case){
        .layers = 1, .hidden = 64, .heads = 4, .act = "gelu", .type = "distilbert"});
    subject_begin(&s,
                  &(struct subject_options){"dense", NULL, ELEMENT_F32, 2, .no_pairs = true});
    struct gradients_request r = subject_request(&s);
    r.hidden_dropout = 0.2;
    subject_run(&s, &r);
    gradients_must_fit("distilbert", &r, &(struct difference){1e-4F, 0.03, 3e-6, own_loss, &s});
    subject_end(&s);
}

static bool has(int argc, char **argv, const char *word)
{
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], word))
            return true;
    return false;
}

/* --far: parameters and gradients are in memory that the host cannot read. */
int main(int argc, char **argv)
{
    struct error e = {0};
    if (has(argc, argv, "--few") || getenv("MASKC_MAX_CPU")) /* the second run, capped */
        differences_are_few();
    if (has(argc, argv, "--far"))
        subjects_are_far();
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_float64),
        cmocka_unit_test(classifiers_equal_float64),
        cmocka_unit_test(fits_with_dropout),
        cmocka_unit_test(fits_without_a_site),
    };
    return cmocka_run_group_tests(tests, random_setup, random_teardown);
}
