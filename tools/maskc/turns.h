/* SPDX-License-Identifier: Apache-2.0 */
/* Launches by turns (A B A B), so that whatever slows the machine slows all contenders; a turn is as
   many launches as last ten milliseconds, after one that is not timed. */
#pragma once
#include "tools/reference/check.h"

enum { TURNS_MOST = 1000, TURNS_CONTENDERS = 8 };

/* A loaded kernel and its launch. */
struct contender {
    struct maskc_kernel *kernel;
    struct trial *trial;
    double *seconds; /* [TURNS_MOST] */
};

/* Of n <= TURNS_CONTENDERS, as many turns each as `seconds` for all allow, times in seconds[],
   ascending. Returns how many, 0 with *e set. */
uint32_t turns_measure(struct contender *all, uint32_t n, bool backward, double seconds,
                       struct error *e);

/* A clock, in seconds; and the launches of so many seconds each that make a turn: one of some microseconds
   is timed many at a time, as a training step would run it. */
double turns_now(void);
uint32_t turns_launches(double seconds, double turn);

void contender_finish(struct contender *c);
