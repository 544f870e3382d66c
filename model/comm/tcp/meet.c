/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting of ranks: rank 0 listens, the others connect, once for each channel. */
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/comm/tcp/address.h"
#include "model/comm/tcp/tcp_ranks.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_MS = 100, HELLO_SECONDS = 5, ALL_HERE = 'Y' };
#define HELLO UINT64_C(0x316b6e6172626d31) /* and the version of this exchange */

struct hello {
    uint64_t magic, key, group, rank, size, channel;
};

/* ---- sockets ---- */

double tcp_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool tcp_send(int socket, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = send(socket, (const char *)from + at, bytes - at, MSG_NOSIGNAL);
        if (n <= 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool tcp_receive(int socket, void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = recv(socket, (char *)to + at, bytes - at, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int set_links(struct tcp_links *l, uint32_t rank, enum tcp_channel c, int socket)
{
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    l->of[c][rank] = socket;
    return 0;
}

void tcp_links_close(struct tcp_links *l)
{
    for (int c = 0; c < TCP_CHANNELS; c++) {
        for (uint32_t k = 0; l->of[c] && k < l->size; k++)
            if (l->of[c][k] >= 0)
                close(l->of[c][k]);
        free(l->of[c]);
    }
    *l = (struct tcp_links){0};
}

static bool asked_to_stop(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
}

/* ---- rank 0 ---- */

/* A connection that has not said all of its hello. */
struct guest {
    int socket;
    double end; /* of its time */
    size_t got;
    struct hello hello;
};

struct host {
    const struct tcp_meeting *m;
    struct tcp_links *links;
    uint64_t key, group;
    int listener;
    uint32_t there; /* connections */
    struct guest *guest;
    uint64_t guests, guests_capacity;
    struct pollfd *poll; /* [1 + guests] */
};

static bool is_closed(int socket)
{
    char ignored;
    const ssize_t n = recv(socket, &ignored, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Other errors are of one connection, which is gone. */
static bool stays(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static int accept_guest(struct host *h, struct error *e)
{
    const int s = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s < 0)
        return stays(errno) ? error_set(e, ERROR_UNAVAILABLE, "rank 0 at %s: %s", h->m->where,
                                        strerror(errno))
                            : 0;
    *MEMORY_PUSH(h->guest, h->guests, h->guests_capacity) =
        (struct guest){.socket = s, .end = tcp_now() + HELLO_SECONDS};
    return 0;
}

/* Closes what is no rank of this launch, or has given up. A rank whose second connection failed comes again. */
static int admit(struct host *h, const struct guest *g, struct error *e)
{
    const struct hello *hello = &g->hello;
    if (hello->magic != HELLO || hello->key != h->key || hello->group != h->group ||
        is_closed(g->socket)) {
        close(g->socket);
        return 0;
    }
    int *slot = hello->rank && hello->rank < h->m->size && hello->channel < TCP_CHANNELS
                    ? &h->links->of[hello->channel][hello->rank]
                    : NULL;
    if (hello->size != h->m->size || !slot || (*slot >= 0 && !is_closed(*slot))) {
        close(g->socket);
        return error_set(e, ERROR_INPUT,
                         "a process came as rank %u of %u, and there are %u, each once",
                         (unsigned)hello->rank, (unsigned)hello->size, h->m->size);
    }
    if (*slot >= 0)
        close(*slot);
    else
        h->there++;
    return set_links(h->links, (uint32_t)hello->rank, (enum tcp_channel)hello->channel,
                     g->socket);
}

/* 1: it has said all; 0: not yet; -1: it is gone, or silent. */
static int hear(struct guest *g)
{
    const ssize_t n =
        recv(g->socket, (char *)&g->hello + g->got, sizeof g->hello - g->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return tcp_now() > g->end ? -1 : 0;
    g->got += n > 0 ? (size_t)n : 0;
    return n <= 0 ? -1 : g->got == sizeof g->hello;
}

static int hear_all(struct host *h, struct error *e)
{
    uint64_t left = 0;
    int r = 0;
    for (uint64_t k = 0; k < h->guests; k++) {
        struct guest g = h->guest[k];
        const int heard = r < 0 ? -1 : hear(&g);
        if (heard == 0)
            h->guest[left++] = g;
        else if (heard < 0)
            close(g.socket);
        else
            r = admit(h, &g, e);
    }
    h->guests = left;
    return r;
}

static int wait_a_moment(struct host *h, struct error *e)
{
    h->poll = memory_resize(h->poll, h->guests + 1, sizeof *h->poll);
    h->poll[0] = (struct pollfd){h->listener, POLLIN, 0};
    for (uint64_t k = 0; k < h->guests; k++)
        h->poll[k + 1] = (struct pollfd){h->guest[k].socket, POLLIN, 0};
    if (poll(h->poll, h->guests + 1, PAUSE_MS) > 0 && h->poll[0].revents &&
        accept_guest(h, e) < 0)
        return -1;
    return hear_all(h, e);
}

static int say_stopped(struct error *e)
{
    return error_set(e, ERROR_FALSE, "stopped by a signal while ranks met");
}

static int say_missing(const struct host *h, struct error *e)
{
    uint32_t k = 1;
    while (k + 1 < h->m->size && h->links->of[TCP_SUMS][k] >= 0 &&
           h->links->of[TCP_WATCH][k] >= 0)
        k++;
    return error_set(e, ERROR_FALSE, "rank %u did not come to %s within %g s", k, h->m->where,
                     h->m->seconds);
}

static int wait_for_others(struct host *h, struct error *e)
{
    const double end = tcp_now() + h->m->seconds;
    while (h->there < TCP_CHANNELS * (h->m->size - 1)) {
        if (wait_a_moment(h, e) < 0)
            return -1;
        if (asked_to_stop())
            return say_stopped(e);
        if (tcp_now() > end)
            return say_missing(h, e);
    }
    for (uint32_t k = 1; k < h->m->size; k++) {
        const char all = ALL_HERE;
        if (!tcp_send(h->links->of[TCP_SUMS][k], &all, 1))
            return error_set(e, ERROR_FALSE, "rank %u is gone: its process has ended", k);
    }
    return 0;
}

static int lead(const struct tcp_meeting *m, struct tcp_links *l, struct error *e)
{
    struct tcp_address a;
    struct host h = {.m = m, .links = l, .group = XXH3_64bits(m->group, strlen(m->group))};
    if (tcp_address_listen(m->where, m->spreads, &a, &h.listener, e) < 0)
        return -1;
    h.key = a.key;
    const int r = wait_for_others(&h, e);
    close(h.listener);
    for (uint64_t k = 0; k < h.guests; k++)
        close(h.guest[k].socket);
    free(h.guest);
    free(h.poll);
    tcp_address_forget(m->where, &a);
    return r;
}

/* ---- the others ---- */

/* The last attempt to connect. */
struct attempt {
    uint32_t turn;    /* of the next one: tcp_address_connect() */
    struct error why; /* it failed; empty: it did not */
};

/* -1: not yet. */
static int say_hello(const struct tcp_meeting *m, const struct tcp_address *a,
                     enum tcp_channel c, uint32_t turn, struct error *e)
{
    const struct hello hello = {HELLO,   a->key,  XXH3_64bits(m->group, strlen(m->group)),
                                m->rank, m->size, c};
    const int s = tcp_address_connect(a, turn, e);
    if (s >= 0 && tcp_send(s, &hello, sizeof hello))
        return s;
    if (s >= 0)
        close(s);
    return -1;
}

/* Rank 0 closes a connection that came by the address of an earlier launch: the next one may reach it. */
static bool is_accepted(const struct tcp_links *l, double end)
{
    struct pollfd p[] = {{l->of[TCP_SUMS][0], POLLIN, 0}, {l->of[TCP_WATCH][0], POLLRDHUP, 0}};
    char all = 0;
    while (tcp_now() < end && !asked_to_stop())
        if (poll(p, 2, PAUSE_MS) > 0)
            return p[0].revents && recv(p[0].fd, &all, 1, 0) == 1 && all == ALL_HERE;
    return false;
}

static void drop_links(struct tcp_links *l)
{
    for (int c = 0; c < TCP_CHANNELS; c++)
        if (l->of[c][0] >= 0) {
            close(l->of[c][0]);
            l->of[c][0] = -1;
        }
}

static bool try_once(const struct tcp_meeting *m, struct tcp_links *l, double end,
                     struct attempt *t)
{
    struct tcp_address a;
    if (!tcp_address_read(m->where, &a)) {
        error_set(&t->why, ERROR_FALSE, "no address is there");
        return false;
    }
    const uint32_t turn = t->turn++;
    t->why = (struct error){0};
    for (int c = TCP_CHANNELS; c-- > 0;) {
        const int s = say_hello(m, &a, (enum tcp_channel)c, turn, &t->why);
        if (s < 0)
            return false;
        set_links(l, 0, (enum tcp_channel)c, s);
    }
    return is_accepted(l, end);
}

static int say_no_answer(const struct tcp_meeting *m, const struct attempt *t, struct error *e)
{
    return error_set(e, ERROR_FALSE, "rank %u: rank 0 did not answer at %s within %g s%s%s",
                     m->rank, m->where, m->seconds,
                     *t->why.text ? "; " : ", or not all ranks came", t->why.text);
}

static int follow(const struct tcp_meeting *m, struct tcp_links *l, struct error *e)
{
    const double end = tcp_now() + m->seconds;
    struct attempt t = {0};
    while (!try_once(m, l, end, &t)) {
        drop_links(l);
        if (asked_to_stop())
            return say_stopped(e);
        if (tcp_now() > end)
            return say_no_answer(m, &t, e);
        usleep(PAUSE_MS * 1000);
    }
    return 0;
}

int tcp_meet(const struct tcp_meeting *m, struct tcp_links *ret, struct error *e)
{
    *ret = (struct tcp_links){.rank = m->rank, .size = m->size, .speaks = m->speaks};
    for (int c = 0; c < TCP_CHANNELS; c++) {
        ret->of[c] = memory_new(m->size, sizeof **ret->of);
        for (uint32_t k = 0; k < m->size; k++)
            ret->of[c][k] = -1;
    }
    return (m->rank ? follow : lead)(m, ret, e);
}
