/* SPDX-License-Identifier: Apache-2.0 */
/* The server: one HTTP thread that reads and writes, one worker that runs the model for all requests
   that wait, one watchman for uploads that take too long. */
#pragma once
#include "tools/maskbert/serve/metrics.h"
#include "tools/maskbert/serve/queue.h"
#include "tools/maskbert/serve/route.h"
#include <netinet/in.h>
#include <pthread.h>

struct server {
    struct serving serving;
    struct queue queue;
    struct metrics metrics;
    struct MHD_Daemon *daemon;
    pthread_t worker, watchman;
    _Atomic size_t held;       /* bytes of bodies and replies */
    pthread_mutex_t lock;      /* of the list below */
    struct request *uploading; /* newest first */
    _Atomic bool stopping;
};

/* Listens on host ("127.0.0.1") and *port, which 0 sets to a free one. -1 with *e set. */
int server_start(struct server *s, const char *host, uint16_t *port, struct error *e);
/* Answers what waits, refuses what comes, and ends all threads. */
void server_stop(struct server *s);

/* The worker's thread; context: the server. */
void *server_work(void *context);

void server_metrics(struct server *s, struct text *out);
