/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a launch whose caller gave none. A program uses OpenMP's. A library that is loaded
   next to another OpenMP starts threads for each launch (cpu_threads_posix.c). A build links one of
   the two. */
#pragma once
#include <stdint.h>

/* threads_most(): number of this process's cores that a launch with all threads uses. */
uint32_t threads_most(void);
uint32_t threads_cores(void);

/* Calls step(context, k, thread, threads) on each of at most `threads` threads, for k = 0 .. steps - 1: a step begins when
   all threads have ended the one before. */
typedef void threads_step(void *context, uint32_t k, uint32_t thread, uint32_t threads);
void threads_run(uint32_t threads, uint32_t steps, threads_step *step, void *context);
