/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cpu_threads.h"
#include <omp.h>

uint32_t threads_most(void)
{
    int all = omp_get_max_threads();
    return all > 0 ? (uint32_t)all : 1;
}

uint32_t threads_cores(void)
{
    return (uint32_t)omp_get_num_procs();
}

/* All steps in one parallel region: a barrier is cheaper than a new one. */
void threads_run(uint32_t threads, uint32_t steps, threads_step *step, void *context)
{
#pragma omp parallel num_threads((int)threads)
    for (uint32_t k = 0; k < steps; k++) {
        if (k) {
#pragma omp barrier
        }
        step(context, k, (uint32_t)omp_get_thread_num(), (uint32_t)omp_get_num_threads());
    }
}
