/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks without MPI: each has two connections to rank 0, one for sums and one by which a lost rank is noticed. Meant for the
   few numbers that ranks agree on while NCCL (model/comm/nccl/) carries their arrays: a sum of N ranks sends N arrays to
   rank 0 and back. The network is trusted, as NCCL trusts it. */
#pragma once
#include "model/comm/comm.h"

struct tcp_meeting {
    uint32_t rank, size;
    /* "tcp://HOST:PORT", where rank 0 listens; or a file in a folder that all ranks see, by which rank 0 tells its address.
       The file is gone when all are there. */
    const char *where;
    const char *group; /* a text that the ranks of this launch have in common */
    double seconds;    /* that ranks wait for each other */
};

/* Joins the other ranks. Where one is lost later, its process gone or silent for 20 s, one line on stderr names it, and all
   end with exit code 1. Null with *e set. */
const struct comm *comm_tcp(const struct tcp_meeting *m, struct error *e);
