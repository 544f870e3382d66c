/* SPDX-License-Identifier: Apache-2.0 */
/* A thread_pool of threads works off numbered jobs; each takes the next one. Which thread does a job must not
   matter to what comes of it. */
#pragma once
#include <stdint.h>

/* job(context, 0) .. job(context, count - 1), by the caller and as many threads as this process has other
   cores for, at most POOL_MAX together; back when all are done. */
enum { POOL_MAX = 4 };
void thread_pool_run(uint32_t count, void (*job)(void *context, uint32_t index), void *context);

/* The same for few long jobs of unequal length: at most POOL_MAX are begun at once, however few cores they share.
   Three on two cores end sooner so than where the last one waits for its turn. */
void pool_share(uint32_t count, void (*job)(void *context, uint32_t index), void *context);
