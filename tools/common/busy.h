/* SPDX-License-Identifier: Apache-2.0 */
/* Detects a busy machine: threads that compute get less CPU time than the time that passes. */
#pragma once
#include "masks/base/text.h"
#include <stdbool.h>
#include <stdint.h>

/* Time of measured work; zeroed: none yet. */
struct busy_time {
    double wall, cpu; /* seconds that passed, and that all threads of this process ran */
};

/* The clocks now; the work until then is added to *sum. */
struct busy_time busy_now(void);
void busy_add(struct busy_time *sum, struct busy_time since);

/* The share of the time that `threads` threads ran, 0 to 1; 1 where nothing was timed. */
double busy_share(const struct busy_time *sum, uint32_t threads);

/* True if the share is so low that other programs must be using the machine. */
bool busy_is(double share);

/* "the machine is busy: .." with what to do about it; `remedy` is the command's own, or null. */
void busy_text(double share, const char *remedy, struct text *to);
