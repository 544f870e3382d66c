/* SPDX-License-Identifier: Apache-2.0 */
/* maskc_run on the caller's own threads: the same bits as on OpenMP's, whatever order the pool's tasks run in. */
#include "tests/runtime/api_compile.h"
#include "tests/runtime/launches.h"
#include <pthread.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { D = 64, THREADS = 3 };

struct pool {
    uint32_t calls, tasks, most;
};

static void count_call(struct pool *p, uint32_t count)
{
    p->calls++;
    p->tasks += count;
    p->most = count > p->most ? count : p->most;
}

/* One after the other, the last one first: a task that waits for another would never end. */
static void run_backwards(void *pool, uint32_t count, void (*task)(void *, uint32_t),
                          void *context)
{
    count_call(pool, count);
    while (count)
        task(context, --count);
}

struct one {
    void (*task)(void *context, uint32_t k);
    void *context;
    uint32_t k;
};

static void *run_one(void *argument)
{
    const struct one *o = argument;
    o->task(o->context, o->k);
    return NULL;
}

static void run_at_once(void *pool, uint32_t count, void (*task)(void *, uint32_t),
                        void *context)
{
    struct one one[THREADS];
    pthread_t thread[THREADS];
    count_call(pool, count);
    assert_true(count <= THREADS);
    for (uint32_t k = 0; k < count; k++) {
        one[k] = (struct one){task, context, k};
        assert_int_equal(pthread_create(&thread[k], NULL, run_one, &one[k]), 0);
    }
    for (uint32_t k = 0; k < count; k++)
        pthread_join(thread[k], NULL);
}

static void run_both(const struct maskc_kernel *kernel, const struct batch *b, uint32_t threads,
                     maskc_parallel *parallel, struct pool *pool)
{
    struct maskc_launch l = batch_launch(b, 0, b->lse);
    l.threads = threads;
    l.parallel = parallel;
    l.pool = pool;
    launch_both(kernel, l);
}

/* The pool's launch against OpenMP's; what the pool was asked for. */
static struct pool compare(const char *mask, uint32_t n, uint32_t heads,
                           maskc_parallel *parallel)
{
    struct maskc_kernel *kernel = api_kernel(mask, n, heads);
    const size_t elements = (size_t)n * heads * D, rows = (size_t)n * heads;
    struct batch openmp = batch_new(elements, rows), own = batch_new(elements, rows);
    struct pool pool = {0};
    run_both(kernel, &openmp, 2, NULL, NULL);
    run_both(kernel, &own, THREADS, parallel, &pool);
    for (int t = INPUTS; t < TENSORS; t++)
        assert_memory_equal(openmp.x[t], own.x[t], elements * sizeof(float));
    assert_memory_equal(openmp.lse, own.lse, rows * sizeof(float));
    batch_free(&openmp);
    batch_free(&own);
    maskc_kernel_destroy(kernel);
    return pool;
}

/* Whole heads: a call for each pass. Phases: more of them; residue classes split items, which come before those that
   merge them: yet more. */
static void any_order_gives_the_same_bits(void **state)
{
    (void)state;
    maskc_parallel *const ways[] = {run_backwards, run_at_once};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        struct pool heads = compare("window(9)|global(0)", 512, 12, ways[k]);
        assert_int_equal(heads.calls, 2);
        struct pool phases = compare("dense", 128, 2, ways[k]);
        assert_true(phases.calls > 2);
        struct pool splits = compare("strided(23)", 512, 2, ways[k]);
        assert_true(splits.calls > phases.calls);
        assert_int_equal(splits.most, THREADS);
    }
}

/* One thread is the caller's: no pool is asked. */
static void one_thread_needs_no_pool(void **state)
{
    (void)state;
    struct maskc_kernel *kernel = api_kernel("window(9)", 64, 2);
    struct batch b = batch_new(64 * 2 * D, 64 * 2);
    struct pool pool = {0};
    run_both(kernel, &b, 1, run_backwards, &pool);
    assert_int_equal(pool.calls, 0);
    batch_free(&b);
    maskc_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_same_bits),
        cmocka_unit_test(one_thread_needs_no_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
