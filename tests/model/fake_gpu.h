/* SPDX-License-Identifier: Apache-2.0 */
/* A mock GPU (fake_gpu.c: libcuda.so.1 and cuBLASLt in one file): what it keeps count of, and the
   test's own function that runs a kernel. Its symbol is `fake_gpu`. */
#pragma once
#include <stddef.h>

struct fake_gpu {
    int contexts, modules, allocations, streams, events, graphs, handles,
        descriptions;   /* held now */
    int calls, fail_at; /* the call that fails, counted from 1; 0: none */
    int failures;       /* calls that failed */
    char failed[64];    /* its name */
    int pinned;         /* blocks of pinned memory held now */
    int copies;         /* from pinned memory */
    int beside;         /* of these, given while another stream had work left */
    int lazy_copies;    /* those run as late as possible, too */
    int allocated;      /* blocks of any memory so far */
    char fails[64];     /* a call of this name fails, once: */
    int fails_after;    /* so many of them come before it */
    int pushed;         /* depth of the context stack */
    int current;        /* 1 + the device of the caller's context; 0: none */
    int capability;     /* 80: compute capability 8.0 */
    int newer;          /* the major version of cuBLASLt, less 12; the driver is for CUDA 13 */
    int refuses_fusing; /* the library has no product with an epilogue */
    int launches, products, fused, gelus, captures, replays;
    int early;   /* works whose memory was freed before they ran, streams closed with such */
    int outside; /* launches and products that were given to no stream of the engine */
    const void *asked; /* the stream of the last cuStreamQuery */
    /* Work that another stream has been given since this one began to wait for it; -1: it waits for none. */
    int (*unseen)(const void *stream);
    int (*left)(void); /* works of all streams that have not run */
    /* Runs all blocks of a kernel; 0, or a result. Bytes of its arguments, by its name. */
    int (*run)(const char *entry, unsigned blocks, unsigned threads, unsigned shared_bytes,
               const void *args);
    size_t (*args_bytes)(const char *entry);
};
