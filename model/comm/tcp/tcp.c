/* SPDX-License-Identifier: Apache-2.0 */
/* Sums: rank 0 adds all ranks' numbers in the tree of comm.h, and sends the result. */
#include "masks/base/memory.h"
#include "model/comm/add.h"
#include "model/comm/tcp/tcp_ranks.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes at a time: a multiple of every element. */
enum { PIECE_BYTES = 1 << 16 };
/* A rank tells rank 0 one of these before each piece, or once when it leaves. */
enum message { LEAVES = 1, SUM_F32, SUM_F64, SUM_U64 };
enum { LEAVE_SECONDS = 60 }; /* at most, that ending ranks wait for each other */

struct head {
    uint64_t message, bytes; /* of all pieces that are left */
};

struct tcp {
    struct comm comm;
    struct tcp_links links;
    struct tcp_watch *watch;
    char *piece; /* of rank 0: [size][PIECE_BYTES] */
    bool failed;
    uint32_t lost; /* a rank, if failed */
};

struct kind {
    enum message message;
    size_t bytes;
    void (*add)(void *to, const void *from, uint64_t count);
};

/* ---- sums ---- */

static int say_lost(const struct tcp *t, struct error *e)
{
    return error_set(e, ERROR_FALSE, "rank %u has left", t->lost);
}

/* The watch notices a lost rank, too, and ends the process with its line. A rank that left after an error of its own is not
   lost. */
static int lose(struct tcp *t, uint32_t rank, struct error *e)
{
    const struct timespec pause = {2, 0};
    t->failed = true;
    t->lost = rank;
    nanosleep(&pause, NULL);
    return say_lost(t, e);
}

/* False as well where a rank leaves, or is in another sum. */
static bool receive_piece(const struct tcp *t, uint32_t rank, const struct head *expected,
                          size_t bytes)
{
    const int from = t->links.of[TCP_SUMS][rank];
    struct head h;
    return tcp_receive(from, &h, sizeof h) && h.message == expected->message &&
           h.bytes == expected->bytes &&
           tcp_receive(from, t->piece + (size_t)rank * PIECE_BYTES, bytes);
}

static void add_pieces(const struct tcp *t, const struct kind *k, char *x, size_t bytes)
{
    const uint32_t size = t->comm.size;
    for (uint32_t d = 1; d < size; d *= 2)
        for (uint32_t r = 0; r + d < size; r += 2 * d)
            k->add(r ? t->piece + (size_t)r * PIECE_BYTES : x,
                   t->piece + (size_t)(r + d) * PIECE_BYTES, bytes / k->bytes);
}

static int sum_first(struct tcp *t, const struct kind *k, const struct head *h, char *x,
                     size_t bytes, struct error *e)
{
    const uint32_t size = t->comm.size;
    for (uint32_t r = 1; r < size; r++)
        if (!receive_piece(t, r, h, bytes))
            return lose(t, r, e);
    add_pieces(t, k, x, bytes);
    for (uint32_t r = 1; r < size; r++)
        if (!tcp_send(t->links.of[TCP_SUMS][r], x, bytes))
            return lose(t, r, e);
    return 0;
}

static int sum_other(struct tcp *t, const struct head *h, char *x, size_t bytes,
                     struct error *e)
{
    const int first = t->links.of[TCP_SUMS][0];
    return tcp_send(first, h, sizeof *h) && tcp_send(first, x, bytes) &&
                   tcp_receive(first, x, bytes)
               ? 0
               : lose(t, 0, e);
}

static int sum(const struct comm *c, const struct kind *k, void *x, uint64_t count,
               struct error *e)
{
    struct tcp *t = c->context;
    const size_t all = count * k->bytes;
    if (t->failed)
        return say_lost(t, e);
    for (size_t at = 0; at < all; at += PIECE_BYTES) {
        const size_t bytes = all - at < PIECE_BYTES ? all - at : PIECE_BYTES;
        const struct head h = {k->message, all - at};
        char *piece = (char *)x + at;
        if ((c->rank ? sum_other(t, &h, piece, bytes, e)
                     : sum_first(t, k, &h, piece, bytes, e)) < 0)
            return -1;
    }
    return 0;
}

static int sum_f32(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){SUM_F32, sizeof *x, comm_add_f32}, x, count, e);
}

static int sum_f64(const struct comm *c, double *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){SUM_F64, sizeof *x, comm_add_f64}, x, count, e);
}

static int sum_u64(const struct comm *c, uint64_t *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){SUM_U64, sizeof *x, comm_add_u64}, x, count, e);
}

/* ---- begin, end ---- */

static void warn(const struct comm *c)
{
    tcp_watch_warn(((const struct tcp *)c->context)->watch);
}

static bool is_warned(const struct comm *c)
{
    return tcp_watch_is_warned(((const struct tcp *)c->context)->watch);
}

static void finish(struct tcp *t)
{
    if (t->watch)
        tcp_watch_end(t->watch);
    tcp_links_close(&t->links);
    free(t->piece);
    free(t);
}

/* Until there is something to read, if only the end. */
static void wait_for(int socket, double end)
{
    struct pollfd p = {socket, POLLIN, 0};
    for (double left = end - tcp_now(); left > 0; left = end - tcp_now())
        if (poll(&p, 1, (int)(1000 * left) + 1) > 0)
            return;
}

/* A rank tells rank 0 that it leaves; when all have, or one is in a sum, rank 0 closes its sockets, for which the others
   wait. */
static void close_ranks(const struct comm *c)
{
    struct tcp *t = c->context;
    const struct head leaves = {LEAVES, 0};
    const double end = tcp_now() + LEAVE_SECONDS;
    if (!t->failed && c->rank && tcp_send(t->links.of[TCP_SUMS][0], &leaves, sizeof leaves))
        wait_for(t->links.of[TCP_SUMS][0], end);
    for (uint32_t r = 1; !t->failed && !c->rank && r < c->size; r++)
        wait_for(t->links.of[TCP_SUMS][r], end);
    finish(t);
}

const struct comm *comm_tcp(const struct tcp_meeting *m, struct error *e)
{
    struct tcp *t = memory_new(1, sizeof *t);
    t->comm = (struct comm){.name = "tcp",
                            .rank = m->rank,
                            .size = m->size,
                            .context = t,
                            .sum_f32 = sum_f32,
                            .sum_f64 = sum_f64,
                            .sum_u64 = sum_u64,
                            .warn = warn,
                            .is_warned = is_warned,
                            .close = close_ranks};
    t->piece = memory_new(m->rank ? 1 : m->size, PIECE_BYTES);
    if (tcp_meet(m, &t->links, e) == 0 && tcp_watch_begin(&t->links, &t->watch, e) == 0)
        return &t->comm;
    finish(t);
    return NULL;
}
