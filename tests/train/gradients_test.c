/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of every parameter against differences of the loss: of BERT in float64 without dropout, of our own forward
   pass with it. A parameter is moved along a random direction; its gradient says how the loss moves. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/mask/model_mask.h"
#include "tests/support/test.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the loss in float64 ---- */

static double cross_entropy(const double *z, uint32_t n, uint32_t label)
{
    double most = -HUGE_VAL, sum = 0;
    for (uint32_t k = 0; k < n; k++)
        most = fmax(most, z[k]);
    for (uint32_t k = 0; k < n; k++)
        sum += exp(z[k] - most);
    return most + log(sum) - z[label];
}

/* Of a label over a row x: the linear that the target's head has, after the pooler where it has one. */
static double label_loss(const struct plain_bert *b, enum target_head head, const double *x,
                         uint32_t label)
{
    const uint32_t h = b->config->hidden, labels = target_labels(b->config, head);
    const struct target_form *form = target_form(head);
    float *w = plain_tensor(b, form->weight, 0), *bias = plain_tensor(b, form->bias, 0);
    double *pooled = form->pooled ? plain_pooled(b, x) : NULL,
           *z = memory_new(labels, sizeof *z);
    for (uint32_t c = 0; c < labels; c++) {
        z[c] = (double)bias[c];
        for (uint32_t k = 0; k < h; k++)
            z[c] += (pooled ? pooled[k] : x[k]) * (double)w[c * h + k];
    }
    const double ret = cross_entropy(z, labels, label);
    free(pooled);
    free(w);
    free(bias);
    free(z);
    return ret;
}

static double row_loss(const struct plain_bert *b, enum target_head head, const double *x,
                       uint32_t label)
{
    if (head != TARGET_WORDS)
        return label_loss(b, head, x, label);
    double *z = plain_words(b, x), ret = cross_entropy(z, b->config->vocabulary, label);
    free(z);
    return ret;
}

static double sequence_loss(const struct plain_bert *b, const struct gradients_request *r,
                            uint32_t s)
{
    const struct train_batch *batch = r->batch;
    const uint32_t h = b->config->hidden, first = (uint32_t)batch->offsets[s],
                   end = (uint32_t)batch->offsets[s + 1];
    double *x = plain_hidden(b, &batch->list[s]), loss = 0;
    for (uint32_t t = 0; t < batch->targets; t++) {
        const struct train_target *target = &batch->target[t];
        for (uint32_t k = 0; k < target->count; k++)
            if (target->row[k] >= first && target->row[k] < end)
                loss += r->weight[t] * row_loss(b, target->head,
                                                x + (size_t)(target->row[k] - first) * h,
                                                target->label[k]);
    }
    free(x);
    return loss;
}

static double plain_loss(const struct plain_bert *b, const struct gradients_request *r)
{
    double loss = 0;
#pragma omp parallel for reduction(+ : loss) num_threads(2) schedule(dynamic, 1)
    for (uint32_t s = 0; s < r->batch->sequences; s++)
        loss += sequence_loss(b, r, s);
    return loss;
}

/* ---- differences ---- */

typedef double loss_function(void *context, const struct gradients_request *r);

/* Moves a piece by distance * direction, exactly as far as f32 can say. moved: where it is then. */
static void move(const struct train_state *s, const struct piece *p, const float *from,
                 const float *direction, float distance, float *moved)
{
    for (uint64_t k = 0; k < p->count; k++)
        moved[k] = from[k] + distance * direction[k];
    state_write(s, s->value + p->first, p->count, moved);
}

/* How the loss moves, and how the gradient says it does. */
struct slope {
    double loss, gradient, size;
};

static struct slope slope_of(const struct gradients_request *r, const struct piece *p,
                             float distance, loss_function *loss, void *context)
{
    struct train_state *s = r->state;
    float *all = memory_new(5 * p->count, sizeof *all), *from = all,
          *direction = all + p->count, *up = direction + p->count, *down = up + p->count,
          *gradient = down + p->count;
    struct slope ret = {0};
    state_read(s, s->value + p->first, p->count, from);
    state_read(s, s->gradient + p->first, p->count, gradient);
    for (uint64_t k = 0; k < p->count; k++)
        direction[k] = random_draw(2) ? 1 : -1;
    move(s, p, from, direction, distance, up);
    ret.loss = loss(context, r);
    move(s, p, from, direction, -distance, down);
    ret.loss -= loss(context, r);
    for (uint64_t k = 0; k < p->count; k++) {
        double g = (double)gradient[k], moved = (double)up[k] - (double)down[k];
        ret.gradient += g * moved;
        ret.size += g * moved * g * moved;
    }
    ret.size = sqrt(ret.size);
    state_write(s, s->value + p->first, p->count, from);
    free(all);
    return ret;
}

struct difference {
    float distance;
    double tolerance, noise; /* a part of the gradient; and of the loss */
    loss_function *loss;
    void *context;
};

/* Every how many-th parameter is moved: with --few (sanitizers) one in three, others in each case. What sanitizers look
   for is in the pass, which computes all gradients; whether they are right the other builds say of each. */
static uint32_t one_in = 1, next_first;

static void gradients_must_fit(const char *name, const struct gradients_request *r,
                               const struct difference *d)
{
    for (uint32_t k = next_first++ % one_in; k < r->state->pieces; k += one_in) {
        const struct piece *p = &r->state->piece[k];
        struct slope s = slope_of(r, p, d->distance, d->loss, d->context);
        if (!(fabs(s.loss - s.gradient) <=
              d->tolerance * fmax(s.size, fabs(s.gradient)) + d->noise))
            fail_msg("%s: %s: the loss moves by %g, the gradient says %g", name,
                     p->parameter->name, s.loss, s.gradient);
    }
}

/* ---- the tests ---- */

/* Sequences of 1 and 17 tokens: the plain loss takes its time. */
enum { FEW_FIRST = 2, FEW = 2 };

static double float64_loss(void *context, const struct gradients_request *r)
{
    return plain_loss(context, r);
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
        struct mask *m = model_mask(c->mask, &s.engine->config, &e);
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
        assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r)) <= 1e-5);
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
        assert_true(fabs(total_loss(&r, &loss) - plain_loss(&plain, &r)) <= 1e-5);
        gradients_must_fit("classifier", &r,
                           &(struct difference){1e-6F, 1e-4, 1e-12, float64_loss, &plain});
        mask_destroy(m);
        subject_end(&s);
    }
}

static double own_loss(void *context, const struct gradients_request *r)
{
    struct train_subject *s = context;
    struct error e = {0};
    struct batch_loss loss = {0};
    struct gradients_workspace *w = s->workspace;
    struct train_state aside = *r->state;
    struct gradients_request without = *r;
    const struct training_device *d = &aside.device;
    aside.gradient = d->does->array_new(d->state, aside.count, &e);
    without.state = &aside;
    if (!aside.gradient || engine_repack(r->engine, &e) < 0 ||
        gradients_compute(&without, w, &loss, &e) < 0)
        fail_msg("%s", e.text);
    d->does->array_destroy(d->state, aside.gradient);
    return total_loss(r, &loss);
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
    one_in = has(argc, argv, "--few") ? 3 : 1;
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
    return cmocka_run_group_tests(tests, setup, teardown);
}
