/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way through the server. The HTTP thread fills in the body and its texts, the queue hands the
   request to the worker, the worker fills in the reply, and the HTTP thread sends and frees it. Between queue
   and reply it belongs to the worker alone: its connection is suspended. */
#pragma once
#include "masks/base/text.h"
#include "model/tasks/tasks.h"
#include <jansson.h>

enum {
    BODY_LIMIT = 1 << 20,       /* bytes of a request; more: 413, once all is read ... */
    BODY_READ = 16 << 20,       /* ... or at once where its length is more than this */
    TEXTS_LIMIT = 256,          /* of a request; more: 413 */
    MANY_TEXTS_LIMIT = 2048,    /* on paths that other servers have, too */
    QUEUE_LIMIT = 256,          /* requests that wait; more: 503 */
    CONNECTION_LIMIT = 512,     /* further ones wait to be accepted */
    CONNECTION_MEMORY = 1 << 15 /* of HTTP's own, for each connection */
};
#define HELD_LIMIT     ((size_t)96 << 20) /* bytes of all bodies and replies; more: 503 */
#define UPLOAD_SECONDS 10                 /* from the headers to the last byte; more: 408 */
#define FIRST_SECONDS  5  /* a connection without a request is closed after these, ... */
#define IDLE_SECONDS   30 /* ... one that has had a request after these */

struct MHD_Connection;
struct route;
struct server;

/* Settings of a request's body, beside its texts. */
struct request_options {
    bool truncate; /* too long texts are cut; otherwise 413 */
    bool normalize, normalize_given;
    uint32_t dimensions; /* numbers of a vector; 0: all */
    bool base64;         /* vectors as the base64 of f32, little-endian */
    bool documents;      /* the reply of /rerank has the form of Cohere and Jina */
    bool raw_scores;     /* logits; otherwise their sigmoid */
    bool return_texts;
    uint32_t top;        /* results of a ranking; 0: all */
    const json_t *model; /* the name that the reply repeats; null: the folder's */
    const json_t *query;
};

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
    uint32_t *token_ids; /* of texts that are given as ids */
    struct request_options options;
    bool openai;           /* refusals have the form of OpenAI's */
    const char *parameter; /* the key of the body that a refusal is about, or null */
    struct task_batches tokens;
    bool tokenized;
    struct text reply;
    unsigned status;               /* 0: no reply yet */
    struct request *next;          /* in the queue */
    struct request *older, *newer; /* among those that are uploading */
    bool uploading;
};

double seconds_now(void);

/* Bytes of a name that a refusal quotes: its beginning, in whole characters. */
int request_quoted(const char *name);
/* The reply {"error": "..."}; on the paths of OpenAI {"error": {"message": "...", ..}}. */
__attribute__((format(printf, 3, 4))) void request_refuse(struct request *r, unsigned status,
                                                          const char *format, ...);
