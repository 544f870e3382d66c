/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the mock driver (fake_driver.c); its symbol is `fake_driver`. */
#pragma once
#include "templates/abi.h"
/* after it */
#include "templates/cuda/hopper/args.h"

enum { FAKE_LAUNCHES = 32, FAKE_HOPPER = 4 };

/* Tensor map as cuTensorMapEncodeTiled fills it. */
struct fake_map {
    unsigned long long address, extent[4], stride[3];
    unsigned box[4];
    int type, swizzle, promotion;
};

struct fake {
    int contexts, modules, allocations; /* held now */
    int calls, fail_at;                 /* the call that fails, counted from 1; 0: none */
    int failures;                       /* calls that failed */
    int waits;                          /* calls that wait for the GPU, allocate or free */
    int copying; /* copies to the GPU that were not waited for, 1: on the default stream, 2: on others; launches fail */
    int running; /* launches that were not waited for: freeing and unloading fail */
    int captures;   /* the caller captures a stream of its own, in the global mode */
    int started;    /* calls of cuInit */
    int pushed;     /* depth of the context stack */
    int capability; /* 90: compute capability 9.0 */
    int second;     /* of device 1; 0: the same */
    int current;    /* 1 + the device of the caller's context; 0: none */
    int entered;    /* the device of the last context that was pushed */
    int launches;
    unsigned grid, threads, shared; /* of the last launch */
    struct fake_launch {
        char entry[40];
        unsigned threads, shared;
    } launched[FAKE_LAUNCHES]; /* the first of them, since `launches` was set to 0 */
    void *stream;
    struct abi_args args;
    int maps;   /* tensor maps that were encoded */
    int hopper; /* 1: attention_forward, _dq and _dkv receive struct hopper_args */
    struct hopper_args hopper_args[FAKE_HOPPER]; /* of the latest launches, by number */
    char image[64];                              /* the beginning of the last module */
};
