/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 and each other rank send each other a byte a second. Rank 0 tells the others of a lost rank. */
#include "masks/base/memory.h"
#include "model/comm/tcp/tcp_ranks.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENT_SECONDS = 20, STOPPED_SECONDS = 5, PAUSE_MS = 100 };
/* Messages of one byte. ENDS: a rank was lost, and the line is printed. WARNS: a rank has failed; rank 0 passes it on. */
enum { ALIVE = 'A', LEAVES = 'L', ENDS = 'E', WARNS = 'W' };

struct peer {
    uint32_t rank;
    double seen;
    bool left;
};

struct tcp_watch {
    uint32_t rank, links;
    bool speaks;
    struct pollfd *link; /* [links] */
    struct peer *peer;
    pthread_t thread;
    atomic_bool ends, warns, warned; /* warns: to be told to the others */
};

/* Does not wait, and does not care. */
static void tell(int socket, char message)
{
    if (send(socket, &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0;
}

static void tell_all(const struct tcp_watch *w, char message)
{
    for (uint32_t k = 0; k < w->links; k++)
        if (!w->peer[k].left)
            tell(w->link[k].fd, message);
}

/* Until the others have heard it: a socket that is closed with bytes unread takes back what it sent. */
static void tell_the_end(const struct tcp_watch *w)
{
    char ignored[256];
    tell_all(w, ENDS);
    for (int turn = 0; turn < 3; turn++) {
        usleep(PAUSE_MS * 1000);
        for (uint32_t k = 0; k < w->links; k++)
            while (w->link[k].fd >= 0 &&
                   recv(w->link[k].fd, ignored, sizeof ignored, MSG_DONTWAIT) > 0)
                continue;
    }
}

/* Without clean-up: other threads may be anywhere. The loss of rank 0 is reported by rank 1, and by a rank of each other
   machine: rank 1 may be lost with it. */
static void end_all(const struct tcp_watch *w, uint32_t lost, const char *how)
{
    if (lost ? w->rank == 0 : w->rank == 1 || w->speaks)
        fprintf(stderr, "%smaskbert: rank %u %s; what was saved before stays\n",
                isatty(STDERR_FILENO) ? "\r\033[K" : "", lost, how);
    fflush(stderr);
    tell_the_end(w);
    _exit(1);
}

/* Reads a peer's messages. */
static void hear(struct tcp_watch *w, struct peer *p, int socket)
{
    char message[64];
    const ssize_t n = recv(socket, message, sizeof message, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        if (!p->left)
            end_all(w, p->rank, "is gone: its process has ended");
        return;
    }
    for (ssize_t k = 0; k < n; k++) {
        if (message[k] == ENDS)
            _exit(1);
        p->left |= message[k] == LEAVES;
        if (message[k] == WARNS) {
            atomic_store(&w->warned, true);
            if (w->rank == 0)
                atomic_store(&w->warns, true);
        }
    }
    p->seen = tcp_now();
}

static void look(struct tcp_watch *w)
{
    const double t = tcp_now();
    for (uint32_t k = 0; k < w->links; k++) {
        struct peer *p = &w->peer[k];
        if (w->link[k].revents)
            hear(w, p, w->link[k].fd);
        if (p->left)
            w->link[k].fd = -1; /* poll() passes over it; the socket is tcp_links' */
        else if (t - p->seen > SILENT_SECONDS)
            end_all(w, p->rank, "does not answer");
    }
}

/* After this process itself was stopped: what it missed is no silence. */
static void forgive(struct tcp_watch *w, double t)
{
    for (uint32_t k = 0; k < w->links; k++)
        w->peer[k].seen = t;
}

static void *run(void *of)
{
    struct tcp_watch *w = of;
    double last = tcp_now(), told = 0;
    while (!atomic_load(&w->ends)) {
        const int n = poll(w->link, w->links, PAUSE_MS);
        const double t = tcp_now();
        if (t - last > STOPPED_SECONDS)
            forgive(w, t);
        last = t;
        if (t - told >= 1) {
            tell_all(w, ALIVE);
            told = t;
        }
        if (atomic_exchange(&w->warns, false))
            tell_all(w, WARNS);
        for (uint32_t k = 0; n <= 0 && k < w->links; k++)
            w->link[k].revents = 0;
        look(w);
    }
    tell_all(w, LEAVES);
    return NULL;
}

int tcp_watch_begin(const struct tcp_links *l, struct tcp_watch **ret, struct error *e)
{
    struct tcp_watch *w = memory_new(1, sizeof *w);
    w->rank = l->rank;
    w->speaks = l->speaks;
    w->link = memory_new(l->size, sizeof *w->link);
    w->peer = memory_new(l->size, sizeof *w->peer);
    for (uint32_t k = 0; k < l->size; k++)
        if (l->of[TCP_WATCH][k] >= 0) {
            w->link[w->links] = (struct pollfd){l->of[TCP_WATCH][k], POLLIN, 0};
            w->peer[w->links++] = (struct peer){.rank = k, .seen = tcp_now()};
        }
    *ret = w;
    if (pthread_create(&w->thread, NULL, run, w) == 0)
        return 0;
    free(w->link);
    free(w->peer);
    free(w);
    *ret = NULL;
    return error_set(e, ERROR_UNAVAILABLE, "no thread that watches the ranks");
}

void tcp_watch_warn(struct tcp_watch *w)
{
    atomic_store(&w->warns, true);
}

bool tcp_watch_is_warned(struct tcp_watch *w)
{
    return atomic_load(&w->warned);
}

void tcp_watch_end(struct tcp_watch *w)
{
    atomic_store(&w->ends, true);
    pthread_join(w->thread, NULL);
    free(w->link);
    free(w->peer);
    free(w);
}
