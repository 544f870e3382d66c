/* SPDX-License-Identifier: Apache-2.0 */
/* Does training on the emulated device, which runs the GPU's kernels as text, give the CPU's losses and gradients? */
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/test.h"
#include "tests/train/subject.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gpu_case {
    const char *name, *mask, *act, *type;
    uint32_t layers, hidden, heads;
    enum element dtype;
    double dropout;
};

static const struct gpu_case cases[] = {
    {"f32", "longformer(5,2)", "gelu", NULL, 2, 64, 4, ELEMENT_F32, 0.1},
};

static float *run(const struct gpu_case *c, const char *device, struct batch_loss *loss,
                  struct train_subject *s)
{
    random_restart();
    random_model(c->layers, c->hidden, c->heads, 2, c->act);
    subjects_are_on(device);
    subject_begin(s, &(struct subject_options){c->mask, "softmax", c->dtype, 2});
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = r.attention_dropout = c->dropout;
    *loss = subject_run(s, &r);
    return state_gradient(s->state);
}

static void compare(const struct gpu_case *c)
{
    struct train_subject cpu, gpu;
    struct batch_loss of_cpu, of_gpu;
    float *expected = run(c, NULL, &of_cpu, &cpu), *got = run(c, "emulated", &of_gpu, &gpu);
    for (int k = 0; k < 2; k++)
        print_message("loss %.9g %.9g count %lu %lu right %lu %lu\n", of_cpu.target[k].sum, of_gpu.target[k].sum, of_cpu.target[k].count, of_gpu.target[k].count,of_cpu.target[k].right, of_gpu.target[k].right);
    for (uint32_t k = 0; k < cpu.state->pieces; k++) {
        const struct piece *p = &cpu.state->piece[k];
        double largest = 0, worst = 0;
        for (uint64_t i = p->first; i < p->first + p->count; i++)
            largest = fmax(largest, fabs((double)expected[i]));
        for (uint64_t i = p->first; i < p->first + p->count; i++) {
            double d = fabs((double)expected[i] - (double)got[i]) / fmax(fabs((double)expected[i]), 1e-3 * largest);
            worst = d <= worst ? worst : d;
        }
        print_message("%-60s largest %.3g worst %.3g\n", p->parameter->name, largest, worst);
    }
    free(expected);
    free(got);
    subject_end(&cpu);
    subject_end(&gpu);
}

static void gradients_are_the_cpus(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        compare(&cases[k]);
}

static int setup(void **unused)
{
    (void)unused;
    return random_begin() ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    random_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_cpus),
    };
    return cmocka_run_group_tests_name("training on the emulated device", tests, setup, teardown);
}
