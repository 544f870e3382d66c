/* SPDX-License-Identifier: Apache-2.0 */
/* Training on the device "emulated", which runs the GPU's kernels as text. In f32 losses, gradients, three steps and all task
   heads but ModernBERT's are the CPU's, in bf16 the error of the gradients at most 1.25 times the CPU's, in any order of threads. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/train/optimizer.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/test.h"
#include "tests/train/gpu/state_equal.h"
#include "tests/train/heads/head_subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- three sequences, where all nine show no more ---- */

enum { FEW_FIRST = 3, FEW = GROUP };

struct few {
    struct train_batch batch;
    int32_t offsets[SEQUENCES + 1];
    uint32_t rows[HEAD_ROWS];
};

/* The request is over these sequences from here on. */
static void take_few(struct few *f, struct gradients_request *r)
{
    train_batch_slice(r->batch, FEW_FIRST, FEW, &f->batch, f->offsets, f->rows);
    r->batch = &f->batch;
}

/* ---- a model of two layers ---- */

struct gpu_case {
    const char *name, *mask, *act;
    uint32_t hidden, heads;
    double dropout;
    enum recompute recompute;
};

static const struct gpu_case cases[] = {
    {"heads of 16", "longformer(5,2)", "gelu", 48, 3, 0.1, RECOMPUTE_NONE},
    {"heads of 12, padded", "window(4)", "silu", 36, 3, 0.1, RECOMPUTE_LAYER},
};

static struct gradients_request begin(const struct gpu_case *c, enum element dtype,
                                      const char *device, struct train_subject *s)
{
    random_restart();
    random_model(2, c->hidden, c->heads, 2, c->act);
    subjects_are_on(device);
    subject_begin(s, &(struct subject_options){c->mask, "softmax", dtype, 2});
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = r.attention_dropout = c->dropout;
    r.recompute = c->recompute;
    return r;
}

static void gradients_in_f32_are_the_cpus(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct train_subject cpu, gpu;
        const struct gradients_request of_cpu = begin(&cases[k], ELEMENT_F32, NULL, &cpu),
                                       of_gpu = begin(&cases[k], ELEMENT_F32, "emulated", &gpu);
        const struct batch_loss truth = subject_run(&cpu, &of_cpu),
                                got = subject_run(&gpu, &of_gpu);
        float *expected = state_gradient(cpu.state), *gradient = state_gradient(gpu.state);
        losses_must_equal(cases[k].name, &of_cpu, &got, &truth, 1e-6);
        gradients_must_equal(cases[k].name, cpu.state, gradient, expected, 1e-5);
        free(expected);
        free(gradient);
        subject_end(&cpu);
        subject_end(&gpu);
    }
}

/* Returns the error of all gradients together, relative to the gradients in f32. */
static double error_of(const struct train_state *s, const float *got, const float *truth)
{
    double d = 0, of = 0;
    for (uint32_t k = 0; k < s->pieces; k++) {
        d += pow(piece_norm(&s->piece[k], got, truth), 2);
        of += pow(piece_norm(&s->piece[k], truth, NULL), 2);
    }
    return sqrt(d / of);
}

/* The CPU's error is at most 1.5 times that of torch's autocast: gradient_oracle.py. */
static void gradients_in_bf16_are_as_good_as_the_cpus(void **unused)
{
    const struct {
        enum element dtype;
        const char *device;
    } runs[] = {{ELEMENT_F32, NULL}, {ELEMENT_BF16, NULL}, {ELEMENT_BF16, "emulated"}};
    float *gradient[3];
    struct train_subject s[3];
    (void)unused;
    for (int k = 0; k < 3; k++) {
        const struct gradients_request r =
            begin(&cases[0], runs[k].dtype, runs[k].device, &s[k]);
        subject_run(&s[k], &r);
        gradient[k] = state_gradient(s[k].state);
    }
    const double cpu = error_of(s->state, gradient[1], gradient[0]),
                 gpu = error_of(s->state, gradient[2], gradient[0]);
    if (!(gpu <= 1.25 * cpu) || !(cpu > 0))
        fail_msg("the error is %g, the CPU's %g", gpu, cpu);
    for (int k = 0; k < 3; k++) {
        free(gradient[k]);
        subject_end(&s[k]);
    }
}

