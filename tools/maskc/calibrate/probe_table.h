/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: masks and lengths that together contain every unit of work that plans count. */
#pragma once
#include "gen/plan/plan.h"
#include <stdbool.h>

/* Kind of piece that a probe's plan favours, regardless of current prices. */
enum favour { AS_IT_IS, TILES, LINES, GATHERS, ROWS, MIXED };

struct probe {
    const char *mask;
    uint32_t n;
    enum favour favour;
    bool single;       /* a GPU's: one sequence, and not as many as fill it */
    bool bias;         /* beside a bias, only where one is asked for */
    uint32_t head_dim; /* 0: MICROBENCH_HEAD_DIM */
};

enum { PROBES_MOST = 72, BIAS_LONGEST = 512, PROBE_LONGEST = 4096 };

/* The probes of a kind of machine, whose kernels may know no lines; a table of *ret_count. */
const struct probe *probe_table(enum target_kind kind, bool lines, bool bias,
                                uint32_t *ret_count);

/* Coefficients of the rates in the seconds of a pass on a GPU, launches apart: items share the GPU as the prediction has it, and
   bytes are all workers'. Returns the seconds that no rate is part of, which are of bytes. */
double probe_gpu_terms(const struct plan *p, enum machine_pass pass, uint32_t batch,
                       double ret[RATES]);

/* The machine as a plan that favours something is to see it. */
struct machine probe_machine(const struct machine *row, enum favour favour);
