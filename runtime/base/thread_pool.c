/* SPDX-License-Identifier: Apache-2.0 */
/* The caller works too, so everything is done even where the system gives no further thread. */
#include "runtime/base/thread_pool.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

struct thread_pool {
    void (*task)(void *context, uint32_t index);
    void *context;
    uint32_t count;
    atomic_uint next;
};

static void *work(void *argument)
{
    struct thread_pool *c = argument;
    for (uint32_t k; (k = atomic_fetch_add(&c->next, 1)) < c->count;)
        c->task(c->context, k);
    return NULL;
}

/* The cores that this process may use. */
static uint32_t count_cores(void)
{
    cpu_set_t set; /* of 1024 */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 1 ? (uint32_t)all : 1;
}

/* With at most `most` threads. */
static void run(struct thread_pool *c, uint32_t most)
{
    pthread_t thread[POOL_MAX];
    uint32_t size = most < POOL_MAX ? most : POOL_MAX, started = 1;
    size = size < c->count ? size : c->count;
    while (started < size && pthread_create(&thread[started], NULL, work, c) == 0)
        started++;
    work(c);
    while (started > 1)
        pthread_join(thread[--started], NULL);
}

void thread_pool_run(uint32_t count, void (*task)(void *context, uint32_t index), void *context)
{
    struct thread_pool c = {.task = task, .context = context, .count = count};
    run(&c, count_cores());
}

void thread_pool_share(uint32_t count, void (*task)(void *context, uint32_t index),
                       void *context)
{
    struct thread_pool c = {.task = task, .context = context, .count = count};
    run(&c, count_cores() > 1 ? POOL_MAX : 1);
}
