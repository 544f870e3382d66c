/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps of training on the mock GPU (tests/model/fake_gpu.c), with graphs: how many launches do they submit? Does a step of
   the optimiser wait for the device, or allocate after the first one? */
#include "masks/base/memory.h"
#include "model/train/optimizer.h"
#include "tests/support/test.h"
#include "tests/train/mock_gpu/mock_gpu.h"
#include <stdlib.h>

enum { TIMES = 3 };

/* ---- launches ---- */

static uint64_t launches_outside(void)
{
    return (uint64_t)(device_fake->launches + device_fake->products + device_fake->replays);
}

/* Kernels, products and graphs of the last step, in bf16: the first has no graphs, the second records. The kernels of the mock do
   nothing, so the norm is no number. */
static uint64_t launches_of_step(uint32_t layers)
{
    const struct optimizer adamw = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.01, 1, true};
    struct train_subject s;
    struct error e = {0};
    uint64_t ret = 0;
    double of;
    mock_gpu_subject(&s, layers, ELEMENT_BF16);
    const struct gradients_request r = subject_request(&s);
    for (uint64_t step = 1; step <= TIMES; step++) {
        const uint64_t before = train_state_use(s.state).launches, outside = launches_outside();
        const struct optimizer_step at = {step, 1e-3, 2};
        subject_run(&s, &r);
        if (s.state->device.does->gradient_norm(s.state, 2, &of, &e) < 0 ||
            optimizer_move(&adamw, s.state, &at, 1, &e) < 0 || engine_repack(s.engine, &e) < 0)
            fail_msg("%s", e.text);
        ret = train_state_use(s.state).launches - before;
        assert_int_equal(ret, launches_outside() - outside);
    }
    subject_end(&s);
    return ret;
}

/* The numbers of model/TRAINING.md. */
static void few_launches_are_left(void **unused)
{
    (void)unused;
    device_idle = true;
    const uint64_t two = launches_of_step(2), three = launches_of_step(3),
                   of_layer = three - two, once = two - 2 * of_layer;
    device_idle = false;
    print_message("with graphs, a layer: %u launches, once: %u\n", (unsigned)of_layer,
                  (unsigned)once);
    assert_int_equal(of_layer, 1);
    assert_int_equal(once, 8);
}

/* ---- the optimiser ---- */

/* A state beside the model's, as a learned mask is. */
static void other_begin(const struct train_subject *s, struct piece *piece,
                        struct train_state *ret)
{
    struct error e = {0};
    *piece = (struct piece){.count = 64, .rate_scale = 1};
    *ret = (struct train_state){.piece = piece,
                                .pieces = 1,
                                .count = piece->count,
                                .moments = {0, piece->count},
                                .device = s->state->device};
    if (train_state_allocate(ret, &e) < 0)
        fail_msg("%s", e.text);
}

/* Values after some steps on three sequences. waits: the device has nothing left to do after each call. */
static float *run_steps(const struct optimizer *o, bool waits)
{
    struct train_subject s;
    struct error e = {0};
    double norm;
    struct train_batch few;
    int32_t offsets[SEQUENCES + 1];
    uint32_t rows[ROWS];
    mock_gpu_subject(&s, 1, ELEMENT_F32);
    struct gradients_request r = subject_request(&s);
    train_batch_slice(&s.batch, 0, 3, &few, offsets, rows);
    r.batch = &few;
    int allocated = 0, copies = 0;
    struct train_state other;
    struct piece piece;
    other_begin(&s, &piece, &other);
    for (uint64_t step = 1; step <= TIMES; step++) {
        subject_run(&s, &r);
        if (step == 2) {
            allocated = device_fake->allocated;
            copies = device_fake->copies;
        }
        const struct optimizer_step at = {step, 1e-2, 2};
        if (optimizer_step(o, &other, &at, &norm, &e) < 0 ||
            optimizer_step(o, s.state, &at, &norm, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(device_fake->left() > 0);
        if (waits)
            free(state_gradient(s.state));
        if (engine_repack(s.engine, &e) < 0)
            fail_msg("%s", e.text);
    }
    assert_int_equal(device_fake->allocated, allocated);
    /* Each pass sends its words and a gradient of labels. Lists of blocks were sent in the first step, but LAMB scales the
       model's in each step. */
    const int scaled = o->kind == OPTIMIZER_LAMB ? TIMES - 1 : 0;
    assert_int_equal(device_fake->copies - copies, 2 * (TIMES - 2) + scaled);
    float *ret = memory_new(s.state->count, sizeof *ret);
    state_read(s.state, s.state->value, s.state->count, ret);
    train_state_finish(&other);
    subject_end(&s);
    return ret;
}

static void updates_do_not_wait(void **unused)
{
    static const struct optimizer kinds[] = {
        {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-6, 0.01, 1, true},
        {OPTIMIZER_LAMB, 0.9, 0.999, 1e-6, 0.01, 1, true},
    };
    struct train_subject s;
    (void)unused;
    mock_gpu_subject(&s, 1, ELEMENT_F32);
    const uint64_t bytes = s.state->count * sizeof(float);
    subject_end(&s);
    for (int k = 0; k < 2; k++) {
        float *truth = run_steps(&kinds[k], true);
        for (int lazy = 0; lazy < 2; lazy++) {
            device_fake->lazy_copies = lazy;
            float *got = run_steps(&kinds[k], false);
            assert_memory_equal(truth, got, bytes);
            free(got);
        }
        device_fake->lazy_copies = 0;
        free(truth);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_launches_are_left),
        cmocka_unit_test(updates_do_not_wait),
    };
    const int begun = mock_gpu_begin(argc, argv);
    return begun ? begun
                 : mock_gpu_end(cmocka_run_group_tests_name("steps of training on a mock GPU",
                                                            tests, NULL, NULL));
}
