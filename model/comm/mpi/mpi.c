/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks in a fixed tree. MPI's own reductions leave their order open, so MPI moves the numbers and the sums
   are made here. */
#include "model/comm/add.h"
#include "model/comm/mpi/mpi_comm.h"
#include <stdlib.h>
#include <time.h>

/* Arrays of fewer bytes go whole: one exchange for each level of the tree. */
enum { SMALL_BYTES = 16 << 10 };
enum { TAG_MEET = 1, TAG_DATA, TAG_END };

/* Seconds that a rank waits for the others at the end. */
static const double end_seconds = 10;

struct mpi {
    struct comm comm;
    MPI_Comm all;
    struct watch *watch;
    char *workspace; /* for the other rank's numbers */
    size_t workspace_bytes;
    bool failed;
    double deadline; /* of exchanges; 0: none, the watch ends those that hang */
};
static struct mpi the_mpi; /* MPI is one for each process */

struct kind {
    size_t bytes;
    void (*add)(void *to, const void *from, uint64_t count);
};

int mpi_fail(struct error *e, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return error_set(e, ERROR_FALSE, "MPI: %s: %s", what, text);
}

/* ---- moving ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps between tests once `spin` seconds are over, longer and longer: a rank that waits for slower ones leaves them
   its core. */
static int wait_both(MPI_Request request[2], double spin, double deadline)
{
    const long shortest = 50000, longest = 1000000; /* ns */
    struct timespec pause = {0, shortest};
    const double begin = now();
    int done = 0, r = MPI_SUCCESS;
    while (!done && r == MPI_SUCCESS) {
        r = MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
        if (done || now() - begin < spin)
            continue;
        nanosleep(&pause, NULL);
        pause.tv_nsec += pause.tv_nsec < longest ? pause.tv_nsec / 8 : 0;
        if (deadline > 0 && now() > deadline)
            return MPI_ERR_PENDING;
    }
    return r;
}

/* Bytes sent to one rank and received from another. */
struct exchange {
    int to, from; /* MPI_PROC_NULL: nothing */
    const void *sent;
    void *received;
    uint64_t sent_bytes, received_bytes;
    int tag;
    double spin;
};

static int exchange(struct mpi *m, const struct exchange *x, struct error *e)
{
    MPI_Request request[2];
    int r = MPI_Irecv(x->received, (int)x->received_bytes, MPI_BYTE, x->from, x->tag, m->all,
                      &request[0]);
    if (r == MPI_SUCCESS)
        r = MPI_Isend(x->sent, (int)x->sent_bytes, MPI_BYTE, x->to, x->tag, m->all,
                      &request[1]);
    if (r == MPI_SUCCESS)
        r = wait_both(request, x->spin, m->deadline);
    if (r == MPI_SUCCESS)
        return 0;
    m->failed = true;
    return mpi_fail(e, "an exchange between ranks failed", r);
}

/* Until all ranks are here. */
static int meet(struct mpi *m, int tag, struct error *e)
{
    const int size = (int)m->comm.size, rank = (int)m->comm.rank;
    for (int d = 1; d < size; d *= 2) {
        const struct exchange x = {.to = (rank + d) % size,
                                   .from = (rank - d + size) % size,
                                   .tag = tag,
                                   .spin = 5e-4};
        if (exchange(m, &x, e) < 0)
            return -1;
    }
    return 0;
}

static struct exchange between(const struct mpi *m, uint32_t distance)
{
    const int other = (int)(m->comm.rank ^ distance);
    return (struct exchange){.to = other, .from = other, .tag = TAG_DATA, .spin = 0.05};
}

/* ---- sums ---- */

static void reserve(struct mpi *m, size_t bytes)
{
    if (bytes <= m->workspace_bytes)
        return;
    free(m->workspace);
    m->workspace = malloc(bytes);
    if (!m->workspace)
        abort();
    m->workspace_bytes = bytes;
}

/* Each rank has the whole sum after each level. */
static int sum_small(struct mpi *m, const struct kind *k, char *x, uint64_t count,
                     struct error *e)
{
    for (uint32_t d = 1; d < m->comm.size; d *= 2) {
        struct exchange q = between(m, d);
        q.sent = x;
        q.received = m->workspace;
        q.sent_bytes = q.received_bytes = count * k->bytes;
        if (exchange(m, &q, e) < 0)
            return -1;
        k->add(x, m->workspace, count);
    }
    return 0;
}

/* The part of an array that a rank adds up. */
struct part {
    uint64_t first, count;
};

/* At each level two ranks halve a part and add up one half each. Then parts go back the same way. */
static int sum_halves(struct mpi *m, const struct kind *k, char *x, uint64_t count,
                      struct error *e)
{
    struct part mine[32] = {{0, count}}, other[32];
    int level = 0;
    for (uint32_t d = 1; d < m->comm.size; d *= 2, level++) {
        const struct part all = mine[level], low = {all.first, all.count / 2},
                          high = {all.first + low.count, all.count - low.count};
        const bool upper = m->comm.rank & d;
        struct exchange q = between(m, d);
        mine[level + 1] = upper ? high : low;
        other[level + 1] = upper ? low : high;
        q.sent = x + other[level + 1].first * k->bytes;
        q.sent_bytes = other[level + 1].count * k->bytes;
        q.received = m->workspace;
        q.received_bytes = mine[level + 1].count * k->bytes;
        if (exchange(m, &q, e) < 0)
            return -1;
        k->add(x + mine[level + 1].first * k->bytes, m->workspace, mine[level + 1].count);
    }
    for (uint32_t d = m->comm.size / 2; d > 0; d /= 2, level--) {
        struct exchange q = between(m, d);
        q.sent = x + mine[level].first * k->bytes;
        q.sent_bytes = mine[level].count * k->bytes;
        q.received = x + other[level].first * k->bytes;
        q.received_bytes = other[level].count * k->bytes;
        if (exchange(m, &q, e) < 0)
            return -1;
    }
    return 0;
}

