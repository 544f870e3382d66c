/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as processes, which meet by TCP and have a mock of NCCL, and arrays in the host's memory. */
#pragma once
#include "model/comm/comm.h"
#include <stdbool.h>

enum { MOST_RANKS = 4 };

/* The work of all ranks of a case, and the fault of the odd one. */
struct subject {
    uint32_t ranks;
    int (*run)(const struct comm *c, struct error *e);
    double seconds, begin; /* limits; begin of 0: like seconds */
    double slowest;        /* bytes per second; 0: no time for them */
    int delayed_at;        /* the odd rank's device is late there, from 1: 0.6 s */
    uint32_t odd;
    int fail_at, state_fails, hangs; /* of the odd rank: fake_nccl.h */
    const char *only;                /* likewise; NULL: all calls */
};

/* Result of a rank. kept: something was not given back. */
struct outcome_of_rank {
    int result, calls, kept;
    struct error error;
    char failed[40];
};

extern struct outcome_of_rank *processes_outcome; /* [MOST_RANKS] of the last run */
extern bool processes_busy;     /* the device of this rank never ends its work */
extern char processes_meet[64]; /* the file of the rendezvous */

int processes_begin(const char *mock);
void processes_end(void);
/* All ranks must end by themselves. Returns the seconds that it took. */
double processes_run(const struct subject *s);
