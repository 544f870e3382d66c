/* SPDX-License-Identifier: Apache-2.0 */
/* Threads work off numbered tasks; each takes the next one. A task's result must not depend on its thread. */
#pragma once
#include <stdint.h>

/* Runs task(context, 0) .. task(context, count - 1) on the caller's thread and one more for each other core of
   this process, POOL_MAX at most; returns when all are done. */
enum { POOL_MAX = 4 };
void thread_pool_run(uint32_t count, void (*task)(void *context, uint32_t index),
                     void *context);

/* The same for few long tasks of unequal length: POOL_MAX are begun at once, however few cores they share. Three
   tasks on two cores end sooner so than if the third waits for one of the others. */
void thread_pool_share(uint32_t count, void (*task)(void *context, uint32_t index),
                       void *context);
