/* SPDX-License-Identifier: Apache-2.0 */
/* maskc_run on this machine's CPU: a launch computes, one kernel serves many threads, slices of the batch
   are invisible. That all numbers are right is the business of tests/kernels. */
#include "masks/base/memory.h"
#include "runtime/load/load.h"
#include "tests/runtime/api_compile.h"
#include "tests/runtime/launches.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 64, HEADS = 2, D = 64, ELEMENTS = N * HEADS * D };

struct thread_task {
    const struct maskc_kernel *kernel;
    float *q, *out, *lse;
    int code;
};

static void *launch(void *argument)
{
    struct thread_task *j = argument;
    struct maskc_launch l = {.struct_size = sizeof l,
                             .query = {.data = j->q},
                             .key = {.data = j->q},
                             .value = {.data = j->q},
                             .out = {.data = j->out},
                             .lse = j->lse,
                             .threads = 1};
    l.workspace_bytes = maskc_workspace_bytes(j->kernel, &l);
    l.workspace = memory_aligned(l.workspace_bytes, 1);
    j->code = maskc_run(j->kernel, &l, NULL);
    free(l.workspace);
    return NULL;
}

static struct thread_task new_task(const struct maskc_kernel *kernel)
{
    struct thread_task j = {.kernel = kernel,
                            .q = memory_aligned(ELEMENTS, sizeof(float)),
                            .out = memory_aligned(ELEMENTS, sizeof(float)),
                            .lse = memory_aligned(HEADS * N, sizeof(float))};
    for (int k = 0; k < ELEMENTS; k++) {
        j.q[k] = (float)(k * 37 % 101) / 101 - 0.5f;
        j.out[k] = NAN;
    }
    return j;
}

static void free_task(struct thread_task *j)
{
    free(j->q);
    free(j->out);
    free(j->lse);
}

/* diagonal(0): each query sees itself alone, so O = V and LSE = scale |q|^2, to the last bit of V. */
static void a_launch_computes(void **state)
{
    (void)state;
    struct maskc_kernel *kernel = api_kernel("diagonal(0)", N, HEADS);
    struct thread_task j = new_task(kernel);
    launch(&j);
    assert_int_equal(j.code, 0);
    for (int i = 0; i < N; i++)
        for (int h = 0; h < HEADS; h++) {
            double sum = 0;
            for (int d = 0; d < D; d++) {
                int at = (i * HEADS + h) * D + d;
                sum += (double)j.q[at] * (double)j.q[at];
                assert_true(fabsf(j.out[at] - j.q[at]) < 1e-6f);
            }
            assert_true(fabs((double)j.lse[h * N + i] - sum / 8) < 1e-5);
        }
    free_task(&j);
    maskc_kernel_destroy(kernel);
}

static void one_kernel_serves_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    struct maskc_kernel *kernel = api_kernel("bigbird", N, HEADS);
    struct thread_task thread_task[THREADS];
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++)
        thread_task[k] = new_task(kernel);
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, launch, &thread_task[k]), 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(thread[k], NULL);
    for (int k = 0; k < THREADS; k++) {
        assert_int_equal(thread_task[k].code, 0);
        assert_memory_equal(thread_task[k].out, thread_task[0].out, ELEMENTS * sizeof(float));
    }
    for (int k = 0; k < THREADS; k++)
        free_task(&thread_task[k]);
    maskc_kernel_destroy(kernel);
}

enum { SEQUENCES = 100 };

/* Both passes over `count` sequences from `first` on. */
static void run_batch(const struct maskc_kernel *kernel, const struct batch *b, uint32_t first,
                      uint32_t count)
{
    struct maskc_launch l =
        batch_launch(b, (size_t)first * ELEMENTS, b->lse + (size_t)first * HEADS * N);
    l.batch = count;
    launch_both(kernel, l);
}

/* A batch that is worked off in several slices gives, bit for bit, what its sequences give alone. */
static void slices_are_invisible(void **state)
{
    (void)state;
    struct maskc_kernel *kernel = api_kernel("window(9)|global(0)", N, HEADS);
    /* more than one slice: see runtime/launch/shape.c */
    assert_true(kernel->target->launch.pack_row * (N + 32) * HEADS * SEQUENCES > 32u << 20);
    const size_t elements = SEQUENCES * ELEMENTS, rows = SEQUENCES * HEADS * N;
    struct batch together = batch_new(elements, rows), alone = batch_new(elements, rows);
    run_batch(kernel, &together, 0, SEQUENCES);
    for (uint32_t b = 0; b < SEQUENCES; b++)
        run_batch(kernel, &alone, b, 1);
    for (int t = INPUTS; t < TENSORS; t++)
        assert_memory_equal(together.x[t], alone.x[t], elements * sizeof(float));
    assert_memory_equal(together.lse, alone.lse, rows * sizeof(float));
    batch_free(&together);
    batch_free(&alone);
    maskc_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_computes),
        cmocka_unit_test(one_kernel_serves_many_threads),
        cmocka_unit_test(slices_are_invisible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
