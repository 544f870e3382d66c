/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that live as long as the launch. Where the system gives fewer, the launch runs on those. */
#include "runtime/device/cpu_team.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { MOST = 256 };

struct team {
    uint32_t threads, steps;
    void (*step)(void *context, uint32_t k, uint32_t thread, uint32_t threads);
    void *context;
    atomic_uint ranks;
    pthread_mutex_t gate; /* held until `threads` is known */
    pthread_barrier_t barrier;
};

uint32_t team_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

uint32_t team_most(void)
{
    return team_cores();
}

static void work(struct team *t, uint32_t thread)
{
    for (uint32_t k = 0; k < t->steps; k++) {
        if (k)
            pthread_barrier_wait(&t->barrier);
        t->step(t->context, k, thread, t->threads);
    }
}

static void *begin(void *argument)
{
    struct team *t = argument;
    pthread_mutex_lock(&t->gate);
    pthread_mutex_unlock(&t->gate);
    work(t, atomic_fetch_add(&t->ranks, 1));
    return NULL;
}

void team_run(uint32_t threads, uint32_t steps,
              void (*step)(void *context, uint32_t k, uint32_t thread, uint32_t threads),
              void *context)
{
    pthread_t thread[MOST];
    struct team t = {
        .steps = steps, .step = step, .context = context, .ranks = 1, .threads = 1};
    pthread_mutex_init(&t.gate, NULL);
    pthread_mutex_lock(&t.gate);
    while (t.threads < threads && t.threads < MOST &&
           pthread_create(&thread[t.threads], NULL, begin, &t) == 0)
        t.threads++;
    pthread_barrier_init(&t.barrier, NULL, t.threads);
    pthread_mutex_unlock(&t.gate);
    work(&t, 0);
    for (uint32_t k = 1; k < t.threads; k++)
        pthread_join(thread[k], NULL);
    pthread_barrier_destroy(&t.barrier);
    pthread_mutex_destroy(&t.gate);
}
