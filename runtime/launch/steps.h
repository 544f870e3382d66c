/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a launch: the steps of launch_run, each a file. Nothing is allocated, nothing is waited for. */
#pragma once
#include "runtime/launch/launch.h"

__extension__ typedef unsigned __int128
    wide; /* products of sizes before they are known to fit */

/* Sequences that are done together, and the workspace for them. */
struct shape {
    uint32_t batch, n, queries, keys; /* n: the larger of the two */
    uint32_t slice, workers, bias_chunks;
    uint64_t delta_rows, partial_slots, pack_stride, partial_at, scratch_stride;
    uint64_t state, bias, key_sums, pack,
        scratch; /* bytes of each part; UINT64_MAX: does not fit */
    uint64_t total;
};

struct launch {
    const struct maskc_kernel *k;
    const struct maskc_launch *l; /* the caller's */
    struct shape shape;
    struct error *e;
};

/* Elements of the dK (or dV) of each query head, where several share a key head. */
wide key_sum_elements(const struct maskc_kernel *k, const struct maskc_launch *l,
                      const struct shape *s);

/* l need not have been checked: what cannot be launched is UINT64_MAX bytes. */
struct shape shape_of(const struct maskc_kernel *k, const struct maskc_launch *l);

/* All but tensors: pass, length, layer, batch, lengths and offsets, numbers, workspace. */
int launch_check(const struct launch *c);

/* Tensors, checked and completed, where the kernels look for them. */
int launch_fill_tensors(const struct launch *c, struct abi_args *a);
/* Everything that kernels are told. */
int launch_fill(const struct launch *c, struct abi_args *a);

/* The scale that the kernels compute with. */
float launch_scale(const struct launch *c);
/* Zeros in rows 0 .. rows - 1 of sequence b. */
void launch_clear_rows(const struct launch *c, const struct abi_args *a,
                       const struct abi_tensor *t, uint32_t b, int64_t rows);
/* After a backward pass in host memory: zeros in the gradients of Q and K if the scale is zero. */
void launch_clear_unscaled(const struct launch *c, const struct abi_args *a);

/* Zeros, and -inf for the LSE, in the rows before each sequence's start: the kernels begin at it. */
void launch_clear_before(const struct launch *c, const struct abi_args *a);

/* "launch: WHAT". */
int launch_refuse(const struct launch *c, const char *what);
