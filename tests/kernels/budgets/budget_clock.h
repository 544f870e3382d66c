/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that compilations are timed by: a text that never changes is compiled before and after, and how
   long that takes says how fast this core is now. What others do here, and a low clock, slow both alike. */
#pragma once
#include "gen/target.h"

/* Processor time of this thread. */
double budget_clock_now(void);

/* The seconds that the text takes NVRTC on this core now, over those that it takes a machine with nothing
   else to do (BUDGET_CLOCK_MS). 0 where it cannot be compiled. */
double budget_clock_slowness(void);
