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

static void set_patience(int socket, int seconds) /* 0: any time */
{
    const struct timeval t = {seconds, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

static int set_links(struct tcp_links *l, uint32_t rank, enum tcp_channel c, int socket)
{
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    set_patience(socket, 0);
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
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

/* ---- rank 0 ---- */

struct host {
    const struct tcp_meeting *m;
    struct tcp_links *links;
    uint64_t key;
    int listener;
    uint32_t there; /* connections */
};

/* A connection that says nothing, or what no rank of this launch says, is closed. */
static int greet(struct host *h, uint64_t group, struct error *e)
{
    struct hello hello;
    const int s = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s < 0)
        return 0;
    set_patience(s, HELLO_SECONDS);
    if (!tcp_receive(s, &hello, sizeof hello) || hello.magic != HELLO || hello.key != h->key ||
        hello.group != group) {
        close(s);
        return 0;
    }
    if (hello.size != h->m->size || !hello.rank || hello.rank >= h->m->size ||
        hello.channel >= TCP_CHANNELS || h->links->of[hello.channel][hello.rank] >= 0) {
        close(s);
        return error_set(e, ERROR_INPUT,
                         "a process came as rank %u of %u, and there are %u, each once",
                         (unsigned)hello.rank, (unsigned)hello.size, h->m->size);
    }
    h->there++;
    return set_links(h->links, (uint32_t)hello.rank, (enum tcp_channel)hello.channel, s);
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
    const uint64_t group = XXH3_64bits(h->m->group, strlen(h->m->group));
    while (h->there < TCP_CHANNELS * (h->m->size - 1)) {
        struct pollfd p = {h->listener, POLLIN, 0};
        if (poll(&p, 1, PAUSE_MS) > 0 && greet(h, group, e) < 0)
            return -1;
        if (tcp_now() > end || asked_to_stop())
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
    struct host h = {m, l, 0, -1, 0};
    if (tcp_address_listen(m->where, &a, &h.listener, e) < 0)
        return -1;
    h.key = a.key;
    const int r = wait_for_others(&h, e);
    close(h.listener);
    tcp_address_forget(m->where);
    return r;
}

/* ---- the others ---- */

/* -1: not yet. */
static int say_hello(const struct tcp_meeting *m, enum tcp_channel c)
{
    struct tcp_address a;
    if (!tcp_address_read(m->where, &a))
        return -1;
    const struct hello hello = {HELLO,   a.key,   XXH3_64bits(m->group, strlen(m->group)),
                                m->rank, m->size, c};
    const int s = tcp_address_connect(&a);
    if (s >= 0 && tcp_send(s, &hello, sizeof hello))
        return s;
    if (s >= 0)
        close(s);
    return -1;
}

/* Rank 0 closes a connection that came by the address of an earlier launch: the next one may reach it. */
static bool is_accepted(int s, double end)
{
    struct pollfd p = {s, POLLIN, 0};
    char all = 0;
    while (tcp_now() < end && !asked_to_stop())
        if (poll(&p, 1, PAUSE_MS) > 0)
            return recv(s, &all, 1, 0) == 1 && all == ALL_HERE;
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

static bool try_once(const struct tcp_meeting *m, struct tcp_links *l, double end)
{
    for (int c = TCP_CHANNELS; c-- > 0;) {
        const int s = say_hello(m, (enum tcp_channel)c);
        if (s < 0)
            return false;
        set_links(l, 0, (enum tcp_channel)c, s);
    }
    return is_accepted(l->of[TCP_SUMS][0], end);
}

static int follow(const struct tcp_meeting *m, struct tcp_links *l, struct error *e)
{
    const double end = tcp_now() + m->seconds;
    while (!try_once(m, l, end)) {
        drop_links(l);
        if (tcp_now() > end || asked_to_stop())
            return error_set(
                e, ERROR_FALSE,
                "rank %u: rank 0 did not answer at %s within %g s, or not all ranks came",
                m->rank, m->where, m->seconds);
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
