/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank sends every other one a message each second, and looks ten times a second whether the processes of this
   machine are there. */
#include "model/comm/mpi/mpi_comm.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_ALIVE = 1, STOPPED_SECONDS = 5, WAKING_SECONDS = 10 };

/* A process, as it tells the others. */
struct process {
    char host[256];
    int32_t pid;
    uint64_t started; /* field 22 of /proc/PID/stat; 0: unknown */
};

struct peer {
    struct process process;
    bool near; /* a process of this machine that this rank sees */
    double seen;
    MPI_Request in, out;
    char received;
};

struct watch {
    MPI_Comm all;
    int rank, size;
    struct peer *peer; /* [size] */
    pthread_t thread;
    double woke; /* when this process went on after a stop; far back: never */
    atomic_bool ends;
    char sent;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- processes of this machine ---- */

/* When a process began; 0: it is gone, or has ended and was not waited for yet. */
static uint64_t started(int32_t pid)
{
    char path[64], text[512] = "";
    unsigned long long ret = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *at = strrchr(text, ')');
    if (!at || !at[1] || strchr("ZXx", at[2]))
        return 0;
    for (int field = 2; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, " %llu", &ret) == 1 ? ret : 0;
}

static struct process this_process(void)
{
    struct process ret = {.pid = (int32_t)getpid(), .started = started((int32_t)getpid())};
    gethostname(ret.host, sizeof ret.host - 1);
    return ret;
}

static bool is_near(const struct process *p, const struct process *own)
{
    return p->started && !strcmp(p->host, own->host) && started(p->pid) == p->started;
}

/* ---- the end ---- */

/* Without clean-up: other threads may be anywhere, and MPI would wait for the lost rank. A process that has just gone on
   after a stop says nothing: the others have ended because of it, and have named it. */
static void end_all(const struct watch *w, int lost, const char *how)
{
    int first = 0;
    while (first == lost)
        first++;
    if (w->rank == first && now() - w->woke > WAKING_SECONDS)
        fprintf(stderr, "%smaskbert: rank %d %s; what was saved before stays\n",
                isatty(STDERR_FILENO) ? "\r\033[K" : "", lost, how);
    fflush(stderr);
    _exit(1);
}

static void look(struct watch *w, int k)
{
    struct peer *p = &w->peer[k];
    int arrived = 0;
    if (p->near && started(p->process.pid) != p->process.started)
        end_all(w, k, "is gone: its process has ended");
    if (MPI_Test(&p->in, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        end_all(w, k, "cannot be reached");
    if (arrived) {
        p->seen = now();
        MPI_Irecv(&p->received, 1, MPI_BYTE, k, TAG_ALIVE, w->all, &p->in);
    }
    if (now() - p->seen > WATCH_SECONDS)
        end_all(w, k, "does not answer");
}

static void tell(struct watch *w, int k)
{
    struct peer *p = &w->peer[k];
    int sent = 1;
    if (p->out != MPI_REQUEST_NULL)
        MPI_Test(&p->out, &sent, MPI_STATUS_IGNORE);
    if (sent)
        MPI_Isend(&w->sent, 1, MPI_BYTE, k, TAG_ALIVE, w->all, &p->out);
}

/* After this process itself was stopped: what it missed is no silence. */
static void forgive(struct watch *w, double t)
{
    for (int k = 0; k < w->size; k++)
        w->peer[k].seen = t;
}

static void *run(void *of)
{
    const struct timespec pause = {0, 100000000};
    struct watch *w = of;
    double last = now();
    for (uint64_t turn = 0; !atomic_load(&w->ends); turn++) {
        const double t = now();
        if (t - last > STOPPED_SECONDS) {
            forgive(w, t);
            w->woke = t;
        }
        last = t;
        for (int k = 0; k < w->size; k++) {
            if (k == w->rank)
                continue;
            if (turn % 10 == 0)
                tell(w, k);
            look(w, k);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* ---- begin, end ---- */

static void meet_peer(struct watch *w, int k, const struct process *p,
                      const struct process *own)
{
    w->peer[k] = (struct peer){.process = *p,
                               .near = is_near(p, own),
                               .seen = now(),
                               .in = MPI_REQUEST_NULL,
                               .out = MPI_REQUEST_NULL};
    if (k != w->rank)
        MPI_Irecv(&w->peer[k].received, 1, MPI_BYTE, k, TAG_ALIVE, w->all, &w->peer[k].in);
}

int watch_begin(MPI_Comm all, struct watch **ret, struct error *e)
{
    struct watch *w = calloc(1, sizeof *w);
    const struct process own = this_process();
    if (!w || MPI_Comm_dup(all, &w->all) != MPI_SUCCESS)
        return error_set(e, ERROR_UNAVAILABLE, "MPI: no second communicator");
    w->woke = now() - 2 * WAKING_SECONDS;
    MPI_Comm_set_errhandler(w->all, MPI_ERRORS_RETURN);
    MPI_Comm_rank(all, &w->rank);
    MPI_Comm_size(all, &w->size);
    struct process *each = calloc((size_t)w->size, sizeof *each);
    w->peer = calloc((size_t)w->size, sizeof *w->peer);
    if (!each || !w->peer)
        abort();
    int r = MPI_Allgather(&own, sizeof own, MPI_BYTE, each, sizeof own, MPI_BYTE, all);
    for (int k = 0; k < w->size && r == MPI_SUCCESS; k++)
        meet_peer(w, k, &each[k], &own);
    free(each);
    if (r != MPI_SUCCESS)
        return mpi_fail(e, "MPI_Allgather", r);
    *ret = w;
    return pthread_create(&w->thread, NULL, run, w)
               ? error_set(e, ERROR_UNAVAILABLE, "no thread that watches the ranks")
               : 0;
}

static void drop(MPI_Request *r)
{
    if (*r == MPI_REQUEST_NULL)
        return;
    MPI_Cancel(r);
    MPI_Request_free(r);
}

void watch_end(struct watch *w)
{
    atomic_store(&w->ends, true);
    pthread_join(w->thread, NULL);
    for (int k = 0; k < w->size; k++) {
        drop(&w->peer[k].in);
        drop(&w->peer[k].out);
    }
    free(w->peer);
    free(w);
}
