/* SPDX-License-Identifier: Apache-2.0 */
/* Runs probes and times the passes of their kernels, over tensors as long as any probe's, on the host or on a GPU.
   On the host the time is processor time of the thread: the median of several runs, and of these the least over all
   rounds, so that other work on the machine does not count. On a GPU it is the clock's, over as many launches as last
   two milliseconds, waited for together. dQ is timed as the backward pass up to dQ. */
#pragma once
#include "runtime/load/load.h"
#include "tools/maskc/calibrate/probe_table.h"

enum {
    MICROBENCH_HEADS = 12,
    MICROBENCH_HEAD_DIM = 64,
    GPU_TOKENS = 16384, /* of a launch: row blocks enough for all processors, many times over */
};

struct microbench {
    const struct machine *row;
    const struct target *target;
    struct kernel_request request;
    struct cache *cache;
    const char *device;
    const struct maskc_kernel
        *owner; /* of a GPU: by which its memory is had; null: the host's */
    void *tensor
        [8]; /* [tokens][MICROBENCH_HEADS][MICROBENCH_HEAD_DIM], longer than any probe's */
    float *lse, *bias, *grad_soft; /* [MICROBENCH_HEADS][BIAS_LONGEST][BIAS_LONGEST] */
    uint8_t *workspace;
    uint64_t workspace_capacity;
};

int microbench_open(struct microbench *l,
                    struct error *e); /* the tensors, in the memory of l->owner */
void microbench_close(struct microbench *l);

/* The clock that launches are timed by. */
double microbench_seconds(const struct microbench *l);

/* Seconds of a launch for each pass, of dK and dV with what comes before: medians of some launches. */
int microbench_time(struct microbench *l, struct maskc_kernel *k, uint32_t batch,
                    double seconds[PASSES], struct error *e);

/* Extra wall-clock seconds of a forward launch on all CPU threads over one thread's time divided by the threads; 0 with
   one thread. */
int microbench_wake(struct microbench *l, struct maskc_kernel *k, double *ret, struct error *e);
/* True if one phase of the kernel makes all gradients. */
bool microbench_shares_gradients(const struct maskc_kernel *k);
