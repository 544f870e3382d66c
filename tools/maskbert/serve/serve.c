/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert serve: a model behind HTTP until SIGINT or SIGTERM. */
#include "masks/base/memory.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/serve/server.h"
#include "tools/maskbert/session.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PORT = 8080, TOP = 5 };

/* The last part of the folder's path, for /v1/models; the caller frees. */
static char *folder_name(const char *folder)
{
    char *whole = realpath(folder, NULL);
    const char *last = whole ? strrchr(whole, '/') : NULL;
    json_t *name = json_string(last && last[1] ? last + 1 : "model"); /* null: not UTF-8 */
    char *ret = memory_text(name ? json_string_value(name) : "model");
    json_decref(name);
    free(whole);
    return ret;
}

/* A folder whose sentence vectors are not supported may still have a head to serve. */
static int read_embedding(const struct options *o, struct serving *s, struct error *e)
{
    if (embedding_read(o, &s->embedding, &s->no_embedding) == 0 &&
        embedding_check(&s->embedding, s->engine, o->max_length, &s->no_embedding) == 0)
        return 0;
    if (s->engine->parts & (PART_MLM | PART_CLASSIFIER) && !o->pooling)
        return 0;
    *e = s->no_embedding;
    return -1;
}

static int read_serving(const struct options *o, struct session *session, struct serving *s,
                        struct error *e)
{
    s->engine = session->engine;
    s->task = session->task;
    s->task.progress = NULL;
    s->top = o->top ? o->top : TOP;
    s->name = folder_name(o->argument);
    s->started = time(NULL);
    if (read_embedding(o, s, e) < 0)
        return -1;
    if (s->embedding.how.pooling[0] == POOLING_NONE)
        return error_set(e, ERROR_INPUT, "--pooling none: mean, cls or pooler is expected");
    return 0;
}

/* Pooler, MLM head, classifier: those of the architecture, and a pooler if it is asked for. */
static int needed_parts(const struct options *o, uint32_t *ret, struct error *e)
{
    struct model_config config = {0};
    if (config_read(o->argument, &config, e) < 0)
        return -1;
    *ret = config_parts(&config) & (PART_POOLER | PART_MLM | PART_CLASSIFIER);
    if (o->pooling && !strcmp(o->pooling, "pooler"))
        *ret |= PART_POOLER;
    config_finish(&config);
    return 0;
}

static int serve(const struct options *o, struct session *session, struct server *server,
                 struct error *e)
{
    const char *host = o->host ? o->host : "127.0.0.1";
    uint16_t port = o->port_given ? o->port : PORT;
    uint32_t parts;
    sigset_t ends;
    int signal;
    if (needed_parts(o, &parts, e) < 0 || session_open(o, parts, session, e) < 0 ||
        read_serving(o, session, &server->serving, e) < 0)
        return -1;
    /* All threads inherit the mask; this one waits. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    if (server_start(server, host, &port, e) < 0)
        return -1;
    fprintf(stderr, "maskbert: listening on http://%s:%u\n", host, port);
    sigwait(&ends, &signal);
    server_stop(server);
    engine_workspace_finish(&server->serving.workspace);
    return 0;
}

int command_serve(const struct options *o)
{
    struct error e = {0};
    struct session session = {0};
    struct server server = {0};
    int r = serve(o, &session, &server, &e);
    embedding_finish(&server.serving.embedding);
    free(server.serving.name);
    session_close(&session);
    return r < 0 ? command_fail(&e) : 0;
}
