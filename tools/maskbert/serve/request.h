/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way through the server. The HTTP thread fills in the body and its texts, the queue hands the
   request to the worker, the worker fills in the reply, and the HTTP thread sends and frees it. Between queue
   and reply it belongs to the worker alone: its connection is suspended. */
#pragma once
#include "masks/base/text.h"
#include "model/tasks/tasks.h"
#include <jansson.h>
#include <microhttpd.h>

enum {
    BODY_LIMIT = 1 << 20,       /* bytes of a request; more: 413, once all is read ... */
    BODY_READ = 16 << 20,       /* ... or at once where its length is more than this */
    TEXTS_LIMIT = 256,          /* of a request; more: 413 */
    QUEUE_LIMIT = 256,          /* requests that wait; more: 503 */
    CONNECTION_LIMIT = 512,     /* further ones wait to be accepted */
    CONNECTION_MEMORY = 1 << 15 /* of HTTP's own, for each connection */
};
#define HELD_LIMIT     ((size_t)96 << 20) /* bytes of all bodies and replies; more: 503 */
#define UPLOAD_SECONDS 10                 /* from the headers to the last byte; more: 408 */
#define IDLE_SECONDS   30                 /* an idle connection is closed after these */

struct route;
struct server;

struct request {
    struct server *server;
    const struct route *route;
    struct MHD_Connection *connection;
    int socket;
    double arrived; /* seconds, monotonic */
    struct text body;
    size_t held;  /* bytes of the server's budget */
    bool expired; /* 408 went out on the socket itself */
    json_t *json; /* of the body; the texts live in it */
    struct task_text *text;
    uint32_t texts;
    bool truncate; /* too long texts are cut; otherwise 413 */
    struct text reply;
    unsigned status;               /* 0: no reply yet */
    struct request *next;          /* in the queue */
    struct request *older, *newer; /* among those that are uploading */
    bool uploading;
};

double seconds_now(void);

/* The reply {"error": "..."}. */
__attribute__((format(printf, 3, 4))) void request_refuse(struct request *r, unsigned status,
                                                          const char *format, ...);
