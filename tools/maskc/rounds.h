/* SPDX-License-Identifier: Apache-2.0 */
/* Interleaved benchmark: each round times every contender once (A B A B), so that what slows the machine slows all
   of them. A contender's share of a round is as many launches as last ten milliseconds, after one that is not timed. */
#pragma once
#include "tools/common/busy.h"
#include "tools/reference/check.h"

enum { ROUNDS_MOST = 1000, ROUNDS_CONTENDERS = 8 };

/* A loaded kernel and its launch. */
struct contender {
    struct maskc_kernel *kernel;
    struct trial *trial;
    double *seconds;        /* [ROUNDS_MOST] */
    struct busy_time timed; /* of the rounds */
    bool
        own; /* by the time of this thread: one thread's launches on a machine that others use */
};

/* Times n <= ROUNDS_CONTENDERS contenders in as many rounds as `seconds` for all allow, into their seconds[],
   ascending. Returns the number of rounds, 0 with *e set. */
uint32_t rounds_measure(struct contender *all, uint32_t n, bool backward, double seconds,
                        struct error *e);

/* A monotonic clock, in seconds. */
double rounds_now(void);
/* Processor time of this thread, in seconds. */
double rounds_thread_now(void);
/* Number of launches of `seconds` each that fill a round: launches of a few microseconds are timed many together. */
uint32_t rounds_launches(double seconds, double round);

void contender_finish(struct contender *c);
