/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/serve/queue.h"

void queue_start(struct queue *q)
{
    *q = (struct queue){.last = &q->first};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->some, NULL);
}

void queue_finish(struct queue *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->some);
}

bool queue_put(struct queue *q, struct request *r)
{
    pthread_mutex_lock(&q->lock);
    bool fits = !q->closed && q->count < QUEUE_LIMIT;
    if (fits) {
        r->next = NULL;
        *q->last = r;
        q->last = &r->next;
        q->count++;
        pthread_cond_signal(&q->some);
    }
    pthread_mutex_unlock(&q->lock);
    return fits;
}

/* Takes the first request and those for the same path out of the list, in order. */
static struct request *take(struct queue *q, uint32_t texts)
{
    struct request *ret = NULL, **to = &ret, **at = &q->first;
    const struct route *route = q->first->route;
    uint32_t taken = 0;
    while (*at) {
        struct request *r = *at;
        bool fits = r->route == route && (!taken || taken + r->texts <= texts);
        if (!fits) {
            at = &r->next;
            continue;
        }
        taken += r->texts;
        *at = r->next;
        *to = r;
        to = &r->next;
        q->count--;
    }
    *to = NULL;
    q->last = at;
    return ret;
}

struct request *queue_take(struct queue *q, uint32_t texts)
{
    struct request *ret = NULL;
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->closed)
        pthread_cond_wait(&q->some, &q->lock);
    if (q->first)
        ret = take(q, texts);
    pthread_mutex_unlock(&q->lock);
    return ret;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->some);
    pthread_mutex_unlock(&q->lock);
}

uint32_t queue_waiting(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint32_t count = q->count;
    pthread_mutex_unlock(&q->lock);
    return count;
}
