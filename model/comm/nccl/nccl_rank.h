/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a rank of NCCL: its calls, which do not wait for other ranks, and the wait with a deadline. */
#pragma once
#include "model/comm/nccl/nccl.h"
#include "model/comm/nccl/nccl_library.h"

/* Elements that are summed at a time (32 MB), and the unit of shares. */
enum { NCCL_BUCKET = 1 << 23, NCCL_SHARE_UNIT = 64 };

/* A rank's result, by severity: a rank whose own call failed is the cause of the others' waiting. */
enum outcome { FINE, SLOW, FAILED };

struct nccl {
    struct comm comm;
    const struct comm *host;
    struct training_device device;
    struct nccl_library does;
    struct nccl_comm *handle; /* null: not begun, or aborted */
    void *stream;
    float *workspace; /* other ranks' parts of this rank's share of a bucket */
    struct nccl_limits limits;
    uint32_t first_sums, first_moves; /* that may still connect ranks */
    double limit;                     /* seconds of the operation that goes on */
    uint64_t floats;                  /* of the sums that have begun, or of the move */
    /* Outcome of the sums that were begun since the last end_sums(), and the error of the first that failed. After it no further sum is
       begun. */
    enum outcome begun;
    struct error error;
};

/* Sets the limit of an operation; connects: it may be the first of its kind. */
void nccl_set_limit(struct nccl *n, bool connects);
enum outcome nccl_fail(const struct nccl *n, const char *call, int result, struct error *e);
/* Evaluates to the outcome of a call; n and e in scope. */
#define NCCL_CALL(name, ...) nccl_result(n, #name, n->does.name(__VA_ARGS__), e)
enum outcome nccl_result(const struct nccl *n, const char *call, int result, struct error *e);

/* Waits until NCCL has begun all that it was given; with_stream: until that is done. */
enum outcome nccl_settle(const struct nccl *n, bool with_stream, struct error *e);
enum outcome nccl_begin_group(const struct nccl *n, struct error *e);
/* Ends a group of calls and, unless one has failed, settles. */
enum outcome nccl_end_group(const struct nccl *n, enum outcome of_calls, bool with_stream,
                            struct error *e);
/* Makes the device current until n->device.does->leave(). submits: the stream's next work starts after all work on arrays; a wait
   with a deadline, for other ranks, should not include this rank's own work. */
enum outcome nccl_enter(struct nccl *n, bool submits, struct error *e);
/* Ends the communicator; one that is not healthy is aborted, which ends what hangs on the device. */
void nccl_drop(struct nccl *n, bool healthy);
/* 0, or -1 on all ranks. A rank that failed comes here at once, the others when their time is over. */
int nccl_agree(struct nccl *n, enum outcome o, struct error *e);

/* Memory of sums. None is allocated later: that could wait for sums that another rank never begins. */
int nccl_reserve(struct nccl *n, struct error *e);
/* Returns when NCCL has been given all of it. The sum is there when the stream is idle. */
enum outcome nccl_begin_sum(struct nccl *n, float *x, uint64_t count, struct error *e);
enum outcome nccl_move(struct nccl *n, const struct comm_move *m, struct error *e);
