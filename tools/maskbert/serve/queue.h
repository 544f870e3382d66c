/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for the worker, first come first served. With the first one the worker takes all others
   for the same path, up to a number of texts. */
#pragma once
#include "tools/maskbert/serve/request.h"
#include <pthread.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct request *first, **last;
    uint32_t count;
    bool closed;
};

void queue_start(struct queue *q);
void queue_finish(struct queue *q);
bool queue_put(struct queue *q, struct request *r); /* false: full or closed */
/* A list linked by next, or null once the queue is closed and empty. */
struct request *queue_take(struct queue *q, uint32_t texts);
void queue_close(struct queue *q);
uint32_t queue_waiting(struct queue *q);
