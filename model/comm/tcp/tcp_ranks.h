/* SPDX-License-Identifier: Apache-2.0 */
/* Inside ranks by TCP. */
#pragma once
#include "model/comm/tcp/tcp.h"
#include <stdbool.h>
#include <stddef.h>

enum tcp_channel { TCP_SUMS, TCP_WATCH, TCP_CHANNELS };

/* Sockets to the other ranks by rank, of rank 0; the others have only that to rank 0. -1: none. */
struct tcp_links {
    uint32_t rank, size;
    bool speaks;           /* as in struct tcp_meeting */
    int *of[TCP_CHANNELS]; /* [size] */
};

int tcp_meet(const struct tcp_meeting *m, struct tcp_links *ret, struct error *e);
void tcp_links_close(struct tcp_links *l);

double tcp_now(void);
/* Whole arrays. False: the connection is lost. */
bool tcp_send(int socket, const void *from, size_t bytes);
bool tcp_receive(int socket, void *to, size_t bytes);

/* Watches the other ranks from a thread of its own. */
struct tcp_watch;
int tcp_watch_begin(const struct tcp_links *l, struct tcp_watch **ret, struct error *e);
/* Tells the other ranks that this one has failed; has another one said so? */
void tcp_watch_warn(struct tcp_watch *w);
bool tcp_watch_is_warned(struct tcp_watch *w);
/* This rank leaves: the others no longer expect it. */
void tcp_watch_end(struct tcp_watch *w);
