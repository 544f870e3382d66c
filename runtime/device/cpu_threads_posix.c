/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that live as long as the launch. Where the system gives fewer, the launch runs on those. */
#include "runtime/device/cpu_threads.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST = 256 };

struct launch_threads {
    uint32_t threads, steps;
    threads_step *step;
    void *context;
    atomic_uint ranks;
    pthread_mutex_t lock; /* held until `threads` is known */
    pthread_barrier_t barrier;
};

uint32_t threads_cores(void)
{
    cpu_set_t set; /* of 1024 */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 1 ? (uint32_t)all : 1;
}

uint32_t threads_most(void)
{
    return threads_cores();
}

static void work(struct launch_threads *t, uint32_t thread)
{
    for (uint32_t k = 0; k < t->steps; k++) {
        if (k)
            pthread_barrier_wait(&t->barrier);
        t->step(t->context, k, thread, t->threads);
    }
}

static void *begin(void *argument)
{
    struct launch_threads *t = argument;
    pthread_mutex_lock(&t->lock);
    pthread_mutex_unlock(&t->lock);
    work(t, atomic_fetch_add(&t->ranks, 1));
    return NULL;
}

void threads_run(uint32_t threads, uint32_t steps, threads_step *step, void *context)
{
    pthread_t thread[MOST];
    struct launch_threads t = {
        .steps = steps, .step = step, .context = context, .ranks = 1, .threads = 1};
    pthread_mutex_init(&t.lock, NULL);
    pthread_mutex_lock(&t.lock);
    while (t.threads < threads && t.threads < MOST &&
           pthread_create(&thread[t.threads], NULL, begin, &t) == 0)
        t.threads++;
    pthread_barrier_init(&t.barrier, NULL, t.threads);
    pthread_mutex_unlock(&t.lock);
    work(&t, 0);
    for (uint32_t k = 1; k < t.threads; k++)
        pthread_join(thread[k], NULL);
    pthread_barrier_destroy(&t.barrier);
    pthread_mutex_destroy(&t.lock);
}
