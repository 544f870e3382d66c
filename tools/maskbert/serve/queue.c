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

/* Takes the oldest request for a path, or for any if null, out of the list. */
static struct request *take(struct queue *q, const struct route *route)
{
    struct request **at = &q->first;
    while (*at && route && (*at)->route != route)
        at = &(*at)->next;
    struct request *ret = *at;
    if (!ret)
        return NULL;
    *at = ret->next;
    if (q->last == &ret->next)
        q->last = at;
    ret->next = NULL;
    q->count--;
    return ret;
}

struct request *queue_take(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->closed)
        pthread_cond_wait(&q->some, &q->lock);
    struct request *ret = take(q, NULL);
    pthread_mutex_unlock(&q->lock);
    return ret;
}

struct request *queue_take_alike(struct queue *q, const struct route *route)
{
    pthread_mutex_lock(&q->lock);
    struct request *ret = take(q, route);
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

bool queue_closed(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}

uint32_t queue_waiting(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint32_t count = q->count;
    pthread_mutex_unlock(&q->lock);
    return count;
}