/* ---- heads ---- */

static void run_head(const struct head_case *c, const char *device, struct head_subject *s,
                     struct few *few, struct gradients_request *r, struct batch_loss *loss)
{
    subjects_are_on(device);
    head_begin(s, c, ELEMENT_F32, 2);
    *r = head_request(s, 0.3);
    take_few(few, r);
    *loss = subject_run(&s->base, r);
}

static void each_head_is_the_cpus(void **unused)
{
    uint32_t n = 0;
    (void)unused;
    for (const struct head_case *c = head_cases; c->name; c++) {
        struct head_subject cpu, gpu;
        struct few few[2];
        struct gradients_request r, of_gpu;
        struct batch_loss truth, got;
        if (c->type && !strcmp(c->type, "modernbert"))
            continue;
        run_head(c, NULL, &cpu, &few[0], &r, &truth);
        run_head(c, "emulated", &gpu, &few[1], &of_gpu, &got);
        float *expected = state_gradient(cpu.base.state),
              *gradient = state_gradient(gpu.base.state);
        losses_must_equal(c->name, &r, &got, &truth, 1e-6);
        gradients_must_equal(c->name, cpu.base.state, gradient, expected, 1e-5);
        /* Once more, now recorded, and then with other dropout before the labels. */
        for (int other = 0; other < 2 && c == head_cases; other++) {
            of_gpu.head_dropout += other * 0.3;
            subject_run(&gpu.base, &of_gpu);
            state_read(gpu.base.state, gpu.base.state->gradient, gpu.base.state->count,
                       expected);
            assert_true(!memcmp(expected, gradient, gpu.base.state->count * 4) == !other);
        }
        free(expected);
        free(gradient);
        head_end(&cpu);
        head_end(&gpu);
        n++;
    }
    assert_int_equal(n, 9);
}

static void what_it_does_not_train_is_refused(void **unused)
{
    struct error e = {0};
    (void)unused;
    random_restart();
    random_head(
        &(struct bert_case){
            .layers = 1, .hidden = 64, .heads = 4, .act = "gelu", .type = "modernbert"},
        "ModernBertForTokenClassification", LABELS);
    const struct engine_options o = {
        .device = "emulated", .trains = true, .parts = PART_CLASSIFIER};
    assert_null(engine_load(random_folder, &o, &e));
    assert_string_equal(e.text, "emulated does not train models with rotated positions: the "
                                "CPU does (--device cpu)");
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
}

/* ---- the optimiser ---- */

enum { STEPS = 3 };

static const struct optimizer adamw = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.01, 1, true},
                              lamb = {OPTIMIZER_LAMB, 0.9, 0.999, 1e-6, 0.01, 1, true};

static void take_step(const struct optimizer *o, const struct train_subject *s, uint64_t step,
                      double *ret_norm)
{
    struct error e = {0};
    if (optimizer_step(o, s->state, &(struct optimizer_step){step, 1e-3, 2}, ret_norm, &e) <
            0 ||
        engine_repack(s->engine, &e) < 0)
        fail_msg("%s", e.text);
}

static float *values_after(const struct optimizer *o, const char *device,
                           struct train_subject *s, double *ret_norm)
{
    struct gradients_request r = begin(&cases[0], ELEMENT_F32, device, s);
    struct few few;
    take_few(&few, &r);
    for (uint64_t step = 1; step <= STEPS; step++) {
        subject_run(s, &r);
        take_step(o, s, step, ret_norm);
    }
    float *ret = memory_new(s->state->count, sizeof *ret);
    state_read(s->state, s->state->value, s->state->count, ret);
    return ret;
}

