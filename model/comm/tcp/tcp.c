/* SPDX-License-Identifier: Apache-2.0 */
/* Sums: rank 0 adds all ranks' numbers in the tree of comm.h, and sends the result. */
#include "masks/base/memory.h"
#include "model/comm/tcp/tcp_ranks.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes at a time: a multiple of every element. */
enum { PIECE_BYTES = 1 << 16 };

struct tcp {
    struct comm comm;
    struct tcp_links links;
    struct tcp_watch *watch;
    char *piece; /* of rank 0: [size][PIECE_BYTES] */
    bool failed;
};

struct kind {
    size_t bytes;
    void (*add)(void *to, const void *from, size_t bytes);
};

#define DEFINE_ADD(name, type)                                 \
    static void name(void *to, const void *from, size_t bytes) \
    {                                                          \
        type *restrict x = to;                                 \
        const type *restrict y = from;                         \
        for (size_t k = 0; k < bytes / sizeof *x; k++)         \
            x[k] += y[k];                                      \
    }
DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)
DEFINE_ADD(add_u64, uint64_t)

/* The watch notices a lost rank, too, and ends the process with its line. A rank that left after an error of its own is not
   lost. */
static int lose(struct tcp *t, uint32_t rank, struct error *e)
{
    const struct timespec pause = {2, 0};
    t->failed = true;
    nanosleep(&pause, NULL);
    return error_set(e, ERROR_FALSE, "rank %u has left", rank);
}

static int sum_first(struct tcp *t, const struct kind *k, char *x, size_t bytes,
                     struct error *e)
{
    const uint32_t size = t->comm.size;
    char *piece[2] = {x};
    for (uint32_t r = 1; r < size; r++)
        if (!tcp_receive(t->links.of[TCP_SUMS][r], t->piece + (size_t)r * PIECE_BYTES, bytes))
            return lose(t, r, e);
    for (uint32_t d = 1; d < size; d *= 2)
        for (uint32_t r = 0; r + d < size; r += 2 * d) {
            piece[0] = r ? t->piece + (size_t)r * PIECE_BYTES : x;
            piece[1] = t->piece + (size_t)(r + d) * PIECE_BYTES;
            k->add(piece[0], piece[1], bytes);
        }
    for (uint32_t r = 1; r < size; r++)
        if (!tcp_send(t->links.of[TCP_SUMS][r], x, bytes))
            return lose(t, r, e);
    return 0;
}

static int sum_other(struct tcp *t, char *x, size_t bytes, struct error *e)
{
    const int first = t->links.of[TCP_SUMS][0];
    return tcp_send(first, x, bytes) && tcp_receive(first, x, bytes) ? 0 : lose(t, 0, e);
}

static int sum(const struct comm *c, const struct kind *k, void *x, uint64_t count,
               struct error *e)
{
    struct tcp *t = c->context;
    const size_t all = count * k->bytes;
    for (size_t at = 0; at < all; at += PIECE_BYTES) {
        const size_t bytes = all - at < PIECE_BYTES ? all - at : PIECE_BYTES;
        char *piece = (char *)x + at;
        if ((c->rank ? sum_other(t, piece, bytes, e) : sum_first(t, k, piece, bytes, e)) < 0)
            return -1;
    }
    return 0;
}

static int sum_f32(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, add_f32}, x, count, e);
}

static int sum_f64(const struct comm *c, double *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, add_f64}, x, count, e);
}

static int sum_u64(const struct comm *c, uint64_t *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, add_u64}, x, count, e);
}

static void finish(struct tcp *t)
{
    if (t->watch)
        tcp_watch_end(t->watch);
    tcp_links_close(&t->links);
    free(t->piece);
    free(t);
}

static void close_ranks(const struct comm *c)
{
    struct tcp *t = c->context;
    uint64_t here = 1;
    struct error ignored;
    if (!t->failed)
        sum_u64(c, &here, 1, &ignored);
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
                            .close = close_ranks};
    t->piece = memory_new(m->rank ? 1 : m->size, PIECE_BYTES);
    if (tcp_meet(m, &t->links, e) == 0 && tcp_watch_begin(&t->links, &t->watch, e) == 0)
        return &t->comm;
    finish(t);
    return NULL;
}
