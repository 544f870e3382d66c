/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the server. A POST row reads texts from {"inputs": TEXT or [TEXT..], "truncate": BOOL}; the worker runs
   many such requests at once. A GET row is answered on the spot. */
#pragma once
#include "tools/maskbert/serve/request.h"
#include "tools/maskbert/tasks/embedding_settings.h"

struct serving {
    struct engine *engine;
    struct engine_workspace workspace;
    struct task_options task;
    struct embedding_settings embedding;
    struct error no_embedding; /* the reason why /embed is refused, or an empty text */
    uint32_t top;
};

struct route {
    const char *path;
    const char *method; /* "POST" or "GET" */
    /* Null where the model can serve it, else why it cannot. */
    const char *(*missing)(const struct serving *s);
    bool prompted; /* texts stand behind the prompt of sentence vectors */
    /* Bytes that a reply to these texts may take. */
    size_t (*reply_bytes)(const struct serving *s, const struct request *r);
    /* Replies to a batch of requests, whose texts stand one after the other in b. */
    int (*run)(struct serving *s, const struct task_batches *b, struct request *first,
               struct error *e);
    void (*get)(struct server *server, struct text *out);
    const char *type; /* of the reply */
};

extern const struct route routes[]; /* ends with a null path */
const struct route *route_find(const char *path);

/* Reads texts from the body; false with a reply that refuses it. */
bool request_read(const struct serving *s, struct request *r);

/* Runs the texts of a list of requests (linked by next) and gives every request its reply. */
void requests_answer(struct serving *s, struct request *first, uint32_t *tokens);
