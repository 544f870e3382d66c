/* SPDX-License-Identifier: Apache-2.0 */
/* Where probes run: tensors as long as any probe's, on the host or on a GPU, and the time that a kernel's
   passes take over them. Time is the thread's own, and the median of several runs, of which the least counts
   where a round finds a better one: what a launch usually takes, but not while other work is in the way; of
   a GPU it is the clock's, of as many launches as last two milliseconds, waited for together. dQ is timed as
   the backward pass up to dQ. */
#pragma once
#include "runtime/kernel.h"
#include "tools/maskc/probe_table.h"

enum {
    LAB_HEADS = 12,
    LAB_HEAD_DIM = 64,
    GPU_TOKENS = 16384, /* of a launch: row blocks enough for all processors, many times over */
};

struct lab {
    const struct machine *row;
    const struct target *target;
    struct kernel_request request;
    struct cache *cache;
    const char *device;
    const struct maskc_kernel
        *owner;      /* of a GPU: by which its memory is had; null: the host's */
    void *tensor[8]; /* [tokens][LAB_HEADS][LAB_HEAD_DIM], longer than any probe's */
    float *lse, *bias, *grad_soft; /* [LAB_HEADS][BIAS_LONGEST][BIAS_LONGEST] */
    uint8_t *workspace;
    uint64_t workspace_room;
};

int lab_open(struct lab *l, struct error *e); /* the tensors, in the memory of l->owner */
void lab_close(struct lab *l);

/* Seconds by which the lab measures. */
double lab_seconds(const struct lab *l);

/* Seconds of a launch for each pass, of dK and dV with what comes before; less than was there already. */
int lab_time(struct lab *l, struct maskc_kernel *k, uint32_t batch, double seconds[PASSES],
             struct error *e);

/* Whether one phase of the kernel makes all gradients. */
bool lab_shares_gradients(const struct maskc_kernel *k);
