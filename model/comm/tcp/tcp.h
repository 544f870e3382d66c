/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks without MPI: each has two connections to rank 0, one for sums and one to detect lost ranks. Meant for the few
   numbers that ranks agree on, while NCCL (model/comm/nccl/) carries their arrays: a sum over N ranks sends N - 1 arrays to
   rank 0 and N - 1 back. The network is trusted, as by NCCL. */
#pragma once
#include "model/comm/comm.h"
#include <stdbool.h>

struct tcp_meeting {
    uint32_t rank, size;
    /* "tcp://HOST:PORT", where rank 0 listens; or a file in a folder that all ranks see, into which rank 0 writes its
       address. The file is deleted once all ranks have joined. */
    const char *where;
    const char *group; /* a text that the ranks of this launch have in common */
    double seconds;    /* how long ranks wait for each other */
    bool speaks;       /* the first rank of its machine: reports the loss of rank 0 */
    bool spreads;      /* ranks are on several machines */
};

/* Joins the other ranks. If a process later exits or does not respond for 20 s, one line on stderr names its rank (one per
   machine for rank 0), and all ranks end with exit code 1. Null with *e set. */
const struct comm *comm_tcp(const struct tcp_meeting *m, struct error *e);
