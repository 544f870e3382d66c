/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the server. A POST row reads a body with texts; the worker runs the texts of many requests at once. A GET
   row is answered on the spot. */
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
    char *name;        /* of the model's folder */
    long long started; /* seconds since 1970 */
};

struct body_key;

struct route {
    const char *path;
    const char *method; /* "POST" or "GET" */
    /* Null where the model can serve it, else why it cannot. */
    const char *(*missing)(const struct serving *s);
    uint32_t most_texts;         /* of a request */
    const struct body_key *body; /* the keys that a body may have; null for GET */
    bool prompted;               /* the prompt of sentence vectors goes before each text */
    bool openai;                 /* errors have the form of OpenAI's */
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

/* Splits the texts into tokens, and refuses a request with one that is too long. Returns the number of tokens. */
uint64_t request_tokenize(const struct serving *s, struct request *r);

/* Runs the tokens of a list of requests (linked by next) and gives every request its reply. */
void requests_answer(struct serving *s, struct request *first);