/* AdamW makes whole steps of a gradient of rounding. */
static void steps_are_the_cpus(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 2; kind++) {
        const struct optimizer *o = kind ? &lamb : &adamw;
        struct train_subject cpu, gpu;
        double cpu_norm, gpu_norm;
        float *expected = values_after(o, NULL, &cpu, &cpu_norm),
              *value = values_after(o, "emulated", &gpu, &gpu_norm);
        assert_true(fabs(gpu_norm - cpu_norm) <= 1e-5 * cpu_norm);
        for (uint32_t k = 0; k < cpu.state->pieces; k++) {
            const struct piece *p = &cpu.state->piece[k];
            const double d = piece_norm(p, value, expected), of = piece_norm(p, expected, NULL);
            if (!(d <= 1e-5 * of) && !is_key_bias(p))
                fail_msg("%d: %s is off by %g of %g", kind, p->parameter->name, d, of);
        }
        free(expected);
        free(value);
        subject_end(&cpu);
        subject_end(&gpu);
    }
}

/* ---- launches ---- */

/* Kernels and products of a whole step in bf16. */
static uint64_t launches_of_step(uint32_t layers)
{
    struct train_subject s;
    struct training_use before, after;
    double of_step;
    random_restart();
    random_model(layers, 64, 4, 2, "gelu");
    subjects_are_on("emulated");
    subject_begin(&s, &(struct subject_options){"longformer(5,2)", "softmax", ELEMENT_BF16, 2});
    const struct training_device d = train_device(s.engine);
    const struct gradients_request r = subject_request(&s);
    d.does->use(d.state, &before);
    subject_run(&s, &r);
    take_step(&adamw, &s, 1, &of_step);
    d.does->use(d.state, &after);
    subject_end(&s);
    return after.launches - before.launches;
}

/* The numbers of model/TRAINING.md. A model of 12 layers has fewer than 40 a layer, with what a step does once. */
static void launches_are_few(void **unused)
{
    const uint64_t two = launches_of_step(2), three = launches_of_step(3),
                   of_layer = three - two, once = two - 2 * of_layer;
    (void)unused;
    print_message("a layer: %u launches, once: %u\n", (unsigned)of_layer, (unsigned)once);
    assert_int_equal(of_layer, 30);
    assert_int_equal(once, 48);
    assert_true(three > two && 12 * of_layer + once < 12 * 40);
}

/* ---- orders of threads ---- */

static void bits_do_not_depend_on_the_order_of_threads(void **unused)
{
    float *first = NULL;
    (void)unused;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct train_subject s;
        double of_step;
        emulated_set_seed(seed);
        struct few few;
        struct gradients_request r = begin(&cases[0], ELEMENT_BF16, "emulated", &s);
        take_few(&few, &r);
        subject_run(&s, &r);
        take_step(&lamb, &s, 1, &of_step);
        const uint64_t bytes = s.state->count * sizeof(float);
        float *all = memory_new(2 * s.state->count, sizeof *all);
        state_read(s.state, s.state->gradient, s.state->count, all);
        state_read(s.state, s.state->value, s.state->count, all + s.state->count);
        if (first)
            assert_memory_equal(all, first, 2 * bytes);
        else
            first = memory_copy(all, 2 * bytes);
        free(all);
        subject_end(&s);
    }
    emulated_set_seed(0);
    free(first);
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_in_f32_are_the_cpus),
        cmocka_unit_test(gradients_in_bf16_are_as_good_as_the_cpus),
        cmocka_unit_test(each_head_is_the_cpus),
        cmocka_unit_test(what_it_does_not_train_is_refused),
        cmocka_unit_test(steps_are_the_cpus),
        cmocka_unit_test(launches_are_few),
        cmocka_unit_test(bits_do_not_depend_on_the_order_of_threads),
    };
    return cmocka_run_group_tests_name("training on the emulated device", tests, random_setup,
                                       random_teardown);
}