/* Up a binomial tree to rank 0 and down again, where the number of ranks is no power of two. */
static int sum_to_first(struct mpi *m, const struct kind *k, char *x, uint64_t count,
                        struct error *e)
{
    const uint32_t rank = m->comm.rank, size = m->comm.size;
    const uint64_t bytes = count * k->bytes;
    struct exchange q = {.tag = TAG_DATA, .spin = 0.05};
    uint32_t d = 1;
    for (; d < size && !(rank & d); d *= 2) {
        if (rank + d >= size)
            continue;
        q.from = (int)(rank + d);
        q.to = MPI_PROC_NULL;
        q.received = m->workspace;
        q.received_bytes = bytes;
        if (exchange(m, &q, e) < 0)
            return -1;
        k->add(x, m->workspace, count);
    }
    if (d < size) {
        q = (struct exchange){(int)(rank - d), MPI_PROC_NULL, x, NULL, bytes, 0,
                              TAG_DATA,        0.05};
        if (exchange(m, &q, e) < 0)
            return -1;
        q = (struct exchange){MPI_PROC_NULL, (int)(rank - d), NULL, x, 0,
                              bytes,         TAG_DATA,        0.05};
        if (exchange(m, &q, e) < 0)
            return -1;
    }
    while ((d /= 2) > 0) {
        if (rank + d >= size)
            continue;
        q = (struct exchange){(int)(rank + d), MPI_PROC_NULL, x, NULL, bytes, 0,
                              TAG_DATA,        0.05};
        if (exchange(m, &q, e) < 0)
            return -1;
    }
    return 0;
}

static int sum(const struct comm *c, const struct kind *k, void *x, uint64_t count,
               struct error *e)
{
    struct mpi *m = c->context;
    reserve(m, count * k->bytes);
    if (meet(m, TAG_MEET, e) < 0)
        return -1;
    if (c->size & (c->size - 1))
        return sum_to_first(m, k, x, count, e);
    return (count * k->bytes < SMALL_BYTES ? sum_small : sum_halves)(m, k, x, count, e);
}

static int sum_f32(const struct comm *c, float *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, comm_add_f32}, x, count, e);
}

static int sum_f64(const struct comm *c, double *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, comm_add_f64}, x, count, e);
}

static int sum_u64(const struct comm *c, uint64_t *x, uint64_t count, struct error *e)
{
    return sum(c, &(struct kind){sizeof *x, comm_add_u64}, x, count, e);
}

static int exchange_floats(const struct comm *c, const struct comm_move *m, struct error *e)
{
    const struct exchange x = {.to = m->to < c->size ? (int)m->to : MPI_PROC_NULL,
                               .from = m->from < c->size ? (int)m->from : MPI_PROC_NULL,
                               .sent = m->sent,
                               .received = m->received,
                               .sent_bytes = m->sent_count * sizeof(float),
                               .received_bytes = m->received_count * sizeof(float),
                               .tag = TAG_DATA,
                               .spin = 0.05};
    return exchange(c->context, &x, e);
}

/* ---- begin, end ---- */

/* MPI_Finalize() waits for all ranks: after a failure it might never return. */
static void finish(const struct comm *c)
{
    struct mpi *m = c->context;
    struct error ignored;
    m->deadline = now() + end_seconds;
    if (!m->failed && meet(m, TAG_END, &ignored) == 0) {
        if (m->watch)
            watch_end(m->watch);
        MPI_Finalize();
    }
    free(m->workspace);
    m->workspace = NULL;
}

static int begin(struct mpi *m, struct error *e)
{
    int provided, rank, size, r = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (r != MPI_SUCCESS)
        return mpi_fail(e, "MPI_Init_thread", r);
    if (provided < MPI_THREAD_MULTIPLE)
        return error_set(e, ERROR_UNAVAILABLE, "this MPI lacks MPI_THREAD_MULTIPLE");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    r = MPI_Comm_dup(MPI_COMM_WORLD, &m->all);
    if (r != MPI_SUCCESS)
        return mpi_fail(e, "MPI_Comm_dup", r);
    MPI_Comm_set_errhandler(m->all, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m->all, &rank);
    MPI_Comm_size(m->all, &size);
    m->comm = (struct comm){.name = "mpi",
                            .rank = (uint32_t)rank,
                            .size = (uint32_t)size,
                            .context = m,
                            .sum_f32 = sum_f32,
                            .sum_f64 = sum_f64,
                            .sum_u64 = sum_u64,
                            .exchange = exchange_floats,
                            .close = finish};
    return size > 1 ? watch_begin(m->all, &m->watch, e) : 0;
}

/* The plug-in's one function; null with *e set. Its number changes with struct comm: a plug-in of another build may have other
   members. */
__attribute__((visibility("default"))) const struct comm *maskbert_mpi_open_2(struct error *e);
const struct comm *maskbert_mpi_open_2(struct error *e)
{
    return begin(&the_mpi, e) < 0 ? NULL : &the_mpi.comm;
}
