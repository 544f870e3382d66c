/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd calls handle() in one thread: with the headers, with each piece of the body, at the body's end,
   and once more when the worker has resumed the connection with a reply. A refusal in the middle of a body is
   remembered and sent at its end, as HTTP demands. An upload that takes too long gets 408 on the socket, and
   the watchman cuts it off. */
#include "tools/maskbert/serve/server.h"
#include "masks/base/memory.h"
#include "tools/maskbert/serve/body.h"
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- metrics ---- */

static unsigned path_number(const struct route *route)
{
    unsigned k = 0;
    while (routes[k].path && &routes[k] != route)
        k++;
    return k;
}

void server_metrics(struct server *s, struct text *out)
{
    const char *paths[METRIC_PATHS] = {0};
    unsigned k = 0;
    for (; routes[k].path; k++)
        paths[k] = routes[k].path;
    paths[k] = "other";
    metrics_print(&s->metrics, paths, queue_waiting(&s->queue), out);
}

/* ---- uploads ---- */

static void upload_begins(struct request *r)
{
    struct server *s = r->server;
    pthread_mutex_lock(&s->lock);
    r->older = s->uploading;
    if (r->older)
        r->older->newer = r;
    s->uploading = r;
    r->uploading = true;
    pthread_mutex_unlock(&s->lock);
}

static void upload_ends(struct request *r)
{
    struct server *s = r->server;
    pthread_mutex_lock(&s->lock);
    if (r->uploading) {
        *(r->newer ? &r->newer->older : &s->uploading) = r->older;
        if (r->older)
            r->older->newer = r->newer;
        r->uploading = false;
    }
    pthread_mutex_unlock(&s->lock);
}

