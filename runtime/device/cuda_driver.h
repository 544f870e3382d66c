/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA driver, looked for once in a process. */
#pragma once
#include "masks/base/error.h"
#include "runtime/device/cuda_symbols.h"
#include <stdbool.h>

struct cuda_driver {
#define S(name, args) int(*name) args;
    CUDA_SYMBOLS(S)
    CUDA_GRAPH_SYMBOLS(S)
    CUDA_TENSOR_MAP_SYMBOLS(S)
#undef S
    int version;       /* 13000 */
    int devices;       /* at least 1 where `problem` is empty */
    char problem[256]; /* why there is none, and what would help; empty: usable */
};

const struct cuda_driver *cuda_driver(void);

/* Major version of the CUDA that the installed driver is for, or 0 without one. Starts nothing. */
int cuda_driver_major(void);

/* True if the driver encodes tensor maps, which kernels of cuda_hopper need. */
bool cuda_has_tensor_maps(void);

/* 0 if the driver has all functions for graphs; else -1, and *e names one that it lacks. */
int cuda_must_have_graphs(struct error *e);

/* 0 for a result of 0; else -1 with *e saying which call failed with what. */
int cuda_check(int result, const char *call, struct error *e);

/* 0 where there is that GPU; else -1 with *e set. */
int cuda_must_have(int ordinal, struct error *e);

/* A device's attribute, or 0. */
int cuda_attribute(int attribute, cu_device device);

/* A GPU as a person knows it. */
struct cuda_gpu {
    char name[128];
    int capability; /* 90: 9.0 */
    int processors;
};
int cuda_describe(int ordinal, struct cuda_gpu *ret,
                  struct error *e); /* 0, or -1 with *e set */
