/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and moves of device arrays by NCCL, for ranks that have joined already: everything else goes by the ranks' own
   functions.

   Two and four ranks add in the binary tree of model/comm/comm.h: each gets the other ranks' parts of its share, adds them
   up in the tree's order and sends the sum. One rank sends 2 (N-1)/N of the array, as many bytes as a ring of all-reduce.
   Other numbers of ranks use ncclAllReduce, whose order is NCCL's own: fixed for one version, topology and size.

   Work of NCCL is on the device's second stream (enter() of model/backend/training.h), so that begin_sum() returns while the
   device goes on. The ranks' own functions agree on errors only in end_sums(), when the pass has been submitted. */
#pragma once
#include "model/backend/training.h"
#include "model/comm/comm.h"
#include <stdbool.h>

/* How long a rank waits for the others in one operation, unless one of them has failed and says so (model/comm/comm.h). */
struct nccl_limits {
    double
        begin; /* seconds, until ranks are connected: up to the first step's end. Large clusters need minutes */
    double each;    /* seconds, of later operations, and besides */
    double slowest; /* bytes per second of arrays that are summed or moved */
};
extern const struct nccl_limits nccl_limits;

/* The ranks of `host`, with arrays of the device summed and moved by NCCL; all ranks at once. close() leaves `host` open and
   comes before the device's end. If an operation fails on one rank, it returns -1 on all, with the same *e, which names
   the rank. Null with *e set, also on all ranks. */
const struct comm *comm_nccl(const struct comm *host, const struct training_device *device,
                             const struct nccl_limits *limits, struct error *e);
/* In place of close(). After a failure it does not wait for the other ranks. */
void comm_nccl_close(const struct comm *c, bool failed);
