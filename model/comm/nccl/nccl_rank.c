/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/nccl/nccl_rank.h"
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum outcome nccl_fail(const struct nccl *n, const char *call, int result, struct error *e)
{
    error_set(e, ERROR_UNAVAILABLE, "NCCL: %s: %s", call, n->does.ncclGetErrorString(result));
    return FAILED;
}

enum outcome nccl_result(const struct nccl *n, const char *call, int result, struct error *e)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? FINE
                                                                : nccl_fail(n, call, result, e);
}

/* ---- waiting ---- */

static enum outcome is_done(const struct nccl *n, bool with_stream, bool *ret, struct error *e)
{
    int state = NCCL_SUCCESS;
    if (NCCL_CALL(ncclCommGetAsyncError, n->handle, &state) != FINE ||
        nccl_result(n, "an operation with the other ranks", state, e) != FINE)
        return FAILED;
    *ret = state == NCCL_SUCCESS;
    return *ret && with_stream && n->device.does->is_idle(n->device.state, ret, e) < 0 ? FAILED
                                                                                       : FINE;
}

void nccl_set_limit(struct nccl *n, bool connects)
{
    n->limit = connects ? n->limits.begin : n->limits.each;
}

static enum outcome say_slow(double seconds, struct error *e)
{
    error_set(e, ERROR_FALSE,
              "NCCL: an operation did not end within %.0f s, and no rank had an error",
              seconds);
    return SLOW;
}

/* True if another rank has failed: its error is reported, and this rank only stops waiting. */
static bool is_warned(const struct nccl *n)
{
    return n->host->is_warned && n->host->is_warned(n->host);
}

enum outcome nccl_settle(const struct nccl *n, bool with_stream, struct error *e)
{
    const double seconds = n->limit + sizeof(float) * (double)n->floats / n->limits.slowest;
    const long shortest = 5000, longest = 500000; /* ns */
    const double end = now() + seconds;
    struct timespec pause = {0, shortest};
    bool done = false;
    for (;;) {
        const enum outcome o = is_done(n, with_stream, &done, e);
        if (o != FINE || done)
            return o;
        if (now() > end || is_warned(n))
            return say_slow(seconds, e);
        nanosleep(&pause, NULL);
        pause.tv_nsec += pause.tv_nsec < longest ? pause.tv_nsec / 4 : 0;
    }
}

enum outcome nccl_begin_group(const struct nccl *n, struct error *e)
{
    return nccl_result(n, "ncclGroupStart", n->does.ncclGroupStart(), e);
}

enum outcome nccl_end_group(const struct nccl *n, enum outcome of_calls, bool with_stream,
                            struct error *e)
{
    const int result = n->does.ncclGroupEnd();
    if (of_calls != FINE)
        return of_calls;
    return nccl_result(n, "ncclGroupEnd", result, e) == FINE ? nccl_settle(n, with_stream, e)
                                                             : FAILED;
}

/* ---- one end for all ranks ---- */

enum outcome nccl_enter(struct nccl *n, bool submits, struct error *e)
{
    if (!n->handle) {
        error_set(e, ERROR_FALSE, "NCCL: ended by an earlier failure");
        return FAILED;
    }
    return n->device.does->enter(n->device.state, submits ? &n->stream : NULL, e) < 0 ? FAILED
                                                                                      : FINE;
}

/* Finalizes the communicator on all ranks together, within the time limit; ncclCommDestroy would wait without one. */
static bool finalize(const struct nccl *n)
{
    struct error ignored, *e = &ignored;
    return NCCL_CALL(ncclCommFinalize, n->handle) == FINE && nccl_settle(n, false, e) == FINE;
}

void nccl_drop(struct nccl *n, bool healthy)
{
    struct error ignored;
    if (!n->handle)
        return;
    const int entered = n->device.does->enter(n->device.state, NULL, &ignored);
    (healthy && finalize(n) ? n->does.ncclCommDestroy : n->does.ncclCommAbort)(n->handle);
    if (entered == 0)
        n->device.does->leave(n->device.state);
    n->handle = NULL;
}

int nccl_agree(struct nccl *n, enum outcome o, struct error *e)
{
    if (o == FAILED && n->host->warn)
        n->host->warn(n->host);
    if (o != FINE)
        nccl_drop(n, false);
    const int r = comm_agree_worst(n->host, o, e);
    if (r < 0)
        nccl_drop(n, false);
    return r;
}
