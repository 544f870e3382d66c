/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of a kernel's code. The kernel file contains a record of it. */
#pragma once
#include "templates/abi.h"
#include <stdint.h>

enum { EMIT_MAX_PHASES = 8 };

/* Arguments that the entry of a phase receives: struct abi_args, or struct hopper_args (templates/cuda/hopper/args.h)
   with the steps and the tensor maps of a pass. */
enum phase_arguments {
    PHASE_ARGS,
    PHASE_HOPPER_FORWARD,
    PHASE_HOPPER_DQ,
    PHASE_HOPPER_DKV,
    PHASE_ARGUMENTS
};

struct phase {
    char entry[40];
    enum abi_over over;
    uint32_t threads, shared_bytes; /* CUDA */
    enum phase_arguments arguments;
    uint32_t
        waves; /* CUDA: rows of the grid that the entry understands, if works differ in cost; 0: one */
};

struct launch_record {
    struct phase forward[EMIT_MAX_PHASES], backward[EMIT_MAX_PHASES];
    uint32_t n_forward, n_backward;
    uint32_t block_rows;
    /* Workspace of a launch: delta_row * batch * heads * rows(n)
         + (pack_row * rows(n) + partial_row * (rows(n) + partial slots), where the plan has split items) * slice * heads
         + workers * (scratch_fixed + scratch_col * max_cols),
       each part rounded up to 64 bytes, rows(n) = n rounded up to 32, plus 32. */
    uint64_t delta_row, pack_row, partial_row, scratch_fixed, scratch_col;
};