static void cut_off(struct request *r)
{
    static const char words[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                                "Content-Length: 0\r\n\r\n";
    ssize_t sent = send(r->socket, words, sizeof words - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* a client that does not read is cut off all the same */
    shutdown(r->socket, SHUT_RDWR);
    r->expired = true;
    metrics_request(&r->server->metrics, path_number(r->route), 408);
}

/* A request leaves the list before its socket is closed, so the lock makes this safe. */
static void *watch(void *context)
{
    struct server *s = context;
    while (!s->stopping) {
        double now = seconds_now();
        pthread_mutex_lock(&s->lock);
        for (struct request *r = s->uploading; r; r = r->older)
            if (!r->expired && now - r->arrived > UPLOAD_SECONDS)
                cut_off(r);
        pthread_mutex_unlock(&s->lock);
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return NULL;
}

/* ---- a request's life ---- */

static struct request *request_new(struct server *s, struct MHD_Connection *connection,
                                   const char *path)
{
    struct request *r = memory_new(1, sizeof *r);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *r = (struct request){.server = s, .connection = connection, .arrived = seconds_now()};
    r->socket = info ? info->connect_fd : -1;
    r->route = route_find(path);
    r->openai = r->route ? r->route->openai : !strncmp(path, "/v1/", 4);
    upload_begins(r);
    return r;
}

/* Takes bytes of the server's budget; false where too little is left. */
static bool hold(struct request *r, size_t bytes)
{
    struct server *s = r->server;
    if (atomic_fetch_add(&s->held, bytes) + bytes > HELD_LIMIT) {
        s->held -= bytes;
        request_refuse(r, 503, "too many requests are being answered; try again");
        return false;
    }
    r->held += bytes;
    return true;
}

static void request_free(struct request *r)
{
    upload_ends(r);
    r->server->held -= r->held;
    text_finish(&r->body);
    text_finish(&r->reply);
    json_decref(r->json);
    task_finish(&r->tokens);
    free(r->token_ids);
    free(r->text);
    free(r);
}

static void completed(void *context, struct MHD_Connection *connection, void **at,
                      enum MHD_RequestTerminationCode code)
{
    (void)context, (void)connection, (void)code;
    if (*at)
        request_free(*at);
    *at = NULL;
}

/* ---- HTTP ---- */

static enum MHD_Result send_reply(struct request *r)
{
    const char *type = r->status == 200 && r->route ? r->route->type : "application/json";
    /* The text stays the request's, which lives until all is sent. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        r->reply.length, (void *)text_get(&r->reply), MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    upload_ends(r);
    metrics_request(&r->server->metrics, path_number(r->route), r->status);
    if (r->route && r->route->run)
        metrics_time(&r->server->metrics, seconds_now() - r->arrived);
    MHD_add_response_header(response, "Content-Type", type);
    if (r->status == 405)
        MHD_add_response_header(response, "Allow", r->route->method);
    if (r->status == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    if (queue_closed(&r->server->queue))
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(r->connection, r->status, response);
    MHD_destroy_response(response);
    return result;
}

/* HEAD is GET; the library leaves out the body. */
static bool takes(const struct route *route, const char *method)
{
    return !strcmp(method, route->method) ||
           (!strcmp(method, "HEAD") && !strcmp(route->method, "GET"));
}

static void refuse_path(struct request *r, const char *path)
{
    struct text list = {0};
    for (const struct route *k = routes; k->path; k++)
        text_add(&list, "%s%s", k == routes ? "" : k[1].path ? ", " : " or ", k->path);
    request_refuse(r, 404, "'%.*s': %s is expected", request_quoted(path), path,
                   text_get(&list));
    text_finish(&list);
}

/* Refuses what the headers alone show. True if the body is too long to be read before the reply. */
static bool check_headers(struct request *r, const char *path, const char *method)
{
    const char *length =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Length");
    const bool too_long = length && strtoull(length, NULL, 10) > BODY_READ;
    const char *missing = r->route ? r->route->missing(&r->server->serving) : NULL;
    if (!r->route)
        refuse_path(r, path);
    else if (!takes(r->route, method))
        request_refuse(r, 405, "%.20s %s: %s is expected", method, path, r->route->method);
    else if (missing)
        request_refuse(r, 404, "%s: %s", path, missing);
    else if (too_long)
        request_refuse(r, 413, "a body of %.20s bytes; at most %d are expected", length,
                       BODY_LIMIT);
    return too_long;
}

static void take_bytes(struct request *r, const char *bytes, size_t size)
{
    if (r->status || r->expired)
        return; /* refused: only its end is waited for */
    if (r->body.length + size > BODY_LIMIT)
        request_refuse(r, 413, "a body of more than %d bytes", BODY_LIMIT);
    else if (hold(r, size))
        text_append(&r->body, bytes, size);
    if (r->status)
        text_finish(&r->body);
}

static enum MHD_Result body_is_whole(struct request *r)
{
    struct server *s = r->server;
    upload_ends(r);
    if (r->route->get) {
        r->status = 200;
        r->route->get(s, &r->reply);
        return send_reply(r);
    }
    if (!body_read(&s->serving, r) || !hold(r, r->route->reply_bytes(&s->serving, r)))
        return send_reply(r);
    MHD_suspend_connection(r->connection);
    if (queue_put(&s->queue, r))
        return MHD_YES;
    if (queue_closed(&s->queue))
        request_refuse(r, 503, "the server is ending");
    else
        request_refuse(r, 503, "%d requests wait already; try again", QUEUE_LIMIT);
    MHD_resume_connection(r->connection);
    return MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection,
                              const char *path, const char *method, const char *version,
                              const char *bytes, size_t *size, void **at)
{
    struct request *r = *at;
    (void)version;
    if (!r) {
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)IDLE_SECONDS);
        *at = r = request_new(context, connection, path);
        return check_headers(r, path, method) ? send_reply(r) : MHD_YES;
    }
    if (r->expired)
        return MHD_NO;
    if (*size) {
        take_bytes(r, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    return r->status ? send_reply(r) : body_is_whole(r);
}

/* Connections that send nothing must not keep others from being accepted. */
static void begins(void *context, struct MHD_Connection *connection, void **at,
                   enum MHD_ConnectionNotificationCode code)
{
    (void)context, (void)at;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)FIRST_SECONDS);
}

/* ---- start and stop ---- */

static int find_address(const char *host, uint16_t port, struct addrinfo **ret, struct error *e)
{
    char number[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(number, sizeof number, "%u", port);
    int code = getaddrinfo(host, number, &hints, ret);
    if (code)
        return error_set(e, ERROR_INPUT, "--host %.100s: %s", host, gai_strerror(code));
    return 0;
}

static int listen_at(struct server *s, const char *host, uint16_t *port, struct error *e)
{
    struct addrinfo *address;
    if (find_address(host, *port, &address, e) < 0)
        return -1;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    if (address->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    errno = 0;
    s->daemon = MHD_start_daemon(
        flags, *port, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, address->ai_addr,
        MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_NOTIFY_CONNECTION, begins, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    freeaddrinfo(address);
    if (!s->daemon)
        return error_set(e, ERROR_INPUT, "cannot listen on %.100s, port %u: %s", host, *port,
                         errno ? strerror(errno) : "refused");
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *port = info ? info->port : *port;
    return 0;
}

int server_start(struct server *s, const char *host, uint16_t *port, struct error *e)
{
    queue_start(&s->queue);
    pthread_mutex_init(&s->lock, NULL);
    if (listen_at(s, host, port, e) < 0) {
        queue_finish(&s->queue);
        pthread_mutex_destroy(&s->lock);
        return -1;
    }
    int code = pthread_create(&s->worker, NULL, server_work, s);
    code = code ? code : pthread_create(&s->watchman, NULL, watch, s);
    if (code) {
        fprintf(stderr, "maskbert: cannot start a thread: %s\n", strerror(code));
        abort(); /* as memory_new does */
    }
    return 0;
}

void server_stop(struct server *s)
{
    MHD_socket listening = MHD_quiesce_daemon(s->daemon);
    queue_close(&s->queue);
    pthread_join(s->worker, NULL);
    s->stopping = true;
    pthread_join(s->watchman, NULL);
    MHD_stop_daemon(s->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
    queue_finish(&s->queue);
    pthread_mutex_destroy(&s->lock);
}
