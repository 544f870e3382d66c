/* SPDX-License-Identifier: Apache-2.0 */
/* maskc_run on this machine's CPU: a launch computes, one kernel serves many threads, slices of the batch
   are invisible. That all numbers are right is the business of tests/kernels. */
#include "masks/base/memory.h"
#include "runtime/kernel.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 64, HEADS = 2, D = 64, ELEMENTS = N * HEADS * D };

static struct maskc_kernel *compile(const char *mask)
{
    const struct maskc_options o = {.length = N, .heads = HEADS};
    struct maskc_bytes bytes = {0};
    struct maskc_kernel *kernel = NULL;
    struct maskc_error error;
    if (maskc_compile(mask, &o, &bytes, &error) ||
        maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, &error))
        fail_msg("%s: %s", mask, error.text);
    maskc_bytes_free(&bytes); /* the kernel has its own copy */
    return kernel;
}

struct job {
    const struct maskc_kernel *kernel;
    float *q, *out, *lse;
    int code;
};

static void *launch(void *argument)
{
    struct job *j = argument;
    struct maskc_launch l = {.query = {.data = j->q},
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

static struct job new_job(const struct maskc_kernel *kernel)
{
    struct job j = {.kernel = kernel,
                    .q = memory_aligned(ELEMENTS, sizeof(float)),
                    .out = memory_aligned(ELEMENTS, sizeof(float)),
                    .lse = memory_aligned(HEADS * N, sizeof(float))};
    for (int k = 0; k < ELEMENTS; k++) {
        j.q[k] = (float)(k * 37 % 101) / 101 - 0.5f;
        j.out[k] = NAN;
    }
    return j;
}

static void free_job(struct job *j)
{
    free(j->q);
    free(j->out);
    free(j->lse);
}

/* diagonal(0): each query sees itself alone, so O = V and LSE = scale |q|^2, to the last bit of V. */
static void a_launch_computes(void **state)
{
    (void)state;
    struct maskc_kernel *kernel = compile("diagonal(0)");
    struct job j = new_job(kernel);
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
    free_job(&j);
    maskc_kernel_destroy(kernel);
}

static void one_kernel_serves_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    struct maskc_kernel *kernel = compile("bigbird");
    struct job job[THREADS];
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++)
        job[k] = new_job(kernel);
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, launch, &job[k]), 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(thread[k], NULL);
    for (int k = 0; k < THREADS; k++) {
        assert_int_equal(job[k].code, 0);
        assert_memory_equal(job[k].out, job[0].out, ELEMENTS * sizeof(float));
    }
    for (int k = 0; k < THREADS; k++)
        free_job(&job[k]);
    maskc_kernel_destroy(kernel);
}

enum { SEQUENCES = 100 };

/* All tensors of a batch, as one allocation each. */
struct batch {
    float *x[8];
    float *lse;
};

static struct batch new_batch(uint32_t sequences)
{
    struct batch b;
    for (int t = 0; t < 8; t++) {
        b.x[t] = memory_aligned((size_t)sequences * ELEMENTS, sizeof(float));
        for (size_t k = 0; k < (size_t)sequences * ELEMENTS; k++)
            b.x[t][k] = t < 4 ? (float)((k * 31 + (size_t)t * 17) % 1009) / 1009 - 0.5f : NAN;
    }
    b.lse = memory_aligned((size_t)sequences * HEADS * N, sizeof(float));
    return b;
}

static void free_batch(struct batch *b)
{
    for (int t = 0; t < 8; t++)
        free(b->x[t]);
    free(b->lse);
}

/* Forward and backward over `count` sequences from `first` on; inputs are x[0..3] = q, k, v, dO. */
static void run_batch(const struct maskc_kernel *kernel, const struct batch *b, uint32_t first,
                      uint32_t count)
{
    const size_t at = (size_t)first * ELEMENTS;
    struct maskc_launch l = {.batch = count,
                             .query = {.data = b->x[0] + at},
                             .key = {.data = b->x[1] + at},
                             .value = {.data = b->x[2] + at},
                             .grad_out = {.data = b->x[3] + at},
                             .out = {.data = b->x[4] + at},
                             .grad_query = {.data = b->x[5] + at},
                             .grad_key = {.data = b->x[6] + at},
                             .grad_value = {.data = b->x[7] + at},
                             .lse = b->lse + (size_t)first * HEADS * N};
    for (int pass = 0; pass < 2; pass++) {
        struct maskc_error error;
        l.pass = (enum maskc_pass)pass;
        l.workspace_bytes = maskc_workspace_bytes(kernel, &l);
        l.workspace = memory_aligned(l.workspace_bytes, 1);
        if (maskc_run(kernel, &l, &error))
            fail_msg("%s", error.text);
        free(l.workspace);
    }
}

/* A batch that is worked off in several slices gives, bit for bit, what its sequences give alone. */
static void slices_are_invisible(void **state)
{
    (void)state;
    struct maskc_kernel *kernel = compile("window(9)|global(0)");
    /* more than one slice: see runtime/launch/shape.c */
    assert_true(kernel->target->launch.pack_row * (N + 32) * HEADS * SEQUENCES > 32u << 20);
    struct batch together = new_batch(SEQUENCES), alone = new_batch(SEQUENCES);
    run_batch(kernel, &together, 0, SEQUENCES);
    for (uint32_t b = 0; b < SEQUENCES; b++)
        run_batch(kernel, &alone, b, 1);
    for (int t = 4; t < 8; t++)
        assert_memory_equal(together.x[t], alone.x[t], SEQUENCES * ELEMENTS * sizeof(float));
    assert_memory_equal(together.lse, alone.lse, SEQUENCES * HEADS * N * sizeof(float));
    free_batch(&together);
    free_batch(&alone);
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
