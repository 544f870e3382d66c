/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for the worker, first come first served. After the first one the worker takes others for the same
   path, while their tokens fit into a batch. */
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
/* Waits for a request; null once the queue is closed and empty. */
struct request *queue_take(struct queue *q);
/* The oldest request for this path, or null: does not wait. */
struct request *queue_take_alike(struct queue *q, const struct route *route);
void queue_close(struct queue *q);
bool queue_closed(struct queue *q);
uint32_t queue_waiting(struct queue *q);
