/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that runs the model. */
#include "tools/maskbert/serve/replies.h"
#include "tools/maskbert/serve/server.h"
#include <microhttpd.h>

/* Takes the next request and more of the same route until the token budget is full. A request that does not fit goes to
   *kept and is the first of the next call. Null once the queue is closed and empty. */
static struct request *collect(struct server *s, struct request **kept)
{
    const uint32_t budget = task_budget(&s->serving.task);
    struct request *first = *kept ? *kept : queue_take(&s->queue), *last = first, *r;
    *kept = NULL;
    uint64_t tokens = first ? request_tokenize(&s->serving, first) : 0;
    while (first && tokens < budget && (r = queue_take_alike(&s->queue, first->route))) {
        tokens += request_tokenize(&s->serving, r);
        if (tokens > budget) {
            *kept = r;
            break;
        }
        last = last->next = r;
    }
    return first;
}

/* Adds the batch to the metrics (batches, texts, tokens) and resumes its connections on the HTTP thread. */
static void release(struct server *s, struct request *first)
{
    s->metrics.batches++;
    for (struct request *r = first, *next; r; r = next) {
        next = r->next;
        s->metrics.texts += r->texts;
        s->metrics.tokens += request_tokens(r);
        MHD_resume_connection(r->connection); /* from here on r belongs to the HTTP thread */
    }
}

void *server_work(void *context)
{
    struct server *s = context;
    struct request *kept = NULL, *first;
    while ((first = collect(s, &kept))) {
        requests_answer(&s->serving, first);
        release(s, first);
    }
    return NULL;
}
