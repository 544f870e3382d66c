/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel shapes of families that read steps: a pass has a kernel of each, and the planner chooses one by predicted clocks. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* An H100: its clock rate, and its processors, for machines whose row gives none. */
#define STEP_CLOCK 1.755e9
enum { STEP_PROCESSORS = 132 };

/* Clocks that a group takes of its block, with as many other blocks on the processor as the shape has: a sum of these. */
struct step_clocks {
    uint32_t group, step; /* once each, and ... */
    uint32_t row_block;   /* ... for each row block that has something in a step, or ... */
    uint32_t turn;        /* ... this, where warpgroups take turns */
    uint32_t pattern;     /* for each of these that has a pattern */
    uint32_t gathered;    /* for each gathered column */
};

struct step_shape {
    const char *name;
    uint32_t warpgroups, slots;   /* row blocks of a group, slots of a step */
    uint32_t stages, row_buffers; /* steps and row operands in flight */
    uint32_t blocks;              /* that are to fit a processor at a time */
    uint32_t registers;           /* of a thread that computes; 0: no setmaxnreg */
    uint32_t copy_registers;      /* of a thread of the copying warpgroup */
    bool rows_held;               /* row operands stay in registers */
    bool in_turn;                 /* warpgroups issue their products in turn */
    bool wait_sums;               /* a step ends with a wait for its sums */
    uint32_t least_dim, most_dim; /* head dimensions */
    struct step_clocks clocks;
};

enum { STEP_SHAPES_MOST = 4 };
